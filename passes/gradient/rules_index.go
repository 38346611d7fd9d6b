package gradient

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

// gradGather scatters the cotangents of the windows into zeros, adding where
// windows overlap.
func gradGather(t *tape, op *ir.Op, ct []*ir.Value) {
	x := op.Operands[0]
	if !t.wants(x) {
		return
	}
	g := op.Attrs.Get("dimension_numbers").(ir.GatherDims)
	indices := facts.GatherWindows(op, t.need(op.Operands[1])).Clamped(t.b)
	dims := ir.ScatterDims{UpdateWindowDims: g.OffsetDims, InsertedWindowDims: g.CollapsedSliceDims, InputBatchingDims: g.OperandBatchingDims,
		ScatterIndicesBatchingDims: g.StartIndicesBatchingDims, ScatterDimsToOperandDims: g.StartIndexMap, IndexVectorDim: g.IndexVectorDim}
	attrs := ir.AttrsOf(facts.Named("scatter_dimension_numbers", dims), facts.Named("indices_are_sorted", op.Attrs.Get("indices_are_sorted")))
	elem := ct[0].Type.Elem
	t.add(x, t.b.Emit(ir.Scatter, []*ir.Value{t.zeros(x.Type.WithElem(elem)), indices, ct[0]}, attrs, []*ir.Block{t.b.Combiner(ir.Add, elem)}, nil).Result())
}

// gradScatter handles scatters whose region adds, or returns the update; others
// have no gradient.
func gradScatter(t *tape, op *ir.Op, ct []*ir.Value) {
	n := len(op.Results)
	for i := range n {
		x, u := op.Operands[i], op.Operands[n+1+i]
		if ct[i] == nil || !t.wants(x) && !t.wants(u) {
			continue
		}
		g := t.b.Convert(ct[i], x.Type.Elem)
		switch {
		case facts.Combines(op.Regions[0], i) == ir.Add:
			t.add(x, g)
			if t.wants(u) {
				t.add(u, t.scattered(op, g, 0))
			}
		case op.Regions[0].Terminator().Operands[i] == op.Regions[0].Args[n+i]:
			if t.wants(x) {
				t.add(x, t.replaced(op, g, t.zeros(u.Type)))
			}
			if t.wants(u) {
				t.add(u, t.winners(op, u, t.scattered(op, g, 0)))
			}
		default:
			t.fails(op)
		}
	}
}

// scattered gathers from x the windows that op scatters to; elements of theirs
// outside of x are the number outside.
func (t *tape) scattered(op *ir.Op, x *ir.Value, outside float64) *ir.Value {
	b := t.b
	w := facts.ScatterWindows(op, t.need(op.Operands[len(op.Results)]))
	if w.Fit() {
		return t.windowsAt(op, x, w.Indices)
	}
	x, w = w.Surrounded(b, x, facts.ScatterSizes(op), outside)
	v := t.windowsAt(op, x, w.Indices)
	return b.Select(t.perWindow(op, w.Inside(b), v.Type), v, t.fill(v.Type, outside))
}

// windowsAt gathers from x the windows that op scatters to.
func (t *tape) windowsAt(op *ir.Op, x, indices *ir.Value) *ir.Value {
	g := op.Attrs.Get("scatter_dimension_numbers").(ir.ScatterDims)
	dims := ir.GatherDims{OffsetDims: g.UpdateWindowDims, CollapsedSliceDims: g.InsertedWindowDims, OperandBatchingDims: g.InputBatchingDims,
		StartIndicesBatchingDims: g.ScatterIndicesBatchingDims, StartIndexMap: g.ScatterDimsToOperandDims, IndexVectorDim: g.IndexVectorDim}
	attrs := ir.AttrsOf(facts.Named("dimension_numbers", dims), facts.Named("slice_sizes", ir.Ints(facts.ScatterSizes(op))), facts.Named("indices_are_sorted", op.Attrs.Get("indices_are_sorted")))
	return t.b.Emit(ir.Gather, []*ir.Value{x, indices}, attrs, nil, nil).Result()
}

// perWindow broadcasts v, one element for each window, to updates of type typ.
func (t *tape) perWindow(op *ir.Op, v *ir.Value, typ *ir.Type) *ir.Value {
	g := op.Attrs.Get("scatter_dimension_numbers").(ir.ScatterDims)
	return t.b.Broadcast(v, typ.Shape, facts.Others(typ.Rank(), g.UpdateWindowDims)...)
}

// replaced is x with the windows of op replaced by u.
func (t *tape) replaced(op *ir.Op, x, u *ir.Value) *ir.Value {
	second := new(ir.Block)
	scalar := ir.Tensor(x.Type.Elem)
	t.b.Func.NewArg(second, scalar, "")
	y := t.b.Func.NewArg(second, scalar, "")
	t.b.In(second).Emit(ir.Return, []*ir.Value{y}, nil, nil, nil)
	return t.b.Emit(ir.Scatter, []*ir.Value{x, t.need(op.Operands[len(op.Results)]), u}, op.Attrs, []*ir.Block{second}, nil).Result()
}

// winners is g where the element of the update ends up in the result, zeros
// elsewhere. Where several windows overlap, the last to be written wins: it is
// found by scattering the windows' numbers in the same way.
func (t *tape) winners(op *ir.Op, u, g *ir.Value) *ir.Value {
	if op.Bool("unique_indices") || oneWindow(op) {
		return g
	}
	b := t.b
	dims := op.Attrs.Get("scatter_dimension_numbers").(ir.ScatterDims)
	batch := facts.Others(u.Type.Rank(), dims.UpdateWindowDims)
	shape := make([]int, len(batch))
	for i, d := range batch {
		shape[i] = u.Type.Shape[d]
	}
	count := u.Type.WithElem(ir.I32).WithShape(shape...).NumElements()
	number := b.Reshape(b.Iota(ir.Tensor(ir.I32, count), 0), shape...)
	numbers := t.perWindow(op, number, u.Type)
	last := t.replaced(op, t.fill(op.Operands[0].Type.WithElem(ir.I32), -1), numbers)
	won := b.Compare("EQ", t.scattered(op, last, -1), numbers)
	return b.Select(won, g, t.zeros(g.Type))
}

// oneWindow reports whether op, a scatter, has one window, or one for each
// element of its batching dimensions.
func oneWindow(op *ir.Op) bool {
	g := op.Attrs.Get("scatter_dimension_numbers").(ir.ScatterDims)
	for d, n := range op.Operands[len(op.Results)].Type.Shape {
		if d != g.IndexVectorDim && n != 1 && !slices.Contains(g.ScatterIndicesBatchingDims, d) {
			return false
		}
	}
	return true
}
