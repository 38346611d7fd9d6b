package lower

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

// Flat is m with every dot by groups as dots by groups of two dimensions, [m, k] by
// [g, k, n] or [k, m] by [k, n], with one size for each group: XLA's compiler for TPUs has
// no others. The dimensions outside of the ragged one are those of a loop, since that
// compiler makes a kernel of each dot in the text; what is inside of it becomes a part of
// it, and groups as much larger. It is m itself where there is no dot by groups, and
// shares nothing with m that it changes.
func Flat(m *ir.Module) *ir.Module { return withoutRagged(m, flatDot) }

func flatDot(b *ir.Builder, op *ir.Op) *ir.Value {
	d := op.Attrs.Get("ragged_dot_dimension_numbers").(ir.RaggedDims)
	f := &flattener{b: b, op: op, d: d, freeL: d.FreeL(op.Operands[0].Type.Rank()), freeR: d.FreeR(op.Operands[1].Type.Rank())}
	switch d.Mode() {
	case ir.RaggedBatch:
		return dotAs(b, op, op.Operands[0], op.Operands[1], d.Dot, op.Result().Type)
	case ir.RaggedContract:
		return f.sums()
	}
	return f.rows()
}

type flattener struct {
	b            *ir.Builder
	op           *ir.Op
	d            ir.RaggedDims
	freeL, freeR []int
}

// joined is operand i with each list of dimensions as one.
func (f *flattener) joined(i int, dims ...[]int) *ir.Value {
	x := f.op.Operands[i]
	shape := make([]int, len(dims))
	for k, ds := range dims {
		shape[k] = 1
		for _, d := range ds {
			shape[k] *= x.Type.Shape[d]
		}
	}
	return f.b.Reshape(f.b.Transpose(x, slices.Concat(dims...)...), shape...)
}

// at is x at index i of its first dimension.
func at(b *ir.Builder, x, i *ir.Value) *ir.Value {
	if x.Type.Shape[0] == 1 {
		return b.Reshape(x, x.Type.Shape[1:]...)
	}
	return b.Index(x, 0, i)
}

// with is x with u at index i of its first dimension.
func with(b *ir.Builder, x, i, u *ir.Value) *ir.Value {
	if x.Type.Shape[0] == 1 {
		return b.Reshape(u, x.Type.Shape...)
	}
	return b.SetIndex(x, 0, i, u)
}

// each is what step makes of zeros of type t for every index below n of an outer
// dimension, one after the other: a loop, unless there is one index.
func each(b *ir.Builder, n int, t *ir.Type, step func(b *ir.Builder, o, acc *ir.Value) *ir.Value) *ir.Value {
	init := []*ir.Value{b.I32(0), b.Splat(t, 0)}
	if n == 1 {
		return step(b, init[0], init[1])
	}
	cond, body := new(ir.Block), new(ir.Block)
	for _, v := range init {
		b.Func.NewArg(cond, v.Type, "")
		b.Func.NewArg(body, v.Type, "")
	}
	test, in := b.In(cond), b.In(body)
	test.Emit(ir.Return, []*ir.Value{test.Compare("LT", cond.Args[0], test.I32(n))}, nil, nil, nil)
	o := body.Args[0]
	in.Emit(ir.Return, []*ir.Value{in.Add(o, in.I32(1)), step(in, o, body.Args[1])}, nil, nil, nil)
	return b.Emit(ir.While, init, nil, []*ir.Block{cond, body}, ir.TypesOf(init)).Results[1]
}

// batchOf is which of so many batches index o of n outer ones is in: they come first.
func batchOf(b *ir.Builder, o *ir.Value, batches, n int) *ir.Value {
	if batches == n {
		return o
	}
	return b.Div(o, b.I32(n/batches))
}

