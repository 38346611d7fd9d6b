package driver

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ppc/internal/golden"
	"ppc/internal/tensorfile"
)

// A program that is compiled once gives for every file of arguments what a run of it alone gives.
func TestProgram(t *testing.T) {
	dir := t.TempDir()
	src := &Source{File: write(t, "trained.pp", trained)}
	p, err := Compile(t.Context(), src, RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	args := ""
	var last map[string]*tensorfile.Array
	for _, name := range []string{"first.npz", "second.npz"} {
		once, alone := filepath.Join(dir, name), filepath.Join(dir, "alone-"+name)
		if _, err := p.Run(t.Context(), args, once); err != nil {
			t.Fatal(err)
		}
		if _, err := Run(t.Context(), src, RunOptions{Args: args, Out: alone}); err != nil {
			t.Fatal(err)
		}
		got := golden.Arrays(t, once)
		if diff := cmp.Diff(golden.Arrays(t, alone), got); diff != "" {
			t.Errorf("%s (-alone +compiled once):\n%s", name, diff)
		}
		if cmp.Equal(last, got) {
			t.Errorf("%s has what the file before it has", name)
		}
		args, last = once, got
	}
	t.Setenv("PPC_PYTHON", "python3") // so that JAX is refused whether there is one or not
	for _, opts := range []RunOptions{{Check: true}, {Trace: "t.json"}, {Engine: JAX}} {
		if _, err := Compile(t.Context(), src, opts); err == nil {
			t.Errorf("%+v: it is compiled", opts)
		}
	}
}
