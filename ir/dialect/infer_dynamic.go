package dialect

import (
	"slices"

	"ppc/ir"
)

// Constraints and result types of ops that take sizes as operands. The result
// has the declared type: what of it is known must fit.

// sizesOf checks that operand i of op is a list of n integers; n is Dynamic where
// any number is right. It returns them where they are constant, else nil.
func sizesOf(op *ir.Op, rule, i, n int) ([]int, *ir.Rule) {
	v := op.Operands[i]
	t := v.Type
	if !t.IsTensor() || t.Rank() != 1 || !t.Elem.IsInt() {
		return nil, ir.Broken(0, "operand %d is %s, want a list of integers", i, t)
	}
	if t.Shape[0] == ir.Dynamic {
		return nil, ir.Broken(0, "operand %d is %s, want a list of known length", i, t)
	}
	if !ir.Fits(t.Shape[0], n) {
		return nil, ir.Broken(rule, "operand %d has %s, want %d", i, ir.Counted(t.Shape[0], "number"), n)
	}
	return constantInts(v), nil
}

// constantInts are the numbers of v where it is a constant of a list that has a
// use, else nil.
func constantInts(v *ir.Value) []int {
	if v.Def == nil || v.Def.Kind != ir.Constant || !v.Type.IsTensor() || v.Type.Rank() != 1 || !v.Type.Elem.IsInt() {
		return nil
	}
	l := v.Def.Literal("value")
	if l == nil || !l.Type.Equal(v.Type) || l.Type.NumElements() > ir.MaxList {
		return nil
	}
	return v.Def.Ints("value")
}

// madeOf checks that the sizes of t are those given, where both are known.
func madeOf(rule int, t *ir.Type, sizes []int) *ir.Rule {
	if sizes == nil {
		return nil
	}
	for d, n := range sizes {
		if n < 0 || d < t.Rank() && !ir.Fits(t.Shape[d], n) {
			return ir.Broken(rule, "the sizes are [%s], the result is %s", ir.JoinInts(sizes), t)
		}
	}
	return nil
}

func inferDynamicBroadcast(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := anyTensors(op); r != nil {
		return nil, r
	}
	t, r := given(op)
	if r != nil {
		return nil, r
	}
	sizes, r := sizesOf(op, 7, 1, t.Rank())
	if r != nil {
		return nil, r
	}
	if r := first(broadcasts(op, t), madeOf(7, t, sizes)); r != nil {
		return nil, r
	}
	in, dims := op.Operands[0].Type, op.Ints("broadcast_dimensions")
	for i, d := range dims {
		if n := in.Shape[i]; sizes != nil && n != 1 && n != ir.Dynamic && n != sizes[d] {
			return nil, ir.Broken(5, "operand dimension %d has size %d, the sizes are [%s]: want 1 or %d", i, n, ir.JoinInts(sizes), sizes[d])
		}
	}
	grow, keep := op.Ints("known_expanding_dimensions"), op.Ints("known_nonexpanding_dimensions")
	if r := first(
		unique(8, "known_expanding_dimensions and known_nonexpanding_dimensions", slices.Concat(grow, keep)),
		within(9, "known_expanding_dimensions", grow, in.Rank()),
		within(10, "known_nonexpanding_dimensions", keep, in.Rank()),
	); r != nil {
		return nil, r
	}
	return []*ir.Type{t}, nil
}

func inferDynamicReshape(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := anyTensors(op); r != nil {
		return nil, r
	}
	t, r := given(op)
	if r != nil {
		return nil, r
	}
	sizes, r := sizesOf(op, 4, 1, t.Rank())
	if r != nil {
		return nil, r
	}
	in := op.Operands[0].Type
	if r := first(madeOf(4, t, sizes), reshapes(in, t)); r != nil {
		return nil, r
	}
	if sizes != nil && in.IsStatic() {
		if n := in.WithShape(sizes...).NumElements(); n != in.NumElements() {
			return nil, ir.Broken(2, "%d elements in %s, %d in the sizes [%s]", in.NumElements(), in, n, ir.JoinInts(sizes))
		}
	}
	return []*ir.Type{t}, nil
}

func inferDynamicIota(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	t, r := given(op)
	if r != nil {
		return nil, r
	}
	if t.Elem == ir.I1 || t.PerAxis() {
		return nil, ir.Broken(0, "result is %s, want numbers%s", t, otherQuant(t))
	}
	sizes, r := sizesOf(op, 2, 0, t.Rank())
	if r != nil {
		return nil, r
	}
	return []*ir.Type{t}, first(isDim(1, "iota_dimension", op.Int("iota_dimension"), t), madeOf(2, t, sizes))
}

func inferDynamicPad(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	out, r := given(op)
	if r != nil {
		return nil, r
	}
	t, v := op.Operands[0].Type, op.Operands[1].Type
	if v.Rank() != 0 || !v.SameElem(t) || !out.SameElem(t) {
		return nil, ir.Broken(1, "operand %s, padding value %s and result %s, want elements of one type and a scalar value", t, v, out)
	}
	var pads [3][]int
	for i := range pads {
		if pads[i], r = sizesOf(op, 2, 2+i, t.Rank()); r != nil {
			return nil, r
		}
		if !op.Operands[2+i].Type.SameElem(op.Operands[2].Type) {
			return nil, ir.Broken(2, "paddings are %s and %s, want one type", op.Operands[2].Type, op.Operands[2+i].Type)
		}
	}
	if out.Rank() != t.Rank() {
		return nil, ir.Broken(4, "result %s has not the rank of operand %s", out, t)
	}
	low, high, interior := pads[0], pads[1], pads[2]
	for d, n := range interior {
		if n < 0 {
			return nil, ir.Broken(3, "interior padding %d of dimension %d is negative", n, d)
		}
	}
	if low == nil || high == nil || interior == nil {
		return []*ir.Type{out}, nil
	}
	for d, n := range t.Shape {
		if want := n + low[d] + max(n-1, 0)*interior[d] + high[d]; n != ir.Dynamic && !ir.Fits(out.Shape[d], want) {
			return nil, ir.Broken(4, "dimension %d of result %s, padded, has size %d", d, out, want)
		}
	}
	return []*ir.Type{out}, nil
}

