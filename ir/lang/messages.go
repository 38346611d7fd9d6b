package lang

import "fmt"

// A message is the template of an error or a warning: offender first, then found and
// wanted, with numbers and names. A test finds an example for each under
// testdata/golden/lang.
type message string

func (m message) format(args ...any) string { return fmt.Sprintf(string(m), args...) }

// Reading.
const (
	errOpen      message = "cannot be read: %s"
	errInclude   message = "include %q: %s"
	errCycle     message = "include cycle: %s"
	errFiles     message = "more than %d files are included"
	errUTF8      message = "byte 0x%02x is not UTF-8"
	errCharacter message = "%s is %s"
	errDepth     message = "brackets nest %d deep, at most %d are read"
	errSize      message = "the file has %d bytes, at most %d are read"
	errLong      message = "more than %d operators in a row"
	errEnd       message = "the file ends where %s should stand"
	errToken     message = "unexpected %s, want %s"
	errQuote     message = "a text that does not end on its line"
	errNumber    message = "%s is not within the range of numbers"
	errSeparator message = "want a new line or ; before this"
	errComma     message = "want a comma before this"
	errArrow     message = "rule for %s without ->"
	errArgName   message = "only a name can stand before :"
	errElse      message = "else after the last else"
	errSetForm   message = "--set %s: want block.key=value"
	errSetBlock  message = "--set: there is no block %s; want one of %s"
)

// Declarations.
const (
	errTwice       message = "%s %s is declared twice, first on line %d"
	errBuiltin     message = "%s is built in and cannot be declared"
	errModels      message = "model %s is the second one, after %s at %s:%d"
	errNoModel     message = "there is no model"
	errTypeName    message = "%s is an element type itself"
	errTypeValue   message = "type %s: want one of %s"
	errUnknownType message = "unknown element type %q"
	errNoElem      message = "a type without an element type"
	errUnknownAxis message = "unknown axis %q"
	errAxisCycle   message = "the size of axis %s depends on itself"
	errAxisSize    message = "axis %s has size %v, want a whole number from 1 to %d"
	errUnknownMesh message = "unknown mesh axis %q; the mesh has %s"
	errMeshTwice   message = "mesh axis %s is used twice"
	errStageName   message = "mesh axis %s: the axis of stages is called stage"
	errStageAxis   message = "mesh axis stage is the pipeline's own"
	errMeshSize    message = "mesh axis %s has size %v, want a whole number from 1 to %d"
	errMeshLarge   message = "the mesh has %d devices, at most %d fit"
	errFill        message = "mesh axis %s is -1 and the number of devices is not known"
	errFillTwice   message = "mesh axes %s and %s are both -1"
	errFillRest    message = "--devices is %d, which does not divide by the other mesh axes (%d)"
	errDevices     message = "the mesh is for %s, --devices is %d"
	errShard       message = "shard %s: want weights or activations"
	errDivide      message = "%s: size %d of %s does not divide along %s (%d)"
)

// Settings.
const (
	errUnknownKey   message = "%s has no setting %q"
	errSettingValue message = "%s: %s: want %s"
	errSettingBody  message = "%s: %s takes no braces"
	errSettingArg   message = "%s takes %s, by name"
	errRates        message = "%s: %s: %s for %s"
	errCustom       message = "%s = custom says for each name what becomes of it"
	errCustomValue  message = "%s: want %s"
	errLoss         message = "train: model %s returns %s, want a float without axes: a loss"
	errNoCheckpoint message = "no value of the model has the checkpoint name %s"
	errNoCut        message = "without iteration_input and decoder_layer_input each iteration would keep the whole state of the loop instead: %s"
	errNoEffect     message = "%s: %s %s: %s"
)

// Training.
const (
	errNoDecay        message = "train: %s has no weight_decay"
	errParamsNone     message = "train: params: no parameter matches %q"
	errParamsFrozen   message = "train: params: %q decides nothing: all that it matches is frozen where it is declared, such as %s"
	errParamsDecided  message = "train: params: %q decides nothing: %q matches all of it before"
	errNothingTrained message = "train: model %s has no parameter that can be trained"
)

// Pipelines.
const (
	errLayers       message = "pipeline: %s do not split into %s x %s x %s per stage (%s)"
	errLayersLeft   message = "pipeline: %s do not split into %s x %s per stage (%d): %d left over"
	errSubset       message = "pipeline: layers = %d is more than the %s of the model"
	errOneRepeat    message = "pipeline: checkpoint = repeat with repeats = 1: there is one repeat, the whole loop"
	errWindow       message = "pipeline: gather = per_repeat with repeats = %d, but a window slides over 2 repeats or more"
	errBatch        message = "pipeline: %s = %d does not divide into %s"
	errRows         message = "pipeline: a microbatch of %s (%s %d / %s) does not divide along %s (%d)"
	errStackForm    message = "%s takes a layer and their number, then the activation"
	errStackPlace   message = "%s applies layers, which only a model can do"
	errBlocksForm   message = "blocks takes a function, an axis and the size of a block, then the function's arguments"
	errBlocksAxis   message = "blocks: no argument of %s has axis %s"
	errBlocksSize   message = "blocks: axis %s has size %d, which does not divide into blocks of %d"
	errBlocksParts  message = "blocks: a block of %d does not divide along the mesh as %s does (%d)"
	errBlocksResult message = "blocks: %s of %d elements of %s gives %s; every result must have them"
	errBlocksRandom message = "blocks: %s in a block would give every block the same numbers"
	errLayerCall    message = "layer %s cannot be called like a function"
	errLayerArgs    message = "layer %s has no argument"
	errLayerType    message = "layer %s maps %s, which is %s, to %s"
	errLayerAux     message = "layer %s: result %d is %s, want a float without axes"
	errWeightBatch  message = "param %s has the batch axis %s"
	errPathTwice    message = "parameter %s is there twice, first on line %d"
)

