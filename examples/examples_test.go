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

// small are smaller sizes for examples of the sizes of llama.pp, which are checked with
// the same schedule, shardings and settings: a quarter of the sequence, half of the
// embedding.
var small = []string{"axes.seq=16", "axes.embed=32", "axes.mlp=64"}

// Every example is formatted, is right, means what it says, so that nothing is
// warned of, and, where it has a model, computes
// what its layers in sequence compute: its outputs, or a step of training. Those
// that have the sequence of llama.pp are [small].
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
			if slices.ContainsFunc(p.Module.Main().Params(), func(v *ir.Value) bool { return slices.Equal(v.Type.Shape, []int{16, 64}) }) {
				src.Set = small
			}
			if _, err := driver.Run(t.Context(), src, opts); err != nil {
				t.Error(err)
			}
		})
	}
	if models == 0 {
		t.Error("no example has a model")
	}
}
