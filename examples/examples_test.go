package examples_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"ppc/driver"
	"ppc/ir"
	"ppc/ir/lang"
)

// files are the examples, and what they include.
func files(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.pp", "maxtext/*.pp"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("no examples match %s (%v)", pattern, err)
		}
		all = append(all, paths...)
	}
	return all
}

// ofFullSize is the name of an example that is too large to check here: it ends
// with the number of parameters, as llama2_7b.pp does, or is a size for measuring.
var ofFullSize = regexp.MustCompile(`_(\d+b|small|medium)\.pp$`)

// smaller are sizes for examples of the sizes of llama.pp, which are checked with the same
// schedule, shardings and settings: an eighth of the sequence, a quarter of the embedding
// and of each head, and of the vocabulary.
var smaller = []string{"axes.seq=8", "axes.embed=16", "axes.head=4", "axes.mlp=32", "axes.vocab=128"}

// sizes are such sizes for examples that have axes of their own.
var sizes = map[string][]string{
	"gpt.pp":    {"axes.seq=8", "axes.embed=16", "axes.vocab=64"},
	"llama2.pp": {"axes.seq=8", "axes.embed=16", "axes.mlp=44", "axes.vocab=80", "axes.queries=4", "axes.tokens=2"},
}

// sized are the settings for a program of such sizes: nil where it is small as it is.
func sized(file string, m *ir.Module) []string {
	if slices.ContainsFunc(m.Main().Params(), func(v *ir.Value) bool { return slices.Equal(v.Type.Shape, []int{16, 64}) }) {
		return smaller
	}
	return sizes[file]
}

// Every example is formatted, is right, means what it says, so that nothing is
// warned of, and, where it has a model, computes
// what its layers in sequence compute: its outputs, or a step of training, at the
// sizes that [sized] has for them.
func TestExamples(t *testing.T) {
	models := 0
	for _, file := range files(t) {
		t.Run(filepath.ToSlash(file), func(t *testing.T) {
			src := &driver.Source{File: file, Warn: func(w *driver.Warning) { t.Error(w) }}
			f, err := driver.Format(t.Context(), src)
			if err != nil {
				t.Fatal(err)
			}
			if diff := f.Diff(); diff != nil {
				t.Errorf("it is not formatted:\n%s", diff)
			}
			if err := driver.Check(t.Context(), []*driver.Source{src}); err != nil {
				t.Fatal(err)
			}
			p, err := lang.Load(file, lang.Options{Library: true, Train: true})
			if err != nil {
				t.Fatal(err)
			}
			if p.Module == nil {
				return // a library
			}
			models++
			if ofFullSize.MatchString(file) {
				return
			}
			t.Parallel()
			opts := driver.RunOptions{Check: true}
			if p.Training != nil {
				opts.Steps = new(1)
			}
			src.Set = sized(file, p.Module)
			if _, err := driver.Run(t.Context(), src, opts); err != nil {
				t.Error(err)
			}
		})
	}
	if models == 0 {
		t.Error("no example has a model")
	}
}
