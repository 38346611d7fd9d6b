package gradient

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

// gradBroadcast sums the cotangent over the broadcast dimensions.
func gradBroadcast(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	in, out := op.Operands[0].Type, op.Result().Type
	dims := op.Ints("broadcast_dimensions")
	var kept []int // operand dimensions, in the order in which the result has them
	var summed []int
	for d := range out.Shape {
		if i := slices.Index(dims, d); i >= 0 && in.Shape[i] == out.Shape[d] {
			kept = append(kept, i)
		} else {
			summed = append(summed, d)
		}
	}
	perm := make([]int, 0, len(kept)) // kept, in the operand's order
	for i := range in.Shape {
		if at := slices.Index(kept, i); at >= 0 {
			perm = append(perm, at)
		}
	}
	return t.b.Reshape(t.b.Transpose(t.sum(ct, summed...), perm...), in.Shape...)
}

func gradConcatenate(t *tape, op *ir.Op, ct []*ir.Value) {
	dim, start := op.Int("dimension"), 0
	for _, x := range op.Operands {
		limit := start + x.Type.Shape[dim]
		if t.wants(x) {
			t.add(x, t.b.SliceDim(ct[0], dim, start, limit))
		}
		start = limit
	}
}

// needAll is need of each of vs.
func (t *tape) needAll(vs []*ir.Value) []*ir.Value {
	out := make([]*ir.Value, len(vs))
	for i, v := range vs {
		out[i] = t.need(v)
	}
	return out
}

func gradDynamicSlice(t *tape, op *ir.Op, ct []*ir.Value) {
	if x := op.Operands[0]; t.wants(x) {
		t.add(x, t.b.DynamicUpdateSlice(t.zeros(x.Type.WithElem(ct[0].Type.Elem)), ct[0], t.needAll(op.Operands[1:])))
	}
}

func gradDynamicUpdateSlice(t *tape, op *ir.Op, ct []*ir.Value) {
	x, u := op.Operands[0], op.Operands[1]
	if t.wants(x) {
		t.add(x, t.b.DynamicUpdateSlice(ct[0], t.zeros(u.Type), t.needAll(op.Operands[2:])))
	}
	if t.wants(u) {
		t.add(u, t.b.DynamicSlice(ct[0], t.needAll(op.Operands[2:]), u.Type.Shape...))
	}
}

// gradPad is a strided slice of the operand's elements, after padding with zeros
// where a negative padding had dropped some.
func gradPad(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	in := op.Operands[0].Type
	low, high, interior := op.Ints("edge_padding_low"), op.Ints("edge_padding_high"), op.Ints("interior_padding")
	if in.NumElements() == 0 {
		return t.zeros(in)
	}
	rank := in.Rank()
	restoreLow, restoreHigh := make([]int, rank), make([]int, rank)
	start, limit, strides := make([]int, rank), make([]int, rank), make([]int, rank)
	dropped := false
	for d, n := range in.Shape {
		restoreLow[d], restoreHigh[d] = max(-low[d], 0), max(-high[d], 0)
		dropped = dropped || low[d] < 0 || high[d] < 0
		strides[d] = interior[d] + 1
		start[d] = max(low[d], 0)
		limit[d] = start[d] + (n-1)*strides[d] + 1
	}
	if dropped {
		ct = t.b.Pad(ct, t.b.Splat(ir.Tensor(in.Elem), 0), restoreLow, restoreHigh, make([]int, rank))
	}
	return t.slice(ct, start, limit, strides)
}

// slice takes every strides-th element from start to limit; it is x where
// those are all.
func (t *tape) slice(x *ir.Value, start, limit, strides []int) *ir.Value {
	if slices.Equal(limit, x.Type.Shape) && !slices.ContainsFunc(start, func(n int) bool { return n != 0 }) && !slices.ContainsFunc(strides, func(n int) bool { return n != 1 }) {
		return x
	}
	attrs := ir.AttrsOf(facts.Named("start_indices", ir.Ints(start)), facts.Named("limit_indices", ir.Ints(limit)), facts.Named("strides", ir.Ints(strides)))
	return t.b.Emit(ir.Slice, []*ir.Value{x}, attrs, nil, nil).Result()
}

// gradPadding is the rule of the padding value: the sum of the cotangent over the
// padding.
func gradPadding(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	b := t.b
	in := op.Operands[0].Type
	element, padding := t.fill(in.WithElem(ir.I1), 1), b.Splat(ir.Tensor(ir.I1), 0)
	inside := b.Emit(ir.Pad, []*ir.Value{element, padding}, op.Attrs, nil, nil).Result()
	return t.sum(b.Select(inside, t.zeros(ct.Type), ct), facts.UpTo(ct.Type.Rank())...)
}

func gradReshape(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	return t.b.Reshape(ct, op.Operands[0].Type.Shape...)
}

func gradReverse(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	return t.b.Emit(op.Kind, []*ir.Value{ct}, op.Attrs, nil, nil).Result()
}

// gradSlice pads the cotangent with zeros for the elements that the slice skips.
func gradSlice(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	in := op.Operands[0].Type
	if ct.Type.NumElements() == 0 {
		return t.zeros(in.WithElem(ct.Type.Elem))
	}
	start, strides := op.Ints("start_indices"), op.Ints("strides")
	rank := in.Rank()
	high, interior := make([]int, rank), make([]int, rank)
	for d, n := range ct.Type.Shape {
		interior[d] = strides[d] - 1
		high[d] = in.Shape[d] - (start[d] + (n-1)*strides[d] + 1)
	}
	return t.b.Pad(ct, t.b.Splat(ir.Tensor(ct.Type.Elem), 0), start, high, interior)
}

func gradTranspose(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	perm := op.Ints("permutation")
	inverse := make([]int, len(perm))
	for d, i := range perm {
		inverse[i] = d
	}
	return t.b.Transpose(ct, inverse...)
}
