package facts

import (
	"slices"

	"ppc/ir"
)

// The windows of gather and scatter. Index vectors are the starts of windows of the
// operand. A gather clamps the start of a window so that it fits; a scatter drops
// the elements outside. So the transpose of a gather scatters at indices that are
// clamped, and the transpose of a scatter gathers from an operand with zeros around
// it.

// A windows is the index vectors of a gather or scatter, in one form.
type windows struct {
	Indices *ir.Value
	vector  int   // the dimension of indices that holds the components of a vector
	dims    []int // which dimension of the operand component i is of
	limits  []int // the largest component i with which a window fits
}

// GatherWindows are the windows of the operand that a gather reads at indices.
func GatherWindows(op *ir.Op, indices *ir.Value) windows {
	g := op.Attrs.Get("dimension_numbers").(ir.GatherDims)
	return windowsOf(indices, g.IndexVectorDim, g.StartIndexMap, op.Operands[0].Type.Shape, op.Ints("slice_sizes"))
}

// ScatterWindows are the windows of the operand that a scatter updates at indices.
func ScatterWindows(op *ir.Op, indices *ir.Value) windows {
	g := op.Attrs.Get("scatter_dimension_numbers").(ir.ScatterDims)
	return windowsOf(indices, g.IndexVectorDim, g.ScatterDimsToOperandDims, op.Operands[0].Type.Shape, ScatterSizes(op))
}

func windowsOf(indices *ir.Value, vector int, dims, shape, sizes []int) windows {
	w := windows{indices, vector, dims, make([]int, len(dims))}
	for i, d := range dims {
		w.limits[i] = shape[d] - sizes[d]
	}
	return w
}

// ScatterSizes are the sizes of the windows of a scatter, one for each
// dimension of its operand.
func ScatterSizes(op *ir.Op) []int {
	g := op.Attrs.Get("scatter_dimension_numbers").(ir.ScatterDims)
	update := op.Operands[len(op.Operands)-1].Type.Shape
	sizes := make([]int, op.Operands[0].Type.Rank())
	next := 0
	for d := range sizes {
		if sizes[d] = 1; !slices.Contains(g.InsertedWindowDims, d) && !slices.Contains(g.InputBatchingDims, d) {
			sizes[d] = update[g.UpdateWindowDims[next]]
			next++
		}
	}
	return sizes
}

// bound is the limits as values to compare the indices with, a scalar where
// they are all one number. Limits beyond the largest index are that index.
func (w windows) bound(b *ir.Builder) *ir.Value {
	elem := w.Indices.Type.Elem
	limits := make([]int, len(w.limits))
	for i, n := range w.limits {
		limits[i] = min(n, largest(elem))
	}
	if len(limits) == 0 || !slices.ContainsFunc(limits, func(n int) bool { return n != limits[0] }) {
		n := 0
		if len(limits) > 0 {
			n = limits[0]
		}
		return b.Splat(ir.Tensor(elem), float64(n))
	}
	l := ir.Ints64(ir.Tensor(elem, len(limits)), limits...)
	return b.Broadcast(b.Const(l), w.Indices.Type.Shape, w.vector)
}

// Clamped is the indices clamped so that each window fits.
func (w windows) Clamped(b *ir.Builder) *ir.Value {
	if w.Fit() {
		return w.Indices
	}
	zero := b.Splat(ir.Tensor(w.Indices.Type.Elem), 0)
	return b.Emit(ir.Clamp, []*ir.Value{zero, w.Indices, w.bound(b)}, nil, nil, nil).Result()
}

// Fit reports whether every window is known to fit: the indices have been clamped
// to constants.
func (w windows) Fit() bool {
	op := w.Indices.Def
	if op == nil {
		return false
	}
	if op.Kind == ir.Clamp {
		return w.between(op.Operands[0], op.Operands[2])
	}
	for i, low := range op.Operands { // maximum(minimum(indices, high), low)
		if op.Kind != ir.Maximum {
			break
		}
		inner := op.Operands[1-i].Def
		if inner != nil && inner.Kind == ir.Minimum && (w.between(low, inner.Operands[0]) || w.between(low, inner.Operands[1])) {
			return true
		}
	}
	return false
}

