package passes

import (
	"slices"

	"ppc/ir"
)

// accumulate lets one step work on several batches, if pp.train says so in
// gradient_accumulation: what main did becomes the body of a loop over them.
//
// Every input gets a leading dimension, one entry for each batch, and the
// attribute pp.batches, their number; each batch has a number of its own for
// what is drawn at random. What main returned is
//
//   - the mean over the batches, where it is the gradient of a parameter or a
//     floating-point scalar, such as the loss: sums are taken in the widest of
//     f32, the own type and accumulate_dtype, those of gradients where the
//     optimizer's state lies;
//   - one entry for each batch on a leading dimension, where it is anything
//     else; gradients of inputs are those of the mean.
func (s *step) accumulate() {
	n := s.config.Int("gradient_accumulation")
	if n < 2 {
		return
	}
	a := &accumulation{step: s, n: n, body: &ir.Block{Ops: s.f.Body.Ops}}
	s.f.Body.Ops = nil
	a.out = &ir.Builder{Func: s.f, Block: s.f.Body, Origin: s.origin()}
	a.in = a.out.In(a.body)
	a.batch = s.f.NewArg(a.body, ir.Tensor(ir.I32), "batch")
	a.drawn()
	a.takeInputs()
	for i, l := range s.leaves {
		a.sum(l.grad, l.elem, l.sharding, func(mean *ir.Value) { s.leaves[i].grad = mean })
	}
	for i, v := range s.values {
		a.value(i, v)
	}
	a.loop()
}

// An accumulation is the loop over batches in the making.
type accumulation struct {
	*step
	n       int
	body    *ir.Block
	in, out *ir.Builder // in the loop, around it
	batch   *ir.Value   // the number of the iteration

	batches []*ir.Value // per-iteration inputs
	slices  []*ir.Value // what the body has of them
	sums    []total
	stacked []total
}

// A total is one result of the loop and what it is for.
type total struct {
	arg, next *ir.Value // of a carry; next alone of a per-iteration output
	use       func(*ir.Value)
}

// drawn gives each batch its own number in place of the step's: that of all
// batches so far.
func (a *accumulation) drawn() {
	ops := a.body.Ops
	a.body.Ops = nil
	sub := a.f.NewSubst()
	for _, p := range a.f.Params() {
		if p.Attrs.Str("pp.kind") == "step" {
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

// takeInputs puts in place of each input a parameter for all batches.
func (a *accumulation) takeInputs() {
	for i, p := range a.f.Params() {
		if p.Attrs.Str("pp.kind") != "input" || !p.Type.IsTensor() {
			continue
		}
		all := a.f.NewValue(p.Type.WithShape(append([]int{a.n}, p.Type.Shape...)...), p.Name)
		all.Block, all.Index, all.Attrs = p.Block, i, p.Attrs
		all.Attrs.Set("pp.batches", ir.I64Attr(a.n))
		if p.Sharding != nil {
			all.Sharding = p.Sharding.Prepend()
		}
		a.f.Body.Args[i] = all
		p.Attrs = nil
		a.batches, a.slices = append(a.batches, all), append(a.slices, p)
	}
}

// sum has v added up over the batches, lying as at says; use gets the mean, of
// type elem.
func (a *accumulation) sum(v *ir.Value, elem ir.DType, at *ir.Sharding, use func(*ir.Value)) {
	if at != nil {
		v = a.in.Constrain(terms(v, at), at)
	}
	wide := widest(ir.F32, elem, v.Type.Elem, ir.DTypeByName(a.config.Str("accumulate_dtype")))
	arg := a.f.NewValue(v.Type.WithElem(wide), v.Name)
	arg.Sharding = at
	a.sums = append(a.sums, total{arg, a.in.Add(arg, a.in.Convert(v, wide)), func(sum *ir.Value) {
		mean := a.out.Div(sum, a.out.Splat(sum.Type, float64(a.n)))
		use(a.out.Convert(mean, elem).Named(v.Name))
	}})
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

// value takes care of result i of main, which one batch gives as v.
func (a *accumulation) value(i int, v *ir.Value) {
	r := &a.results[i]
	set := func(v *ir.Value) { a.values[i], r.Type = v, v.Type }
	gradient := r.Attrs.Str("pp.kind") == "gradient"
	for _, l := range a.leaves {
		if isGradientOf(*r, l.param) {
			a.sum(v, v.Type.Elem, l.param.Sharding, set)
			return
		}
	}
	if v.Type.IsTensor() && v.Type.Rank() == 0 && v.Type.Elem.IsFloat() && !gradient {
		a.sum(v, v.Type.Elem, nil, set)
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

// loop ends the body and builds the loop.
func (a *accumulation) loop() {
	var init, args, yield []*ir.Value
	for _, t := range a.sums {
		zero := a.out.Splat(t.arg.Type, 0)
		init, args, yield = append(init, a.out.Constrain(zero, t.arg.Sharding)), append(args, t.arg), append(yield, t.next)
	}
	for _, t := range a.stacked {
		yield = append(yield, t.next)
	}
	a.body.Args = slices.Concat(a.body.Args, args, a.slices)
	for i, v := range a.body.Args {
		v.Block, v.Index = a.body, i
	}
	a.in.Emit(ir.PPYield, yield, nil, nil, nil)
	attrs := ir.AttrsOf(named("carries", ir.I64Attr(len(init))), named("trip_count", ir.I64Attr(a.n)), named("pp.loop", ir.Str("batches")))
	scan := a.out.Emit(ir.PPScan, append(init, a.batches...), attrs, []*ir.Block{a.body}, nil)
	for i, t := range slices.Concat(a.sums, a.stacked) {
		v := scan.Results[i].Named(t.next.Name)
		if t.arg != nil {
			v.Sharding = t.arg.Sharding
		}
		t.use(v)
	}
}
