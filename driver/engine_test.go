package driver

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ppc/driver/binding"
	"ppc/internal/shared"
	"ppc/internal/tensorfile"
	"ppc/ir/lang"
	"ppc/runtime/pjrt"
)

func init() { pjrt.Serve() } // a worker's child is this test

// engineExamples are the programs that every engine is held to: all that are small,
// with PPC_ENGINES=all, or some.
func engineExamples(t *testing.T) []string {
	if os.Getenv("PPC_ENGINES") != "all" {
		return []string{"../examples/simple.pp", "../examples/llama_moe.pp"}
	}
	var out []string
	for _, pattern := range []string{"../examples/*.pp", "../examples/maxtext/*.pp"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			large := strings.Contains(f, "b.pp") || strings.Contains(f, "_small") || strings.Contains(f, "_medium") // of full size, or for measuring
			if strings.Contains(string(text), "\nmodel ") && !large {
				out = append(out, f)
			}
		}
	}
	return out
}

// TestEngines: three steps of training, or one run, give the same losses, parameters
// and results on every engine, and the same bits in every run on one.
func TestEngines(t *testing.T) {
	plugin := "pjrt:" + shared.CPUPlugin(t)
	for _, file := range engineExamples(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			run := func(engine string) map[string]*tensorfile.Array {
				out := filepath.Join(t.TempDir(), "out.npz")
				opts := RunOptions{Engine: engine, Out: out}
				p, err := (&Source{File: file}).load(t.Context(), lang.Options{Train: true})
				if err != nil {
					t.Fatal(err)
				}
				if p.training != nil {
					three := 3
					opts.Steps = &three
				}
				if _, err := Run(t.Context(), &Source{File: file}, opts); err != nil {
					t.Fatalf("%s: %v", engine, err)
				}
				return arraysOf(t, out)
			}
			want, got, again := run(Goroutines), run(plugin), run(plugin)
			for name, w := range want {
				if worst := furthest(w, got[name]); worst > 1e-4 {
					t.Errorf("%s: %s is %v off", file, name, worst)
				}
				if !slices.Equal(got[name].Data, again[name].Data) {
					t.Errorf("%s: %s has other bits in another run", file, name)
				}
			}
		})
	}
}

// arraysOf reads all arrays of a file.
func arraysOf(t *testing.T, path string) map[string]*tensorfile.Array {
	t.Helper()
	f, err := tensorfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := make(map[string]*tensorfile.Array)
	for _, name := range f.Names() {
		if out[name], err = f.Read(name); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// furthest is the largest difference of elements, relative to the largest element
// but at least absolute.
func furthest(a, b *tensorfile.Array) float64 {
	x, y := binding.LiteralOf(a), binding.LiteralOf(b)
	worst, scale := 0.0, 1.0
	for i := range x.Type.NumElements() {
		scale = max(scale, math.Abs(x.Float(i)))
		worst = max(worst, math.Abs(x.Float(i)-y.Float(i)))
	}
	return worst / scale
}
