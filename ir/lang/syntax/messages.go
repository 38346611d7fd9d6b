package syntax

import (
	"fmt"
)

// A Message is the template of an error or a warning: offender first, then found and
// wanted, with numbers and names. A test finds an example for each under
// testdata/golden/lang.
type Message string

// Format fills the template in.
func (m Message) Format(args ...any) string { return fmt.Sprintf(string(m), args...) }

// Reading.
const (
	ErrOpen      Message = "cannot be read: %s"
	ErrInclude   Message = "include %q: %s"
	ErrCycle     Message = "include cycle: %s"
	ErrFiles     Message = "more than %d files are included"
	errUTF8      Message = "byte 0x%02x is not UTF-8"
	errCharacter Message = "%s is %s"
	errDepth     Message = "brackets nest %d deep, at most %d are read"
	errSize      Message = "the file has %d bytes, at most %d are read"
	errLong      Message = "more than %d operators in a row"
	errEnd       Message = "the text ends here, want %s"
	errLine      Message = "the line ends here, want %s"
	errToken     Message = "unexpected %s, want %s"
	errQuote     Message = "a text that does not end on its line"
	errNumber    Message = "%s is not within the range of numbers"
	errSeparator Message = "want a new line or ; before this"
	errComma     Message = "want a comma before this"
	errArrow     Message = "rule for %s without ->"
	errArgName   Message = "want a name before :"
	errOrder     Message = "%s of param %s stands %s"
	errElse      Message = "else after the last else"
	ErrSetForm   Message = "--set %s: want block.key=value"
	ErrSetBlock  Message = "--set: there is no block %s; want one of %s"
)

// Declarations.
const (
	ErrTwice       Message = "%s %s is declared twice, first on line %d"
	ErrBuiltin     Message = "%s is built in and cannot be declared"
	ErrModels      Message = "model %s is the second one, after %s at %s:%d"
	ErrNoModel     Message = "there is no model"
	ErrTypeName    Message = "%s is an element type itself"
	ErrTypeValue   Message = "type %s: want one of %s"
	ErrUnknownType Message = "unknown element type %q"
	ErrNoElem      Message = "a type without an element type"
	ErrUnknownAxis Message = "unknown axis %q"
	ErrAxisCycle   Message = "the size of axis %s depends on itself"
	ErrAxisSize    Message = "axis %s has size %v, want a whole number from 1 to %d"
	ErrUnknownMesh Message = "unknown mesh axis %q; the mesh has %s"
	ErrMeshTwice   Message = "mesh axis %s is used twice"
	ErrStageName   Message = "mesh axis %s: the axis of stages is called stage"
	ErrStageAxis   Message = "mesh axis stage is the pipeline's own"
	ErrMeshSize    Message = "mesh axis %s has size %v, want a whole number from 1 to %d"
	ErrMeshLarge   Message = "the mesh has %d devices, at most %d fit"
	ErrFill        Message = "mesh axis %s is -1 and the number of devices is not known"
	ErrFillTwice   Message = "mesh axes %s and %s are both -1"
	ErrFillRest    Message = "--devices is %d, which does not divide by the other mesh axes (%d)"
	ErrDevices     Message = "the mesh is for %s, --devices is %d"
	ErrShard       Message = "shard %s: want weights or activations"
	ErrDivide      Message = "%s: size %d of %s does not divide along %s (%d)"
)

// Settings.
const (
	ErrUnknownKey   Message = "%s has no setting %q"
	ErrSettingValue Message = "%s: %s: want %s"
	ErrSettingBody  Message = "%s: %s takes no braces"
	ErrSettingArg   Message = "%s takes %s, by name"
	ErrRates        Message = "%s: %s: %s for %s"
	ErrCustom       Message = "%s = custom says for each name what becomes of it"
	ErrCustomValue  Message = "%s: want %s"
	ErrLoss         Message = "train: model %s returns %s, want a float without axes: a loss"
	ErrNoCheckpoint Message = "no value of the model has the checkpoint name %s"
	ErrToldTwice    Message = "pipeline: checkpoint name %s: %s and %s say different things"
	ErrNoInput      Message = "without iteration_input and decoder_layer_input each iteration would save the full state of the loop instead: %s"
	ErrNoEffect     Message = "%s: %s %s: %s"
)

