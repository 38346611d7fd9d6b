package ir

import (
	"slices"
	"strings"
)

// The discardable attributes by which the language and the passes communicate facts
// about a pipeline. Passes that rebuild an op or a value keep those that stay true.

// Names and kinds of parameters and results of main.
const (
	KeyName     = "pp.name"     // string: what the user calls it
	KeyKind     = "pp.kind"     // string: input, param, state, step, metric or gradient
	KeyFile     = "pp.file"     // string: the tensor file with its initial value
	KeyInit     = "pp.init"     // string: how it is initialised without one
	KeyMax      = "pp.max"      // int: a bound that no number of an integer input reaches
	KeyFrozen   = "pp.frozen"   // unit: a parameter that is not trained
	KeyUpdate   = "pp.update"   // dict: settings of the optimizer's update for this parameter alone
	KeyLogical  = "pp.logical"  // array of strings: the axes of its dimensions as the language names them
	KeyLayers   = "pp.layers"   // int: how many layers dimension 0 stacks
	KeyNumbers  = "pp.numbers"  // ints: the numbers that the stacked layers have in the names of arrays, where they do not count from 0
	KeyRows     = "pp.rows"     // two ints: of the stacked layers it holds those from the first to before the second
	KeyGathered = "pp.gathered" // sharding: of a parameter of a layer, after the all-gather at its use
	KeyAlias    = "pp.alias"    // int: the parameter that a result replaces in the next step, and whose buffer it is donated
	KeyBatches  = "pp.batches"  // int: how many accumulated batches an input holds
	KeyZero     = "pp.zero"     // string: the axis along which optimizer state is sharded beyond its parameter
	KeySharding = "pp.sharding" // sharding: of the global value, in a program for one device
	KeySize     = "pp.size"     // ints: the shape without padding
)

// Settings of a module.
const (
	KeyMode          = "pp.mode"           // string: explicit, or shardings are propagated
	KeyGradient      = "pp.gradient"       // string: params or all: the values whose gradient is asked for
	KeyKeepGradients = "pp.keep_gradients" // unit: a step returns the gradients too
	KeyTrain         = "pp.train"          // dict: the optimizer and its settings
	KeyCombine       = "pp.combine"        // int: the most bytes of a combined collective
	KeySkipBubbles   = "pp.skip_bubbles"   // unit: the computation of bubbles is skipped
)

// Facts about loops.
const (
	KeyLoop      = "pp.loop"      // string: one of the loops below
	KeyConfig    = "pp.config"    // dict: the settings of the pipeline or stack that the loop is of
	KeyUnroll    = "pp.unroll"    // int: how many iterations one body is to hold
	KeyTurn      = "pp.turn"      // int: how many iterations of the original loop one body holds
	KeyReverse   = "pp.reverse"   // unit: the loop runs backward through the iterations of another
	KeyResiduals = "pp.residuals" // array of dicts: for each per-iteration output, why it is saved
)

// Facts about other ops.
const (
	KeyAxes         = "pp.axes"          // array of strings: the axes of the result as the language names them; leading dimensions that a pass added have no name
	KeyDontCare     = "pp.dont_care"     // unit: no result of the program depends on the elements
	KeyResidual     = "pp.residual"      // dict: the name of the residual that the op writes a row of, and why it is saved
	KeyBubble       = "pp.bubble"        // unit: the op selects what a stage computes where it is not in a bubble
	KeyIteration    = "pp.iteration"     // unit: the op writes the row of one iteration of a pipeline
	KeySave         = "pp.save"          // unit, on pp.gather: the gathered weight is saved for the backward pass, and for the batches of a step
	KeyStopGradient = "pp.stop_gradient" // unit, on pp.name: no cotangent flows through
	KeyOverBatches  = "pp.over_batches"  // unit, on pp.name: a mean over all accumulated batches of a step
	KeyReduceDType  = "pp.reduce_dtype"  // string, on a pp.gather or a conversion that rounds a weight: the element type in which the weight's gradient is summed and scattered; without it that is the weight's own
)

// The loops of a program, as [KeyLoop] calls them.
const (
	LoopIterations = "iterations" // of a pipeline
	LoopRepeats    = "repeats"    // of a pipeline, around the iterations of each
	LoopLayers     = "layers"     // of a stage, or of a stack
	LoopBatches    = "batches"    // that a step accumulates
	LoopBlocks     = "blocks"     // that the language's blocks computes one after the other
	LoopStrips     = "strips"     // of values that do not exist at once
)

// keySpecs says what the attributes of modules, of parameters and of results are that
// have keys.
var keySpecs = map[string]AttrSpec{
	KeyName: {Kind: StrAttr}, KeyKind: {Kind: StrAttr, Words: []string{"input", "param", "state", "step", "metric", "gradient"}},
	KeyFile: {Kind: StrAttr}, KeyInit: {Kind: StrAttr}, KeyMax: {Kind: IntAttr}, KeyFrozen: {Kind: UnitAttr}, KeyUpdate: {Kind: DictAttr}, KeyLogical: {Kind: ArrayAttr},
	KeyLayers: {Kind: IntAttr}, KeyNumbers: {Kind: IntsAttr}, KeyRows: {Kind: IntsAttr}, KeyGathered: {Kind: ShardingAttr}, KeyAlias: {Kind: IntAttr},
	KeyBatches: {Kind: IntAttr}, KeyZero: {Kind: StrAttr}, KeySharding: {Kind: ShardingAttr}, KeySize: {Kind: IntsAttr},

	KeyMode: {Kind: StrAttr, Words: []string{"explicit"}}, KeyGradient: {Kind: StrAttr, Words: []string{"params", "all"}}, KeyKeepGradients: {Kind: UnitAttr},
	KeyTrain: {Kind: DictAttr}, KeyCombine: {Kind: IntAttr}, KeySkipBubbles: {Kind: UnitAttr},
}

// CheckKey reports an attribute of a module, of a parameter or of a result that has a
// key and is of another kind than the key says, or none of its words; nil for any
// other attribute. What reads such an attribute would take it for one that is missing.
func CheckKey(a NamedAttr) *Rule {
	spec, known := keySpecs[a.Name]
	switch {
	case !known:
		return nil
	case !spec.Kind.accepts(a.Attr):
		return NewRule("structure-12", "attribute %s is %s, want %s", a.Name, a.Attr, spec.Kind)
	}
	if word, _ := a.Attr.(Str); len(spec.Words) > 0 && !slices.Contains(spec.Words, string(word)) {
		return NewRule("structure-12", "attribute %s is %s, want one of %s", a.Name, a.Attr, strings.Join(spec.Words, ", "))
	}
	return nil
}
