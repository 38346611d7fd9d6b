package dialect

import (
	"slices"

	"ppc/ir"
)

// Constraints and result types of ops that read or write at computed indices.

// startIndices checks constraints n, that there is one index for each
// dimension, and n+1, that they are scalar integers of one type.
func startIndices(n int, vs []*ir.Value, rank int) *ir.Rule {
	if len(vs) != rank {
		return ir.Broken(n, "%d start indices for an operand of rank %d", len(vs), rank)
	}
	for i, v := range vs {
		if v.Type.Rank() != 0 || !v.Type.Elem.IsInt() || v.Type.Elem == ir.Index || v.Type.Elem != vs[0].Type.Elem {
			return ir.Broken(n+1, "start index %d is %s, want scalar integers of one type", i, v.Type)
		}
	}
	return nil
}

// sliceSizes checks that there is one size for each dimension, within it.
func sliceSizes(count, bounds int, sizes []int, t *ir.Type) *ir.Rule {
	if len(sizes) != t.Rank() {
		return ir.Broken(count, "%d slice_sizes for an operand of rank %d", len(sizes), t.Rank())
	}
	for d, n := range sizes {
		if n < 0 || t.Shape[d] != ir.Dynamic && n > t.Shape[d] {
			return ir.Broken(bounds, "slice size %d of dimension %d is not within 0 and %d", n, d, t.Shape[d])
		}
	}
	return nil
}

func inferDynamicSlice(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t, sizes := op.Operands[0].Type, op.Ints("slice_sizes")
	if r := first(startIndices(2, op.Operands[1:], t.Rank()), sliceSizes(2, 4, sizes, t)); r != nil {
		return nil, r
	}
	return []*ir.Type{t.WithShape(sizes...)}, nil
}

func inferDynamicUpdateSlice(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t, u := op.Operands[0].Type, op.Operands[1].Type
	if !t.SameElem(u) {
		return nil, ir.Broken(2, "operand %s and update %s have different element types", t, u)
	}
	if t.Rank() != u.Rank() {
		return nil, ir.Broken(3, "operand %s and update %s have different ranks", t, u)
	}
	if r := startIndices(4, op.Operands[2:], t.Rank()); r != nil {
		return nil, r
	}
	for d, n := range u.Shape {
		if n != ir.Dynamic && t.Shape[d] != ir.Dynamic && n > t.Shape[d] {
			return nil, ir.Broken(6, "dimension %d of the update has size %d, the operand %d", d, n, t.Shape[d])
		}
	}
	return []*ir.Type{t}, nil
}

// indexLen is the length of one index vector along dimension dim of the
// indices; they are scalars where that is one beyond the last.
func indexLen(idx *ir.Type, dim int) int {
	if dim < idx.Rank() {
		return idx.Shape[dim]
	}
	return 1
}

// without returns the sizes of shape but those in the dimensions that drop
// reports.
func without(shape []int, drop func(d int) bool) []int {
	var out []int
	for d, n := range shape {
		if !drop(d) {
			out = append(out, n)
		}
	}
	return out
}

// batchPairs checks that dimensions which are batched together have equal
// sizes; n is the number of the constraint on their count, n+1 on their sizes.
func batchPairs(n int, operand, indices []int, t, idx *ir.Type) *ir.Rule {
	if len(operand) != len(indices) {
		return ir.Broken(n, "%s of the operand, %d of the indices", ir.Counted(len(operand), "batching dimension"), len(indices))
	}
	for i, d := range operand {
		if a, b := t.Shape[d], idx.Shape[indices[i]]; !ir.Fits(a, b) {
			return ir.Broken(n+1, "batching dimensions %d and %d have sizes %d and %d, want one size", d, indices[i], a, b)
		}
	}
	return nil
}

func inferGather(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t, idx := op.Operands[0].Type, op.Operands[1].Type
	g, sizes := op.Attrs.Get("dimension_numbers").(ir.GatherDims), op.Ints("slice_sizes")
	if !idx.Elem.IsInt() {
		return nil, ir.Broken(0, "the indices are %s, want integers", idx)
	}
	if r := gatherDims(g, t, idx); r != nil {
		return nil, r
	}
	if r := sliceSizes(20, 21, sizes, t); r != nil {
		return nil, r
	}
	if r := first(taken(9, sizes, g.CollapsedSliceDims), taken(12, sizes, g.OperandBatchingDims)); r != nil {
		return nil, r
	}
	window := without(sizes, func(d int) bool {
		return slices.Contains(g.CollapsedSliceDims, d) || slices.Contains(g.OperandBatchingDims, d)
	})
	batch := without(idx.Shape, func(d int) bool { return d == g.IndexVectorDim })
	if r := within(5, "offset_dims", g.OffsetDims, len(window)+len(batch)); r != nil {
		return nil, r
	}
	shape := merge(window, batch, g.OffsetDims)
	if !slices.Contains(shape, 0) { // else nothing is taken
		if r := first(occupied(9, sizes, g.CollapsedSliceDims), occupied(12, sizes, g.OperandBatchingDims)); r != nil {
			return nil, r
		}
	}
	return []*ir.Type{t.WithShape(shape...)}, nil
}

