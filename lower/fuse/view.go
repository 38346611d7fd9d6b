package fuse

import (
	"slices"

	"ppc/ir"
)

// A View is a value as the elements of another: element (i0, i1, …) of Shape is
// element Offset + i0*Strides[0] + i1*Strides[1] + … of Value.
type View struct {
	Value   *ir.Value
	Shape   []int
	Strides []int
	Offset  int
}

// Elements is how many elements the view has.
func (v *View) Elements() int {
	n := 1
	for _, d := range v.Shape {
		n *= d
	}
	return n
}

// full is the view of all of v.
func full(v *ir.Value) *View {
	return &View{Value: v, Shape: v.Type.Shape, Strides: ir.Strides(v.Type.Shape)}
}

// Merged is v with the fewest dimensions: none of size 1, and
// contiguous ones as one.
func (v *View) Merged() *View {
	m := &View{Value: v.Value, Offset: v.Offset}
	for i, n := range v.Shape {
		if n == 1 {
			continue
		}
		if k := len(m.Shape) - 1; k >= 0 && m.Strides[k] == v.Strides[i]*n {
			m.Shape[k], m.Strides[k] = m.Shape[k]*n, v.Strides[i]
			continue
		}
		m.Shape, m.Strides = append(m.Shape, n), append(m.Strides, v.Strides[i])
	}
	return m
}

// Dense reports whether the elements are all of Value's, in order.
func (v *View) Dense() bool {
	m := v.Merged()
	return v.Offset == 0 && v.Elements() == v.Value.Type.NumElements() && (len(m.Shape) == 0 || len(m.Shape) == 1 && m.Strides[0] == 1)
}

// rowsOf reports whether the view has each element of Value cols times, one
// after the other, in order.
func (v *View) rowsOf(cols int) bool {
	m := v.Merged()
	if v.Offset != 0 || v.Value.Type.NumElements()*cols != v.Elements() {
		return false
	}
	switch len(m.Shape) {
	case 1: // of one element
		return m.Strides[0] == 0
	case 2:
		return m.Shape[1] == cols && m.Strides[0] == 1 && m.Strides[1] == 0
	}
	return false
}

// MostDims is how many dimensions a view has that is read through, where those
// that are contiguous count once.
const MostDims = 6

// read reports whether the view is read in runs: its last dimension has elements
// one after the other, or the same all along.
func (v *View) read() bool {
	m := v.Merged()
	if len(m.Shape) == 0 {
		return true
	}
	last := m.Strides[len(m.Strides)-1]
	if len(m.Shape) > MostDims {
		return false
	}
	return last == 0 || last == 1 && m.Shape[len(m.Shape)-1] >= 8
}

// through is the view that op has of its operand's view; nil where it has none.
func (v *View) through(op *ir.Op) *View {
	strided := views[op.Kind]
	if strided == nil {
		return nil
	}
	out := &View{Value: v.Value, Shape: op.Results[0].Type.Shape, Offset: v.Offset}
	if out.Strides = strided(op, v, out); out.Strides == nil {
		return nil
	}
	return out
}

// views has the ops whose results are strided views of their operands. Each
// function returns the strides of the view out that op has of v, nil where no
// strides say it, and moves out's offset. This is less than the ops with
// [ir.OpInfo.Moves]: a reversal has negative strides, which no kernel reads, and the
// results of gathers and concatenations are no view of one operand.
var views = map[ir.Kind]func(op *ir.Op, v, out *View) []int{
	ir.Reshape: func(_ *ir.Op, v, out *View) []int { return reshaped(v, out.Shape) },
	ir.BroadcastInDim: func(op *ir.Op, v, out *View) []int {
		strides := make([]int, len(out.Shape))
		for i, d := range op.Ints("broadcast_dimensions") {
			if v.Shape[i] != 1 {
				strides[d] = v.Strides[i]
			}
		}
		return strides
	},
	ir.Slice: func(op *ir.Op, v, out *View) []int {
		strides := slices.Clone(v.Strides)
		start, step := op.Ints("start_indices"), op.Ints("strides")
		for d := range strides {
			out.Offset += start[d] * v.Strides[d]
			strides[d] *= step[d]
		}
		return strides
	},
	ir.Transpose: func(op *ir.Op, v, out *View) []int {
		strides := make([]int, len(out.Shape))
		for d, i := range op.Ints("permutation") {
			strides[d] = v.Strides[i]
		}
		return strides
	},
}

// reshaped are the strides of v in another shape of as many elements: each of the
// new dimensions is part of a contiguous one; nil where one is not.
func reshaped(v *View, shape []int) []int {
	m := v.Merged()
	st := make([]int, len(shape))
	left, next := 1, 0 // of a dimension of m, what is not yet used, and its stride
	k := len(m.Shape)
	for d := len(shape) - 1; d >= 0; d-- {
		n := shape[d]
		if n == 1 {
			continue
		}
		if left == 1 {
			k--
			if k < 0 {
				return nil
			}
			left, next = m.Shape[k], m.Strides[k]
		}
		if left%n != 0 {
			return nil
		}
		st[d] = next
		left, next = left/n, next*n
	}
	return st
}
