package eval

import (
	"fmt"
	"math"
	"slices"

	"ppc/ir"
)

// A tensor is a value during evaluation: row-major elements in the slice that the
// class of elem calls for. A tuple has elements only, a token nothing. A tensor
// that an op has returned is never changed again, so tensors share their elements
// freely.
type tensor struct {
	elem   ir.DType
	shape  []int
	f      []float64    // floating-point types, each element a value of elem
	i      []int64      // integers and booleans; ui64 as its bits
	c      []complex128 // complex types
	parts  []*tensor
	dither Dither // by which elements round
}

// newTensor returns a tensor of zeros.
func newTensor(elem ir.DType, shape []int) *tensor {
	x, n := &tensor{elem: elem, shape: shape}, ir.Product(shape)
	switch elem.Class() {
	case ir.Floating:
		x.f = make([]float64, n)
	case ir.Complex:
		x.c = make([]complex128, n)
	default:
		x.i = make([]int64, n)
	}
	return x
}

// like returns a tensor of zeros with x's element type.
func (x *tensor) like(shape []int) *tensor { return newTensor(x.elem, shape) }

// number returns the scalar v.
func number(elem ir.DType, v int) *tensor {
	x := newTensor(elem, nil)
	switch {
	case x.f != nil:
		x.f[0] = float64(v)
	case x.i != nil:
		x.i[0] = int64(v)
	case x.c != nil:
		x.c[0] = complex(float64(v), 0)
	}
	x.round()
	return x
}

// reshaped returns the elements of x under another shape.
func (x *tensor) reshaped(shape []int) *tensor {
	y := *x
	y.shape = shape
	return &y
}

// clone returns a copy that may be written.
func (x *tensor) clone() *tensor {
	y := *x
	y.f, y.i, y.c = slices.Clone(x.f), slices.Clone(x.i), slices.Clone(x.c)
	return &y
}

func (x *tensor) len() int { return max(len(x.f), len(x.i), len(x.c)) }

func (x *tensor) String() string {
	return (&ir.Type{Kind: ir.TensorType, Elem: x.elem, Shape: x.shape}).String()
}

// fill sets every element of x to element k of y.
func (x *tensor) fill(y *tensor, k int) {
	switch {
	case x.f != nil:
		fillWith(x.f, y.f[k])
	case x.i != nil:
		fillWith(x.i, y.i[k])
	case x.c != nil:
		fillWith(x.c, y.c[k])
	}
}

func fillWith[T any](xs []T, v T) {
	for k := range xs {
		xs[k] = v
	}
}

// set makes element k of x element j of y.
func (x *tensor) set(k int, y *tensor, j int) {
	switch {
	case x.f != nil:
		x.f[k] = y.f[j]
	case x.i != nil:
		x.i[k] = y.i[j]
	case x.c != nil:
		x.c[k] = y.c[j]
	}
}

// round rounds or wraps every element of x to x.elem.
func (x *tensor) round() {
	switch t := x.elem; {
	case t == ir.F64 || t == ir.C128 || t == ir.I64 || t == ir.UI64 || t == ir.Index:
	case x.dither.Size != 0 && t.IsFloat():
		for k, v := range x.f {
			x.f[k] = x.dither.round(v, t.Round)
		}
	case t == ir.F32:
		for k, v := range x.f {
			x.f[k] = float64(float32(v))
		}
	case t == ir.C64:
		for k, v := range x.c {
			x.c[k] = complex(x.dither.round(real(v), ir.F32.Round), x.dither.round(imag(v), ir.F32.Round))
		}
	default:
		for k, v := range x.f {
			x.f[k] = x.elem.Round(v)
		}
		for k, v := range x.i {
			x.i[k] = wrap(x.elem, v)
		}
	}
}

// round rounds v, where nearest does so to the nearest number.
func (d Dither) round(v float64, nearest func(float64) float64) float64 {
	near := nearest(v)
	off := v - near
	if d.Size == 0 || off == 0 || math.IsNaN(off) || math.IsInf(off, 0) {
		return near
	}
	far := near // the number on the other side of v
	for step := off; far == near && math.Abs(step) < math.Abs(off)*(1<<54); step *= 2 {
		far = nearest(v + step)
	}
	bits := math.Float64bits(v) ^ d.Seed
	for _, m := range []uint64{0xbf58476d1ce4e5b9, 0x94d049bb133111eb} { // those of splitmix64
		bits = (bits ^ bits>>30) * m
	}
	if random := float64(bits>>11)*0x1p-53 - 0.5; math.Abs(off) > math.Abs(far-near)*(0.5+d.Size*random) {
		return far
	}
	return near
}

// wrap reduces v modulo the width of t, into the range of t.
func wrap(t ir.DType, v int64) int64 {
	shift := 64 - t.Bits()
	if t.Class() == ir.Signed {
		return v << shift >> shift
	}
	return int64(uint64(v) << shift >> shift)
}

