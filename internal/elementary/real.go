// Package elementary holds the elementary functions of real and complex numbers
// in float64, good to a few units in the last place over all of their range:
// near zeros and branch points, where squares overflow or underflow, and at
// zeros of either sign, infinities and NaN, where complex functions are those of
// Annex G of the C standard. It takes from the standard library what is that
// good there.
package elementary

import "math"

// LogReal is math.Log, which on some machines is wrong for subnormal numbers.
func LogReal(x float64) float64 {
	if x > 0 && x < 0x1p-1000 {
		return math.Log(x*0x1p200) - 200*math.Ln2
	}
	return math.Log(x)
}

// ExpReal is math.Exp, which on some machines is infinite a little too early.
func ExpReal(x float64) float64 {
	if x > 700 && x < 710 {
		h := math.Exp(x / 2)
		return h * h
	}
	return math.Exp(x)
}

// SinhReal is math.Sinh, whose exponential may be infinite where it is not.
func SinhReal(x float64) float64 {
	if a := math.Abs(x); a > 700 && a < 711 {
		h := math.Exp(a / 2)
		return math.Copysign(h/2*h, x)
	}
	return math.Sinh(x)
}

// CoshReal is math.Cosh likewise.
func CoshReal(x float64) float64 {
	if math.Abs(x) > 700 {
		return math.Abs(SinhReal(x))
	}
	return math.Cosh(x)
}

// Lgamma is the logarithm of the magnitude of the gamma function, which near 0
// is 1/x.
func Lgamma(x float64) float64 {
	if a := math.Abs(x); a > 0 && a < 0x1p-60 {
		return -LogReal(a)
	}
	v, _ := math.Lgamma(x)
	return v
}

// Atan2 is math.Atan2, which forgets the sign of y where y/x is too small for a
// float64.
func Atan2(y, x float64) float64 { return math.Copysign(math.Atan2(y, x), y) }

// Logistic is 1 / (1 + exp(-x)).
func Logistic(x float64) float64 {
	if x < 0 { // where exp(-x) may be too large
		e := ExpReal(x)
		return e / (1 + e)
	}
	return 1 / (1 + math.Exp(-x))
}

// twoSum is a + b, and what rounding has left of it.
func twoSum(a, b float64) (sum, rest float64) {
	sum = a + b
	t := sum - a
	return sum, (a - (sum - t)) + (b - t)
}

// total is the sum of xs, rounded about once.
func total(xs ...float64) float64 {
	var sum, rest float64
	for _, x := range xs {
		s, r := twoSum(sum, x)
		sum = s
		rest += r
	}
	return sum + rest
}

// square is x², and what rounding has left of it.
func square(x float64) (sq, rest float64) {
	sq = x * x
	return sq, math.FMA(x, x, -sq)
}
