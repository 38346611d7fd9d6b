package passes

import (
	"slices"

	"ppc/ir"
)

// The rules of gather and scatter. Index vectors say where windows of the
// operand begin. A gather moves a window that would not fit to where it does;
// a scatter drops what of it is outside. So the transpose of a gather scatters
// at indices that are clamped, and the transpose of a scatter gathers from an
// operand with zeros around it.

// A windows is the index vectors of a gather or scatter, seen alike.
type windows struct {
	indices *ir.Value
	vector  int   // the dimension along which a vector lies
	dims    []int // which dimension of the operand component i is of
	limits  []int // the largest component i with which a window fits
}

func gatherWindows(op *ir.Op, indices *ir.Value) windows {
	g := op.Attrs.Get("dimension_numbers").(ir.GatherDims)
	return windowsOf(indices, g.IndexVectorDim, g.StartIndexMap, op.Operands[0].Type.Shape, op.Ints("slice_sizes"))
}

func scatterWindows(op *ir.Op, indices *ir.Value) windows {
	g := op.Attrs.Get("scatter_dimension_numbers").(ir.ScatterDims)
	return windowsOf(indices, g.IndexVectorDim, g.ScatterDimsToOperandDims, op.Operands[0].Type.Shape, scatterSizes(op))
}

func windowsOf(indices *ir.Value, vector int, dims, shape, sizes []int) windows {
	w := windows{indices, vector, dims, make([]int, len(dims))}
	for i, d := range dims {
		w.limits[i] = shape[d] - sizes[d]
	}
	return w
}

// scatterSizes are the sizes of the windows of a scatter, one for each
// dimension of its operand.
func scatterSizes(op *ir.Op) []int {
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
	elem := w.indices.Type.Elem
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
	return b.Broadcast(b.Const(l), w.indices.Type.Shape, w.vector)
}

// largest is the largest number that a value of integer type t can hold.
func largest(t ir.DType) int {
	bits := t.Bits() - 1
	if t.Class() == ir.Unsigned {
		bits++
	}
	return 1<<min(bits, 62) - 1
}

// clamped moves each window to where it fits.
func (w windows) clamped(b *ir.Builder) *ir.Value {
	if w.fit() {
		return w.indices
	}
	zero := b.Splat(ir.Tensor(w.indices.Type.Elem), 0)
	return b.Emit(ir.Clamp, []*ir.Value{zero, w.indices, w.bound(b)}, nil, nil, nil).Result()
}

// fit reports whether it is plain that every window fits: the indices have
// been clamped to constants.
func (w windows) fit() bool {
	op := w.indices.Def
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
		if l := constant(v.Def.Operands[0]); l != nil && l.Type.Shape[0] == len(w.limits) {
			return []int{int(l.Int(i))}, true
		}
	}
	l := constant(v)
	if l == nil {
		return nil, false
	}
	if l.IsSplat() {
		return []int{l.Index(0)}, true
	}
	var out []int
	shape := w.indices.Type.Shape
	stride, n := 1, 1
	if w.vector < len(shape) {
		n = shape[w.vector]
		stride = w.indices.Type.WithShape(shape[w.vector+1:]...).NumElements()
	}
	for e := range l.Type.NumElements() {
		if e/stride%n == i {
			out = append(out, int(l.Int(e)))
		}
	}
	return out, len(out) > 0
}

// inside says of each window whether it fits; the result has the dimensions of
// the indices but that of the vectors.
func (w windows) inside(b *ir.Builder) *ir.Value {
	full := w.indices.Type
	most := w.bound(b)
	if most.Type.Rank() != full.Rank() {
		most = b.Broadcast(most, full.Shape)
	}
	zero := b.Broadcast(b.Splat(ir.Tensor(full.Elem), 0), full.Shape)
	in := b.Binary(ir.And, b.Compare("GE", w.indices, zero), b.Compare("LE", w.indices, most))
	if w.vector == full.Rank() {
		return in
	}
	return b.Reduce(ir.And, in, b.Splat(ir.Tensor(ir.I1), 1), w.vector)
}

// gradGather adds up the cotangents of the windows where they came from.
func gradGather(t *tape, op *ir.Op, ct []*ir.Value) {
	x := op.Operands[0]
	if !t.wants(x) {
		return
	}
	g := op.Attrs.Get("dimension_numbers").(ir.GatherDims)
	indices := gatherWindows(op, t.need(op.Operands[1])).clamped(t.b)
	dims := ir.ScatterDims{UpdateWindowDims: g.OffsetDims, InsertedWindowDims: g.CollapsedSliceDims, InputBatchingDims: g.OperandBatchingDims,
		ScatterIndicesBatchingDims: g.StartIndicesBatchingDims, ScatterDimsToOperandDims: g.StartIndexMap, IndexVectorDim: g.IndexVectorDim}
	attrs := ir.AttrsOf(named("scatter_dimension_numbers", dims), named("indices_are_sorted", op.Attrs.Get("indices_are_sorted")))
	elem := ct[0].Type.Elem
	t.add(x, t.b.Emit(ir.Scatter, []*ir.Value{t.zeros(x.Type.WithElem(elem)), indices, ct[0]}, attrs, []*ir.Block{t.b.Combiner(ir.Add, elem)}, nil).Result())
}

