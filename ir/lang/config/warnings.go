package config

// A Warning is one row of [Warnings].
type Warning struct {
	Name    string // as in --skip; lower case, no spaces
	Doc     string // one line
	Explain string // a paragraph: what is warned of, what it costs, when it is right

	// Differs says that results may differ from those of the layers in sequence.
	Differs bool
}

// The names of the warnings.
const (
	unusedMeshAxis        = "unused-mesh-axis"
	MicrobatchStatistics  = "microbatch-statistics"
	AuxiliaryMean         = "auxiliary-not-a-mean"
	AccumulatedStatistics = "accumulated-statistics"
	NoGradient            = "no-gradient"
	MeanOfMeans           = "mean-of-means"
	unusedRule            = "unused-rule"
	UnusedSetting         = "unused-setting"
)

// Warnings is every warning that the language gives of a program that it
// takes.
var Warnings = []Warning{
	{Name: unusedMeshAxis, Doc: "the devices along a mesh axis all compute the same",
		Explain: `No tensor is sharded along the mesh axis, or only weights are, which are gathered before they are used: each device along it computes
what the others do, so the program takes that many times the devices for the same step time. Name the axis in a shard rule for an axis that
activations have, or leave it out of the mesh. Where memory for weights is all that is wanted of the axis it is right.`},
	{Name: MicrobatchStatistics, Doc: "a pipelined layer combines examples of a microbatch", Differs: true,
		Explain: `A pipeline calls its layer on each microbatch by itself. What the layer computes over the batch axis, such as the mean in a batch norm, or
from the place of an example in the batch, it computes of a microbatch: results depend on the number of microbatches, and differ from those of the
layers in sequence on the full batch. That is right where the statistics of a microbatch are what is wanted. Otherwise reduce over axes of each
example, or use one microbatch.`},
	{Name: AuxiliaryMean, Doc: "an auxiliary scalar depends on the number of microbatches", Differs: true,
		Explain: `The model gets the mean over microbatches of what a pipelined layer returns after its activation. That is the scalar of the full batch
where the scalar is a mean over examples, or linear in such means. A sum over the batch, a product of two means, the square or the logarithm of one
are not: the numbers change with the number of microbatches. Take the function of each example first and the mean last.`},
	{Name: AccumulatedStatistics, Doc: "a result depends on how examples are put in accumulated batches",
		Explain: `With gradient_accumulation each batch of a step is computed by itself, and the loss and the metrics of the step are the means of theirs. Where
a result is not linear in means over examples, because it takes the square of a mean, say, or normalises by statistics of the batch, that is not what
one batch of all the examples gives.`},
	{Name: NoGradient, Doc: "a parameter that is trained has no gradient",
		Explain: `The loss does not depend on the parameter, or through stop_gradient alone. All that an optimizer could do is decay it, so it is left as it
is and has no optimizer state, as a parameter that is declared frozen. Say frozen where that is meant.`},
	{Name: MeanOfMeans, Doc: "accumulated batches divide by sums of their own",
		Explain: `With gradient_accumulation the loss of a step is the mean of the losses of its batches. A loss that is a quotient of two sums over the
examples, such as a masked mean, then weighs an example of a batch with few valid ones more than one of a batch with many, and depends on how examples
are put in batches. normalized(sum, by: count) divides by the count of all batches. The quotient is right where every batch has the same count.`},
	{Name: unusedRule, Doc: "a shard rule applies to no tensor of the model",
		Explain: `No tensor has the axis of the rule, or an earlier rule has sharded that axis, or uses the mesh axis, on every tensor that has it. The first
rule that fits wins, so the order of rules is what to look at. It costs nothing by itself, and is right in rules that several models share.`},
	{Name: UnusedSetting, Doc: "a setting has no effect on the program",
		Explain: `A setting is given that acts on nothing in this program: weights are to be gathered in another way, and none is gathered; a loop is to be
unrolled, and there is none. What was asked for does not happen. It costs nothing, and is right in a file that others include whose
programs have what the setting is about.`},
	{Name: DeviceMemory, Doc: "a device takes more memory than the hardware block says it has",
		Explain: `The peak of what a device holds at a time, by ppc lower --stats, is more than hardware.memory, or the memory of hardware.preset: the
program does not fit the device that it is meant for. Parameters and optimizer state shrink with more parts (fsdp, stage), residuals with
remat, buffers with smaller microbatches.`},
}
