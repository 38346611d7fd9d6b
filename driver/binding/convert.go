package binding

import (
	"fmt"
	"slices"

	"ppc/internal/tensorfile"
	"ppc/ir"
)

// LiteralOf returns an array of a file as a value.
func LiteralOf(a *tensorfile.Array) *ir.Literal {
	return &ir.Literal{Type: ir.Tensor(ir.DTypeByName(a.DType), a.Shape...), Data: a.Data}
}

// ElemOf is the element type of an array of a file that elements of type want are read from:
// want itself where the file does not say and want is no wider than what it has.
func ElemOf(dtype string, want ir.DType) ir.DType {
	if dtype == tensorfile.Unsaid && want.Size() == 1 && want != ir.I1 && want != ir.I8 && want != ir.UI8 {
		return want
	}
	return ir.DTypeByName(dtype)
}

// LiteralFor returns an array of a file as a value that elements of type want are read from.
func LiteralFor(a *tensorfile.Array, want ir.DType) *ir.Literal {
	elem := ElemOf(a.DType, want)
	l := &ir.Literal{Type: ir.Tensor(elem, a.Shape...), Data: a.Data}
	if bits := elem.Bits(); a.DType == tensorfile.Unsaid && bits < 8 {
		for i := range l.Data { // the other bits may be set
			l.Data[i] &= 1<<bits - 1
		}
	}
	return l
}

// ArrayOf returns a value as an array of a file.
func ArrayOf(l *ir.Literal) tensorfile.Array {
	return tensorfile.Array{DType: l.Type.Elem.String(), Shape: slices.Clone(l.Type.Shape), Data: l.Expand()}
}

// widens reports whether every number of type from is one of type to, both
// floating-point or both complex.
func widens(from, to ir.DType) bool {
	if from.Class() != to.Class() {
		return false
	}
	if from.IsFloat() && from.Bits() <= 8 {
		return holdsAll(from, to)
	}
	switch from.Part() {
	case to.Part():
		return true
	case ir.BF16, ir.F16:
		return to.Part() == ir.F32 || to.Part() == ir.F64
	case ir.F32:
		return to.Part() == ir.F64
	}
	return false
}

// holdsAll reports whether every number of from, of a byte at most, is one of to.
func holdsAll(from, to ir.DType) bool {
	for b := range 1 << from.Bits() {
		v := from.GetFloat([]byte{byte(b)})
		if r := to.Round(v); r != v && (v == v || r == r) {
			return false
		}
	}
	return true
}

// Convert returns l with elements of another type where that changes no
// number: wider floats, and integers that fit.
func Convert(l *ir.Literal, to ir.DType) (*ir.Literal, error) {
	from := l.Type.Elem
	switch {
	case from == ir.I1 && to == ir.I1:
		return l, checkBooleans(l)
	case from == to:
		return l, nil
	case widens(from, to):
		return widen(l, to), nil
	case from.IsInt() && to.IsInt():
		return convertInts(l, to)
	case from.IsFloat() && to.IsFloat():
		return nil, fmt.Errorf("%s does not hold every %s, and nothing is rounded unasked: store %s, or type the program %s (--set types.NAME=%s where it names its types)", to, from, to, from, from)
	}
	return nil, fmt.Errorf("%s is not converted to %s: store %s", from, to, to)
}

func checkBooleans(l *ir.Literal) error {
	for i, b := range l.Data {
		if b > 1 {
			return fmt.Errorf("element %d is %d, a boolean is 0 or 1", i, b)
		}
	}
	return nil
}

// widen converts floats to a type that holds them all.
func widen(l *ir.Literal, to ir.DType) *ir.Literal {
	from, t := l.Type.Elem.Part(), l.Type.WithElem(to)
	n := len(l.Data) / from.Size()
	out := &ir.Literal{Type: t, Data: make([]byte, n*to.Part().Size())}
	for i := range n {
		to.Part().PutFloat(out.Data[i*to.Part().Size():], from.GetFloat(l.Data[i*from.Size():]))
	}
	return out
}

func convertInts(l *ir.Literal, to ir.DType) (*ir.Literal, error) {
	from, size := l.Type.Elem, to.Size()
	n := len(l.Data) / from.Size()
	out := &ir.Literal{Type: l.Type.WithElem(to), Data: make([]byte, n*size)}
	for i := range n {
		v := l.Int(i)
		b := out.Data[i*size:]
		to.PutInt(b, v)
		negative := v < 0 && (from.Class() == ir.Signed || to.Class() == ir.Signed)
		if to.GetInt(b) != v || negative && from.Class() != to.Class() {
			return nil, fmt.Errorf("element %d is %s, which is no %s", i, ElementText(l, i), to)
		}
	}
	return out, nil
}
