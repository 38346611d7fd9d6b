package lang

import (
	"ppc/ir/lang/syntax"
)

// Declarations.
const (
	errTwice       syntax.Message = "%s %s is declared twice, first on line %d"
	errBuiltin     syntax.Message = "%s is built in and cannot be declared"
	errModels      syntax.Message = "model %s is the second one, after %s at %s:%d"
	errNoModel     syntax.Message = "there is no model"
	errTypeName    syntax.Message = "%s is an element type itself"
	errTypeValue   syntax.Message = "type %s: want one of %s"
	errUnknownType syntax.Message = "unknown element type %q"
	errNoElem      syntax.Message = "a type without an element type"
	errUnknownAxis syntax.Message = "unknown axis %q"
	errAxisCycle   syntax.Message = "the size of axis %s depends on itself"
	errAxisSize    syntax.Message = "axis %s has size %v, want a whole number from 1 to %d"
	errUnknownMesh syntax.Message = "unknown mesh axis %q; the mesh has %s"
	errMeshTwice   syntax.Message = "mesh axis %s is used twice"
	errStageName   syntax.Message = "mesh axis %s: the axis of stages is called stage"
	errStageAxis   syntax.Message = "mesh axis stage is the pipeline's own"
	errMeshSize    syntax.Message = "mesh axis %s has size %v, want a whole number from 1 to %d"
	errMeshLarge   syntax.Message = "the mesh has %d devices, at most %d fit"
	errFill        syntax.Message = "mesh axis %s is -1 and the number of devices is not known"
	errFillTwice   syntax.Message = "mesh axes %s and %s are both -1"
	errFillRest    syntax.Message = "--devices is %d, which does not divide by the other mesh axes (%d)"
	errDevices     syntax.Message = "the mesh is for %s, --devices is %d"
	errShard       syntax.Message = "shard %s: want weights or activations"
	errDivide      syntax.Message = "%s: size %d of %s does not divide along %s (%d)"
)

// Settings.
const (
	errUnknownKey   syntax.Message = "%s has no setting %q"
	errSettingValue syntax.Message = "%s: %s: want %s"
	errSettingBody  syntax.Message = "%s: %s takes no braces"
	errSettingArg   syntax.Message = "%s takes %s, by name"
	errRates        syntax.Message = "%s: %s: %s for %s"
	errCustom       syntax.Message = "%s = custom says for each name what becomes of it"
	errCustomValue  syntax.Message = "%s: want %s"
	errLoss         syntax.Message = "train: model %s returns %s, want a float without axes: a loss"
	errNoCheckpoint syntax.Message = "no value of the model has the checkpoint name %s"
	errNoCut        syntax.Message = "without iteration_input and decoder_layer_input each iteration would keep the whole state of the loop instead: %s"
	errNoEffect     syntax.Message = "%s: %s %s: %s"
)

// Training.
const (
	errNoDecay        syntax.Message = "train: %s has no weight_decay"
	errParamsNone     syntax.Message = "train: params: no parameter matches %q"
	errParamsFrozen   syntax.Message = "train: params: %q decides nothing: all that it matches is frozen where it is declared, such as %s"
	errParamsDecided  syntax.Message = "train: params: %q decides nothing: %q matches all of it before"
	errNothingTrained syntax.Message = "train: model %s has no parameter that can be trained"
)

// Pipelines.
const (
	errLayers       syntax.Message = "pipeline: %s do not split into %s x %s x %s per stage (%s)"
	errLayersLeft   syntax.Message = "pipeline: %s do not split into %s x %s per stage (%d): %d left over"
	errSubset       syntax.Message = "pipeline: layers = %d is more than the %s of the model"
	errOneRepeat    syntax.Message = "pipeline: checkpoint = repeat with repeats = 1: there is one repeat, the whole loop"
	errWindow       syntax.Message = "pipeline: gather = per_repeat with repeats = %d, but a window slides over 2 repeats or more"
	errBatch        syntax.Message = "pipeline: %s = %d does not divide into %s"
	errRows         syntax.Message = "pipeline: a microbatch of %s (%s %d / %s) does not divide along %s (%d)"
	errStackForm    syntax.Message = "%s takes a layer and their number, then the activation"
	errStackPlace   syntax.Message = "%s applies layers, which only a model can do"
	errBlocksForm   syntax.Message = "blocks takes a function, an axis and the size of a block, then the function's arguments"
	errBlocksAxis   syntax.Message = "blocks: no argument of %s has axis %s"
	errBlocksSize   syntax.Message = "blocks: axis %s has size %d, which does not divide into blocks of %d"
	errBlocksParts  syntax.Message = "blocks: a block of %d does not divide along the mesh as %s does (%d)"
	errBlocksResult syntax.Message = "blocks: %s of %d elements of %s gives %s; every result must have them"
	errBlocksRandom syntax.Message = "blocks: %s in a block would give every block the same numbers"
	errLayerCall    syntax.Message = "layer %s cannot be called like a function"
	errLayerArgs    syntax.Message = "layer %s has no argument"
	errLayerType    syntax.Message = "layer %s maps %s, which is %s, to %s"
	errLayerAux     syntax.Message = "layer %s: result %d is %s, want a float without axes"
	errWeightBatch  syntax.Message = "param %s has the batch axis %s"
	errPathTwice    syntax.Message = "parameter %s is there twice, first on line %d"
)

