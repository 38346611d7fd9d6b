package lint_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"ppc/internal/conformance"
	"ppc/ir"
	"ppc/ir/verify"
	"ppc/lower/hlo"
	"ppc/lower/lint"
)

// lintAny lints whatever src says, as it stands where it is not per device yet,
// and after the passes too where it is a model; an error is fine, a panic not.
// It reports whether there was a program to lint.
func lintAny(t *testing.T, name, src string) (linted bool) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("%s: %v\n%s", name, r, debug.Stack())
		}
	}()
	m, err := readAny(src)
	if err != nil || m == nil || m.Main() == nil || m.Main().Body == nil {
		return false
	}
	local := m.Clone()
	local.Form |= ir.Expanded | ir.Local
	_, err = lint.Of(local, nil)
	linted = err == nil
	if strings.HasPrefix(strings.TrimSpace(src), "axes") {
		if _, err := find(m); err == nil {
			linted = true
		}
	}
	return linted
}

func readAny(src string) (*ir.Module, error) {
	src = strings.TrimSpace(src)
	if strings.HasPrefix(src, "HloModule") || strings.HasPrefix(src, "ENTRY") {
		m, err := hlo.Parse("in.hlo", []byte(src))
		if err == nil {
			err = verify.Verify(m)
		}
		return m, err
	}
	return read(src)
}

// No program of the golden archives is too odd to be linted.
func TestArchives(t *testing.T) {
	n := 0
	err := filepath.WalkDir("../../testdata/golden", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files := txtar.Parse(text).Files
		if filepath.Ext(path) != ".txtar" {
			files = []txtar.File{{Name: path, Data: text}}
		}
		for _, f := range files {
			if lintAny(t, path+" "+f.Name, string(f.Data)) {
				n++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d programs", n)
	if n < 100 {
		t.Errorf("%d programs of the archives are linted, want 100", n)
	}
}

// Nor is one of the upstream suites.
func TestSuites(t *testing.T) {
	units := conformance.Units(t, "hlo-parse", "hlo-collective", "hlo-pipeline", "interpret", "verify-ok", "sdy-partition", "sdy-collective", "sdy-parse", "testdata")
	n := 0
	for _, u := range units {
		source, err := u.Source()
		if err != nil {
			t.Fatal(err)
		}
		if lintAny(t, u.Name(), source) {
			n++
		}
	}
	t.Logf("%d of %d programs are linted", n, len(units))
	if n == 0 {
		t.Error("no program of the suites is linted")
	}
}

// In a healthy pipeline nothing is found but what it keeps for the backward
// pass, and when it is printed and read again no more.
func TestPrinted(t *testing.T) {
	for _, settings := range []string{"gather = once", "gather = per_repeat", "gather = per_repeat, prefetch = ahead", "gather = once, rotate = slice_pad"} {
		m, err := read(strings.Replace(pipeline, "SETTINGS", settings, 1))
		if err != nil {
			t.Fatal(err)
		}
		healthy(t, settings, m)
		text, err := hlo.Print(m)
		if err != nil {
			t.Fatal(err)
		}
		printed, err := read(text)
		if err != nil {
			t.Fatal(err)
		}
		healthy(t, settings+", printed", printed)
	}
}

func healthy(t *testing.T, name string, m *ir.Module) {
	t.Helper()
	found, err := find(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Lint != "growing-residual" || f.Severity != lint.Note {
			t.Errorf("%s: %s", name, f)
		}
	}
}

const pipeline = `axes { batch = 8, embed = 4, mlp = 8 }

layer block(x: f32[batch, embed]) {
  param w: f32[embed, mlp] = normal(0.1)
  param v: f32[mlp, embed] = normal(0.1)
  return x + dot(dot(x, w, over: embed), v, over: mlp)
}

model tiny(x: f32[batch, embed]) {
  x = pipeline(block, layers: 4)(x)
  return mean(x * x)
}

mesh { stage = 2, fsdp = 2 }

shard weights     { embed -> fsdp }
shard activations { batch -> fsdp }

pipeline { microbatches = 4, repeats = 2, SETTINGS }

train { optimizer = sgd(lr: 0.1) }
`

// A program whose calls double at every level is refused, not inlined.
func TestCallsThatDouble(t *testing.T) {
	var b strings.Builder
	b.WriteString("module {\n")
	for i := range 40 {
		fmt.Fprintf(&b, "func.func private @f%d(%%x: tensor<f32>) -> tensor<f32> {\n", i)
		if i == 0 {
			b.WriteString("%y = stablehlo.tanh %x : tensor<f32>\nreturn %y : tensor<f32>\n}\n")
			continue
		}
		fmt.Fprintf(&b, "%%y = func.call @f%d(%%x) : (tensor<f32>) -> tensor<f32>\n%%z = func.call @f%d(%%y) : (tensor<f32>) -> tensor<f32>\nreturn %%z : tensor<f32>\n}\n", i-1, i-1)
	}
	b.WriteString("func.func @main(%x: tensor<f32>) -> tensor<f32> {\n%y = func.call @f39(%x) : (tensor<f32>) -> tensor<f32>\nreturn %y : tensor<f32>\n}\n}\n")
	m, err := read(b.String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lint.Of(m, nil); err == nil || !strings.Contains(err.Error(), "inlined the program has more than 20") {
		t.Errorf("got %v, want an error that the program is too long", err)
	}
}
