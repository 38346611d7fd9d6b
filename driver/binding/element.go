package binding

import (
	"fmt"
	"math/cmplx"
	"strconv"

	"ppc/ir"
)

// Number is element i, or its magnitude where it is complex.
func Number(l *ir.Literal, i int) float64 {
	if l.Type.Elem.IsComplex() {
		return cmplx.Abs(l.Complex(i))
	}
	return l.Float(i)
}

// ElementText is element i in the shortest decimal form that brings it back.
func ElementText(l *ir.Literal, i int) string {
	t := l.Type.Elem
	switch t.Class() {
	case ir.Boolean:
		return strconv.FormatBool(l.Int(i) != 0)
	case ir.Signed:
		return strconv.FormatInt(l.Int(i), 10)
	case ir.Unsigned:
		return strconv.FormatUint(uint64(l.Int(i)), 10)
	case ir.Complex:
		c := l.Complex(i)
		return fmt.Sprintf("(%s, %s)", floatText(real(c), t.Part()), floatText(imag(c), t.Part()))
	}
	return floatText(l.Float(i), t)
}

func floatText(v float64, t ir.DType) string {
	if t == ir.F64 {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 32)
}
