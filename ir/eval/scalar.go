package eval

import (
	"math"
	"math/bits"

	"ppc/internal/elementary"
	"ppc/ir"
)

// The functions in this file compute one element. Integer functions may leave
// the range of t; the caller wraps.

var (
	add = binaryOp{
		func(x, y float64) float64 { return x + y },
		func(t ir.DType, x, y int64) int64 {
			if t == ir.I1 {
				return x | y
			}
			return x + y
		},
		func(x, y complex128) complex128 { return x + y },
		func(out, x, y []float64, mx, my int) {
			for k := range out {
				out[k] = x[k&mx] + y[k&my]
			}
		},
	}
	subtract = binaryOp{
		func(x, y float64) float64 { return x - y },
		func(_ ir.DType, x, y int64) int64 { return x - y },
		func(x, y complex128) complex128 { return x - y },
		func(out, x, y []float64, mx, my int) {
			for k := range out {
				out[k] = x[k&mx] - y[k&my]
			}
		},
	}
	multiply = binaryOp{
		func(x, y float64) float64 { return x * y },
		func(_ ir.DType, x, y int64) int64 { return x * y },
		func(x, y complex128) complex128 { return x * y },
		func(out, x, y []float64, mx, my int) {
			for k := range out {
				out[k] = x[k&mx] * y[k&my]
			}
		},
	}
	divide = binaryOp{
		func(x, y float64) float64 { return x / y },
		divideInt,
		func(x, y complex128) complex128 { return x / y },
		func(out, x, y []float64, mx, my int) {
			for k := range out {
				out[k] = x[k&mx] / y[k&my]
			}
		},
	}
	remainder = binaryOp{f: math.Mod, i: remainderInt}
	power     = binaryOp{f: elementary.PowReal, i: powerInt, c: elementary.Pow}
	atan2     = binaryOp{f: elementary.Atan2, c: elementary.Atan2C}
	maximum   = binaryOp{
		func(x, y float64) float64 { return max(x, y) },
		func(t ir.DType, x, y int64) int64 {
			if less(t, x, y) {
				return y
			}
			return x
		},
		func(x, y complex128) complex128 {
			if lessComplex(x, y) {
				return y
			}
			return x
		},
		func(out, x, y []float64, mx, my int) {
			for k := range out {
				out[k] = max(x[k&mx], y[k&my])
			}
		},
	}
	minimum = binaryOp{
		func(x, y float64) float64 { return min(x, y) },
		func(t ir.DType, x, y int64) int64 {
			if less(t, y, x) {
				return y
			}
			return x
		},
		func(x, y complex128) complex128 {
			if lessComplex(y, x) {
				return y
			}
			return x
		},
		func(out, x, y []float64, mx, my int) {
			for k := range out {
				out[k] = min(x[k&mx], y[k&my])
			}
		},
	}

	and = binaryOp{i: func(_ ir.DType, x, y int64) int64 { return x & y }}
	or  = binaryOp{i: func(_ ir.DType, x, y int64) int64 { return x | y }}
	xor = binaryOp{i: func(_ ir.DType, x, y int64) int64 { return x ^ y }}
	not = unaryOp{i: func(_ ir.DType, x int64) int64 { return ^x }}

	// Shifting by the width or more leaves no bit of the operand; a negative
	// amount is a large unsigned one.
	shiftLeft            = binaryOp{i: func(t ir.DType, x, y int64) int64 { return x << amount(t, y) }}
	shiftRightLogical    = binaryOp{i: func(t ir.DType, x, y int64) int64 { return int64(pattern(t, x) >> amount(t, y)) }}
	shiftRightArithmetic = binaryOp{i: func(t ir.DType, x, y int64) int64 { return signed(t, x) >> amount(t, y) }}
	populationCount      = unaryOp{i: func(t ir.DType, x int64) int64 { return int64(bits.OnesCount64(pattern(t, x))) }}
	countLeadingZeros    = unaryOp{i: func(t ir.DType, x int64) int64 { return int64(bits.LeadingZeros64(pattern(t, x)) - 64 + t.Bits()) }}

	negate = unaryOp{
		func(x float64) float64 { return -x },
		func(_ ir.DType, x int64) int64 { return -x },
		func(x complex128) complex128 { return -x },
	}
	sign                = unaryOp{signFloat, signInt, elementary.Sign}
	logistic            = unaryOp{f: elementary.Logistic, c: elementary.LogisticC}
	rsqrt               = unaryOp{f: func(x float64) float64 { return 1 / math.Sqrt(x) }, c: elementary.Rsqrt}
	exponentialMinusOne = unaryOp{f: math.Expm1, c: elementary.Expm1}
	logPlusOne          = unaryOp{f: math.Log1p, c: elementary.Log1p}
)

// less orders integers of type t.
func less(t ir.DType, x, y int64) bool {
	if t == ir.UI64 {
		return uint64(x) < uint64(y)
	}
	return x < y
}

// lessComplex orders complex numbers by real, then by imaginary part.
func lessComplex(x, y complex128) bool {
	if real(x) != real(y) {
		return real(x) < real(y)
	}
	return imag(x) < imag(y)
}

// pattern is the bits of x, an integer of type t.
func pattern(t ir.DType, x int64) uint64 {
	shift := 64 - t.Bits()
	return uint64(x) << shift >> shift
}

// signed is the bits of x as a signed integer of the width of t.
func signed(t ir.DType, x int64) int64 {
	shift := 64 - t.Bits()
	return x << shift >> shift
}

// amount is the shift amount y; the width or more becomes 64.
func amount(t ir.DType, y int64) uint64 {
	if n := pattern(t, y); n < uint64(t.Bits()) {
		return n
	}
	return 64
}

// divideInt truncates; by zero gives all bits set.
func divideInt(t ir.DType, x, y int64) int64 {
	switch {
	case y == 0:
		return -1
	case t == ir.UI64:
		return int64(uint64(x) / uint64(y))
	}
	return x / y
}

// remainderInt has the sign of the dividend; by zero gives the dividend.
func remainderInt(t ir.DType, x, y int64) int64 {
	switch {
	case y == 0:
		return x
	case t == ir.UI64:
		return int64(uint64(x) % uint64(y))
	}
	return x % y
}

// powerInt: to a negative power, 1 stays 1, -1 alternates, and everything else
// truncates to 0.
func powerInt(t ir.DType, x, y int64) int64 {
	if t.Class() == ir.Signed && y < 0 {
		switch {
		case x == 1, x == -1 && y%2 == 0:
			return 1
		case x == -1:
			return -1
		}
		return 0
	}
	r := int64(1)
	for n := uint64(y); n > 0; n >>= 1 {
		if n&1 == 1 {
			r *= x
		}
		x *= x
	}
	return r
}

func signFloat(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x // zero of either sign, NaN
}

func signInt(t ir.DType, x int64) int64 {
	switch {
	case x == 0:
		return 0
	case x < 0 && t != ir.UI64:
		return -1
	}
	return 1
}