// between reports whether low and high, bounds of the indices, are constants
// within the limits.
func (w windows) between(low, high *ir.Value) bool {
	for i, limit := range w.limits {
		if l, ok := w.component(low, i); !ok || slices.Min(l) < 0 {
			return false
		}
		if h, ok := w.component(high, i); !ok || slices.Max(h) > limit {
			return false
		}
	}
	return true
}

// component are the numbers that v, a constant, has for component i.
func (w windows) component(v *ir.Value, i int) ([]int, bool) {
	if v.Def != nil && v.Def.Kind == ir.BroadcastInDim && slices.Equal(v.Def.Ints("broadcast_dimensions"), []int{w.vector}) {
		if l := ir.ConstantOf(v.Def.Operands[0]); l != nil && l.Type.Shape[0] == len(w.limits) {
			return []int{int(l.Int(i))}, true
		}
	}
	l := ir.ConstantOf(v)
	if l == nil {
		return nil, false
	}
	if l.IsSplat() {
		return []int{l.Index(0)}, true
	}
	var out []int
	shape := w.Indices.Type.Shape
	stride, n := 1, 1
	if w.vector < len(shape) {
		n = shape[w.vector]
		stride = w.Indices.Type.WithShape(shape[w.vector+1:]...).NumElements()
	}
	for e := range l.Type.NumElements() {
		if e/stride%n == i {
			out = append(out, int(l.Int(e)))
		}
	}
	return out, len(out) > 0
}

// Inside is whether each window fits; the result has the dimensions of the indices
// but that of the vectors.
func (w windows) Inside(b *ir.Builder) *ir.Value {
	full := w.Indices.Type
	most := w.bound(b)
	if most.Type.Rank() != full.Rank() {
		most = b.Broadcast(most, full.Shape)
	}
	zero := b.Broadcast(b.Splat(ir.Tensor(full.Elem), 0), full.Shape)
	in := b.Binary(ir.And, b.Compare("GE", w.Indices, zero), b.Compare("LE", w.Indices, most))
	if w.vector == full.Rank() {
		return in
	}
	return b.Reduce(ir.And, in, b.Splat(ir.Tensor(ir.I1), 1), w.vector)
}

// Surrounded pads x with the number outside so that every window that overlaps x
// fits, and returns it with the windows shifted accordingly.
func (w windows) Surrounded(b *ir.Builder, x *ir.Value, sizes []int, outside float64) (*ir.Value, windows) {
	reach := make([]int, len(sizes))
	later := windows{dims: w.dims, vector: w.vector, limits: make([]int, len(w.dims))}
	by := make([]int, len(w.dims))
	for i, d := range w.dims {
		reach[d], by[i] = sizes[d]-1, sizes[d]-1
		later.limits[i] = w.limits[i] + 2*by[i]
	}
	if !slices.ContainsFunc(by, func(n int) bool { return n > 0 }) {
		return x, w
	}
	indices := b.Convert(w.Indices, ir.I64)
	shift := b.Const(ir.Ints64(ir.Tensor(ir.I64, len(by)), by...))
	if shape := indices.Type.Shape; w.vector < len(shape) {
		shift = b.Broadcast(shift, shape, w.vector)
	} else {
		shift = b.Broadcast(b.Reshape(shift), shape)
	}
	later.Indices = b.Add(indices, shift)
	return b.Pad(x, b.Splat(ir.Tensor(x.Type.Elem), outside), reach, reach, make([]int, len(reach))), later
}

// Start is the start indices of the only window, as scalars.
func (w windows) Start(b *ir.Builder, rank int) []*ir.Value {
	flat := b.Reshape(w.Indices, len(w.dims))
	var none *ir.Value
	start := make([]*ir.Value, rank)
	for d := range start {
		if i := slices.Index(w.dims, d); i >= 0 {
			start[d] = b.Reshape(b.SliceDim(flat, 0, i, i+1))
			continue
		}
		if none == nil {
			none = b.Splat(ir.Tensor(w.Indices.Type.Elem), 0)
		}
		start[d] = none
	}
	return start
}

// PaddingAttr is the padding attribute of window ops: low and high of each
// dimension.
func PaddingAttr(low, high []int) *ir.Literal {
	var all []int
	for d := range low {
		all = append(all, low[d], high[d])
	}
	return ir.Ints64(ir.Tensor(ir.I64, len(low), 2), all...)
}
