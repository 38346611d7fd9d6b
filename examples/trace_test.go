package examples_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"ppc/ir"
	"ppc/ir/lang"
	"ppc/lower/stats"
	"ppc/runtime"
)

// small makes the Llama of the examples small, so that it runs in an instant.
var small = []string{"axes.seq=8", "axes.embed=16", "axes.mlp=32", "axes.vocab=32"}

// What devices execute is what stats counts in the program: every collective
// as often, with as many devices, so that each kind over each set of axes moves
// as many bytes. Where a device is at the end of a chain that does not wrap it
// gets nothing, which stats do not see; where a stage has no microbatch and
// skips it, a collective is left out S-1 times.
func TestTrace(t *testing.T) {
	train, zero := []string{"train"}, []string{"train", "axes.batch=32", "mesh.stage=2", "mesh.data=2", "pipeline.repeats=4", "train.shard_optimizer_over_data=true"}
	for _, c := range []struct {
		program string
		words   []string
		skipped int // by a stage, in a loop
	}{
		{program: "llama.pp"},
		{program: "llama.pp", words: train},
		{program: "llama.pp", words: append(train, "pipeline.gather=once")},
		{program: "llama.pp", words: append(train, "pipeline.combine=1000000")},
		{program: "llama.pp", words: zero},
		{program: "llama.pp", words: append(train, "pipeline.skip_bubbles=true"), skipped: 3},
		{program: "llama_window.pp", words: append(train, "pipeline.prefetch=head")},
		{program: "llama_window.pp", words: append(train, "pipeline.prefetch=ahead")},
		{program: "llama_window.pp", words: append(zero, "mesh.fsdp=2", "pipeline.prefetch=ahead", "pipeline.save_gathered=true")},
		{program: "llama_tp.pp", words: train},
		{program: "llama_sp.pp", words: train},
		{program: "llama_moe.pp", words: train},
	} {
		t.Run(fmt.Sprint(c.program, c.words), func(t *testing.T) {
			words := slices.Concat(small, c.words)
			set := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "train" })
			m := lowerAs(t, `include "`+c.program+`"`, lang.Options{Set: set, Train: slices.Contains(words, "train")})
			s, err := stats.Of(m)
			if err != nil {
				t.Fatal(err)
			}
			counted, bytes := make(map[*ir.Op]*stats.Collective), make(map[string]int)
			for _, c := range s.Collectives {
				counted[c.Op] = c
				bytes[c.Kind+" over "+c.Axes] += c.Moved * int(c.Executions)
			}
			branched := inBranches(m)
			for _, did := range traced(t, m) {
				c2 := counted[did.Op]
				if c2 == nil {
					t.Fatalf("%s ran and was not counted", did.Op.Name())
				}
				delete(counted, did.Op)
				want := int(c2.Executions)
				if branched[did.Op] {
					want -= c.skipped
				}
				for device, times := range did.Times {
					if times != want {
						t.Errorf("device %d: %s of %s in %q ran %d times, want %d", device, c2.Kind, c2.Name, c2.Loop, times, want)
					}
				}
				bytes[c2.Kind+" over "+c2.Axes] -= received(did) * int(c2.Executions)
			}
			if len(counted) > 0 {
				t.Errorf("%d collectives were counted and did not run", len(counted))
			}
			for _, title := range slices.Sorted(maps.Keys(bytes)) {
				if bytes[title] != 0 {
					t.Errorf("%s: %d bytes were counted that did not move", title, bytes[title])
				}
			}
			if c.skipped > 0 && len(branched) == 0 {
				t.Error("no collective stands in a branch")
			}
		})
	}
}

// traced runs m on arguments that are zero and returns what it did at each
// collective.
func traced(t *testing.T, m *ir.Module) []runtime.Traced {
	t.Helper()
	exe, err := runtime.Load(m)
	if err != nil {
		t.Fatal(err)
	}
	args := make([][]*ir.Literal, m.NumDevices())
	for d := range args {
		for _, p := range m.Main().Params() {
			args[d] = append(args[d], ir.SplatOf(p.Type, 0))
		}
	}
	var trace runtime.Trace
	if _, err := exe.Run(t.Context(), args, runtime.WithTrace(&trace)); err != nil {
		t.Fatal(err)
	}
	return trace.Collectives
}

// inBranches are the collectives that run where a condition holds.
func inBranches(m *ir.Module) map[*ir.Op]bool {
	found := make(map[*ir.Op]bool)
	m.Main().Body.Walk(func(op *ir.Op) {
		if op.Kind == ir.If || op.Kind == ir.Case {
			for _, r := range op.Regions {
				r.Walk(func(op *ir.Op) { found[op] = op.Kind.Has(ir.Collective) })
			}
		}
	})
	maps.DeleteFunc(found, func(_ *ir.Op, collective bool) bool { return !collective })
	return found
}

// received is the bytes that the device with the most of them gets each time:
// from every other one of its group a part of the whole, and of a sum that all
// get also every other part of the sum; a permute moves all.
func received(did runtime.Traced) int {
	size := func(vs []*ir.Value) (n int) {
		for _, v := range vs {
			n += v.Type.Bytes()
		}
		return n
	}
	n, whole := slices.Max(did.Meets), max(size(did.Op.Operands), size(did.Op.Results))
	switch did.Op.Kind {
	case ir.CollectivePermute:
		return whole * (n - 1)
	case ir.AllReduce:
		return 2 * (whole - whole/n)
	}
	return whole - whole/n
}
