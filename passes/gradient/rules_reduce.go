package gradient

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/rewrite"
)

// The rules of contractions, reductions and sort.

// gradDotLeft contracts the cotangent with the right side over the right
// side's free dimensions.
func gradDotLeft(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	d := op.Attrs.Get("dot_dimension_numbers").(ir.Dot)
	l, r := op.Operands[0].Type, op.Operands[1].Type
	freeL, freeR := facts.Others(l.Rank(), slices.Concat(d.LhsBatch, d.LhsContract)), facts.Others(r.Rank(), slices.Concat(d.RhsBatch, d.RhsContract))
	n := len(d.LhsBatch) + len(freeL)
	back := ir.Dot{LhsBatch: facts.UpTo(len(d.LhsBatch)), RhsBatch: d.RhsBatch, LhsContract: facts.UpTo(n + len(freeR))[n:], RhsContract: freeR}
	// The result has the batch dimensions, then the free ones of the left side,
	// then the contracted ones in the right side's order.
	dims := slices.Concat(d.LhsBatch, freeL, paired(d.RhsContract, d.LhsContract))
	return t.dot(op, ct, t.need(op.Operands[1]), back, l, dims)
}

// gradDotRight contracts the left side with the cotangent over the left side's
// free dimensions.
func gradDotRight(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	d := op.Attrs.Get("dot_dimension_numbers").(ir.Dot)
	l, r := op.Operands[0].Type, op.Operands[1].Type
	freeL, freeR := facts.Others(l.Rank(), slices.Concat(d.LhsBatch, d.LhsContract)), facts.Others(r.Rank(), slices.Concat(d.RhsBatch, d.RhsContract))
	batch := len(d.LhsBatch)
	back := ir.Dot{LhsBatch: d.LhsBatch, RhsBatch: facts.UpTo(batch), LhsContract: freeL, RhsContract: facts.UpTo(batch + len(freeL))[batch:]}
	dims := slices.Concat(d.RhsBatch, paired(d.LhsContract, d.RhsContract), freeR)
	return t.dot(op, t.need(op.Operands[0]), ct, back, r, dims)
}

// paired are the dimensions of other that are contracted with dims, in
// ascending order of dims.
func paired(dims, other []int) []int {
	out := make([]int, len(dims))
	for i, d := range slices.Sorted(slices.Values(dims)) {
		out[i] = other[slices.Index(dims, d)]
	}
	return out
}

// dot contracts x with y; dimension i of that is dimension dims[i] of the
// result, which has type typ. It is as precise as op.
func (t *tape) dot(op *ir.Op, x, y *ir.Value, d ir.Dot, typ *ir.Type, dims []int) *ir.Value {
	return t.product(op, []*ir.Value{x, y}, rewrite.AttrsWith(op, facts.Named("dot_dimension_numbers", d)), typ, dims)
}

// product emits an op of op's kind, a product of in[0] and in[1], and brings it to the
// type of [tape.dot].
func (t *tape) product(op *ir.Op, in []*ir.Value, attrs ir.Attrs, typ *ir.Type, dims []int) *ir.Value {
	x, y := in[0], in[1]
	elem := x.Type.Elem
	if y.Type.Elem.Bits() > elem.Bits() {
		elem = y.Type.Elem
	}
	shape, perm := make([]int, len(dims)), make([]int, len(dims))
	for i, k := range dims {
		shape[i], perm[k] = typ.Shape[k], i
	}
	v := t.b.Emit(op.Kind, in, attrs, nil, []*ir.Type{ir.Tensor(elem, shape...)}).Result()
	return t.b.Convert(t.b.Transpose(v, perm...), typ.Elem)
}

// gradReduce handles each result separately: a sum, a product, a maximum or
// minimum, or a choice between the two elements by any predicate, as in argmax.
func gradReduce(t *tape, op *ir.Op, ct []*ir.Value) {
	n := len(op.Results)
	for i := range n {
		x, init := op.Operands[i], op.Operands[n+i]
		if ct[i] == nil || !t.wants(x) && !t.wants(init) {
			continue
		}
		r := &reduction{tape: t, op: op, i: i, ct: ct[i], dims: op.Ints("dimensions")}
		switch facts.Combines(op.Regions[0], i) {
		case ir.Add:
			r.sum()
		case ir.Multiply:
			r.product()
		case ir.Maximum, ir.Minimum:
			r.extreme()
		default:
			if p, first := chooses(op.Regions[0], i); p != nil {
				r.choice(p, first)
			} else {
				t.fails(op)
			}
		}
	}
}

