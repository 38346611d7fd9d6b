package passes

import (
	"slices"

	"ppc/ir"
)

// Table holds every pass in the order in which the compiler runs them.
var Table = []Pass{
	{
		Name: "stage-sharding", Doc: "turns pipelines and stacks into loops over iterations and layers, stages as a sharded dimension",
		Ensures: ir.Staged,
		Run:     stageSharding,
	},
	{
		Name: "allgather-prefetch", Doc: "places the gathers of pipelined weights: in every iteration, once per repeat, or once before the loop",
		Requires: ir.Staged, Ensures: ir.Gathered,
		Run: allgatherPrefetch,
	},
	{
		Name: "checkpoint", Doc: "puts remat regions around iterations, layers or repeats, or around their loops",
		Requires: ir.Gathered, Ensures: ir.Checkpointed,
		Run: checkpoint,
	},
	{Name: "inline", Doc: "puts functions in place of their calls, if a gradient is asked for", Requires: ir.Checkpointed, Run: inlineForGradient},
	{Name: "count-loops", Doc: "makes a loop over a range of every while that counts, if a gradient is asked for", Requires: ir.Checkpointed, Run: countLoops},
	{Name: "state-shardings", Doc: "writes down the sharding that every value has in explicit mode, if a gradient is asked for", Requires: ir.Checkpointed, Run: stateShardings},
	{
		Name: "differentiate", Doc: "appends the gradient of the loss, by reverse mode over loops, if it is asked for",
		Requires: ir.Checkpointed, Ensures: ir.Differentiated,
		Run: differentiate,
	},
	{
		Name: "optimizer", Doc: "makes the program a step of training: state, update, new parameters in place of the old, if it is asked for",
		Requires: ir.Differentiated, Ensures: ir.Optimized,
		Run: optimizer,
	},
	{
		Name: "rotate", Doc: "lowers moves along the stage dimension to a permute per device, or to slices and pads",
		Requires: ir.Optimized, Ensures: ir.Rotated,
		Run: rotate,
	},
	{Name: "unroll", Doc: "repeats the bodies of loops as often as the configuration asks", Requires: ir.Rotated, Run: unroll},
	{
		Name: "expand", Doc: "expands what is left of the pp ops and functions of chlo, and inlines calls: pure StableHLO with shardings",
		Requires: ir.Rotated, Ensures: ir.Expanded,
		Run: expand,
	},
	{Name: "simplify", Doc: "applies algebraic identities and folds small constants", Requires: ir.Expanded, Run: simplify},
	{Name: "cse", Doc: "merges values that compute the same thing", Run: cse},
	{Name: "dce", Doc: "removes values and loop carries that nothing uses", Run: dce},
	{
		Name: "propagate", Doc: "gives every value a sharding, from those that the program states",
		Requires: ir.Expanded, Ensures: ir.Sharded,
		Run: propagate,
	},
	{
		Name: "partition", Doc: "makes the program one per device: local shapes, explicit collectives",
		Requires: ir.Sharded, Ensures: ir.Local, Breaks: ir.Sharded,
		Run: partition,
	},
	{Name: "simplify", Doc: "applies algebraic identities and folds small constants", Run: simplify},
	{Name: "licm", Doc: "moves out of loops what is the same in every iteration and takes no memory", Run: licm},
	{Name: "cse", Doc: "merges values that compute the same thing", Run: cse},
	{Name: "dce", Doc: "removes values and loop carries that nothing uses", Run: dce},
	{Name: "skip-bubbles", Doc: "leaves out the work of stages that have no microbatch, if it is asked for", Requires: ir.Local, Run: skipBubbles},
	{Name: "combine", Doc: "makes one collective of several alike, up to a size, and of those whose results are added up", Requires: ir.Local, Run: combine},
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
