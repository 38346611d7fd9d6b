package pipeline

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/pass"
)

// Checkpoint puts a pp.checkpoint (remat) region where the configuration asks for a
// boundary, inside of a loop's body or outside around the loop:
//
//	checkpoint   inside                         outside
//	iteration    around the body of each        around the loop over iterations
//	layer        around each layer              around the loop over a stage's layers
//	repeat       around the iterations of each  around the loop over repeats
//
// Outside of a pipeline, where there are neither iterations nor repeats, it is each
// layer, with the gathers of its weights, or the loop over them. A loop over all
// iterations is split into one over repeats where the boundary is a repeat.
//
// The backward pass rematerialises every value of a region from the region's
// inputs, except those under a name that the policy saves; a forward run is not
// affected. A region with loops = "keep" reruns the loops in it as loops, and these
// save the residuals of their backward loops.
func Checkpoint(_ *pass.Context, m *ir.Module) error {
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		k := &marker{f: f, sub: f.NewSubst()}
		if err := k.block(f.Body, nil); err != nil {
			return err
		}
	}
	return nil
}

// A marker puts regions into one function.
type marker struct {
	f   *ir.Func
	sub ir.Subst
}

// block marks the loops and layer calls of b; around is the innermost loop that
// it is in, nil for none.
func (k *marker) block(b *ir.Block, around *ir.Op) error {
	var ops []*ir.Op
	for _, op := range b.Ops {
		k.sub.Apply(op.Operands)
		for _, r := range op.Regions {
			k.sub.ApplyBlock(r)
		}
		split, err := k.repeats(op, around)
		if err != nil {
			return err
		}
		for _, op := range split {
			marked, err := k.mark(op, around)
			if err != nil {
				return err
			}
			ops = append(ops, marked)
		}
	}
	b.Ops = ops
	return nil
}

// mark returns op, or the region that it is in from now on.
func (k *marker) mark(op, around *ir.Op) (*ir.Op, error) {
	switch {
	case op.Kind == ir.Call && around != nil && boundaryOf(around).what == "layer":
		return rematLayer(k.f, op, facts.ConfigOf(around)), nil
	case op.Kind == ir.PPScan && boundaryOf(op).around(op, around):
		return rematLoop(k.f, op, facts.ConfigOf(op)), nil
	case op.Kind == ir.PPScan && boundaryOf(op).within(op, around):
		rematBody(k.f, op, facts.ConfigOf(op))
		return op, nil
	}
	inner := around
	if op.Kind == ir.PPScan {
		inner = op
	}
	for _, r := range op.Regions {
		if err := k.block(r, inner); err != nil {
			return nil, err
		}
	}
	return op, nil
}

// repeats returns op, or, where repeats are to be marked and op is the loop
// over all iterations, the loop over repeats and the drain that it becomes.
func (k *marker) repeats(op, around *ir.Op) ([]*ir.Op, error) {
	if op.Kind != ir.PPScan || around != nil || op.Attrs.Str(ir.KeyLoop) != ir.LoopIterations || boundaryOf(op) != (boundary{what: "repeat"}) {
		return []*ir.Op{op}, nil
	}
	out := new(ir.Block)
	w := repeatsOf(k.f, &ir.Builder{Func: k.f, Block: out, Origin: op.Origin}, op)
	switch {
	case w.R < 2:
		return nil, pass.Errorf(op, "pipeline: checkpoint = repeat with repeats = %d: there is nothing to split; use checkpoint = iteration, or checkpoint_place = outside for a region around the loop", w.R)
	case op.Int("trip_count") != w.T:
		return []*ir.Op{op}, nil // a loop that gather = per_repeat has split already
	}
	state, _ := w.repeats(w.full(), op.Operands, nil, func(b *ir.Builder, r *ir.Value, state, _ []*ir.Value) (next, newer []*ir.Value) {
		return w.iterations(b, w.N, b.Mul(r, b.I32(w.N)), state, new(pair)), nil
	})
	done := w.N * w.full()
	state = w.iterations(w.b, w.T-done, w.b.I32(done), state, new(pair))
	for i, v := range op.Results {
		k.sub[v.ID] = state[i]
	}
	return out.Ops, nil
}