// A reduction is result i of a reduce, and its cotangent.
type reduction struct {
	*tape
	op   *ir.Op
	i    int
	ct   *ir.Value
	dims []int
}

func (r *reduction) x() *ir.Value { return r.op.Operands[r.i] }

func (r *reduction) init() *ir.Value { return r.op.Operands[len(r.op.Results)+r.i] }

// give adds to the cotangents of the elements and of the initial value, where these
// are needed. elements has the shape of the operand, initial that of the result,
// over which it is summed.
func (r *reduction) give(elements, initial func() *ir.Value) {
	if x := r.x(); r.wants(x) {
		r.add(x, r.b.Convert(elements(), x.Type.Elem))
	}
	if init := r.init(); r.wants(init) {
		g := initial()
		r.add(init, r.b.Convert(r.tape.sum(g, facts.UpTo(g.Type.Rank())...), init.Type.Elem))
	}
}

// broadcast broadcasts v, which has the shape of the result, along the reduced
// dimensions.
func (r *reduction) broadcast(v *ir.Value) *ir.Value {
	shape := r.x().Type.Shape
	return r.b.Broadcast(v, shape, facts.Others(len(shape), r.dims)...)
}

// element is the operand, in the element type of the result.
func (r *reduction) element() *ir.Value {
	return r.b.Convert(r.need(r.x()), r.ct.Type.Elem)
}

// first is the initial value in the shape of the result.
func (r *reduction) first() *ir.Value {
	v := r.b.Convert(r.need(r.init()), r.ct.Type.Elem)
	return r.b.Broadcast(v, r.ct.Type.Shape)
}

// count is how often p is true along the reduced dimensions: exact in any type.
func (r *reduction) count(p *ir.Value) *ir.Value {
	return r.tape.sum(r.b.Convert(p, ir.I32), r.dims...)
}

func (r *reduction) sum() {
	ct := r.ct
	r.give(
		func() *ir.Value { return r.broadcast(r.b.Convert(ct, r.x().Type.Elem)) },
		func() *ir.Value { return ct })
}

// extreme shares the cotangent equally among the elements that are the result.
func (r *reduction) extreme() {
	b := r.b
	y := r.need(r.op.Results[r.i])
	is := b.Compare("EQ", r.element(), r.broadcast(y))
	count := r.count(is)
	var first *ir.Value
	if r.wants(r.init()) {
		first = b.Compare("EQ", r.first(), y)
		count = b.Add(count, b.Convert(first, ir.I32))
	}
	share := b.Div(r.ct, b.Convert(count, r.ct.Type.Elem))
	r.give(
		func() *ir.Value {
			v := r.broadcast(share)
			return b.Select(is, v, r.zeros(v.Type))
		},
		func() *ir.Value { return b.Select(first, share, r.zeros(share.Type)) })
}

// product multiplies the cotangent for each element by the product of the others:
// the product of all divided by the element, or, where one element is zero, the
// product of the rest for that one and zero for the rest.
func (r *reduction) product() {
	b := r.b
	x := r.element()
	elem := x.Type.Elem
	one := b.Splat(ir.Tensor(elem), 1)
	r.give(
		func() *ir.Value {
			zero := b.Compare("EQ", x, r.zeros(x.Type))
			count := r.count(zero)
			nonzero := b.Select(zero, r.fill(x.Type, 1), x)
			rest := b.Mul(b.Mul(r.ct, r.first()), b.Reduce(ir.Multiply, nonzero, one, r.dims...))
			with := func(n float64) *ir.Value { // the product where n elements are zero
				return r.broadcast(b.Select(b.Compare("EQ", count, r.fill(count.Type, n)), rest, r.zeros(rest.Type)))
			}
			return b.Select(zero, with(1), b.Div(with(0), nonzero))
		},
		func() *ir.Value { return b.Mul(r.ct, b.Reduce(ir.Multiply, x, one, r.dims...)) })
}

