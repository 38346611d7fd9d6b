package passes

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/ir/lang"
	"ppc/lower/stats"
	"ppc/runtime"
)

// llama is what the gradient step of examples/llama.pp needs, with settings.
func llama(t *testing.T, set ...string) *stats.Stats {
	t.Helper()
	read := func(name string) ([]byte, error) { return os.ReadFile("../examples/" + name) }
	p, err := lang.Load("llama.pp", lang.Options{Set: set, ReadFile: read})
	if err != nil {
		t.Fatal(err)
	}
	p.Module.Attrs.Set("pp.gradient", ir.Str("params"))
	if err := Run(p.Module, Config{}); err != nil {
		t.Fatal(err)
	}
	s, err := stats.Of(p.Module)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// residualNames are what a step keeps, by loop.
func residualNames(s *stats.Stats) string {
	var out []string
	for _, r := range s.Residuals {
		out = append(out, fmt.Sprintf("%s: %s %s", r.Loop, r.Name, r.Type))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// What examples/llama.pp keeps in each of its 19 iterations: where nothing else
// is said one microbatch, and what a policy names besides. Elsewhere, every value
// that a layer computes.
func TestResiduals(t *testing.T) {
	const input = "iterations: decoder_layer_input tensor<19x1x1x64x64xf32>"
	products := []string{"iterations: key_proj tensor<19x1x1x64x4x16xf32>", "iterations: query_proj tensor<19x1x1x64x4x16xf32>", "iterations: value_proj tensor<19x1x1x64x4x16xf32>"}
	for _, c := range []struct {
		set  string
		want []string
	}{
		{"remat=full", []string{input}},
		{"save_decoder_layer_input=false", []string{"iterations: iteration_input tensor<19x1x1x64x64xf32>"}},
		{"checkpoint=layer", []string{input}},
		{"remat=save_qkv_proj", append([]string{input}, products...)},
		{"remat=qkv_proj_offloaded", append([]string{input}, products...)},
		{"remat=minimal", append(append([]string{input, products[0]}, "iterations: mlpwi_0 tensor<19x1x1x64x256xf32>", "iterations: mlpwi_1 tensor<19x1x1x64x256xf32>"), products[1:]...)},
	} {
		if got := residualNames(llama(t, "pipeline."+c.set)); got != strings.Join(c.want, "\n") {
			t.Errorf("%s keeps\n%s\nwant\n%s", c.set, got, strings.Join(c.want, "\n"))
		}
	}
}

// What is kept in host memory takes none of the device: its stacks are the
// host's, beside one row of each on its way.
func TestOffloadedByMemory(t *testing.T) {
	kept, offloaded := llama(t, "pipeline.remat=save_qkv_proj"), llama(t, "pipeline.remat=qkv_proj_offloaded")
	stacks, rows := 0, 0
	for _, r := range offloaded.Residuals {
		if strings.HasSuffix(r.Name, "_proj") {
			stacks += r.Bytes
			rows += r.Bytes / r.Type.Shape[0]
		}
	}
	if kept.Memory.Host != 0 || stacks == 0 || offloaded.Memory.Host < stacks || offloaded.Memory.Host > stacks+rows {
		t.Errorf("%d and %d bytes in host memory, want 0, and %d with at most %d on their way", kept.Memory.Host, offloaded.Memory.Host, stacks, rows)
	}
	if saved := kept.Memory.Peak - offloaded.Memory.Peak; saved < stacks-rows {
		t.Errorf("the device has %d bytes less than with everything on it, of the %d that the host has", saved, stacks)
	}
}

// The further out a boundary is, the more its backward pass holds at a time.
func TestBoundariesByMemory(t *testing.T) {
	last := 0
	for _, set := range []string{"checkpoint=iteration", "checkpoint=repeat", "checkpoint_place=outside"} {
		peak := llama(t, "pipeline."+set).Memory.Peak
		if peak <= last {
			t.Errorf("%s needs %d bytes, the boundary inside of it %d", set, peak, last)
		}
		last = peak
	}
}

// On the runtime, too, a boundary inside of the loop needs less than one outside.
func TestBoundariesByHighWaterMark(t *testing.T) {
	c := model{S: 4, M: 16, R: 2, L: 1, D: 1, b: 2, e: 8, h: 64, data: 1, fsdp: 1, tensor: 1, gather: "per_iteration", rotate: "ppermute"}
	last := 0
	for _, boundary := range [][2]string{{"iteration", "inside"}, {"iteration", "outside"}} {
		c.remat = []ir.NamedAttr{facts.Named("checkpoint", ir.Str(boundary[0])), facts.Named("checkpoint_place", ir.Str(boundary[1]))}
		typed := withLoss(c.module())
		m := typed.Clone()
		if err := Run(m, Config{}); err != nil {
			t.Fatal(err)
		}
		trace := new(runtime.Trace)
		execute(t, m, typed, c.args(typed), runtime.Workers(1), runtime.WithTrace(trace))
		if trace.PeakBytes <= last {
			t.Errorf("%v needs %d bytes, the boundary inside of it %d", boundary, trace.PeakBytes, last)
		}
		last = trace.PeakBytes
	}
}
