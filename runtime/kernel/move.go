package kernel

import (
	"math"
	"slices"

	"ppc/ir"
)

// moved is the Func that runs c from element s of the operand.
func moved(c *Copy, s int) (Func, error) {
	return func(_ *Work, dst, src []Mem) { c.Run(dst[0], src[0], 0, s) }, nil
}

func buildBroadcast(op *ir.Op) (Func, error) {
	in, out := op.Operands[0].Type, op.Results[0].Type
	st := make([]int, out.Rank())
	own := ir.Strides(in.Shape)
	for i, d := range op.Ints("broadcast_dimensions") {
		if in.Shape[i] != 1 {
			st[d] = own[i]
		}
	}
	if in.NumElements() == 1 {
		f := fills[out.Elem.Size()]
		return func(_ *Work, dst, src []Mem) { f(dst[0], src[0]) }, nil
	}
	return moved(NewCopy(out.Elem.Size(), out.Shape, ir.Strides(out.Shape), st), 0)
}

func buildTranspose(op *ir.Op) (Func, error) {
	in, out := op.Operands[0].Type, op.Results[0].Type
	own, st := ir.Strides(in.Shape), make([]int, out.Rank())
	for d, i := range op.Ints("permutation") {
		st[d] = own[i]
	}
	return moved(NewCopy(out.Elem.Size(), out.Shape, ir.Strides(out.Shape), st), 0)
}

func buildSlice(op *ir.Op) (Func, error) {
	in, out := op.Operands[0].Type, op.Results[0].Type
	st, s := ir.Strides(in.Shape), 0
	start, step := op.Ints("start_indices"), op.Ints("strides")
	for d := range st {
		s += start[d] * st[d]
		st[d] *= step[d]
	}
	return moved(NewCopy(out.Elem.Size(), out.Shape, ir.Strides(out.Shape), st), s)
}

func buildReverse(op *ir.Op) (Func, error) {
	t := op.Operands[0].Type
	st, s := ir.Strides(t.Shape), 0
	for _, d := range op.Ints("dimensions") {
		s += (t.Shape[d] - 1) * st[d]
		st[d] = -st[d]
	}
	return moved(NewCopy(t.Elem.Size(), t.Shape, ir.Strides(t.Shape), st), s)
}

func buildConcatenate(op *ir.Op) (Func, error) {
	out, dim := op.Results[0].Type, op.Int("dimension")
	to, at := ir.Strides(out.Shape), 0
	var copies []*Copy
	var offsets []int
	for _, v := range op.Operands {
		copies = append(copies, NewCopy(out.Elem.Size(), v.Type.Shape, to, ir.Strides(v.Type.Shape)))
		offsets = append(offsets, at*to[dim])
		at += v.Type.Shape[dim]
	}
	return func(_ *Work, dst, src []Mem) {
		for i, c := range copies {
			c.Run(dst[0], src[i], offsets[i], 0)
		}
	}, nil
}