// gradScatter has a gradient where windows are added or put in place of what
// was there.
func gradScatter(t *tape, op *ir.Op, ct []*ir.Value) {
	n := len(op.Results)
	for i := range n {
		x, u := op.Operands[i], op.Operands[n+1+i]
		if ct[i] == nil || !t.wants(x) && !t.wants(u) {
			continue
		}
		g := t.b.Convert(ct[i], x.Type.Elem)
		switch {
		case combines(op.Regions[0], i) == ir.Add:
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

// scattered gathers from x the windows that op scatters to; what of them is
// outside of x is the number outside.
func (t *tape) scattered(op *ir.Op, x *ir.Value, outside float64) *ir.Value {
	b := t.b
	w := scatterWindows(op, t.need(op.Operands[len(op.Results)]))
	if w.fit() {
		return t.windowsAt(op, x, w.indices)
	}
	x, w = w.surrounded(b, x, scatterSizes(op), outside)
	v := t.windowsAt(op, x, w.indices)
	return b.Select(t.perWindow(op, w.inside(b), v.Type), v, t.fill(v.Type, outside))
}

// surrounded puts the number outside around x as far as a window reaches that
// begins or ends within x; the windows begin as much later.
func (w windows) surrounded(b *ir.Builder, x *ir.Value, sizes []int, outside float64) (*ir.Value, windows) {
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
	indices := b.Convert(w.indices, ir.I64)
	shift := b.Const(ir.Ints64(ir.Tensor(ir.I64, len(by)), by...))
	if shape := indices.Type.Shape; w.vector < len(shape) {
		shift = b.Broadcast(shift, shape, w.vector)
	} else {
		shift = b.Broadcast(b.Reshape(shift), shape)
	}
	later.indices = b.Add(indices, shift)
	return b.Pad(x, b.Splat(ir.Tensor(x.Type.Elem), outside), reach, reach, make([]int, len(reach))), later
}

// windowsAt gathers from x the windows that op scatters to.
func (t *tape) windowsAt(op *ir.Op, x, indices *ir.Value) *ir.Value {
	g := op.Attrs.Get("scatter_dimension_numbers").(ir.ScatterDims)
	dims := ir.GatherDims{OffsetDims: g.UpdateWindowDims, CollapsedSliceDims: g.InsertedWindowDims, OperandBatchingDims: g.InputBatchingDims,
		StartIndicesBatchingDims: g.ScatterIndicesBatchingDims, StartIndexMap: g.ScatterDimsToOperandDims, IndexVectorDim: g.IndexVectorDim}
	attrs := ir.AttrsOf(named("dimension_numbers", dims), named("slice_sizes", ir.Ints(scatterSizes(op))), named("indices_are_sorted", op.Attrs.Get("indices_are_sorted")))
	return t.b.Emit(ir.Gather, []*ir.Value{x, indices}, attrs, nil, nil).Result()
}

// perWindow spreads v, one element for each window, over updates of type typ.
func (t *tape) perWindow(op *ir.Op, v *ir.Value, typ *ir.Type) *ir.Value {
	g := op.Attrs.Get("scatter_dimension_numbers").(ir.ScatterDims)
	return t.b.Broadcast(v, typ.Shape, others(typ.Rank(), g.UpdateWindowDims)...)
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

// winners is g for the windows of op whose elements are in the result. Where
// several windows may go to one place, the last to be written is: it is found
// by scattering the windows' numbers in the same way.
func (t *tape) winners(op *ir.Op, u, g *ir.Value) *ir.Value {
	if op.Bool("unique_indices") || oneWindow(op) {
		return g
	}
	b := t.b
	dims := op.Attrs.Get("scatter_dimension_numbers").(ir.ScatterDims)
	batch := others(u.Type.Rank(), dims.UpdateWindowDims)
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

// combines is the kind of the op by which region combines argument i of each
// half to result i, and nothing else; Invalid if there is none.
func combines(region *ir.Block, i int) ir.Kind {
	x, y := region.Args[i], region.Args[len(region.Args)/2+i]
	op := region.Terminator().Operands[i].Def
	if op == nil || len(op.Operands) != 2 || len(op.Regions) > 0 {
		return ir.Invalid
	}
	if a, b := op.Operands[0], op.Operands[1]; a == x && b == y || a == y && b == x {
		return op.Kind
	}
	return ir.Invalid
}
