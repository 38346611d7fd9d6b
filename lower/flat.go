package lower

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

// Flat is m with every dot by groups as dots by groups of two dimensions, [m, k] by
// [g, k, n] or [k, m] by [k, n], with one size for each group: XLA's compiler for TPUs has
// no others. There is one for each index of the dimensions outside of the ragged one; what
// is inside of it becomes a part of it, and groups as much larger. It is m itself where
// there is no dot by groups, and shares nothing with m that it changes.
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
func (f *flattener) at(x *ir.Value, i int) *ir.Value {
	return f.b.Reshape(f.b.SliceDim(x, 0, i, i+1), x.Type.Shape[1:]...)
}

// sizes are those of the groups at an outer index, of which each element of the ragged
// dimension counts as so many.
func (f *flattener) sizes(inner int) func(o int) *ir.Value {
	v := f.op.Operands[2]
	groups := v.Type.Shape[v.Type.Rank()-1]
	if v.Type.Elem != ir.I32 {
		v = f.b.Convert(v, ir.I32)
	}
	if inner != 1 {
		v = f.b.Mul(v, f.b.Splat(v.Type, float64(inner)))
	}
	if v.Type.Rank() == 1 {
		return func(int) *ir.Value { return v }
	}
	v = f.b.Reshape(v, v.Type.NumElements()/max(groups, 1), groups)
	return func(o int) *ir.Value { return f.at(v, o) }
}

func (f *flattener) dot(x, y, sizes *ir.Value, d ir.RaggedDims, shape ...int) *ir.Value {
	attrs := ir.AttrsOf(facts.Named("ragged_dot_dimension_numbers", d))
	if p := f.op.Attrs.Get("precision_config"); p != nil {
		attrs.Set("precision_config", p)
	}
	return f.b.Emit(ir.RaggedDot, []*ir.Value{x, y, sizes}, attrs, nil, []*ir.Type{f.op.Result().Type.WithShape(shape...)}).Result()
}

// rows is [o, m, k] by [batch, g, k, n], where the outer dimensions o begin with the batch.
func (f *flattener) rows() *ir.Value {
	b, d, t := f.b, f.d, f.op.Result().Type
	at := slices.Index(f.freeL, d.Ragged())
	x := f.joined(0, slices.Concat(d.LhsBatch, f.freeL[:at]), f.freeL[at:], d.LhsContract)
	y := f.joined(1, d.RhsBatch, d.RhsGroup, d.RhsContract, f.freeR)
	length := f.op.Operands[0].Type.Shape[d.Ragged()]
	outer, m, n := x.Type.Shape[0], x.Type.Shape[1], y.Type.Shape[3]
	if t.NumElements() == 0 {
		return b.Splat(t, 0)
	}
	sizes := f.sizes(m / length)
	dims := ir.RaggedDims{Dot: ir.Dot{LhsContract: []int{1}, RhsContract: []int{1}}, LhsRagged: []int{0}, RhsGroup: []int{0}}
	var parts []*ir.Value
	for o := range outer {
		parts = append(parts, f.dot(f.at(x, o), f.at(y, o*y.Type.Shape[0]/outer), sizes(o), dims, m, n))
	}
	return b.Reshape(b.Concat(0, parts...), t.Shape...)
}

// sums is [batch, o, k, m] by [batch, o, k, n], added up over the outer contracted
// dimensions o.
func (f *flattener) sums() *ir.Value {
	b, d, t := f.b, f.d, f.op.Result().Type
	at := d.Contracted()
	x := f.joined(0, slices.Concat(d.LhsBatch, d.LhsContract[:at]), d.LhsContract[at:], f.freeL)
	y := f.joined(1, slices.Concat(d.RhsBatch, d.RhsContract[:at]), d.RhsContract[at:], f.freeR)
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
	parts := make([]*ir.Value, batch)
	for o := range outer {
		v := f.dot(f.at(x, o), f.at(y, o), sizes(o), dims, groups, m, n)
		if i := o * batch / outer; parts[i] == nil {
			parts[i] = v
		} else {
			parts[i] = b.Add(parts[i], v)
		}
	}
	for i, v := range parts {
		parts[i] = b.Reshape(v, groups, 1, m, n)
	}
	return b.Reshape(b.Concat(1, parts...), t.Shape...)
}