// choice finds the element that is the result by reducing the elements' numbers
// along with them: it gets the cotangent. The initial value has the number -1.
func (r *reduction) choice(p *ir.Value, first bool) {
	b, f := r.b, r.d.f
	n := len(r.op.Results)
	number := r.numbers()
	operands := slices.Insert(r.needAll(r.op.Operands[:n]), n, number)
	operands = append(append(operands, r.needAll(r.op.Operands[n:])...), b.I32(-1))

	sub := r.captured(r.op)
	region := f.CopyBlock(r.op.Regions[0], sub)
	a, c := f.NewArg(region, ir.Tensor(ir.I32), ""), f.NewArg(region, ir.Tensor(ir.I32), "")
	region.Args = slices.Concat(region.Args[:n], []*ir.Value{a}, region.Args[n:2*n], []*ir.Value{c})
	for i, arg := range region.Args {
		arg.Index = i
	}
	ret := region.Terminator()
	region.Ops = region.Ops[:len(region.Ops)-1]
	if !first {
		a, c = c, a
	}
	in := b.In(region)
	if sub[p] != nil {
		p = sub[p]
	}
	in.Emit(ir.Return, append(ret.Operands, in.Select(p, a, c)), nil, nil, nil)

	won := b.Emit(ir.Reduce, operands, r.op.Attrs, []*ir.Block{region}, nil).Results[n]
	r.give(
		func() *ir.Value {
			v := r.broadcast(r.ct)
			return b.Select(b.Compare("EQ", number, r.broadcast(won)), v, r.zeros(v.Type))
		},
		func() *ir.Value {
			return b.Select(b.Compare("EQ", won, r.fill(won.Type, -1)), r.ct, r.zeros(r.ct.Type))
		})
}

// numbers is a distinct number for each of the elements that are reduced to one.
func (r *reduction) numbers() *ir.Value {
	typ := r.x().Type.WithElem(ir.I32)
	var out *ir.Value
	stride := 1
	for _, d := range r.dims {
		v := r.b.Iota(typ, d)
		if stride > 1 {
			v = r.b.Mul(v, r.fill(typ, float64(stride)))
		}
		if out != nil {
			v = r.b.Add(out, v)
		}
		out = v
		stride *= typ.Shape[d]
	}
	if out == nil {
		return r.fill(typ, 0)
	}
	return out
}

// captured maps the values that op's regions capture to the backward block's values
// for them.
func (t *tape) captured(op *ir.Op) map[*ir.Value]*ir.Value {
	sub := make(map[*ir.Value]*ir.Value)
	for _, v := range op.Captures() {
		sub[v] = t.need(v)
	}
	return sub
}

// chooses returns the predicate by which region selects one of the arguments i
// of its halves as result i, and whether a true one means the first; nil if it
// does anything else.
func chooses(region *ir.Block, i int) (p *ir.Value, first bool) {
	x, y := region.Args[i], region.Args[len(region.Args)/2+i]
	op := region.Terminator().Operands[i].Def
	if op == nil || op.Kind != ir.Select {
		return nil, false
	}
	switch a, b := op.Operands[1], op.Operands[2]; {
	case a == x && b == y:
		return op.Operands[0], true
	case a == y && b == x:
		return op.Operands[0], false
	}
	return nil, false
}

// gradSort undoes the permutation: an iota sorted along with the operands is the
// permutation, and sorting the cotangents by it inverts it.
func gradSort(t *tape, op *ir.Op, ct []*ir.Value) {
	var xs, cts []*ir.Value
	for i, x := range op.Operands {
		if ct[i] != nil && t.wants(x) {
			xs, cts = append(xs, x), append(cts, ct[i])
		}
	}
	if len(xs) == 0 {
		return
	}
	b, f := t.b, t.d.f
	// The sort must order equal elements as the forward one does.
	op.Attrs.Set("is_stable", ir.Bool(true))
	dim := op.Int("dimension")
	if dim < 0 {
		dim += op.Operands[0].Type.Rank()
	}
	place := b.Iota(op.Operands[0].Type.WithElem(ir.I32), dim)
	comparator := f.CopyBlock(op.Regions[0], t.captured(op))
	f.NewArg(comparator, ir.Tensor(ir.I32), "")
	f.NewArg(comparator, ir.Tensor(ir.I32), "")
	from := b.Emit(ir.Sort, append(t.needAll(op.Operands), place), op.Attrs, []*ir.Block{comparator}, nil).Results[len(op.Operands)]

	back := new(ir.Block)
	operands := append([]*ir.Value{from}, cts...)
	for _, v := range operands {
		f.NewArg(back, ir.Tensor(v.Type.Elem), "")
		f.NewArg(back, ir.Tensor(v.Type.Elem), "")
	}
	in := b.In(back)
	in.Emit(ir.Return, []*ir.Value{in.Compare("LT", back.Args[0], back.Args[1])}, nil, nil, nil)
	undone := b.Emit(ir.Sort, operands, op.Attrs, []*ir.Block{back}, nil).Results[1:]
	for i, x := range xs {
		t.add(x, undone[i])
	}
}
