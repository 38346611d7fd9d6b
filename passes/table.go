// Package passes turns a model into one program per device, one pass at a time.
// [Table] is the one list of the passes and their order; [Run] runs them, with
// the verifier between. Each pass is in the folder of its name or kind.
package passes

import (
	"slices"

	"ppc/ir"
	"ppc/passes/bubbles"
	"ppc/passes/combine"
	"ppc/passes/expand"
	"ppc/passes/gradient"
	"ppc/passes/optimizer"
	"ppc/passes/pad"
	"ppc/passes/partition"
	"ppc/passes/pass"
	"ppc/passes/pipeline"
	"ppc/passes/propagate"
	"ppc/passes/tidy"
)

// Table holds every pass in the order in which the compiler runs them.
var Table = []pass.Pass{
	{
		Name: "stage-sharding", Doc: "turns pipelines and stacks into loops over iterations and layers, stages as a sharded dimension",
		Ensures: ir.Staged,
		Run:     pipeline.StageSharding,
	},
	{
		Name: "allgather-prefetch", Doc: "places the gathers of pipelined weights: in every iteration, once per repeat, or once before the loop",
		Requires: ir.Staged, Ensures: ir.Gathered,
		Run: pipeline.AllgatherPrefetch,
	},
	{
		Name: "checkpoint", Doc: "puts remat regions around iterations, layers or repeats, or around their loops",
		Requires: ir.Gathered, Ensures: ir.Checkpointed,
		Run: pipeline.Checkpoint,
	},
	{Name: "inline", Doc: "puts functions in place of their calls, if a gradient is asked for", Requires: ir.Checkpointed, Run: gradient.Inline},
	{Name: "count-loops", Doc: "makes a loop over a range of every while that counts, if a gradient is asked for", Requires: ir.Checkpointed, Run: gradient.CountLoops},
	{Name: "state-shardings", Doc: "writes down the sharding that every value has in explicit mode, if a gradient is asked for", Requires: ir.Checkpointed, Run: propagate.StateShardings},
	{
		Name: "differentiate", Doc: "appends the gradient of the loss, by reverse mode over loops, if it is asked for",
		Requires: ir.Checkpointed, Ensures: ir.Differentiated,
		Run: gradient.Differentiate,
	},
	{
		Name: "optimizer", Doc: "makes the program a step of training: state, update, new parameters in place of the old, if it is asked for",
		Requires: ir.Differentiated, Ensures: ir.Optimized,
		Run: optimizer.Optimizer,
	},
	{
		Name: "rotate", Doc: "lowers moves along the stage dimension to a permute per device, or to slices and pads",
		Requires: ir.Optimized, Ensures: ir.Rotated,
		Run: pipeline.Rotate,
	},
	{Name: "unroll", Doc: "repeats the bodies of loops as often as the configuration asks", Requires: ir.Rotated, Run: pipeline.Unroll},
	{
		Name: "expand", Doc: "lowers the remaining pp ops and chlo ops to StableHLO, and inlines calls: pure StableHLO with shardings",
		Requires: ir.Rotated, Ensures: ir.Expanded,
		Run: expand.Expand,
	},
	{Name: "simplify", Doc: "applies algebraic identities and folds small constants", Requires: ir.Expanded, Run: tidy.Simplify},
	{Name: "cse", Doc: "merges values that compute the same thing", Run: tidy.Cse},
	{Name: "dce", Doc: "removes unused values and loop carries", Run: tidy.Dce},
	{
		Name: "propagate", Doc: "gives every value a sharding, from those that the program states",
		Requires: ir.Expanded, Ensures: ir.Sharded,
		Run: propagate.Propagate,
	},
	{
		Name: "pad", Doc: "pads dimensions whose sizes the axes that shard them do not divide",
		Requires: ir.Sharded, Ensures: ir.Padded,
		Run: pad.Pad,
	},
	{
		Name: "choose", Doc: "chooses the layouts that every op is computed with, and reshards where they differ",
		Requires: ir.Padded, Ensures: ir.Resharded,
		Run: partition.Choose,
	},
	{
		Name: "collectives", Doc: "does every reshard by the explicit collectives that move the fewest bytes",
		Requires: ir.Resharded, Ensures: ir.Explicit,
		Run: partition.Collectives,
	},
	{
		Name: "localize", Doc: "makes the program one per device: local shapes, halo exchanges, groups in place of shardings",
		Requires: ir.Explicit, Ensures: ir.Local, Breaks: ir.Sharded | ir.Padded | ir.Resharded | ir.Explicit,
		Run: partition.Localize,
	},
	{Name: "simplify", Doc: "applies algebraic identities and folds small constants", Run: tidy.Simplify},
	{Name: "licm", Doc: "moves loop-invariant ops that take no memory out of loops", Run: tidy.Licm},
	{Name: "cse", Doc: "merges values that compute the same thing", Run: tidy.Cse},
	{Name: "dce", Doc: "removes unused values and loop carries", Run: tidy.Dce},
	{Name: "skip-bubbles", Doc: "skips the computation of stages that have no microbatch, if that is configured", Requires: ir.Local, Run: bubbles.SkipBubbles},
	{Name: "sink", Doc: "moves fills that one branch alone reads into it", Run: tidy.Sink},
	{Name: "dce", Doc: "removes unused values and loop carries", Run: tidy.Dce},
	{Name: "combine", Doc: "combines collectives of the same kind and groups up to a size, and those whose results are added up", Requires: ir.Local, Run: combine.Combine},
}

// Names returns the names of the passes, each once, in order.
func Names() []string {
	var names []string
	for i := range Table {
		if !slices.Contains(names, Table[i].Name) {
			names = append(names, Table[i].Name)
		}
	}
	return names
}