// buildPad fills the result where the operand does not cover it, and then
// copies what negative padding leaves of the operand.
func buildPad(op *ir.Op) (Func, error) {
	in, out := op.Operands[0].Type, op.Results[0].Type
	low, interior := op.Ints("edge_padding_low"), op.Ints("interior_padding")
	from, to := ir.Strides(in.Shape), ir.Strides(out.Shape)
	box := slices.Clone(in.Shape)
	s, d := 0, 0
	for k := range box {
		step := interior[k] + 1
		first := 0 // element of the operand that stays
		if low[k] < 0 {
			first = (-low[k] + step - 1) / step
		}
		last := min(in.Shape[k]-1, floorDiv(out.Shape[k]-1-low[k], step))
		box[k] = max(last-first+1, 0)
		s += first * from[k]
		d += (low[k] + first*step) * to[k]
		to[k] *= step
	}
	size := out.Elem.Size()
	c := NewCopy(size, box, to, from)
	full := ir.Product(box) == out.NumElements()
	return func(_ *Work, dst, src []Mem) {
		if !full {
			fills[size](dst[0], src[1])
		}
		c.Run(dst[0], src[0], d, s)
	}, nil
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// indices read element i of an array of integers of a type. Unsigned numbers
// too large for an int are the largest int.
var indices = map[ir.DType]func(m Mem, i int) int{
	ir.I8: indexOf[int8], ir.I16: indexOf[int16], ir.I32: indexOf[int32], ir.I64: indexOf[int64],
	ir.UI8: indexOf[uint8], ir.UI16: indexOf[uint16], ir.UI32: indexOf[uint32],
	ir.UI64: func(m Mem, i int) int { return int(min(View[uint64](m)[i], math.MaxInt64)) },
}

func indexOf[T integer](m Mem, i int) int { return int(View[T](m)[i]) }

// starts is the offset of a window: the sum of clamped start indices times strides.
type starts struct {
	read    func(m Mem, i int) int
	strides []int
	limits  []int // largest index, by dimension
}

func newStarts(elem ir.DType, shape, window []int) *starts {
	s := &starts{read: indices[elem], strides: ir.Strides(shape), limits: make([]int, len(shape))}
	for d := range shape {
		s.limits[d] = shape[d] - window[d]
	}
	return s
}

func (s *starts) at(src []Mem) int {
	at := 0
	for d, limit := range s.limits {
		if limit > 0 { // else the window has only one place
			at += min(max(s.read(src[d], 0), 0), limit) * s.strides[d]
		}
	}
	return at
}

func buildDynamicSlice(op *ir.Op) (Func, error) {
	in, out := op.Operands[0].Type, op.Results[0].Type
	c := NewCopy(out.Elem.Size(), out.Shape, ir.Strides(out.Shape), ir.Strides(in.Shape))
	if in.Rank() == 0 {
		return moved(c, 0)
	}
	st := newStarts(op.Operands[1].Type.Elem, in.Shape, out.Shape)
	return func(_ *Work, dst, src []Mem) { c.Run(dst[0], src[0], 0, st.at(src[1:])) }, nil
}

// Within returns, for an op whose result is always contiguous in its first operand,
// a function from the operands to the offset of the result's first byte there; nil
// for other ops.
func Within(op *ir.Op) func(src []Mem) int {
	if op.Kind != ir.DynamicSlice && op.Kind != ir.Slice {
		return nil
	}
	in, out := op.Operands[0].Type, op.Results[0].Type
	if out.NumElements() == 0 || in.Rank() == 0 {
		return nil
	}
	size := out.Elem.Size()
	from := ir.Strides(in.Shape)
	switch op.Kind {
	case ir.DynamicSlice:
		if NewCopy(size, out.Shape, ir.Strides(out.Shape), from).dense() {
			st := newStarts(op.Operands[1].Type.Elem, in.Shape, out.Shape)
			return func(src []Mem) int { return st.at(src[1:]) * size }
		}
	case ir.Slice:
		s := 0
		for d, start := range op.Ints("start_indices") {
			s += start * from[d]
			from[d] *= op.Ints("strides")[d]
		}
		if NewCopy(size, out.Shape, ir.Strides(out.Shape), from).dense() {
			return func([]Mem) int { return s * size }
		}
	}
	return nil
}

func buildDynamicUpdateSlice(op *ir.Op) (Func, error) {
	in, upd := op.Operands[0].Type, op.Operands[1].Type
	c := NewCopy(in.Elem.Size(), upd.Shape, ir.Strides(in.Shape), ir.Strides(upd.Shape))
	if in.Rank() == 0 {
		return func(_ *Work, dst, src []Mem) { copy(dst[0], src[1]) }, nil
	}
	st := newStarts(op.Operands[2].Type.Elem, in.Shape, upd.Shape)
	return func(_ *Work, dst, src []Mem) {
		if !Same(dst[0], src[0]) {
			copy(dst[0], src[0])
		}
		c.Run(dst[0], src[1], st.at(src[2:]), 0)
	}, nil
}

func buildIota(op *ir.Op) (Func, error) {
	t := op.Results[0].Type
	n := t.Shape[op.Int("iota_dimension")]
	inner := ir.Strides(t.Shape)[op.Int("iota_dimension")]
	size := t.Elem.Size()
	to := converter(ir.I64, t.Elem)
	return func(w *Work, dst, _ []Mem) {
		row := size * n * inner
		if row == 0 || len(dst[0]) == 0 {
			return
		}
		depth := w.depth
		counts, numbers := w.temp(8*tileLen), w.temp(size*tileLen)
		for lo := 0; lo < n; lo += tileLen {
			k := min(tileLen, n-lo)
			for i := range k {
				View[int64](counts)[i] = int64(lo + i)
			}
			w.apply(to, numbers[:size*k], counts[:8*k])
			for i := range k {
				at := (lo + i) * inner * size
				Fill(dst[0][at:at+inner*size], numbers[i*size:(i+1)*size])
			}
		}
		w.depth = depth
		for at := row; at < len(dst[0]); at += row {
			copy(dst[0][at:], dst[0][:row])
		}
	}, nil
}
