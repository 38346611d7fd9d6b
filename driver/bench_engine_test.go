package driver

import (
	"testing"

	"ppc/internal/shared"
)

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