// A boundary is what a configuration asks for.
type boundary struct {
	what    string // iteration, layer, repeat, none
	outside bool
}

func boundaryOf(loop *ir.Op) boundary {
	c := facts.ConfigOf(loop)
	return boundary{c.Checkpoint, c.CheckpointsLoop}
}

// within reports whether the body of loop, which is in the loop outer if
// any, becomes one region.
func (b boundary) within(loop, outer *ir.Op) bool {
	switch loop.Attrs.Str(ir.KeyLoop) {
	case ir.LoopIterations:
		return b.what == "iteration"
	case ir.LoopRepeats:
		return b.what == "repeat"
	case ir.LoopLayers:
		return outer == nil && b.what != "none" && b.what != ""
	}
	return false
}

// around reports whether a region goes around loop. Iterations beside a loop over
// repeats belong to a repeat, too.
func (b boundary) around(loop, outer *ir.Op) bool {
	switch loop.Attrs.Str(ir.KeyLoop) {
	case ir.LoopIterations:
		return outer == nil && (b.what == "repeat" || b.outside && b.what == "iteration")
	case ir.LoopRepeats:
		return outer == nil && b.outside && (b.what == "repeat" || b.what == "iteration")
	case ir.LoopLayers:
		return b.outside && (b.what == "layer" || outer == nil && b.what != "none")
	}
	return false
}

// rematLayer wraps the call of a layer, rematLoop a loop, whose loops are kept.
func rematLayer(f *ir.Func, call *ir.Op, config facts.Config) *ir.Op {
	return remat(f, call, config.RegionPolicy())
}

func rematLoop(f *ir.Func, loop *ir.Op, config facts.Config) *ir.Op {
	return remat(f, loop, keepingLoops(config.RegionPolicy()))
}

// keepingLoops is the policy p of a region in which loops are kept.
func keepingLoops(p ir.Attrs) ir.Attrs {
	p.Set("loops", ir.Str("keep"))
	return p
}

// remat wraps one op whose results are the region's.
func remat(f *ir.Func, op *ir.Op, policy ir.Attrs) *ir.Op {
	inner := *op
	inner.Results = nil
	for i, v := range op.Results {
		w := f.NewValue(v.Type, v.Name)
		w.Def, w.Index, w.Sharding = &inner, i, v.Sharding
		inner.Results = append(inner.Results, w)
	}
	body := &ir.Block{Ops: []*ir.Op{&inner}}
	return region(f, op.Origin, body, inner.Results, op.Results, policy)
}

// rematBody wraps the body of a loop.
func rematBody(f *ir.Func, loop *ir.Op, config facts.Config) {
	policy := config.RegionPolicy()
	if loop.Attrs.Str(ir.KeyLoop) == ir.LoopRepeats {
		policy = keepingLoops(policy)
	}
	b := loop.Regions[0]
	last := len(b.Ops) - 1
	yield := b.Ops[last]
	body := &ir.Block{Ops: slices.Clone(b.Ops[:last])}
	var results []*ir.Value
	for _, v := range yield.Operands {
		results = append(results, f.NewValue(v.Type, v.Name))
	}
	op := region(f, loop.Origin, body, yield.Operands, results, policy)
	b.Ops = []*ir.Op{op, yield}
	yield.Operands = slices.Clone(results)
}

// region returns a pp.checkpoint over body, which yields the given values.
func region(f *ir.Func, o *ir.Origin, body *ir.Block, yields, results []*ir.Value, policy ir.Attrs) *ir.Op {
	(&ir.Builder{Func: f, Block: body, Origin: o}).Emit(ir.PPYield, yields, nil, nil, nil)
	op := &ir.Op{Kind: ir.PPCheckpoint, Attrs: ir.AttrsOf(facts.Named("policy", ir.Dict(policy))), Regions: []*ir.Block{body}, Origin: o}
	for i, v := range results {
		v.Def, v.Index = op, i
	}
	op.Results = results
	return op
}