// inferRealDynamicSlice: operand and result have one element type (1) and rank
// (2); starts, limits and strides are lists of one type (3) with a number for each
// dimension (2).
func inferRealDynamicSlice(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	out, r := given(op)
	if r != nil {
		return nil, r
	}
	t := op.Operands[0].Type
	if !out.SameElem(t) {
		return nil, ir.Broken(1, "operand %s and result %s have different element types", t, out)
	}
	if out.Rank() != t.Rank() {
		return nil, ir.Broken(2, "result %s has not the rank of operand %s", out, t)
	}
	for i := 1; i <= 3; i++ {
		if _, r := sizesOf(op, 2, i, t.Rank()); r != nil {
			return nil, r
		}
		if !op.Operands[i].Type.Equal(op.Operands[1].Type) {
			return nil, ir.Broken(3, "operands 1 and %d are %s and %s, want one type", i, op.Operands[1].Type, op.Operands[i].Type)
		}
	}
	return []*ir.Type{out}, nil
}

// dynamicGatherRules are the numbers that the constraints of gather have for
// dynamic_gather.
var dynamicGatherRules = map[int]int{7: 6, 8: 7, 9: 8, 18: 9, 19: 10, 20: 11, 21: 12, 22: 13, 23: 14}

func inferDynamicGather(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	out, r := given(op)
	if r != nil {
		return nil, r
	}
	t, idx := op.Operands[0].Type, op.Operands[1].Type
	if !idx.Elem.IsInt() {
		return nil, ir.Broken(0, "the indices are %s, want integers", idx)
	}
	if !out.SameElem(t) {
		return nil, ir.Broken(14, "operand %s and result %s have different element types", t, out)
	}
	g := op.Attrs.Get("dimension_numbers").(ir.GatherDims)
	if r := gatherDims(g, t, idx); r != nil {
		return nil, r.Renumbered(dynamicGatherRules)
	}
	sizes, r := sizesOf(op, 11, 2, t.Rank())
	if r != nil {
		return nil, r
	}
	if sizes == nil {
		sizes = ir.Repeat(ir.Dynamic, t.Rank())
	} else if r := first(sliceSizes(11, 12, sizes, t), taken(8, sizes, g.CollapsedSliceDims), taken(8, sizes, g.OperandBatchingDims)); r != nil {
		return nil, r
	}
	window := without(sizes, func(d int) bool {
		return slices.Contains(g.CollapsedSliceDims, d) || slices.Contains(g.OperandBatchingDims, d)
	})
	batch := without(idx.Shape, func(d int) bool { return d == g.IndexVectorDim })
	if r := within(5, "offset_dims", g.OffsetDims, len(window)+len(batch)); r != nil {
		return nil, r
	}
	if want := t.WithShape(merge(window, batch, g.OffsetDims)...); !ir.SameShape(want, out) {
		return nil, ir.Broken(13, "the result is %s, the operands make %s", out, want)
	}
	return []*ir.Type{out}, nil
}

func inferDynamicConv(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	padding := op.Operands[2].Type
	if !padding.IsTensor() || padding.Rank() != 2 || !padding.Elem.IsInt() {
		return nil, ir.Broken(0, "operand 2 is %s, want the two paddings of each spatial dimension", padding)
	}
	if n := op.Operands[0].Type.Rank() - 2; !ir.Fits(padding.Shape[0], n) || !ir.Fits(padding.Shape[1], 2) {
		return nil, ir.Broken(4, "padding is %s, want the shape [%d, 2]", padding, n)
	}
	ts, r := inferConvolution(op)
	if r != nil {
		return nil, r
	}
	shape := slices.Clone(ts[0].Shape)
	for _, d := range op.Attrs.Get("dimension_numbers").(ir.ConvDims).Output.Spatial {
		shape[d] = ir.Dynamic
	}
	return []*ir.Type{ts[0].WithShape(shape...)}, nil
}

func inferGetDimensionSize(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := anyTensors(op); r != nil {
		return nil, r
	}
	return []*ir.Type{ir.Tensor(ir.I32)}, isDim(1, "dimension", op.Int("dimension"), op.Operands[0].Type)
}

// inferSetDimensionSize: the dimension is one of the operand (1); the size is a
// scalar of type i32 (0).
func inferSetDimensionSize(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := anyTensors(op); r != nil {
		return nil, r
	}
	t, n := op.Operands[0].Type, op.Operands[1].Type
	if n.Rank() != 0 || n.Elem != ir.I32 {
		return nil, ir.Broken(0, "operand 1 is %s, want %s", n, ir.Tensor(ir.I32))
	}
	if r := isDim(1, "dimension", op.Int("dimension"), t); r != nil {
		return nil, r
	}
	shape := slices.Clone(t.Shape)
	shape[op.Int("dimension")] = ir.Dynamic
	return []*ir.Type{t.WithShape(shape...)}, nil
}