// Functions and params.
const (
	errUntyped         message = "%s: argument %s has no type"
	errNoReturn        message = "%s %s returns nothing"
	errResultTwice     message = "two results are called %s"
	errParamTwice      message = "param %s is declared twice"
	errParamPlace      message = "param %s stands in a function"
	errNoInit          message = "param %s has no initial value"
	errFileMany        message = "as %q names one array, not %d"
	errUnknownFunction message = "unknown function %q"
	errUnknownName     message = "unknown name %q"
	errNotFunction     message = "this is not a function"
	errRecursion       message = "%s calls itself"
	errInline          message = "functions call each other %d deep"
	errLarge           message = "calls of functions inside functions make more than %d statements"
	errUnknownArg      message = "%s has no argument %s"
	errManyArgs        message = "%s takes %s"
	errArgTwice        message = "%s: argument %s is given twice"
	errMissingArg      message = "%s: argument %s is missing"
	errArgAxis         message = "%s: %s is %s, which has no axis %q"
	errArrowArg        message = "%s: argument %s takes no arrow"
	errTuple           message = "%s for %s"
	errIfTensor        message = "if cannot depend on %s, which is known only when the program runs"
)

// Expressions.
const (
	errWant        message = "%s: want %s, have %s"
	errOperands    message = "%s cannot take %s and %s"
	errOperand     message = "%s cannot take %s"
	errElems       message = "%s: %s and %s have different element types"
	errSizes       message = "%s: axis %s has size %d on the left and %d on the right"
	errNotWhole    message = "%v does not fit %s"
	errUndefined   message = "%v %s %v is not a number"
	errFloat       message = "%s cannot take %s"
	errNoAxis      message = "%s: %s is %s, which has no axis %q"
	errAxisTwice   message = "axis %s is there twice in %s"
	errListTwice   message = "axis %s is there twice"
	errTensorLarge message = "%s has more than %d elements"
	errNoSize      message = "axis %s has no declared size"
	errHidden      message = "the size of axis %s in a layer depends on the schedule"
	errItem        message = "items of a list have no names"
	errNumbersOnly message = "%s cannot be used here, where only numbers are known"
	errWhere       message = "where takes at least one tensor besides its condition"
	errRange       message = "%s: %s is %v, want a whole number from %d to %d"
	errSlice       message = "slice from %d to %d is empty"
	errConcat      message = "concat: %s and %s differ in other axes"
	errTakeAxis    message = "take: the index %s has the axis %s itself"
	errOneHot      message = "one_hot: want whole numbers and a new axis with a size, have %s and %s"
	errTopK        message = "top_k: %d elements along %s of the %d along %s"
	errNoArrow     message = "%s takes an arrow"
	errHasAxis     message = "%s: %s has the axis %s already"
	errRenameSize  message = "rename: %s has size %d, %s has size %d"
	errSplit       message = "split: %s has size %d, the parts make %d"
	errMerge       message = "merge: %s make %d, %s has size %d"
	errRate        message = "dropout: a rate of %v is not within 0 and 1"
	errNormalized  message = "normalized in %s: the batches of a step are known to the model alone"
)

// Warnings.
const (
	warnStatistics   message = "%s combines rows of %s within one of %d microbatches: what layer %s returns depends on how many there are"
	warnAuxiliary    message = "%s: auxiliary scalar %d of layer %s is not linear in means over %s: its mean over %d microbatches is not its value for the whole batch"
	warnAuxiliarySum message = "%s: auxiliary scalar %d of layer %s is a sum over %s: its mean over %d microbatches is not its value for the whole batch"
	warnAccumulated  message = "%s: %s is not linear in means over %s: its mean over %d accumulated batches is not its value for all their examples"
	warnMemory       message = "hardware: a device takes %s at its peak and has %s"
	warnNoEffect     message = "%s: %s %s: %s"
	warnMeshAxis     message = "nothing is sharded along mesh axis %s: its %d devices compute the same"
	warnNoGradient   message = "%s has no gradient and is not trained: %s"
	warnMeanOfMeans  message = "each of %d accumulated batches divides by its own %s: %s is the mean of their quotients, not the quotient of their sums"
	warnReplicas     message = "no activation is sharded along mesh axis %s, only weights are: its %d devices gather them and compute the same"
	warnRuleAxis     message = "no %s has the axis %s: the rule applies to none"
	warnRuleLate     message = "the rule applies to no %s: wherever one has the axis %s, %s"
)
