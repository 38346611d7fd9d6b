package eval

import (
	"encoding/binary"
	"math"
	"slices"

	"ppc/ir"
)

func constant(e *exec) *tensor {
	l := e.op.Literal("value")
	elem := e.p.elem(l.Type.Elem)
	made, ok := e.p.w.constants.Load(e.op)
	if !ok {
		made, _ = e.p.w.constants.LoadOrStore(e.op, fromLiteral(l, elem))
	}
	x := *made.(*tensor)
	x.elem = elem // a function may be called in a reduction and elsewhere
	return &x
}

func iota(e *exec) *tensor {
	out := e.result(0)
	d := e.op.Int("iota_dimension")
	step, size := ir.Strides(out.shape)[d], out.shape[d]
	for k := range out.len() {
		v := k / step % size
		switch {
		case out.f != nil:
			out.f[k] = float64(v)
		case out.i != nil:
			out.i[k] = int64(v)
		case out.c != nil:
			out.c[k] = complex(float64(v), 0)
		}
	}
	out.round()
	return out
}

func partitionID(e *exec) *tensor { return number(ir.UI32, e.p.rank%e.p.partitions) }
func replicaID(e *exec) *tensor   { return number(ir.UI32, e.p.rank/e.p.partitions) }

func reshape(e *exec) *tensor { return e.in[0].reshaped(e.op.Results[0].Type.Shape) }

// broadcastInDim: a result dimension that no operand dimension becomes, or one
// of size 1, takes no step through the operand.
func broadcastInDim(e *exec) *tensor {
	x, out := e.in[0], e.result(0)
	from := lattice{0, make([]int, len(out.shape))}
	for i, d := range e.op.Ints("broadcast_dimensions") {
		if x.shape[i] != 1 {
			from.step[d] = ir.Strides(x.shape)[i]
		}
	}
	move(out.shape, out, dense(out.shape), x, from)
	return out
}

func transpose(e *exec) *tensor {
	x, out := e.in[0], e.result(0)
	move(out.shape, out, dense(out.shape), x, lattice{0, pick(ir.Strides(x.shape), e.op.Ints("permutation"))})
	return out
}

func slice(e *exec) *tensor {
	x, out := e.in[0], e.result(0)
	from := dense(x.shape).from(e.op.Ints("start_indices"))
	for d, n := range e.op.Ints("strides") {
		from.step[d] *= n
	}
	move(out.shape, out, dense(out.shape), x, from)
	return out
}

func reverse(e *exec) *tensor {
	x, out := e.in[0], e.result(0)
	from := dense(x.shape)
	for _, d := range e.op.Ints("dimensions") {
		from.at += (x.shape[d] - 1) * from.step[d]
		from.step[d] *= -1
	}
	move(out.shape, out, dense(out.shape), x, from)
	return out
}

func concatenate(e *exec) *tensor { return concat(e.op.Int("dimension"), e.in) }

// concat joins xs along dimension dim.
func concat(dim int, xs []*tensor) *tensor {
	shape := slices.Clone(xs[0].shape)
	for _, x := range xs[1:] {
		shape[dim] += x.shape[dim]
	}
	out := xs[0].like(shape)
	to := dense(shape)
	for _, x := range xs {
		move(x.shape, out, to, x, dense(x.shape))
		to.at += x.shape[dim] * to.step[dim]
	}
	return out
}

// part returns the n elements from start on along dimension dim.
func (x *tensor) part(dim, start, n int) *tensor {
	shape := slices.Clone(x.shape)
	shape[dim] = n
	out := x.like(shape)
	from := dense(x.shape)
	from.at += start * from.step[dim]
	move(shape, out, dense(shape), x, from)
	return out
}

// row returns element i of the leading dimension, which is dropped.
func (x *tensor) row(i int) *tensor { return x.part(0, i, 1).reshaped(x.shape[1:]) }

// pad puts element i of a dimension at low + i*(interior+1) of the result,
// where that is within it.
func pad(e *exec) *tensor {
	x, out := e.in[0], e.result(0)
	out.fill(e.in[1], 0)
	low, interior := e.op.Ints("edge_padding_low"), e.op.Ints("interior_padding")
	from, to, shape := dense(x.shape), dense(out.shape), make([]int, len(x.shape))
	for d, n := range x.shape {
		step := interior[d] + 1
		first := max(0, (-low[d]+step-1)/step)           // the first element at 0 or beyond
		end := min(n, (out.shape[d]-low[d]+step-1)/step) // the first one beyond the result
		shape[d] = max(0, end-first)
		from.at += first * from.step[d]
		to.at += (low[d] + first*step) * to.step[d]
		to.step[d] *= step
	}
	move(shape, out, to, x, from)
	return out
}

// starts are the values of scalar indices, each clamped so that a window of the
// given size fits.
func starts(indices []*tensor, shape, window []int) []int {
	at := make([]int, len(indices))
	for d, x := range indices {
		at[d] = hold(x.elem, x.i[0], shape[d]-window[d])
	}
	return at
}

// hold returns v, an integer of type t, held within 0 and high.
func hold(t ir.DType, v int64, high int) int {
	if v < 0 && t == ir.UI64 {
		return high
	}
	return int(min(max(v, 0), int64(high)))
}

func dynamicSlice(e *exec) *tensor {
	x, out := e.in[0], e.result(0)
	at := starts(e.in[1:], x.shape, out.shape)
	move(out.shape, out, dense(out.shape), x, dense(x.shape).from(at))
	return out
}

func dynamicUpdateSlice(e *exec) *tensor {
	out, u := e.in[0].clone(), e.in[1]
	at := starts(e.in[2:], out.shape, u.shape)
	move(u.shape, out, dense(out.shape).from(at), u, dense(u.shape))
	return out
}

// bitcastConvert reads the elements in the declared types, not in the wider
// ones of Options.Float64: bits have no other meaning.
func bitcastConvert(e *exec) *tensor {
	from, to := e.op.Operands[0].Type, e.op.Results[0].Type
	x := *e.in[0]
	x.elem = from.Elem
	if from.Elem.Bits()%8 != 0 || to.Elem.Bits()%8 != 0 { // elements of less than a byte
		return bitcastSmall(e, &x)
	}
	l := &ir.Literal{Type: to, Data: x.literal().Data}
	return fromLiteral(l, e.p.elem(to.Elem))
}

// bitcastSmall packs or unpacks elements of less than a byte, low bits first.
func bitcastSmall(e *exec, x *tensor) *tensor {
	to := e.op.Results[0].Type
	out := e.result(0)
	in, n, m := x.literal().Data, x.elem.Bits(), to.Elem.Bits()
	bit := func(j int) byte { return in[j/n*x.elem.Size()+j%n/8] >> (j % n % 8) & 1 }
	for k := range out.len() {
		b := make([]byte, 8)
		for j := range m {
			b[j/8] |= bit(k*m+j) << (j % 8)
		}
		if out.f != nil {
			out.f[k] = to.Elem.GetFloat(b)
		} else {
			out.i[k] = wrap(to.Elem, int64(binary.LittleEndian.Uint64(b)))
		}
	}
	return out
}

// poison returns NaN everywhere.
func poison(x *tensor) *tensor {
	y := x.like(x.shape)
	fillWith(y.f, math.NaN())
	return y
}
