package stats_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ppc/internal/golden"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/ir/mlir"
	"ppc/ir/verify"
	"ppc/lower/hlo"
	"ppc/lower/stats"
	"ppc/passes"
)

// lowered is the per-device program of a text in either language; a .pp text
// may include the examples. Words with "=" are settings; train asks for a step
// of training, gradient for the gradients of the parameters only.
func lowered(t *testing.T, src string, words []string) *ir.Module {
	t.Helper()
	m := parse(t, src, words)
	if strings.HasPrefix(src, "HloModule") {
		u, err := hlo.Unfuse(m)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
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
	for prefix, read := range map[string]func(string, []byte) (*ir.Module, error){"module": mlir.Parse, "HloModule": hlo.Parse} {
		if !strings.HasPrefix(src, prefix) {
			continue
		}
		m, err := read("in.mlir", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		if err := verify.Verify(m); err != nil {
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

// Weights are gathered as often as the policy says: in each of the M*R + S - 1
// iterations, or once.
func TestGathers(t *testing.T) {
	const stages, repeats, weights = 4, 2, 9
	for _, microbatches := range []int{4, 8, 16} {
		for gather, want := range map[string]int{"per_iteration": (microbatches*repeats + stages - 1) * weights, "once": weights} {
			s := measure(t, `include "llama.pp"`, fmt.Sprintf("pipeline.microbatches=%d", microbatches), "axes.batch=32", "pipeline.gather="+gather)
			got := 0
			for _, c := range s.Collectives {
				if c.Kind == "all_gather" && c.Axes == "fsdp" && strings.HasPrefix(c.Name, "decoder.") {
					got += int(c.Executions)
				}
			}
			if got != want {
				t.Errorf("gather = %s, %d microbatches: %d gathers of weights, want %d", gather, microbatches, got, want)
			}
		}
	}
}

// What cannot be measured is an error, which says what is in the way.
func TestErrors(t *testing.T) {
	for src, want := range map[string]string{
		"module {\n func.func private @a()\n func.func private @b()\n}":                                                                                  "there is no @main: the module has no function to measure, or several",
		"module {\n func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n return %x : tensor<?xf32>\n }\n}":                                            "in.mlir:2:2: in @main: parameter 0: tensor<?xf32> has no known size",
		"module {\n func.func @main() {\n func.call @f() : () -> ()\n return\n }\n func.func private @f() {\n func.call @f() : () -> ()\n return\n }\n}": "@f calls itself",
	} {
		m, err := mlir.Parse("in.mlir", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stats.Of(m); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