// sizes are those of the groups at an outer index, of which each element of the ragged
// dimension counts as so many.
func (f *flattener) sizes(inner int) func(b *ir.Builder, o *ir.Value) *ir.Value {
	v := f.op.Operands[2]
	groups := v.Type.Shape[v.Type.Rank()-1]
	if v.Type.Elem != ir.I32 {
		v = f.b.Convert(v, ir.I32)
	}
	if inner != 1 {
		v = f.b.Mul(v, f.b.Splat(v.Type, float64(inner)))
	}
	if v.Type.Rank() == 1 {
		return func(*ir.Builder, *ir.Value) *ir.Value { return v }
	}
	v = f.b.Reshape(v, v.Type.NumElements()/max(groups, 1), groups)
	return func(b *ir.Builder, o *ir.Value) *ir.Value { return at(b, v, o) }
}

func (f *flattener) dot(b *ir.Builder, x, y, sizes *ir.Value, d ir.RaggedDims, shape ...int) *ir.Value {
	attrs := ir.AttrsOf(facts.Named("ragged_dot_dimension_numbers", d))
	if p := f.op.Attrs.Get("precision_config"); p != nil {
		attrs.Set("precision_config", p)
	}
	return b.Emit(ir.RaggedDot, []*ir.Value{x, y, sizes}, attrs, nil, []*ir.Type{f.op.Result().Type.WithShape(shape...)}).Result()
}

// rows is [o, m, k] by [batch, g, k, n], where the outer dimensions o begin with the batch.
func (f *flattener) rows() *ir.Value {
	b, d, t := f.b, f.d, f.op.Result().Type
	k := slices.Index(f.freeL, d.Ragged())
	x := f.joined(0, slices.Concat(d.LhsBatch, f.freeL[:k]), f.freeL[k:], d.LhsContract)
	y := f.joined(1, d.RhsBatch, d.RhsGroup, d.RhsContract, f.freeR)
	length := f.op.Operands[0].Type.Shape[d.Ragged()]
	outer, m, n := x.Type.Shape[0], x.Type.Shape[1], y.Type.Shape[3]
	if t.NumElements() == 0 {
		return b.Splat(t, 0)
	}
	sizes := f.sizes(m / length)
	dims := ir.RaggedDims{Dot: ir.Dot{LhsContract: []int{1}, RhsContract: []int{1}}, LhsRagged: []int{0}, RhsGroup: []int{0}}
	out := each(b, outer, t.WithShape(outer, m, n), func(b *ir.Builder, o, acc *ir.Value) *ir.Value {
		z := f.dot(b, at(b, x, o), at(b, y, batchOf(b, o, y.Type.Shape[0], outer)), sizes(b, o), dims, m, n)
		return with(b, acc, o, z)
	})
	return b.Reshape(out, t.Shape...)
}

// sums is [batch, o, k, m] by [batch, o, k, n], added up over the outer contracted
// dimensions o.
func (f *flattener) sums() *ir.Value {
	b, d, t := f.b, f.d, f.op.Result().Type
	c := d.Contracted()
	x := f.joined(0, slices.Concat(d.LhsBatch, d.LhsContract[:c]), d.LhsContract[c:], f.freeL)
	y := f.joined(1, slices.Concat(d.RhsBatch, d.RhsContract[:c]), d.RhsContract[c:], f.freeR)
	outer, k, m, n, groups := x.Type.Shape[0], x.Type.Shape[1], x.Type.Shape[2], y.Type.Shape[2], t.Shape[0]
	if t.NumElements() == 0 || outer*k == 0 {
		return b.Splat(t, 0)
	}
	sizes := f.sizes(k / f.op.Operands[0].Type.Shape[d.Ragged()])
	dims := ir.RaggedDims{Dot: ir.Dot{LhsContract: []int{0}, RhsContract: []int{0}}, LhsRagged: []int{0}}
	batch := 1
	for _, k := range d.LhsBatch {
		batch *= f.op.Operands[0].Type.Shape[k]
	}
	out := each(b, outer, t.WithShape(batch, groups, m, n), func(b *ir.Builder, o, acc *ir.Value) *ir.Value {
		z := f.dot(b, at(b, x, o), at(b, y, o), sizes(b, o), dims, groups, m, n)
		i := batchOf(b, o, batch, outer)
		if batch < outer {
			z = b.Add(at(b, acc, i), z)
		}
		return with(b, acc, i, z)
	})
	return b.Reshape(b.Transpose(out, 1, 0, 2, 3), t.Shape...)
}