// occupied checks that the slices, of which elements are taken, have one in the
// dimensions dims.
func occupied(n int, sizes, dims []int) *ir.Rule {
	for _, d := range dims {
		if sizes[d] == 0 {
			return ir.Broken(n, "slice size 0 of dimension %d, which the result does not have, although the result has elements: want 1", d)
		}
	}
	return nil
}

// merge returns the sizes in and out of the dimensions at, each in order.
func merge(in, out, at []int) []int {
	shape := make([]int, len(in)+len(out))
	for d := range shape {
		if slices.Contains(at, d) {
			shape[d], in = in[0], in[1:]
		} else {
			shape[d], out = out[0], out[1:]
		}
	}
	return shape
}

func gatherDims(g ir.GatherDims, t, idx *ir.Type) *ir.Rule {
	if n, c, b := len(g.OffsetDims), len(g.CollapsedSliceDims), len(g.OperandBatchingDims); t.Rank() != n+c+b {
		return ir.Broken(1, "operand of rank %d, but %d offset, %d collapsed and %d batching dimensions", t.Rank(), n, c, b)
	}
	if g.IndexVectorDim < 0 || g.IndexVectorDim > idx.Rank() {
		return ir.Broken(2, "index_vector_dim is %d, the indices have rank %d", g.IndexVectorDim, idx.Rank())
	}
	if n := indexLen(idx, g.IndexVectorDim); !ir.Fits(n, len(g.StartIndexMap)) {
		return ir.Broken(3, "start_index_map has %s, an index %d", ir.Counted(len(g.StartIndexMap), "number"), n)
	}
	if r := first(
		ascending(4, "offset_dims", g.OffsetDims),
		unique(4, "offset_dims", g.OffsetDims),
		unique(6, "collapsed_slice_dims and operand_batching_dims", slices.Concat(g.CollapsedSliceDims, g.OperandBatchingDims)),
		ascending(7, "collapsed_slice_dims", g.CollapsedSliceDims),
		within(8, "collapsed_slice_dims", g.CollapsedSliceDims, t.Rank()),
		ascending(10, "operand_batching_dims", g.OperandBatchingDims),
		within(11, "operand_batching_dims", g.OperandBatchingDims, t.Rank()),
		unique(13, "start_indices_batching_dims", g.StartIndicesBatchingDims),
		within(14, "start_indices_batching_dims", g.StartIndicesBatchingDims, idx.Rank()),
		lacks(15, "start_indices_batching_dims", g.StartIndicesBatchingDims, g.IndexVectorDim),
		unique(18, "start_index_map and operand_batching_dims", slices.Concat(g.StartIndexMap, g.OperandBatchingDims)),
		within(19, "start_index_map", g.StartIndexMap, t.Rank()),
	); r != nil {
		return r
	}
	return batchPairs(16, g.OperandBatchingDims, g.StartIndicesBatchingDims, t, idx)
}

// taken checks that the slices have at most one element in the dimensions dims.
func taken(n int, sizes, dims []int) *ir.Rule {
	for _, d := range dims {
		if sizes[d] > 1 {
			return ir.Broken(n, "slice size %d of dimension %d, which the result does not have: want at most 1", sizes[d], d)
		}
	}
	return nil
}

