package kernel

import (
	"math/bits"

	"ppc/ir"
	"ppc/runtime/kernel/scalar"
)

// A carrier is how elements of a type without arithmetic of its own go to a type
// that has it, which holds all their values, and back, rounded or wrapped.
type carrier struct {
	as            ir.DType
	widen, narrow func(dst, src Mem)
}

// carriers are those of the element types that have one. Floating-point types of
// 16 bits and less compute in f32, but for the powers of two, whose products may be
// too small for it; integers of less than a byte compute in a byte, of which memory
// has the lowest bits alone.
var carriers = makeCarriers()

func makeCarriers() (cs [ir.Index + 1]*carrier) {
	cs[ir.BF16] = &carrier{ir.F32, halfToF32(widenBF16), halfFromF32(narrowBF16)}
	cs[ir.F16] = &carrier{ir.F32, halfToF32(scalar.WidenF16), halfFromF32(scalar.NarrowF16)}
	for _, t := range ir.DTypes() {
		switch {
		case t == ir.F8E8M0FNU:
			cs[t] = smallFloat[float64](t, ir.F64)
		case t.IsFloat() && t.Size() == 1:
			cs[t] = smallFloat[float32](t, ir.F32)
		case t.IsInt() && t.Bits() < 8:
			cs[t] = smallInt(t)
		}
	}
	return
}

func halfToF32(widen func([]float32, []uint16)) func(dst, src Mem) {
	return func(dst, src Mem) { widen(View[float32](dst), View[uint16](src)) }
}

func halfFromF32(narrow func([]uint16, []float32)) func(dst, src Mem) {
	return func(dst, src Mem) { narrow(View[uint16](dst), View[float32](src)) }
}

// smallFloat has a table of the values of t.
func smallFloat[T float](t, as ir.DType) *carrier {
	var values [256]T
	for code := range values {
		values[code] = T(t.GetFloat([]byte{byte(code)}))
	}
	return &carrier{as,
		func(dst, src Mem) {
			for i, code := range src {
				View[T](dst)[i] = values[code]
			}
		},
		func(dst, src Mem) {
			for i, x := range View[T](src)[:len(dst)] {
				t.PutFloat(dst[i:], float64(x))
			}
		},
	}
}

func smallInt(t ir.DType) *carrier {
	spare := 8 - t.Bits()
	mask := byte(1<<t.Bits() - 1)
	narrow := func(dst, src Mem) {
		for i, x := range src[:len(dst)] {
			dst[i] = x & mask
		}
	}
	if t.Class() == ir.Unsigned {
		return &carrier{ir.UI8, narrow, narrow}
	}
	return &carrier{ir.I8, func(dst, src Mem) {
		for i, x := range src {
			dst[i] = byte(int8(x<<spare) >> spare)
		}
	}, narrow}
}

// carried makes a Func on elements of c.as one on elements of type t, tile by tile.
// Operands of one element are splats. The result has elements of type t too, unless
// it is boolean.
func (c *carrier) carried(t, result ir.DType, f Func) Func {
	size, wide := t.Size(), c.as.Size()
	return func(w *Work, dst, src []Mem) {
		n := len(dst[0]) / result.Size()
		for lo := 0; lo < n; lo += tileLen {
			hi := min(lo+tileLen, n)
			for i, m := range src {
				if len(m) > size || n == 1 {
					m = m[size*lo : size*hi]
				}
				w.ins[i] = w.tile(i)[:len(m)/size*wide]
				c.widen(w.ins[i], m)
			}
			if result == ir.I1 {
				w.outs[0] = dst[0][lo:hi]
				f(w, w.outs[:], w.ins[:len(src)])
				continue
			}
			w.outs[0] = w.tile(3)[:wide*(hi-lo)]
			f(w, w.outs[:], w.ins[:len(src)])
			c.narrow(dst[0][size*lo:size*hi], w.outs[0])
		}
	}
}

// forType picks the Func for elements of type t from a row of Funcs whose
// result has elements of type result.
func (a byType) forType(t, result ir.DType) Func {
	if c := carriers[t]; c != nil && a[t] == nil && a[c.as] != nil {
		return c.carried(t, result, a[c.as])
	}
	return a[t]
}

// arithmetic is the type that sums of products of elements of type t are made in.
func arithmetic(t ir.DType) ir.DType {
	if c := carriers[t]; c != nil {
		return c.as
	}
	return t
}

// smallInts is a row of f for the integers of less than a byte, for ops that
// depend on the width: f gets the elements as they are in memory.
func smallInts(f func(width int, x, y byte) byte) byType {
	var row byType
	for _, t := range ir.DTypes() {
		if !t.IsInt() || t.Bits() >= 8 {
			continue
		}
		width, mask := t.Bits(), byte(1<<t.Bits()-1)
		row[t] = func(_ *Work, dst, src []Mem) {
			x, y := src[0], src[len(src)-1]
			for i := range dst[0] {
				dst[0][i] = f(width, x[i], y[i]) & mask
			}
		}
	}
	return row
}

var (
	smallPopulation   = smallInts(func(_ int, x, _ byte) byte { return byte(bits.OnesCount8(x)) })
	smallLeadingZeros = smallInts(func(width int, x, _ byte) byte { return byte(width - bits.Len8(x)) })
	smallShiftRight   = smallInts(func(_ int, x, y byte) byte { return x >> y })

	smallShiftArithmetic = smallInts(func(width int, x, y byte) byte {
		return byte(int8(x<<(8-width)) >> (8 - width) >> y)
	})
)
