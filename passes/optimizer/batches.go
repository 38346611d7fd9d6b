package optimizer

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
	"ppc/passes/pass"
)

// accumulate makes one step work on several batches, if pp.train has
// gradient_accumulation: the body of main becomes the body of a loop over them.
//
// Every input gets a leading dimension, one entry for each batch, and the attribute
// pp.batches, their number; random numbers are drawn for each batch by a number of
// its own. A result of main becomes
//
//   - the mean over the batches, where it is the gradient of a parameter or a
//     floating-point scalar, such as the loss: sums are taken in the widest of
//     f32, the own type and accumulate_dtype;
//   - one entry for each batch on a leading dimension, where it is anything
//     else; gradients of inputs are those of the mean.
//
// A sum is sharded as the parameter, and stays unreduced along the other axes of
// the mesh until it is complete: it is reduced once per step. With reduce_gradients
// = "per_batch" the sums of gradients have the sharding of the optimizer's state,
// and the gradients of each batch are reduce-scattered to it.
//
// A value under a pp.name with the attribute pp.over_batches is replaced in each
// batch by its mean over all batches: see [accumulation.totals].
func (s *step) accumulate() error {
	n := s.config.Int("gradient_accumulation")
	if n < 2 {
		return nil
	}
	a := &accumulation{step: s, name: ir.LoopBatches, n: n, body: &ir.Block{Ops: s.f.Body.Ops}}
	s.f.Body.Ops = nil
	a.out = &ir.Builder{Func: s.f, Block: s.f.Body, Origin: s.origin()}
	a.in = a.out.In(a.body)
	a.batch = s.f.NewArg(a.body, ir.Tensor(ir.I32), "batch")
	a.drawn()
	a.takeInputs()
	a.gatherOnce()
	if err := a.totals(); err != nil {
		return err
	}
	for i, l := range s.leaves {
		at := l.param.Sharding
		if s.config.Str("reduce_gradients") == "per_batch" {
			at = l.sharding
		}
		a.sum(a.unreduced(terms(l.grad, a.partial(l.param.Sharding)), l.param.Sharding), l.elem, at, func(mean *ir.Value) { s.leaves[i].grad = mean })
	}
	for i, v := range s.values {
		a.value(i, v)
	}
	a.loop()
	return nil
}

// An accumulation is the loop over batches under construction.
type accumulation struct {
	*step
	name    string // of the loop
	n       int
	body    *ir.Block
	in, out *ir.Builder // in the loop, around it
	batch   *ir.Value   // the number of the iteration

	batches []*ir.Value // per-iteration inputs
	slices  []*ir.Value // the body's slice of each
	sums    []total
	stacked []total
}

// A total is one result of the loop and what is computed from it.
type total struct {
	arg, next *ir.Value    // of a carry; a per-iteration output has next alone
	partial   *ir.Sharding // of a carry: the unreduced sharding of its terms
	use       func(*ir.Value)
}

// gatherOnce moves the gathers of parameters whose results are saved out of the body:
// the parameters are the same for all batches, and inputs are not.
func (a *accumulation) gatherOnce() {
	a.body.Ops = slices.DeleteFunc(a.body.Ops, func(op *ir.Op) bool {
		once := op.Kind == ir.PPGather && op.Attrs.Has(ir.KeySave) && slices.Contains(a.f.Body.Args, op.Operands[0])
		if once {
			a.f.Body.Ops = append(a.f.Body.Ops, op)
		}
		return once
	})
}

// drawn replaces the step number by which random numbers are drawn with the number
// of batches so far, over all steps.
func (a *accumulation) drawn() {
	ops := a.body.Ops
	a.body.Ops = nil
	sub := a.f.NewSubst()
	for _, p := range a.f.Params() {
		if p.Attrs.Str(ir.KeyKind) == "step" {
			first := a.in.Mul(p, a.in.Splat(p.Type, float64(a.n)))
			sub[p.ID] = a.in.Add(first, a.in.Convert(a.batch, p.Type.Elem)).Named(p.Name)
		}
	}
	for _, op := range ops {
		sub.Apply(op.Operands)
		for _, r := range op.Regions {
			sub.ApplyBlock(r)
		}
	}
	sub.Apply(a.values)
	a.body.Ops = append(a.body.Ops, ops...)
}

