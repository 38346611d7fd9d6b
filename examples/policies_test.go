package examples_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ppc/ir/lang"
	"ppc/lower/stats"
)

// policies are the ways to gather the weights of a pipeline's layers.
var policies = []struct {
	name string
	set  []string
}{
	{"per_iteration", nil},
	{"once", []string{"pipeline.gather=once"}},
	{"per_repeat, head", []string{"pipeline.gather=per_repeat"}},
	{"per_repeat, ahead", []string{"pipeline.gather=per_repeat", "pipeline.prefetch=ahead"}},
	{"per_repeat, head, saved", []string{"pipeline.gather=per_repeat", "pipeline.save_gathered=true"}},
	{"per_repeat, ahead, saved", []string{"pipeline.gather=per_repeat", "pipeline.prefetch=ahead", "pipeline.save_gathered=true"}},
}

// zeroMesh is the mesh of a program whose optimizer state can be sharded along
// data.
var zeroMesh = []string{"mesh.data=2", "axes.batch=32"}

func measure(t *testing.T, src string, opts lang.Options) *stats.Stats {
	t.Helper()
	s, err := stats.Of(lowerAs(t, src, opts))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// policyTable says, for every policy, how often in a step the weights of the
// layers are gathered and their gradients scattered.
func policyTable(t *testing.T, src string, _ []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-26s%18s%18s%10s\n", "gather", "gathers forward", "gathers backward", "scatters")
	for _, p := range policies {
		forward, _ := ofLayers(measure(t, src, lang.Options{Set: p.set}))
		gathers, scatters := ofLayers(measure(t, src, lang.Options{Set: p.set, Train: true}))
		fmt.Fprintf(&b, "%-26s%18d%18d%10d\n", p.name, forward, gathers-forward, scatters)
	}
	return b.String()
}

// zeroTable says, for every policy, what a step moves along data that is larger
// than some scalars, with the optimizer's state replicated, and sharded along data. An
// optimizer that is sharded over data adds collectives of its own, all outside of
// loops: those inside are the same, one by one.
func zeroTable(t *testing.T, src string, _ []string) string {
	kinds := []string{"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "collective_permute"}
	var b strings.Builder
	fmt.Fprintf(&b, "%-26s%-12s", "gather", "state")
	for _, kind := range kinds {
		fmt.Fprintf(&b, "%20s", kind)
	}
	for _, p := range policies {
		var inside [2][]string
		var outside [2]int
		for state, zero := range []string{"train.shard_optimizer_over_data=false", "train.shard_optimizer_over_data=true"} {
			s := measure(t, src, lang.Options{Set: slices.Concat(zeroMesh, p.set, []string{zero}), Train: true})
			inside[state], outside[state] = inLoops(s)
			counts := overData(s)
			fmt.Fprintf(&b, "\n%-26s%-12s", p.name, [2]string{"replicated", "sharded"}[state])
			for _, kind := range kinds {
				fmt.Fprintf(&b, "%20s", counts[kind])
			}
		}
		if len(inside[0]) == 0 || outside[1] <= outside[0] {
			t.Errorf("%s: %d collectives in loops; outside %d with the state replicated, %d with it sharded", p.name, len(inside[0]), outside[0], outside[1])
		}
		if !slices.Equal(inside[0], inside[1]) {
			t.Errorf("%s: inside of loops\n%s\nwith the state sharded\n%s", p.name, strings.Join(inside[0], "\n"), strings.Join(inside[1], "\n"))
		}
	}
	return b.String() + "\n"
}

// inLoops has a line for each collective in a loop, and the number of the others.
func inLoops(s *stats.Stats) (lines []string, outside int) {
	for _, c := range s.Collectives {
		if c.Loop == "" {
			outside++
			continue
		}
		lines = append(lines, fmt.Sprint(c.Loop, ": ", c.Kind, " of ", c.Name, " over ", c.Axes, ", ", c.Bytes, " bytes, ", c.Executions, " times"))
	}
	return lines, outside
}

// accumulatedTable is what a step of four batches moves along data, and the bytes
// of its gradient sums on a device.
func accumulatedTable(t *testing.T, src string, _ []string) string {
	kinds := []string{"all_reduce", "reduce_scatter", "all_gather"}
	var b strings.Builder
	fmt.Fprintf(&b, "%-12s%-11s", "state", "gradients")
	for _, kind := range kinds {
		fmt.Fprintf(&b, "%16s", kind)
	}
	fmt.Fprintf(&b, "%16s", "gradient sums")
	for _, row := range [][]string{
		{"replicated", "per_step"},
		{"sharded", "per_step", "train.shard_optimizer_over_data=true"},
		{"sharded", "per_batch", "train.shard_optimizer_over_data=true", "train.reduce_gradients=per_batch"},
	} {
		s := measure(t, src, lang.Options{Set: slices.Concat(zeroMesh, []string{"train.gradient_accumulation=4"}, row[2:]), Train: true})
		counts := overData(s)
		fmt.Fprintf(&b, "\n%-12s%-11s", row[0], row[1])
		for _, kind := range kinds {
			fmt.Fprintf(&b, "%16s", counts[kind])
		}
		fmt.Fprintf(&b, "%16d", s.Memory.Parts[stats.GradientSums])
	}
	return b.String() + "\n"
}

// ofLayers counts the executed gathers of weights of layers and scatters of
// their gradients: those in loops are all of layers.
func ofLayers(s *stats.Stats) (gathers, scatters int) {
	for _, c := range s.Collectives {
		switch {
		case c.Kind == "all_gather" && strings.HasPrefix(c.Name, "decoder."):
			gathers += int(c.Executions)
		case c.Kind == "reduce_scatter" && (c.Loop != "" || strings.HasPrefix(c.Name, "d.decoder.")):
			scatters += int(c.Executions)
		}
	}
	return gathers, scatters
}

// overData counts the executed collectives along data, by kind.
func overData(s *stats.Stats) map[string]string {
	outside, inside := make(map[string]int), make(map[string]int)
	for _, c := range s.Collectives {
		if !slices.Contains(strings.Split(c.Axes, ", "), "data") || c.Bytes <= 64 {
			continue
		}
		if c.Loop == "" {
			outside[c.Kind]++
		} else {
			inside[c.Kind] += int(c.Executions)
		}
	}
	words := make(map[string]string)
	for kind, n := range outside {
		words[kind] = fmt.Sprint(n)
	}
	for kind, n := range inside {
		words[kind] = fmt.Sprintf("%d, %d in loops", outside[kind], n)
	}
	return words
}