// Functions and params.
const (
	errUntyped         syntax.Message = "%s: argument %s has no type"
	errNoReturn        syntax.Message = "%s %s returns nothing"
	errResultTwice     syntax.Message = "two results are called %s"
	errParamTwice      syntax.Message = "param %s is declared twice"
	errParamPlace      syntax.Message = "param %s stands in a function"
	errNoInit          syntax.Message = "param %s has no initial value"
	errFileMany        syntax.Message = "as %q names one array, not %d"
	errUnknownFunction syntax.Message = "unknown function %q"
	errUnknownName     syntax.Message = "unknown name %q"
	errNotFunction     syntax.Message = "this is not a function"
	errRecursion       syntax.Message = "%s calls itself"
	errInline          syntax.Message = "functions call each other %d deep"
	errLarge           syntax.Message = "calls of functions inside functions make more than %d statements"
	errUnknownArg      syntax.Message = "%s has no argument %s"
	errManyArgs        syntax.Message = "%s takes %s"
	errArgTwice        syntax.Message = "%s: argument %s is given twice"
	errMissingArg      syntax.Message = "%s: argument %s is missing"
	errArgAxis         syntax.Message = "%s: %s is %s, which has no axis %q"
	errArrowArg        syntax.Message = "%s: argument %s takes no arrow"
	errTuple           syntax.Message = "%s for %s"
	errIfTensor        syntax.Message = "if cannot depend on %s, which is known only when the program runs"
)

// Expressions.
const (
	errWant        syntax.Message = "%s: want %s, have %s"
	errOperands    syntax.Message = "%s cannot take %s and %s"
	errOperand     syntax.Message = "%s cannot take %s"
	errElems       syntax.Message = "%s: %s and %s have different element types"
	errSizes       syntax.Message = "%s: axis %s has size %d on the left and %d on the right"
	errNotWhole    syntax.Message = "%v does not fit %s"
	errUndefined   syntax.Message = "%v %s %v is not a number"
	errFloat       syntax.Message = "%s cannot take %s"
	errNoAxis      syntax.Message = "%s: %s is %s, which has no axis %q"
	errAxisTwice   syntax.Message = "axis %s is there twice in %s"
	errListTwice   syntax.Message = "axis %s is there twice"
	errTensorLarge syntax.Message = "%s has more than %d elements"
	errNoSize      syntax.Message = "axis %s has no declared size"
	errHidden      syntax.Message = "the size of axis %s in a layer depends on the schedule"
	errItem        syntax.Message = "items of a list have no names"
	errNumbersOnly syntax.Message = "%s cannot be used here, where only numbers are known"
	errWhere       syntax.Message = "where takes at least one tensor besides its condition"
	errRange       syntax.Message = "%s: %s is %v, want a whole number from %d to %d"
	errSlice       syntax.Message = "slice from %d to %d is empty"
	errConcat      syntax.Message = "concat: %s and %s differ in other axes"
	errTakeAxis    syntax.Message = "take: the index %s has the axis %s itself"
	errOneHot      syntax.Message = "one_hot: want whole numbers and a new axis with a size, have %s and %s"
	errTopK        syntax.Message = "top_k: %d elements along %s of the %d along %s"
	errNoArrow     syntax.Message = "%s takes an arrow"
	errHasAxis     syntax.Message = "%s: %s has the axis %s already"
	errRenameSize  syntax.Message = "rename: %s has size %d, %s has size %d"
	errSplit       syntax.Message = "split: %s has size %d, the parts make %d"
	errMerge       syntax.Message = "merge: %s make %d, %s has size %d"
	errRate        syntax.Message = "dropout: a rate of %v is not within 0 and 1"
	errNormalized  syntax.Message = "normalized in %s: the batches of a step are known to the model alone"
)

// Warnings.
const (
	warnStatistics   syntax.Message = "%s combines rows of %s within one of %d microbatches: what layer %s returns depends on how many there are"
	warnAuxiliary    syntax.Message = "%s: auxiliary scalar %d of layer %s is not linear in means over %s: its mean over %d microbatches is not its value for the whole batch"
	warnAuxiliarySum syntax.Message = "%s: auxiliary scalar %d of layer %s is a sum over %s: its mean over %d microbatches is not its value for the whole batch"
	warnAccumulated  syntax.Message = "%s: %s is not linear in means over %s: its mean over %d accumulated batches is not its value for all their examples"
	warnMemory       syntax.Message = "hardware: a device takes %s at its peak and has %s"
	warnNoEffect     syntax.Message = "%s: %s %s: %s"
	warnMeshAxis     syntax.Message = "nothing is sharded along mesh axis %s: its %d devices compute the same"
	warnNoGradient   syntax.Message = "%s has no gradient and is not trained: %s"
	warnMeanOfMeans  syntax.Message = "each of %d accumulated batches divides by its own %s: %s is the mean of their quotients, not the quotient of their sums"
	warnReplicas     syntax.Message = "no activation is sharded along mesh axis %s, only weights are: its %d devices gather them and compute the same"
	warnRuleAxis     syntax.Message = "no %s has the axis %s: the rule applies to none"
	warnRuleLate     syntax.Message = "the rule applies to no %s: wherever one has the axis %s, %s"
)
