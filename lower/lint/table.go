package lint

// Table is the lints, in the order of what they look at: what is gathered,
// reduced, sent, kept.
var Table = []Lint{
	{
		Name: "weight-gather-in-loop",
		Doc:  "a weight is gathered more often than it has shards",
		Explain: `A weight that is stored sharded (fsdp) is gathered inside of a loop, and in one step more of it is gathered than there is: every
iteration gathers what an earlier one has gathered before. A pipeline of M microbatches, R repeats and S stages does this M*R + S - 1 times per
weight where R times would do. It is right where memory is short, since one stage and repeat is replicated at a time, and where the gather hides
behind the iteration's compute; that is gather = per_iteration. Cure: gather = per_repeat gathers every repeat once and holds two, gather = once
gathers before the loop and holds all; in another program, move the all-gather before the loop. A loop that gathers each layer or repeat of a
stacked weight once is not reported.`,
		find: weightGathers,
	},
	{
		Name: "reduce-in-loop",
		Doc:  "a sum over devices is taken in every iteration and then only added up",
		Explain: `Devices that hold different examples (data) combine a gradient inside of a loop, and the loop does nothing with the result but add it
to a sum. Cure: add up first and combine once, after the loop, which gives the same sum for one transfer instead of one per iteration. A
reduce-scatter, or an all-reduce of which each device keeps its shard, is a note: put off, it needs the unsharded sum until then, which is what
gather = per_iteration avoids and gather = once or per_repeat does not. Any other reduction over an axis called data inside of a loop is a note too:
a loss or a statistic of the full batch needs it, the layers themselves do not.`,
		find: reduceInLoop,
	},
	{
		Name: "gathered-twice",
		Doc:  "a value is gathered although the result of an earlier gather has it",
		Explain: `Two all-gathers along the same axes have the same operand, up to its shape and element type, and the result of the first is there
where the second stands. Cure: use the first one's result for both. It may be right where the two are far apart and memory between them is short, as
for a weight that the backward pass gathers again: where a barrier stands between the two, as a checkpoint puts it, this is a note. Gathers in two
loops, one forward and one backward, are not reported: the first loop's are gone when the second runs.`,
		find: gatheredTwice,
	},
	{
		Name: "stage-gather",
		Doc:  "activations are gathered over the stages of the pipeline",
		Explain: `An all-gather over the axis stage, or over the devices that the permutes of a loop pass activations along, of floating-point
numbers that are no weight. Stages work on different layers; what one of them computes is wanted by the next, which a permute gives it for 1/S of
the bytes. Usually the result of the last stage, or the input of the first, has lost its sharding over the stages, and all stages then compute the
same with it. Cure: constrain it to stay sharded along stage where it is read. A side input of a pipeline is read by all stages: compute it in the
layer from what the layer has. Integers, such as positions that every stage needs, and one number per device are not reported.`,
		find: stageGathers,
	},
	{
		Name: "permute-cycles",
		Doc:  "a permute splits an axis in several rings, or leaves devices with zeros that are read",
		Explain: `The transfers of a permute should join the devices along an axis in one ring for each row of the mesh; several rings because of other
axes are fine. Where the devices of one row form several, as with a shift by 2 over 4 stages, what circles in one never gets to the other. Where
the ring is open, who is no target gets zeros: that is right for a shift whose result is then replaced on these devices, by a selection that follows
from the device's number, and for padding with zeros; it is wrong for a rotation that lacks its last pair. Cure: a shift by one position, the missing
pair, or the selection. Permutes that a partitioner has made are left out. Without a mesh, rings that are rows of some mesh count as such, unless
another permute of the program joins them.`,
		find: permuteCycles,
	},
	{
		Name: "gathered-unread",
		Doc:  "what is gathered is never read",
		Explain: `No result of the program follows from what an all-gather gives, loops and branches considered: it goes nowhere, or around in a loop
that hands it on and never uses it. Cure: leave the gather out. Or one row of it is read, as of a stack of layers: take the slice first and gather
that. A note is a gather in a loop that prefetches for the next iteration, without a condition: what the last iteration gathers is lost. That is one
of as many as there are iterations, and right if the loop gets simpler by it; taking the last iteration out of the loop saves it.`,
		find: gatheredUnread,
	},
	{
		Name: "invariant-collective",
		Doc:  "a collective in a loop has the same operands in every iteration",
		Explain: `Every iteration moves the same bytes and gets the same result, for one transfer per iteration. Cure: compute it once, before the loop.
Where the collective is the gather of a weight this is a note: before the loop, the replicated weight is in memory while the loop runs, in it only
while it is used. A pipeline without repeats and with gather = per_iteration is such a case, a decision about memory; gather = once is the other one.`,
		find: invariantCollective,
	},
	{
		Name: "growing-residual",
		Doc:  "a loop saves something of every iteration for a later loop",
		Explain: `A forward loop writes a row per iteration that the backward loop reads, so its memory grows with the number of iterations: M*R + S - 1
for a pipeline. What a checkpoint policy names is meant to be kept and is not reported. The others are notes, with their bytes: something has to be
kept, one input per iteration at least. Gathered weights are a warning: a loop that carries or uses a window of them keeps every repeat's, which
takes as much memory as gathering once. Cure: gather them again (save_gathered = false), recompute the rest in the later loop (remat = full with
checkpoint = iteration). What follows from the number of the iteration alone can always be recomputed.`,
		find: growingResiduals,
	},
	{
		Name: "involuntary-replication",
		Doc:  "a value that is sharded before and after is replicated in between",
		Explain: `An op cannot be computed on the shards of its operand, or no exchange leads from one sharding to another, so the partitioner has
gathered the value on every device, although nobody asked for it: each then computes or holds all of it. The message has both shardings and the op.
In a program that has been partitioned already it shows as an all-gather of which each device reads nothing but its own shard. Cure: shard another
dimension, or constrain the operand or the result such that both shardings agree; there, an all-to-all or a permute in place of the gather moves
less. If it is meant, an explicit reshard, or constrain in a .pp program, says so and is not reported.`,
		find: replications,
	},
}
