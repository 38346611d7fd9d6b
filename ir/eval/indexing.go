package eval

import (
	"slices"
	"sort"

	"ppc/ir"
)

// An indexing is how gather and scatter read their index vectors and place
// windows: the dimension numbers in the words of gather.
type indexing struct {
	indices    *tensor
	vectorDim  int   // of indices: the dimension that holds index vectors
	operandDim []int // the operand dimension that entry i of an index vector is for
	// operand dimension batchOperand[i] goes with dimension batchIndices[i] of indices
	batchOperand, batchIndices []int
}

// batchShape is the shape of indices without the index vectors.
func (g indexing) batchShape() []int {
	var shape []int
	for d, n := range g.indices.shape {
		if d != g.vectorDim {
			shape = append(shape, n)
		}
	}
	return shape
}

// start writes where the window of a batch index starts in the operand.
func (g indexing) start(at, batch []int) {
	clear(at)
	st := ir.Strides(g.indices.shape)
	base, step, dims := 0, 0, make([]int, 0, len(batch))
	for d := range g.indices.shape {
		if d == g.vectorDim {
			step = st[d]
			continue
		}
		base += batch[len(dims)] * st[d]
		dims = append(dims, d)
	}
	for i, d := range g.operandDim {
		at[d] = clampInt(g.indices.elem, g.indices.i[base+i*step])
	}
	for i, d := range g.batchOperand {
		at[d] = batch[slices.Index(dims, g.batchIndices[i])]
	}
}

// far is an index beyond every dimension, small enough to be added to.
const far = 1 << 48

// clampInt returns v, an integer of type t, as an int within -far and far.
func clampInt(t ir.DType, v int64) int {
	if v < 0 && t == ir.UI64 {
		return far
	}
	return int(min(max(v, -far), far))
}

// gather copies one window per index vector, its start held so that it fits.
func gather(e *exec) *tensor {
	g := e.op.Attrs.Get("dimension_numbers").(ir.GatherDims)
	x, out, sizes := e.in[0], e.result(0), e.op.Ints("slice_sizes")
	ix := indexing{e.in[1], g.IndexVectorDim, g.StartIndexMap, g.OperandBatchingDims, g.StartIndicesBatchingDims}
	windowDims := others(len(x.shape), g.CollapsedSliceDims, g.OperandBatchingDims)
	batchDims := others(len(out.shape), g.OffsetDims)
	from, to := dense(x.shape), dense(out.shape)
	window := pick(sizes, windowDims)
	if out.len() == 0 {
		return out
	}
	batchShape := ix.batchShape()
	batch, at := make([]int, len(batchShape)), make([]int, len(x.shape))
	for range ir.Product(batchShape) {
		ix.start(at, batch)
		for d := range at {
			at[d] = min(max(at[d], 0), x.shape[d]-sizes[d])
		}
		src := lattice{from.from(at).at, pick(from.step, windowDims)}
		dst := lattice{lattice{0, pick(to.step, batchDims)}.from(batch).at, pick(to.step, g.OffsetDims)}
		move(window, out, dst, x, src)
		next(batch, batchShape)
	}
	return out
}

// scatter combines every element of the updates with the element of the inputs at
// its index vector, in index order of the updates; updates outside of the inputs
// are dropped.
func scatter(e *exec) ([]*tensor, error) {
	n := len(e.op.Results)
	g := e.op.Attrs.Get("scatter_dimension_numbers").(ir.ScatterDims)
	ix := indexing{e.in[n], g.IndexVectorDim, g.ScatterDimsToOperandDims, g.InputBatchingDims, g.ScatterIndicesBatchingDims}
	updates := e.in[n+1:]
	out := make([]*tensor, n)
	for i := range out {
		out[i] = e.accumulator(e.in[i], i)
	}
	b, err := e.body(1)
	if err != nil {
		return nil, err
	}
	shape := out[0].shape
	windowDims := others(len(shape), g.InsertedWindowDims, g.InputBatchingDims)
	batchDims := others(len(updates[0].shape), g.UpdateWindowDims)
	index, at := make([]int, len(updates[0].shape)), make([]int, len(shape))
	for k := range updates[0].len() {
		ix.start(at, pick(index, batchDims))
		for i, d := range windowDims {
			at[d] += index[g.UpdateWindowDims[i]]
		}
		if within(at, shape) {
			j := dense(shape).from(at).at
			for i := range out {
				b.args[i].set(0, out[i], j)
				b.args[n+i].set(0, updates[i], k)
			}
			if err := b.into(out, j, j+1); err != nil {
				return nil, err
			}
		}
		next(index, updates[0].shape)
	}
	return out, nil
}

func within(at, shape []int) bool {
	for d, i := range at {
		if i < 0 || i >= shape[d] {
			return false
		}
	}
	return true
}

// sortOp sorts the operands together, line by line along a dimension. The sort
// is stable whether or not it must be, so that results do not vary.
func sortOp(e *exec) ([]*tensor, error) {
	shape := e.in[0].shape
	dim := e.op.Int("dimension")
	if dim < 0 {
		dim += len(shape)
	}
	out := make([]*tensor, len(e.in))
	for i, x := range e.in {
		out[i] = x.clone()
	}
	if len(shape) == 0 {
		return out, nil
	}
	b, err := e.body(1)
	if err != nil {
		return nil, err
	}
	step, lines := ir.Strides(shape)[dim], slices.Clone(shape)
	lines[dim] = 1
	for _, base := range offsets(lines, dense(shape)) {
		order := make([]int, shape[dim])
		for k := range order {
			order[k] = base + k*step
		}
		sort.SliceStable(order, func(i, j int) bool {
			less, failed := e.before(b, order[i], order[j])
			if failed != nil {
				err = failed
			}
			return less
		})
		if err != nil {
			return nil, err
		}
		for k, j := range order {
			for i, x := range e.in {
				out[i].set(base+k*step, x, j)
			}
		}
	}
	return out, nil
}

// before is the comparator's result for elements j and k of the operands: whether j
// sorts first.
func (e *exec) before(b *body, j, k int) (bool, error) {
	for i, x := range e.in {
		b.args[2*i].set(0, x, j)
		b.args[2*i+1].set(0, x, k)
	}
	ys, err := b.run()
	return err == nil && ys[0].i[0] != 0, err
}
