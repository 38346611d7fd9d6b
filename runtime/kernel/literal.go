package kernel

import (
	"encoding/binary"
	"slices"

	"ppc/ir"
)

// littleEndian reports whether this machine lays numbers out as literals do.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// FromLiteral is the elements of l. It is l's own memory where the machine lays
// them out the same way, so it must not be written.
func FromLiteral(l *ir.Literal) Mem {
	size, n := l.Type.Elem.Size(), l.Type.Bytes()
	if len(l.Data) == n && littleEndian && Aligned(l.Data) && (l.Type.Elem != ir.I1 || isBool(l.Data)) {
		return Mem(l.Data)
	}
	m := NewMem(n)
	copy(m, l.Data)
	swapBytes(m[:min(n, len(l.Data))], l.Type.Elem)
	if l.Type.Elem == ir.I1 {
		for i := range m {
			m[i] &= 1
		}
	}
	if l.IsSplat() {
		Fill(m, slices.Clone(m[:size]))
	}
	return m
}

// ToLiteral is the literal of type t whose elements are m, which it keeps: m must
// not be written afterwards.
func ToLiteral(t *ir.Type, m Mem) *ir.Literal {
	if !littleEndian {
		m = slices.Clone(m)
		swapBytes(m, t.Elem)
	}
	return &ir.Literal{Type: t, Data: m}
}

func isBool(b []byte) bool {
	for _, v := range b {
		if v > 1 {
			return false
		}
	}
	return true
}

// swapBytes goes from little-endian to the machine's order, or back.
func swapBytes(m Mem, t ir.DType) {
	if littleEndian {
		return
	}
	size := t.Part().Size()
	for at := 0; at+size <= len(m); at += size {
		slices.Reverse(m[at : at+size])
	}
}

// Zeros is a tensor of zeros of type t: of what zero becomes, in a type that has none.
func Zeros(t *ir.Type) Mem { return FromLiteral(ir.SplatOf(ir.Tensor(t.Elem, t.Shape...), 0)) }

// Poison fills m with bytes that are NaN in every floating-point type, and
// true in booleans.
func Poison(m Mem, t ir.DType) {
	v := byte(0xff)
	if t == ir.I1 {
		v = 1
	}
	fill(m, v)
}
