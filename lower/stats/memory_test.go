package stats_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"ppc/ir"
	"ppc/lower/stats"
	"ppc/runtime"
)

// The live bytes of programs that one can follow by hand. An f32 tensor of 256
// elements has 1024 bytes.
func TestMemory(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/memory.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		t.Run(f.Name, func(t *testing.T) {
			src := string(f.Data)
			m := parse(t, src, nil)
			m.Form |= ir.Expanded | ir.Local
			s, err := stats.Of(m)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := partsText(s.Memory), wanted(src); got != want {
				t.Errorf("%s: %s, want %s", s.Memory.At, got, want)
			}
			if s.Memory.Peak != sum(s.Memory.Parts[:]) {
				t.Errorf("the peak is %d, its parts make %d", s.Memory.Peak, sum(s.Memory.Parts[:]))
			}
			profiled(t, s)
			if !strings.Contains(src, "// not as it runs") {
				likeRuntime(t, m, s)
			}
		})
	}
}

// profiled demands that the most of the profile is the peak, and that what is held
// then makes it up, class by class.
func profiled(t *testing.T, s *stats.Stats) {
	t.Helper()
	p := s.Profile()
	most := 0
	for _, m := range p.Moments {
		most = max(most, m.Peak)
		if m.Peak != sum(m.Parts[:]) {
			t.Errorf("at %s %d bytes are live, in parts %d", m.At, m.Peak, sum(m.Parts[:]))
		}
	}
	if most != s.Memory.Peak {
		t.Errorf("the profile's most is %d bytes, the peak %d", most, s.Memory.Peak)
	}
	parts := s.Memory.Parts
	for _, h := range p.Holdings {
		if h.Op != "call" {
			parts[h.Class] -= h.Bytes
		}
	}
	for c, rest := range parts {
		if rest != 0 && !called(s) {
			t.Errorf("%d bytes of %s at the peak are held by nothing", rest, stats.Class(c))
		}
	}
}

// called reports whether the program calls functions, whose memory is that of the call.
func called(s *stats.Stats) bool {
	return slices.ContainsFunc(s.Profile().Holdings, func(h stats.Holding) bool { return h.Op == "call" })
}

// partsText is the parts that are not 0.
func partsText(m stats.Memory) string {
	var parts []string
	for c, n := range m.Parts {
		if n > 0 {
			parts = append(parts, strings.Join([]string{stats.Class(c).String(), strconv.Itoa(n)}, " "))
		}
	}
	if m.Host > 0 {
		parts = append(parts, fmt.Sprint("host ", m.Host))
	}
	return strings.Join(parts, ", ")
}

// wanted is what the program's comment says.
func wanted(src string) string {
	_, rest, _ := strings.Cut(src, "// want ")
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

func sum(ns []int) int {
	total := 0
	for _, n := range ns {
		total += n
	}
	return total
}

// likeRuntime demands that a program for one device takes, as it runs, what was
// found for it: the runtime frees a buffer after its last use, and writes in
// place where it can.
func likeRuntime(t *testing.T, m *ir.Module, s *stats.Stats) {
	t.Helper()
	if peak, want := runPeak(t, m), s.Memory.Peak-s.Memory.Parts[stats.Parameters]-s.Memory.Parts[stats.OptimizerState]; peak != want {
		t.Errorf("as it runs it takes %d bytes besides its arguments, found %d", peak, want)
	}
}

// runPeak is the high-water mark of a run on ones, of all devices.
func runPeak(t *testing.T, m *ir.Module) int {
	t.Helper()
	exe, err := runtime.Load(m, runtime.Unfused())
	if err != nil {
		t.Fatal(err)
	}
	args := make([][]*ir.Literal, exe.Devices())
	for d := range args {
		for _, p := range m.Main().Params() {
			args[d] = append(args[d], ir.SplatOf(p.Type, 1))
		}
	}
	var trace runtime.Trace
	if _, err := exe.Run(t.Context(), args, runtime.WithTrace(&trace), runtime.Workers(1)); err != nil {
		t.Fatal(err)
	}
	return trace.PeakBytes
}

// The devices of a program together take at most what was found for one times
// their number: they are not all at the peak at once, and share what they
// gather. And not much less: what was found is what is there.
func TestDevices(t *testing.T) {
	for _, c := range []struct{ name, words string }{
		{"simple", ""}, {"simple", "gradient"}, {"gpt", "gradient axes.seq=16"}, {"llama", "axes.seq=16"}, {"llama", "gradient axes.seq=16"}, {"llama", "train axes.seq=16"},
		{"llama_gpipe", "axes.seq=16"}, {"llama_tp", "axes.seq=16"},
	} {
		t.Run(c.name+" "+c.words, func(t *testing.T) {
			src := fmt.Sprintf("include %q", c.name+".pp")
			m := lowered(t, src, strings.Fields(c.words))
			donated, err := stats.Of(m)
			if err != nil {
				t.Fatal(err)
			}
			profiled(t, donated)
			keepArguments(m)
			s, err := stats.Of(m)
			if err != nil {
				t.Fatal(err)
			}
			found := (s.Memory.Peak - s.Memory.Parts[stats.Parameters] - s.Memory.Parts[stats.OptimizerState]) * m.NumDevices()
			peak := runPeak(t, m)
			t.Logf("as it runs: %d bytes, found: %d", peak, found)
			if peak > found || peak < found/4 {
				t.Errorf("as it runs it takes %d bytes, found %d", peak, found)
			}
		})
	}
}

// keepArguments takes back donations, since a run never writes its arguments.
func keepArguments(m *ir.Module) {
	f := m.Main()
	for _, p := range f.Params() {
		p.Attrs.Delete("tf.aliasing_output")
	}
	for i := range f.Results {
		f.Results[i].Attrs.Delete("pp.alias")
	}
}

// Cutting one batch into more microbatches costs no memory besides what the
// policy keeps; where every layer is computed again that is one activation for
// each iteration, and no loop ever stacks what has the shape of a weight.
func TestMicrobatches(t *testing.T) {
	train := func(microbatches int, checkpoint string) *stats.Stats {
		return measure(t, `include "llama.pp"`, "train", "axes.batch=32", fmt.Sprintf("pipeline.microbatches=%d", microbatches), "pipeline.checkpoint="+checkpoint)
	}
	besides := func(s *stats.Stats) int { return s.Memory.Peak - s.Memory.Parts[stats.ResidualStacks] }
	few, many := train(8, "iteration"), train(16, "iteration")
	if besides(many) > besides(few) {
		t.Errorf("besides residuals, 16 microbatches take %d bytes, 8 take %d", besides(many), besides(few))
	}
	if len(many.Residuals) != 1 || many.Residuals[0].Name != "decoder_layer_input" || many.Residuals[0].Why != "named by the policy" {
		t.Errorf("kept are %v, want decoder_layer_input alone", many.Residuals)
	}
	if all := train(16, "none"); all.Memory.Parts[stats.ResidualStacks] < 10*many.Memory.Parts[stats.ResidualStacks] {
		t.Errorf("without checkpoints %d bytes of residuals, with them %d", all.Memory.Parts[stats.ResidualStacks], many.Memory.Parts[stats.ResidualStacks])
	}
	for _, l := range many.Loops {
		for _, a := range l.Carries {
			if stats.Count(a.Type.NumElements()) > l.Trips && a.Type.Shape[0] == int(l.Trips) && !a.Type.Equal(many.Residuals[0].Type) {
				t.Errorf("%s: %s of type %s has a row for each iteration", l.Name, a.Name, a.Type)
			}
		}
	}
}