// takeInputs replaces each input by a parameter for all batches.
func (a *accumulation) takeInputs() {
	for i, p := range a.f.Params() {
		if p.Attrs.Str(ir.KeyKind) != "input" || !p.Type.IsTensor() {
			continue
		}
		all := a.f.NewValue(p.Type.WithShape(append([]int{a.n}, p.Type.Shape...)...), p.Name)
		all.Block, all.Index, all.Attrs = p.Block, i, p.Attrs
		all.Attrs.Set(ir.KeyBatches, ir.I64Attr(a.n))
		if p.Sharding != nil {
			all.Sharding = p.Sharding.Prepend()
		}
		a.f.Body.Args[i] = all
		p.Attrs = nil
		a.batches, a.slices = append(a.batches, all), append(a.slices, p)
	}
}

// sum accumulates v over the batches with the sharding at, unreduced along the
// other axes of the mesh; use gets the mean, of type elem.
func (a *accumulation) sum(v *ir.Value, elem ir.DType, at *ir.Sharding, use func(*ir.Value)) {
	v = a.unreduced(v, at)
	partial := a.partial(at)
	wide := widest(ir.F32, elem, v.Type.Elem, ir.DTypeByName(a.config.Str("accumulate_dtype")))
	arg := a.f.NewValue(v.Type.WithElem(wide), v.Name)
	arg.Sharding = at
	a.sums = append(a.sums, total{arg, a.in.Add(arg, a.in.Convert(v, wide)), partial, func(sum *ir.Value) {
		sum = a.out.Constrain(sum, partial)
		mean := a.out.Div(sum, a.out.Splat(sum.Type, float64(a.n)))
		use(a.out.Convert(mean, elem).Named(v.Name))
	}})
}

// unreduced is v with the sharding at, before any constraint that would reduce it.
func (a *accumulation) unreduced(v *ir.Value, at *ir.Sharding) *ir.Value {
	if partial := a.partial(at); partial != nil && !partial.SameLayout(facts.Stated(v)) {
		return a.in.Constrain(v, partial)
	}
	return v
}

// partial is at, unreduced along the axes that it does not use; nil where at is
// nil.
func (a *accumulation) partial(at *ir.Sharding) *ir.Sharding {
	if at == nil {
		return nil
	}
	return layout.UnreducedElsewhere(a.m.Meshes[0], at)
}

// widest is the largest of the floating-point types among ts.
func widest(ts ...ir.DType) ir.DType {
	w := ts[0]
	for _, t := range ts[1:] {
		if t.IsFloat() && t.Bits() > w.Bits() {
			w = t
		}
	}
	return w
}

// value makes result i of main, which is v in one batch, a result of the loop.
func (a *accumulation) value(i int, v *ir.Value) {
	r := &a.results[i]
	set := func(v *ir.Value) { a.values[i], r.Type = v, v.Type }
	gradient := r.Attrs.Str(ir.KeyKind) == "gradient"
	for _, l := range a.leaves {
		if isGradientOf(*r, l.param) {
			a.sum(terms(v, a.partial(l.param.Sharding)), v.Type.Elem, l.param.Sharding, set)
			return
		}
	}
	if v.Type.IsTensor() && v.Type.Rank() == 0 && v.Type.Elem.IsFloat() && !gradient {
		a.sum(v, v.Type.Elem, a.closed(v), set)
		return
	}
	if gradient {
		v = a.in.Div(v, a.in.Splat(v.Type, float64(a.n)))
	}
	if r.Sharding != nil {
		r.Sharding = r.Sharding.Prepend()
	}
	a.stacked = append(a.stacked, total{next: v, use: set})
}

