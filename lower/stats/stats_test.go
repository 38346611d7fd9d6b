package stats_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ppc/internal/golden"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/ir/mlir"
	"ppc/lower/stats"
	"ppc/passes"
)

// lowered is the per-device program of a text in either language; a .pp text
// may include the examples. Words with "=" are settings; train asks for a step
// of training, gradient for the gradients of the parameters only.
func lowered(t *testing.T, src string, words []string) *ir.Module {
	t.Helper()
	m := parse(t, src, words)
	if m.Form.Has(ir.Local) {
		return m
	}
	if err := passes.Run(m, passes.Config{}); err != nil {
		t.Fatal(err)
	}
	return m
}

func parse(t *testing.T, src string, words []string) *ir.Module {
	t.Helper()
	if strings.HasPrefix(src, "module") {
		m, err := mlir.Parse("in.mlir", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		if err := ir.Verify(m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	var set []string
	for _, w := range words {
		if strings.Contains(w, "=") {
			set = append(set, w)
		}
	}
	read := func(name string) ([]byte, error) {
		if name == "in.pp" {
			return []byte(src), nil
		}
		return os.ReadFile(filepath.Join("../../examples", filepath.Base(name)))
	}
	p, err := lang.Load("in.pp", lang.Options{Set: set, ReadFile: read, Train: slices.Contains(words, "train")})
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(words, "gradient") {
		p.Module.Attrs.Set("pp.gradient", ir.Str("params"))
	}
	return p.Module
}

func measure(t *testing.T, src string, words ...string) *stats.Stats {
	t.Helper()
	s, err := stats.Of(lowered(t, src, words))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestGolden(t *testing.T) {
	stage := func(print func(*stats.Stats) string, more ...string) golden.Stage {
		return func(t *testing.T, src string, words []string) string {
			return print(measure(t, src, append(words, more...)...))
		}
	}
	golden.Run(t, "../../testdata/golden/stats", map[string]golden.Stage{
		"stats":     stage((*stats.Stats).Text),
		"json":      stage((*stats.Stats).JSON),
		"ppermute":  stage((*stats.Stats).Text, "pipeline.rotate=ppermute"),
		"slice_pad": stage((*stats.Stats).Text, "pipeline.rotate=slice_pad"),
	})
}
