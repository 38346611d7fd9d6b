package ir

import (
	"math"
	"slices"
)

// literalSpan is the range of the elements of l at index k along dimension dim.
func literalSpan(l *Literal, dim, k int) (low, high int64, ok bool) {
	if l == nil || !l.Type.Elem.IsInt() {
		return 0, 0, false
	}
	stride, size := 1, 1
	if dim >= 0 {
		size = l.Type.Shape[dim]
		for _, n := range l.Type.Shape[dim+1:] {
			stride *= n
		}
	}
	for i := range l.Type.NumElements() {
		if dim >= 0 && i/stride%size != k {
			continue
		}
		x := l.Int(i)
		if !ok {
			low, high, ok = x, x, true
		}
		low, high = min(low, x), max(high, x)
	}
	return low, high, ok
}

// A Window is one dimension of a window op. Element w of window k is element
// k*Stride + w*Dilation of the padded and dilated operand, and element i of the
// operand is its element Low + i*Base. In a Reversed window the elements are
// numbered from the end.
type Window struct {
	Size, Stride, Low, High, Base, Dilation int
	Reversed                                bool
}

// Windows are the windows of op in each dimension that it has windows in: all
// of a reduce_window or select_and_scatter, the spatial ones, in order, of a
// convolution. The attributes have been checked.
func (op *Op) Windows() []Window {
	if d, ok := op.Attrs.Get("dimension_numbers").(ConvDims); ok {
		return op.windows(convSizes(d, op.Operands[1].Type), "lhs_dilation", "rhs_dilation")
	}
	rank := op.Operands[0].Type.Rank()
	return op.windows(op.IntsOr("window_dimensions", rank, 1), "base_dilations", "window_dilations")
}

// convSizes are the sizes of the spatial dimensions of a kernel.
func convSizes(d ConvDims, kernel *Type) []int {
	sizes := make([]int, len(d.Kernel.Spatial))
	for i, k := range d.Kernel.Spatial {
		sizes[i] = kernel.Shape[k]
	}
	return sizes
}

func (op *Op) windows(sizes []int, base, dilation string) []Window {
	n := len(sizes)
	strides, bases, dilations := op.IntsOr("window_strides", n, 1), op.IntsOr(base, n, 1), op.IntsOr(dilation, n, 1)
	low, high := op.Padding(n)
	reversed, _ := op.Attrs.Get("window_reversal").(Bools)
	ws := make([]Window, n)
	for d := range ws {
		ws[d] = Window{Size: sizes[d], Stride: strides[d], Low: low[d], High: high[d], Base: bases[d], Dilation: dilations[d]}
		if d < len(reversed) {
			ws[d].Reversed = reversed[d]
		}
	}
	return ws
}

// Reach is how many elements of the padded operand a window spans.
func (w Window) Reach() int { return (w.Size-1)*w.Dilation + 1 }

// maxWindow bounds the places that a window may reach over, so that sums and
// products of its numbers fit an int.
const maxWindow = 1 << 62

// Countable reports whether the places of the window over a dimension of size n can
// be counted.
func (w Window) Countable(n int) bool {
	over := func(x ...float64) bool {
		return slices.ContainsFunc(x, func(x float64) bool { return math.Abs(x) >= maxWindow })
	}
	low, high := float64(w.Low), float64(w.High)
	return !over(low, high, low+high, float64(n)*float64(w.Base)+low+high, float64(w.Size)*float64(w.Dilation), float64(w.Stride))
}

// Count is how often the window fits into a dimension of size n.
func (w Window) Count(n int) int {
	if n == Dynamic || w.Size == Dynamic {
		return Dynamic
	}
	padded := w.Low + w.High
	if n > 0 {
		padded += (n-1)*w.Base + 1
	}
	if reach := w.Reach(); padded > 0 && w.Size > 0 && reach <= padded {
		return (padded-reach)/w.Stride + 1
	}
	return 0
}

// Element is the index of the element of the operand, a dimension of size n, that
// is element at of window k, or -1 where that is padding.
func (w Window) Element(k, at, n int) int {
	if w.Reversed {
		at = w.Size - 1 - at
	}
	i := k*w.Stride + at*w.Dilation - w.Low
	if i < 0 || i%w.Base != 0 || i/w.Base >= n {
		return -1
	}
	return i / w.Base
}

// Tiles reports whether the windows tile a dimension of size n: each element is in
// exactly one of them.
func (w Window) Tiles(n int) bool {
	return w.Size == w.Stride && w.Low == 0 && w.High == 0 && w.Base == 1 && w.Dilation == 1 && n%w.Size == 0
}

// Identity reports whether window k is element k of the operand, and nothing else,
// whatever the size of the dimension.
func (w Window) Identity() bool {
	return w.Size == 1 && w.Stride == w.Base && w.Low == 0 && w.High == 0
}
