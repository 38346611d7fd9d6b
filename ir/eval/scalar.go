package eval

import (
	"math"
	"math/bits"
	"math/cmplx"

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
	}
	subtract = binaryOp{
		func(x, y float64) float64 { return x - y },
		func(_ ir.DType, x, y int64) int64 { return x - y },
		func(x, y complex128) complex128 { return x - y },
	}
	multiply = binaryOp{
		func(x, y float64) float64 { return x * y },
		func(_ ir.DType, x, y int64) int64 { return x * y },
		func(x, y complex128) complex128 { return x * y },
	}
	divide = binaryOp{
		func(x, y float64) float64 { return x / y },
		divideInt,
		func(x, y complex128) complex128 { return x / y },
	}
	remainder = binaryOp{f: math.Mod, i: remainderInt}
	power     = binaryOp{math.Pow, powerInt, cmplx.Pow}
	atan2     = binaryOp{f: angle, c: atan2Complex}
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
	sign                = unaryOp{signFloat, signInt, signComplex}
	logistic            = unaryOp{f: func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, c: func(x complex128) complex128 { return 1 / (1 + expComplex(-x)) }}
	rsqrt               = unaryOp{f: func(x float64) float64 { return 1 / math.Sqrt(x) }, c: func(x complex128) complex128 { return 1 / sqrtComplex(x) }}
	exponentialMinusOne = unaryOp{f: math.Expm1, c: expm1Complex}
	logPlusOne          = unaryOp{f: math.Log1p, c: log1pComplex}
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

func signComplex(x complex128) complex128 {
	if x == 0 {
		return 0
	}
	return x / complex(cmplx.Abs(x), 0)
}

// logFloat is math.Log, which on some machines is wrong for subnormal numbers.
func logFloat(x float64) float64 {
	if x > 0 && x < 0x1p-1000 {
		return math.Log(x*0x1p200) - 200*math.Ln2
	}
	return math.Log(x)
}

// logComplex is log|z| + i angle. Near 1 the modulus is kept as the distance
// from 1, far away it is scaled so as not to overflow.
func logComplex(z complex128) complex128 {
	x, y := real(z), imag(z)
	var l float64
	switch m := math.Hypot(x, y); {
	case m > 0.5 && m < 2:
		big, small := max(math.Abs(x), math.Abs(y)), min(math.Abs(x), math.Abs(y))
		l = math.Log1p((big-1)*(big+1)+small*small) / 2
	case math.IsInf(m, 1):
		l = math.Log(math.Hypot(x/4, y/4)) + 2*math.Ln2
	case m < 0x1p-900:
		l = math.Log(math.Hypot(x*0x1p200, y*0x1p200)) - 200*math.Ln2
	default:
		l = math.Log(m)
	}
	return complex(l, angle(y, x))
}

// expComplex is exp(x) (cos(y) + i sin(y)), where exp(x) alone may be too large
// for a float64.
func expComplex(z complex128) complex128 {
	x, y := real(z), imag(z)
	if y == 0 {
		return complex(math.Exp(x), y)
	}
	if e := math.Exp(x); !math.IsInf(e, 1) {
		return complex(e*math.Cos(y), e*math.Sin(y))
	}
	h := math.Exp(x / 2)
	return complex(h*math.Cos(y)*h, h*math.Sin(y)*h)
}

// angle is math.Atan2, which forgets the sign of y where y/x is too small for
// a float64.
func angle(y, x float64) float64 { return math.Copysign(math.Atan2(y, x), y) }

// sqrtComplex is the root in the right half plane, on the side of z. Very
// large and very small numbers are scaled by a power of 4 and back.
func sqrtComplex(z complex128) complex128 {
	x, y, scale := real(z), imag(z), 1.0
	switch m := max(math.Abs(x), math.Abs(y)); {
	case m == 0 || math.IsNaN(m) || math.IsInf(m, 1):
		s := cmplx.Sqrt(z)
		return complex(real(s), math.Copysign(imag(s), y))
	case m > 0x1p1000:
		x, y, scale = x*0x1p-200, y*0x1p-200, 0x1p100
	case m < 0x1p-900:
		x, y, scale = x*0x1p200, y*0x1p200, 0x1p-100
	}
	t := math.Sqrt((math.Abs(x)+math.Hypot(x, y))/2) * scale
	u := math.Abs(imag(z)) / (2 * t)
	if x < 0 {
		t, u = u, t
	}
	return complex(t, math.Copysign(u, y))
}

// atan2Complex is the angle of (y, x) continued to complex numbers:
// -i log((x + iy) / sqrt(x² + y²)).
func atan2Complex(y, x complex128) complex128 {
	return -1i * logComplex((x+1i*y)/sqrtComplex(x*x+y*y))
}

// expm1Complex keeps its accuracy near 0: with z = x + iy,
// exp(z) - 1 = expm1(x) cos(y) - 2 sin²(y/2) + i exp(x) sin(y).
func expm1Complex(z complex128) complex128 {
	x, y := real(z), imag(z)
	h := math.Sin(y / 2)
	return complex(math.Expm1(x)*math.Cos(y)-2*h*h, math.Exp(x)*math.Sin(y))
}

// log1pComplex keeps its accuracy near 0: |1 + z|² = 1 + (2x + x² + y²).
func log1pComplex(z complex128) complex128 {
	x, y := real(z), imag(z)
	if cmplx.Abs(z) > 0.5 {
		return logComplex(1 + z)
	}
	return complex(math.Log1p(x*(2+x)+y*y)/2, angle(y, 1+x))
}
