package dialect

import (
	"slices"

	"ppc/ir"
)

// A windowRule is the common part of the sharding rules of gather and scatter:
// windows of an input tensor, one for each index, correspond to slices in another
// tensor, which is the result of a gather and the updates of a scatter.
type windowRule struct {
	input, indices, slices []int // shapes
	offsetDims             []int // of slices: the dimensions of a window
	collapsedDims          []int // of input: windows have size 1 and lack them
	inputBatch, indexBatch []int // pairwise the same
	startIndexMap          []int // of input: those that the index moves along
	indexVectorDim         int
	index                  *ir.Value

	// add makes a factor of the given dimensions; -1 where a tensor does not have
	// it.
	add func(input, index, slice, size int, t ir.FactorType)
	// batch is the type of a dimension that only indices and slices have.
	batch ir.FactorType
	// taken is the type of an input dimension from which one element is taken
	// at an index, and that dimension alone.
	taken ir.FactorType
}

func (r *windowRule) factors() {
	input, batch := 0, 0
	for d, size := range r.slices {
		if !slices.Contains(r.offsetDims, d) {
			index := batch
			if index >= r.indexVectorDim {
				index++
			}
			r.batchFactor(index, d, size)
			batch++
			continue
		}
		for slices.Contains(r.collapsedDims, input) || slices.Contains(r.inputBatch, input) {
			input++
		}
		// The window of a scatter, unlike that of a gather, is not clamped: it
		// covers the dimension only where it cannot move.
		moves := r.taken == ir.PassThrough && slices.Contains(r.startIndexMap, input) && !r.still(input)
		if r.input[input] == size && !moves {
			r.add(input, -1, d, size, ir.PassThrough)
		} else {
			t := ir.NeedReplication
			if size == 1 && r.taken == ir.Reduction {
				t = r.takenAt(input)
			}
			r.add(input, -1, -1, r.input[input], t)
			r.add(-1, -1, d, size, ir.NeedReplication)
		}
		input++
	}
	for _, d := range r.collapsedDims {
		r.add(d, -1, -1, r.input[d], r.takenAt(d))
	}
	if r.indexVectorDim < len(r.indices) {
		r.add(-1, r.indexVectorDim, -1, r.indices[r.indexVectorDim], ir.NeedReplication)
	}
}

// still reports whether every index is zero along dimension d of the input, so that
// windows do not move.
func (r *windowRule) still(d int) bool {
	if r.indexVectorDim == r.index.Type.Rank() {
		return r.index.IsZeroAt(-1, 0)
	}
	return r.index.IsZeroAt(r.indexVectorDim, slices.Index(r.startIndexMap, d))
}

func (r *windowRule) takenAt(d int) ir.FactorType {
	if r.input[d] == 1 || !slices.Contains(r.startIndexMap, d) {
		return ir.NeedReplication
	}
	return r.taken
}

func (r *windowRule) batchFactor(index, slice, size int) {
	for i, b := range r.indexBatch {
		if b == index {
			r.add(r.inputBatch[i], index, slice, size, ir.PassThrough)
			return
		}
	}
	r.add(-1, index, slice, size, r.batch)
}

// gatherFactors: batch dimensions of the indices pass through to the result, with
// those of the operand that they index along; so do operand dimensions that the
// window covers. If a dimension from which one element is taken is sharded, the
// device that has the element takes it and the others zero, which is a Reduction.
func gatherFactors(op *ir.Op) *ir.Factors {
	f := ir.NewFactors(op)
	g := op.Attrs.Get("dimension_numbers").(ir.GatherDims)
	r := windowRule{
		input: op.Operands[0].Type.Shape, indices: op.Operands[1].Type.Shape, slices: op.Results[0].Type.Shape,
		offsetDims: g.OffsetDims, collapsedDims: g.CollapsedSliceDims,
		inputBatch: g.OperandBatchingDims, indexBatch: g.StartIndicesBatchingDims,
		startIndexMap: g.StartIndexMap, indexVectorDim: g.IndexVectorDim, index: op.Operands[1],
		batch: ir.PassThrough, taken: ir.Reduction,
		add: func(input, index, slice, size int, t ir.FactorType) {
			f.Add(size, t, []int{input, index}, []int{slice})
		},
	}
	r.factors()
	return f
}

// scatterFactors: as gatherFactors, with updates in place of the result. Along an
// operand dimension that is written one element at a time, each device takes the
// updates that fall into its shard. A batch dimension of the updates that the
// operand does not have is a Reduction.
func scatterFactors(op *ir.Op) *ir.Factors {
	f := ir.NewFactors(op)
	g := op.Attrs.Get("scatter_dimension_numbers").(ir.ScatterDims)
	n := len(op.Results)
	r := windowRule{
		input: op.Operands[0].Type.Shape, indices: op.Operands[n].Type.Shape, slices: op.Operands[n+1].Type.Shape,
		offsetDims: g.UpdateWindowDims, collapsedDims: g.InsertedWindowDims,
		inputBatch: g.InputBatchingDims, indexBatch: g.ScatterIndicesBatchingDims,
		startIndexMap: g.ScatterDimsToOperandDims, indexVectorDim: g.IndexVectorDim, index: op.Operands[n],
		batch: ir.NeedReplication, taken: ir.PassThrough,
		add: func(input, index, slice, size int, t ir.FactorType) {
			f.Add(size, t, append(append(ir.Repeat(input, n), index), ir.Repeat(slice, n)...), ir.Repeat(input, n))
		},
	}
	if ir.CombinerOf(op.Regions[0]) != ir.Invalid {
		r.batch = ir.Reduction
	}
	r.factors()
	return f
}