// Training.
const (
	ErrNoDecay        Message = "train: %s has no weight_decay"
	ErrParamsNone     Message = "train: params: no parameter matches %q"
	ErrParamsFrozen   Message = "train: params: %q decides nothing: all that it matches is frozen where it is declared, such as %s"
	ErrParamsDecided  Message = "train: params: %q decides nothing: %q matches all of it before"
	ErrNothingTrained Message = "train: model %s has no parameter that can be trained"
)

// Pipelines.
const (
	ErrLayers       Message = "pipeline: %s not split into %s x %s x %s per stage (%s)"
	ErrLayersLeft   Message = "pipeline: %s not split into %s x %s per stage (%d): %d left over"
	ErrSubset       Message = "pipeline: layers = %d is more than the %s of the model"
	ErrNoPattern    Message = "pipeline: no pattern of these layers fills %s: the longest is %s"
	ErrNoPatternOf  Message = "pipeline: no pattern of %s per stage fills %s: the longest is %s"
	ErrListLayer    Message = "%s's layers: found %s, want a layer"
	ErrListLong     Message = "a list of %d layers, at most %d are read"
	ErrListArgs     Message = "the layers of a list take the same: %s has %s, %s has %s"
	ErrListAux      Message = "result %d of layer %s is %s, of layer %s it is %s"
	ErrListParams   Message = "layers called %s have different parameters: %s and %s"
	ErrOneRepeat    Message = "pipeline: checkpoint = repeat with repeats = 1: there is one repeat, the full loop"
	ErrWindow       Message = "pipeline: gather = per_repeat with repeats = %d, but a window slides over 2 repeats or more"
	ErrBatch        Message = "pipeline: %s = %d does not divide into %s"
	ErrBatchSplit   Message = "pipeline: a microbatch of %s of %s does not divide into batch_split = %d parts on %d devices (%s)"
	ErrRows         Message = "pipeline: a microbatch of %s (%s %d / %s) does not divide along %s (%d)"
	ErrStackForm    Message = "%s takes a layer and their number, then the activation"
	ErrApplyForm    Message = "apply takes a layer, then the activation"
	ErrApplyPlace   Message = "apply applies a layer within another"
	ErrStackPlace   Message = "%s applies layers, which only a model can do"
	ErrBlocksForm   Message = "blocks takes a function, an axis and the size of a block, then the function's arguments"
	ErrBlocksAxis   Message = "blocks: no argument of %s has axis %s"
	ErrBlocksSize   Message = "blocks: axis %s has size %d, which does not divide into blocks of %d"
	ErrBlocksParts  Message = "blocks: a block of %d does not divide along the mesh as %s does (%d)"
	ErrBlocksResult Message = "blocks: %s of %d elements of %s gives %s; every result must have them"
	ErrBlocksRandom Message = "blocks: %s in a block would give every block the same numbers"
	ErrLayerCall    Message = "layer %s cannot be called like a function"
	ErrLayerArgs    Message = "layer %s has no argument"
	ErrLayerType    Message = "layer %s maps %s, which is %s, to %s"
	ErrLayerAux     Message = "layer %s: result %d is %s, want a float without axes"
	ErrLayerCarried Message = "layer %s returns a next value of %s, which is %s: want the batch axis %s first"
	ErrListCarried  Message = "the layers of a list hand on the same: %s has %s, %s has %s"
	ErrWeightBatch  Message = "param %s has the batch axis %s"
	ErrPathTwice    Message = "parameter %s is there twice, first on line %d"
)

// Functions and params.
const (
	ErrUntyped         Message = "%s: argument %s has no type"
	ErrNoReturn        Message = "%s %s returns nothing"
	ErrResultTwice     Message = "two results are called %s"
	ErrParamTwice      Message = "param %s is declared twice"
	ErrParamPlace      Message = "param %s is in a function, which has no parameters"
	ErrNoInit          Message = "param %s has no initial value"
	ErrFileMany        Message = "as %q names one array, not %d"
	ErrFileName        Message = "as %q: %s"
	ErrFileIndex       Message = "as %q: found {%s}, want the index of {%s}: each array has what follows the first axes"
	ErrFileIndices     Message = "as %q has %d indices, the parameter has %d axes"
	ErrUnknownFunction Message = "unknown function %q"
	ErrUnknownName     Message = "unknown name %q"
	ErrNotFunction     Message = "this is not a function"
	ErrRecursion       Message = "%s calls itself"
	ErrInline          Message = "functions call each other %d deep"
	ErrLarge           Message = "calls of functions inside functions make more than %d statements"
	ErrUnknownArg      Message = "%s has no argument %s"
	ErrManyArgs        Message = "%s takes %s"
	ErrArgTwice        Message = "%s: argument %s is given twice"
	ErrMissingArg      Message = "%s: argument %s is missing"
	ErrArgAxis         Message = "%s: %s is %s, which has no axis %q"
	ErrArrowArg        Message = "%s: argument %s takes no arrow"
	ErrTuple           Message = "%s for %s"
	ErrIfTensor        Message = "if cannot depend on %s, which is known only when the program runs"
)

