package facts

import (
	"slices"

	"ppc/ir"
)

// A Config is the settings of a pipeline or a stack: the attribute config of the
// op, and pp.config of the loops that it becomes. It is read by ReadConfig alone.
type Config struct {
	Schedule
	Pipelined int    // how many layers are in the pipeline
	Outside   string // the function of the layers that are not

	Gather       string   // when weights are gathered: per_iteration, per_repeat or once
	Prefetch     string   // with per_repeat: head or ahead
	GatherDType  ir.DType // what weights are rounded to before they are gathered
	ReduceDType  ir.Attr  // the element type in which their gradients are summed; nil for their own
	SaveGathered bool     // gathered weights are kept for the backward pass

	Rotate      string // how the stage dimension is moved
	SkipBubbles bool
	Compat      string // whose deviations are reproduced: maxtext_prefetch

	Remat           string // the policy of rematerialisation
	Checkpoint      string // what a region is: iteration, layer, repeat or none
	CheckpointsLoop bool   // regions are around loops rather than in their bodies

	Unroll   int    // how many iterations the body of the loop Unrolled holds
	Unrolled string // a loop as pp.loop has it

	inline map[string]bool // loops as pp.loop has them, of which every iteration is inlined separately
	dict   ir.Dict         // as it is printed
}

// ConfigOf is the settings of op: a pipeline, a stack, or a loop made of one.
func ConfigOf(op *ir.Op) Config {
	name := "config"
	if op.Kind == ir.PPScan {
		name = ir.KeyConfig
	}
	d, _ := op.Attrs.Get(name).(ir.Dict)
	return ReadConfig(d)
}

// ReadConfig reads settings as they are printed.
func ReadConfig(d ir.Dict) Config {
	a := ir.Attrs(d)
	c := Config{
		Schedule:  Schedule{S: a.Int("stages"), M: a.Int("microbatches"), R: a.Int("repeats"), L: a.Int("layers_per_stage"), D: a.Int("delay")},
		Pipelined: a.Int("pipelined"), Outside: a.Sym("outside"),
		Gather: a.Str("gather"), Prefetch: a.Str("prefetch"), GatherDType: ir.DTypeByName(a.Str("gather_dtype")), ReduceDType: a.Get("reduce_dtype"), SaveGathered: a.Bool("save_gathered"),
		Rotate: a.Str("rotate"), SkipBubbles: a.Bool("skip_bubbles"), Compat: a.Str("compat"),
		Remat: a.Str("remat"), Checkpoint: a.Str("checkpoint"), CheckpointsLoop: a.Str("checkpoint_place") == "outside",
		Unroll: a.Int("unroll"), Unrolled: ir.LoopIterations,
		inline: make(map[string]bool), dict: d,
	}
	for _, loop := range []string{ir.LoopIterations, ir.LoopRepeats, ir.LoopLayers} {
		scan := "scan_" + loop
		c.inline[loop] = a.Has(scan) && !a.Bool(scan)
		if a.Str("unroll_of") == scan {
			c.Unrolled = loop
		}
	}
	return c
}

// Dict is c as it is printed.
func (c Config) Dict() ir.Dict { return c.dict }

// UnrollAttr is the attribute pp.unroll of a loop of the given number of
// iterations, as pp.loop calls it; nil where every iteration has the same body.
func (c Config) UnrollAttr(loop string, trips int) ir.Attr {
	switch {
	case c.inline[loop]:
		return ir.I64Attr(trips)
	case c.Unroll > 1 && loop == c.Unrolled:
		return ir.I64Attr(c.Unroll)
	}
	return nil
}

// RegionPolicy is the part of c that says what a region saves.
func (c Config) RegionPolicy() ir.Attrs {
	var d ir.Attrs
	for _, name := range []string{"remat", "save", "offload", "save_decoder_layer_input", "save_iteration_input", "asked"} {
		if a := ir.Attrs(c.dict).Get(name); a != nil {
			d.Set(name, a)
		}
	}
	return d
}

// OneStage is the settings of a stack of n layers as a pipeline of one stage, one
// microbatch and a repeat for each layer.
func (c Config) OneStage(n int) Config {
	d := slices.Clone(ir.Attrs(c.dict))
	for _, name := range []string{"stages", "microbatches", "layers_per_stage", "delay"} {
		d.Set(name, ir.I64Attr(1))
	}
	d.Set("repeats", ir.I64Attr(n))
	d.Set("pipelined", ir.I64Attr(n))
	d.Set("scan_repeats", ir.Bool(!c.inline[ir.LoopLayers]))
	d.Set("scan_iterations", ir.Bool(false)) // one in each repeat
	d.Set("unroll_of", ir.Str("scan_repeats"))
	d.Set("skip_bubbles", ir.Bool(false))
	d.Delete("compat")
	if c.Checkpoint == "layer" {
		d.Set("checkpoint", ir.Str("iteration"))
	}
	return ReadConfig(ir.Dict(d))
}

// Alone is c for a program of the pipeline alone, on layers whose weights are
// numbers that are not to be rounded.
func (c Config) Alone() Config {
	d := slices.Clone(ir.Attrs(c.dict))
	d.Delete("outside")
	d.Delete("gather_dtype")
	return ReadConfig(ir.Dict(d))
}
