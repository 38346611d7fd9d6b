package driver

import (
	"strings"
	"testing"

	"ppc/internal/shared"
)

// TestCombineForCPU: the program for CPUs has one collective where others leave several to
// their compilers, unless it asks for more itself.
func TestCombineForCPU(t *testing.T) {
	for _, c := range []struct {
		platform string
		set      []string
		gathers  int // in the loops, forward and backward, and beside them
	}{
		{"tpu", nil, 21},
		{"cpu", nil, 9},
		{"cpu", []string{"pipeline.combine=16"}, 9},
		{"tpu", []string{"pipeline.combine=1048576"}, 9},
	} {
		out, err := Lower(t.Context(), &Source{File: "../examples/llama.pp", Set: c.set}, LowerOptions{Emit: "stablehlo", Platform: c.platform})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out, "stablehlo.all_gather"); got != c.gathers {
			t.Errorf("%s %v: %d all-gathers, want %d", c.platform, c.set, got, c.gathers)
		}
	}
}

// TestBenchEngine: what an engine takes of all cores is measured, to compile and per step.
func TestBenchEngine(t *testing.T) {
	r, err := Bench(t.Context(), &Source{File: "../examples/simple.pp"}, BenchOptions{Steps: 3, Engine: "pjrt:" + shared.CPUPlugin(t)})
	if err != nil {
		t.Fatal(err)
	}
	if r.EngineCPUSec <= 0 || r.CPUSec <= 0 || r.CPUSec > r.EngineCPUSec || r.StepMin > r.StepMedian {
		t.Errorf("%+v, want seconds of all cores to compile and, fewer, for a step", r)
	}
}