// Expressions.
const (
	ErrWant        Message = "%s: want %s, have %s"
	ErrOperands    Message = "%s cannot take %s and %s"
	ErrOperand     Message = "%s cannot take %s"
	ErrElems       Message = "%s: %s and %s have different element types"
	ErrSizes       Message = "%s: axis %s has size %d on the left and %d on the right"
	ErrNotWhole    Message = "%v does not fit %s"
	ErrUndefined   Message = "%v %s %v is not a number"
	ErrFloat       Message = "%s cannot take %s"
	ErrNoAxis      Message = "%s: %s is %s, which has no axis %q"
	ErrAxisTwice   Message = "axis %s is there twice in %s"
	ErrListTwice   Message = "axis %s is there twice"
	ErrTensorLarge Message = "%s has more than %d elements"
	ErrNoSize      Message = "axis %s has no declared size"
	ErrHidden      Message = "the size of axis %s in a layer depends on the schedule"
	ErrItem        Message = "items of a list have no names"
	ErrNumbersOnly Message = "%s cannot be used here, where only numbers are known"
	ErrWhere       Message = "where takes at least one tensor besides its condition"
	ErrRange       Message = "%s: %s is %v, want a whole number from %d to %d"
	ErrSlice       Message = "slice from %d to %d is empty"
	ErrConcat      Message = "concat: %s and %s differ in other axes"
	ErrTakeAxis    Message = "take: the index %s has the axis %s itself"
	ErrGroups      Message = "ragged_dot: the sizes %s have %d axes that x, %s, lacks, want one, that of the groups"
	ErrGroupsTwice Message = "ragged_dot: y is %s, which has the groups' axis %s; where %s is contracted, the groups are in the result alone"
	ErrGroupsAlong Message = "ragged_dot: the sizes %s have the axis %s, along which groups cannot differ"
	ErrRaggedBoth  Message = "ragged_dot: y is %s, which has the axis %s of what is in groups; it is contracted, or x has it alone"
	ErrOneHot      Message = "one_hot: want whole numbers and a new axis with a size, have %s and %s"
	ErrTopK        Message = "top_k: %d elements along %s of the %d along %s"
	ErrNoArrow     Message = "%s takes an arrow"
	ErrHasAxis     Message = "%s: %s has the axis %s already"
	ErrRenameSize  Message = "rename: %s has size %d, %s has size %d"
	ErrSplit       Message = "split: %s has size %d, the parts make %d"
	ErrMerge       Message = "merge: %s make %d, %s has size %d"
	ErrRate        Message = "dropout: a rate of %v is not within 0 and 1"
	ErrNormalized  Message = "normalized in %s: the batches of a step are known to the model alone"
)

// Warnings.
const (
	WarnStatistics   Message = "%s combines rows of %s within one of %d microbatches: what layer %s returns depends on how many there are"
	WarnAuxiliary    Message = "%s: auxiliary scalar %d of layer %s is not linear in means over %s: its mean over %d microbatches is not its value for the full batch"
	WarnAuxiliarySum Message = "%s: auxiliary scalar %d of layer %s is a sum over %s: its mean over %d microbatches is not its value for the full batch"
	WarnAccumulated  Message = "%s: %s is not linear in means over %s: its mean over %d accumulated batches is not its value for all their examples"
	WarnMemory       Message = "hardware: a device takes %s at its peak and has %s"
	WarnNoEffect     Message = "%s: %s %s: %s"
	WarnMeshAxis     Message = "nothing is sharded along mesh axis %s: its %d devices compute the same"
	WarnNoGradient   Message = "%s has no gradient and is not trained: %s"
	WarnMeanOfMeans  Message = "each of %d accumulated batches divides by its own %s: %s is the mean of their quotients, not the quotient of their sums"
	WarnReplicas     Message = "no activation is sharded along mesh axis %s, only weights are: its %d devices gather them and compute the same"
	WarnRuleAxis     Message = "no %s has the axis %s: the rule applies to none"
	WarnRuleLate     Message = "the rule applies to no %s: wherever one has the axis %s, %s"
)