func inferScatter(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	n := len(op.Operands) / 2
	if len(op.Operands) != 2*n+1 || len(op.Results) != 0 && len(op.Results) != n {
		return nil, ir.Broken(5, "%s and %s, want inputs, indices, and as many updates and results as inputs", ir.Counted(len(op.Operands), "operand"), ir.Counted(len(op.Results), "result"))
	}
	ts := ir.TypesOf(op.Operands)
	inputs, idx, updates := ts[:n], ts[n], ts[n+1:]
	for i := range n {
		switch {
		case !ir.SameShape(inputs[i], inputs[0]):
			return nil, ir.Broken(1, "inputs 0 and %d are %s and %s, want one shape", i, inputs[0], inputs[i])
		case !ir.SameShape(updates[i], updates[0]):
			return nil, ir.Broken(3, "updates 0 and %d are %s and %s, want one shape", i, updates[0], updates[i])
		case !updates[i].SameElem(inputs[i]):
			return nil, ir.Broken(6, "updates %d are %s, input %d is %s: want one element type", i, updates[i], i, inputs[i])
		}
	}
	if !idx.Elem.IsInt() {
		return nil, ir.Broken(0, "the indices are %s, want integers", idx)
	}
	g := op.Attrs.Get("scatter_dimension_numbers").(ir.ScatterDims)
	if r := scatterDims(g, inputs[0], idx, updates[0]); r != nil {
		return nil, r
	}
	if r := scatterUpdates(g, inputs[0], idx, updates[0]); r != nil {
		return nil, r
	}
	elems, r := combiner(23, op.Regions[0], inputs)
	if r != nil {
		return nil, r
	}
	out := make([]*ir.Type, n)
	for i := range out {
		out[i] = elems[i].WithShape(inputs[i].Shape...)
	}
	return out, nil
}

func scatterDims(g ir.ScatterDims, t, idx, u *ir.Type) *ir.Rule {
	if n, c, b := len(g.UpdateWindowDims), len(g.InsertedWindowDims), len(g.InputBatchingDims); t.Rank() != n+c+b {
		return ir.Broken(2, "inputs of rank %d, but %d window, %d inserted and %d batching dimensions", t.Rank(), n, c, b)
	}
	if g.IndexVectorDim < 0 || g.IndexVectorDim > idx.Rank() {
		return ir.Broken(22, "index_vector_dim is %d, the indices have rank %d", g.IndexVectorDim, idx.Rank())
	}
	if n := indexLen(idx, g.IndexVectorDim); !ir.Fits(n, len(g.ScatterDimsToOperandDims)) {
		return ir.Broken(19, "scatter_dims_to_operand_dims has %s, an index %d", ir.Counted(len(g.ScatterDimsToOperandDims), "number"), n)
	}
	if r := first(
		ascending(7, "update_window_dims", g.UpdateWindowDims),
		unique(7, "update_window_dims", g.UpdateWindowDims),
		within(8, "update_window_dims", g.UpdateWindowDims, u.Rank()),
		unique(9, "inserted_window_dims and input_batching_dims", slices.Concat(g.InsertedWindowDims, g.InputBatchingDims)),
		ascending(10, "inserted_window_dims", g.InsertedWindowDims),
		within(11, "inserted_window_dims", g.InsertedWindowDims, t.Rank()),
		ascending(12, "input_batching_dims", g.InputBatchingDims),
		within(13, "input_batching_dims", g.InputBatchingDims, t.Rank()),
		unique(14, "scatter_indices_batching_dims", g.ScatterIndicesBatchingDims),
		within(15, "scatter_indices_batching_dims", g.ScatterIndicesBatchingDims, idx.Rank()),
		lacks(16, "scatter_indices_batching_dims", g.ScatterIndicesBatchingDims, g.IndexVectorDim),
		unique(20, "scatter_dims_to_operand_dims and input_batching_dims", slices.Concat(g.ScatterDimsToOperandDims, g.InputBatchingDims)),
		within(21, "scatter_dims_to_operand_dims", g.ScatterDimsToOperandDims, t.Rank()),
	); r != nil {
		return r
	}
	return batchPairs(17, g.InputBatchingDims, g.ScatterIndicesBatchingDims, t, idx)
}

// scatterUpdates checks that the updates have the sizes of the indices, and
// windows that fit the inputs.
func scatterUpdates(g ir.ScatterDims, t, idx, u *ir.Type) *ir.Rule {
	window := without(t.Shape, func(d int) bool {
		return slices.Contains(g.InsertedWindowDims, d) || slices.Contains(g.InputBatchingDims, d)
	})
	batch := without(idx.Shape, func(d int) bool { return d == g.IndexVectorDim })
	if u.Rank() != len(batch)+len(window) {
		return ir.Broken(4, "updates of rank %d, want %d index and %d window dimensions", u.Rank(), len(batch), len(window))
	}
	for d, most := range merge(window, batch, g.UpdateWindowDims) {
		n := u.Shape[d]
		switch {
		case n == ir.Dynamic || most == ir.Dynamic:
		case slices.Contains(g.UpdateWindowDims, d) && n > most:
			return ir.Broken(4, "update dimension %d has size %d, the inputs' window at most %d", d, n, most)
		case !slices.Contains(g.UpdateWindowDims, d) && n != most:
			return ir.Broken(4, "update dimension %d has size %d, the indices have %d", d, n, most)
		}
	}
	return nil
}