// totals replaces each value that is marked as a mean over all batches by that
// mean, which a loop over the batches before the main one computes.
func (a *accumulation) totals() error {
	var marks []*ir.Op
	for _, op := range a.body.Ops {
		if overBatches(op) {
			marks = append(marks, op)
		}
		for _, r := range op.Regions {
			var inner *ir.Op
			r.Walk(func(op *ir.Op) {
				if overBatches(op) {
					inner = op
				}
			})
			if inner != nil {
				return pass.Errorf(inner, "the mean of a value over the accumulated batches is known outside of loops and layers alone")
			}
		}
	}
	if len(marks) == 0 {
		return nil
	}
	first := &accumulation{step: a.step, name: "totals", n: a.n, out: a.out, body: new(ir.Block), batches: a.batches}
	first.in = a.out.In(first.body)
	first.batch = a.f.NewArg(first.body, a.batch.Type, a.batch.Name)
	copies := map[*ir.Value]*ir.Value{a.batch: first.batch}
	for _, p := range a.slices {
		q := a.f.NewValue(p.Type, p.Name)
		q.Sharding, copies[p] = p.Sharding, q
		first.slices = append(first.slices, q)
	}
	sub := a.f.NewSubst()
	for _, op := range neededFor(a.body.Ops, marks) {
		if overBatches(op) {
			return pass.Errorf(op, "the mean over the accumulated batches of a value depends on another such mean: want one of the batch alone")
		}
		first.body.Ops = append(first.body.Ops, a.f.CopyOp(op, copies))
	}
	for _, op := range marks {
		v := copies[op.Operands[0]]
		at := a.closed(v)
		first.sum(v, v.Type.Elem, at, func(mean *ir.Value) { // reduced here, and not in every batch
			sub[op.Result().ID] = a.out.Constrain(mean, at).Named(op.Result().Name)
		})
	}
	first.loop()
	a.body.Ops = slices.DeleteFunc(a.body.Ops, overBatches)
	for _, op := range a.body.Ops {
		sub.Apply(op.Operands)
		for _, r := range op.Regions {
			sub.ApplyBlock(r)
		}
	}
	sub.Apply(a.values)
	return nil
}

// overBatches reports whether op marks a value that is to be the mean over all
// accumulated batches.
func overBatches(op *ir.Op) bool { return op.Kind == ir.PPName && op.Attrs.Has(ir.KeyOverBatches) }

// neededFor is the ops, in order, that the operands of marks depend on; a mark
// among them is a copy of its operand.
func neededFor(ops, marks []*ir.Op) []*ir.Op {
	needed := make(map[*ir.Value]bool)
	for _, op := range marks {
		needed[op.Operands[0]] = true
	}
	var out []*ir.Op
	for _, op := range slices.Backward(ops) {
		if !slices.ContainsFunc(op.Results, func(v *ir.Value) bool { return needed[v] }) {
			continue
		}
		for _, v := range slices.Concat(op.Operands, op.Captures()) {
			needed[v] = true
		}
		out = append(out, op)
	}
	slices.Reverse(out)
	return out
}

// loop ends the body and builds the loop.
func (a *accumulation) loop() {
	var init, args, yield []*ir.Value
	for _, t := range a.sums {
		zero := a.out.Splat(t.arg.Type, 0)
		init, args, yield = append(init, a.out.Constrain(zero, t.partial)), append(args, t.arg), append(yield, t.next)
	}
	for _, t := range a.stacked {
		yield = append(yield, t.next)
	}
	a.body.Args = slices.Concat(a.body.Args, args, a.slices)
	for i, v := range a.body.Args {
		v.Block, v.Index = a.body, i
	}
	a.in.Emit(ir.PPYield, yield, nil, nil, nil)
	attrs := ir.AttrsOf(facts.Named("carries", ir.I64Attr(len(init))), facts.Named("trip_count", ir.I64Attr(a.n)), facts.Named(ir.KeyLoop, ir.Str(a.name)))
	scan := a.out.Emit(ir.PPScan, append(init, a.batches...), attrs, []*ir.Block{a.body}, nil)
	for i, t := range slices.Concat(a.sums, a.stacked) {
		v := scan.Results[i].Named(t.next.Name)
		if t.arg != nil {
			v.Sharding = t.arg.Sharding
		}
		t.use(v)
	}
}