// fromLiteral returns the value of l with elements of type elem: l's own, or
// the wider one that replaces it.
func fromLiteral(l *ir.Literal, elem ir.DType) *tensor {
	n := l.Type.NumElements()
	x := newTensor(elem, l.Type.Shape)
	stored := n
	if l.IsSplat() {
		stored = 1
	}
	for k := range stored {
		switch {
		case x.f != nil:
			x.f[k] = l.Float(k)
		case x.i != nil:
			x.i[k] = l.Int(k)
		case x.c != nil:
			x.c[k] = l.Complex(k)
		}
	}
	if l.Type.Elem != elem {
		x.round()
	}
	if stored < n {
		x.fill(x, 0)
	}
	return x
}

// literal returns the value of x.
func (x *tensor) literal() *ir.Literal {
	size, part := x.elem.Size(), x.elem.Part()
	data := make([]byte, size*x.len())
	for k := range x.len() {
		b := data[k*size:]
		switch {
		case x.f != nil:
			x.elem.PutFloat(b, x.f[k])
		case x.i != nil:
			x.elem.PutInt(b, x.i[k])
		case x.c != nil:
			part.PutFloat(b, real(x.c[k]))
			part.PutFloat(b[part.Size():], imag(x.c[k]))
		}
	}
	return &ir.Literal{Type: ir.Tensor(x.elem, x.shape...), Data: data}
}

// pick returns the elements of xs at the given places.
func pick[T any](xs []T, at []int) []T {
	out := make([]T, len(at))
	for k, i := range at {
		out[k] = xs[i]
	}
	return out
}

// A lattice is a strided block of a slice: element (i, j, …) at at + i*step[0] +
// j*step[1] + …
type lattice struct {
	at   int
	step []int
}

// dense is the lattice of all elements of a tensor of the given shape.
func dense(shape []int) lattice { return lattice{0, ir.Strides(shape)} }

// from returns the lattice that starts at the given element of l.
func (l lattice) from(index []int) lattice {
	for d, i := range index {
		l.at += i * l.step[d]
	}
	return l
}

// move copies a block of the given shape from where s puts it in src to where
// d puts it in dst.
func move(shape []int, dst *tensor, d lattice, src *tensor, s lattice) {
	if ir.Product(shape) == 0 {
		return
	}
	switch {
	case src.f != nil:
		moveBlock(shape, dst.f, d, src.f, s)
	case src.i != nil:
		moveBlock(shape, dst.i, d, src.i, s)
	case src.c != nil:
		moveBlock(shape, dst.c, d, src.c, s)
	}
}

func moveBlock[T any](shape []int, dst []T, d lattice, src []T, s lattice) {
	if len(shape) == 0 {
		dst[d.at] = src[s.at]
		return
	}
	n, ds, ss := shape[0], d.step[0], s.step[0]
	switch {
	case len(shape) > 1:
		for range n {
			moveBlock(shape[1:], dst, lattice{d.at, d.step[1:]}, src, lattice{s.at, s.step[1:]})
			d.at += ds
			s.at += ss
		}
	case ds == 1 && ss == 1:
		copy(dst[d.at:d.at+n], src[s.at:s.at+n])
	default:
		for range n {
			dst[d.at] = src[s.at]
			d.at += ds
			s.at += ss
		}
	}
}

// offsets lists the offsets of the elements of a block, in row-major order.
func offsets(shape []int, l lattice) []int {
	out := []int{l.at}
	for d, n := range shape {
		next := make([]int, 0, len(out)*n)
		for _, o := range out {
			for i := range n {
				next = append(next, o+i*l.step[d])
			}
		}
		out = next
	}
	return out
}

// next advances index to the next element of shape in row-major order.
func next(index, shape []int) {
	for d := len(shape) - 1; d >= 0; d-- {
		index[d]++
		if index[d] < shape[d] {
			return
		}
		index[d] = 0
	}
}

// maxBytes bounds the memory of the live values of a run that has no bound of its own.
const maxBytes int64 = 4 << 30

// bytes is the memory of a value of type t during evaluation, at most MaxInt64.
func bytes(t *ir.Type) (int64, error) {
	switch t.Kind {
	case ir.TokenType:
		return 0, nil
	case ir.TupleType, ir.FutureType: // share their parts
		return 0, nil
	case ir.TensorType:
	default:
		return 0, fmt.Errorf("values of type %s are not evaluated", t)
	}
	if t.Elem.Size() == 0 && t.Quant == nil {
		return 0, fmt.Errorf("elements of type %s are not evaluated", t.Elem)
	}
	n := int64(8)
	if t.Elem.IsComplex() {
		n = 16
	}
	for _, d := range t.Shape {
		if d < 0 {
			return 0, fmt.Errorf("%s has a dimension of unknown size", t)
		}
		if d > 0 && n > math.MaxInt64/int64(d) {
			n = math.MaxInt64
		} else {
			n *= int64(d)
		}
	}
	if slices.Contains(t.Shape, 0) {
		return 0, nil
	}
	return n, nil
}
