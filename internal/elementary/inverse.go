package elementary

import (
	"math"
	"math/cmplx"
)

// The inverse functions follow T. E. Hull, T. F. Fairgrieve and P. T. P. Tang,
// Implementing the complex arcsine and arccosine functions using exception
// handling, 1997: of z = x + iy in the first quadrant, with r and s the distances
// to the branch points ±i, a = (r+s)/2 and b = y/a, asinh(z) is
// log(a + sqrt(a²-1)) + i asin(b), each computed so that nothing cancels.

const (
	epsilon = 0x1p-52
	far     = 1 / epsilon // from where on a function is its first term
)

// beyond is (sqrt(a² + b²) - b) / 2, given the root.
func beyond(a, b, root float64) float64 {
	switch {
	case b < 0:
		return (root - b) / 2
	case b == 0:
		return a / 2
	}
	return a * a / (root + b) / 2
}

// hyperbolic is the real part of asinh(x + iy), x and y not negative, and the
// angle of its imaginary part as opposite and adjacent side, or, if direct, its
// sine.
func hyperbolic(x, y float64) (re, opposite, adjacent float64, direct bool) {
	r, s := math.Hypot(x, y+1), math.Hypot(x, y-1)
	a := max((r+s)/2, 1)
	switch {
	case a >= 10:
		re = math.Log(a + math.Sqrt(a*a-1))
	case y == 1 && x < epsilon*epsilon/128:
		re = math.Sqrt(x)
	case x >= epsilon*math.Abs(y-1):
		m := beyond(x, 1+y, r) + beyond(x, 1-y, s)
		re = math.Log1p(m + math.Sqrt(m*(a+1)))
	case y < 1:
		re = x / math.Sqrt((1-y)*(1+y))
	default:
		re = math.Log1p((y - 1) + math.Sqrt((y-1)*(y+1)))
	}
	if y < 0x1p-509 {
		return re, y * (2 / epsilon), a * (2 / epsilon), false
	}
	if b := y / a; b <= 0.6417 {
		return re, b, 1, true
	}
	switch {
	case y == 1 && x < epsilon/128:
		adjacent = math.Sqrt(x) * math.Sqrt((a+y)/2)
	case x >= epsilon*math.Abs(y-1):
		m := beyond(x, y+1, r) + beyond(x, y-1, s)
		adjacent = math.Sqrt(m * (a + y))
	case y > 1:
		return re, y * (4 / epsilon / epsilon), x * (4 / epsilon / epsilon) * y / math.Sqrt((y+1)*(y-1)), false
	default:
		adjacent = math.Sqrt((1 - y) * (1 + y))
	}
	return re, y, adjacent, false
}

// Asinh is the number whose hyperbolic sine z is.
func Asinh(z complex128) complex128 {
	x, y := real(z), imag(z)
	ax, ay := math.Abs(x), math.Abs(y)
	switch {
	case x != x || y != y:
		switch {
		case math.IsInf(x, 0):
			return complex(x, y)
		case math.IsInf(y, 0):
			return complex(y, x)
		case y == 0:
			return complex(x, y)
		}
		return cmplx.NaN()
	case ax > far || ay > far:
		w := Log(complex(ax, ay))
		return complex(math.Copysign(real(w)+math.Ln2, x), math.Copysign(imag(w), y))
	case max(ax, ay) < 0x1p-28:
		return z
	}
	re, opposite, adjacent, direct := hyperbolic(ax, ay)
	im := math.Asin(min(opposite, 1))
	if !direct {
		im = Atan2(opposite, adjacent)
	}
	return complex(math.Copysign(re, x), math.Copysign(im, y))
}

// Asin is the number whose sine z is.
func Asin(z complex128) complex128 { return mirrored(Asinh, z) }

// Acos is the number whose cosine z is.
func Acos(z complex128) complex128 {
	x, y := real(z), imag(z)
	ax, ay := math.Abs(x), math.Abs(y)
	var re, im float64
	switch {
	case x != x || y != y:
		switch {
		case math.IsInf(x, 0):
			return complex(y, math.Inf(-1))
		case math.IsInf(y, 0):
			return complex(x, -y)
		case x == 0:
			return complex(math.Pi/2, y)
		}
		return cmplx.NaN()
	case ax > far || ay > far:
		w := Log(z)
		re, im = math.Abs(imag(w)), real(w)+math.Ln2
	case x == 1 && y == 0:
		return complex(0, -y)
	case max(ax, ay) < 0x1p-54:
		return complex(math.Pi/2-x, -y)
	default:
		var opposite, adjacent float64
		var direct bool
		im, opposite, adjacent, direct = hyperbolic(ay, ax)
		opposite = math.Copysign(opposite, x)
		if direct {
			re = math.Acos(opposite)
		} else {
			re = math.Atan2(adjacent, opposite)
		}
	}
	return complex(re, math.Copysign(im, -y))
}

// Acosh is the number with a real part that is not negative whose hyperbolic
// cosine z is.
func Acosh(z complex128) complex128 {
	w := Acos(z)
	re, im := real(w), imag(w)
	switch {
	case re != re && im != im:
		return w
	case re != re:
		return complex(math.Abs(im), re)
	case im != im:
		return complex(im, im)
	}
	return complex(math.Abs(im), math.Copysign(re, imag(z)))
}

// Atanh is the number whose hyperbolic tangent z is.
func Atanh(z complex128) complex128 {
	x, y := real(z), imag(z)
	ax, ay := math.Abs(x), math.Abs(y)
	switch {
	case y == 0 && ax <= 1:
		return complex(math.Atanh(x), y)
	case x == 0:
		return complex(x, math.Atan(y))
	case x != x || y != y:
		switch {
		case math.IsInf(x, 0):
			return complex(math.Copysign(0, x), y)
		case math.IsInf(y, 0):
			return complex(math.Copysign(0, x), math.Copysign(math.Pi/2, y))
		}
		return cmplx.NaN()
	case ax > far || ay > far:
		return complex(realOfInverse(x, y), math.Copysign(math.Pi/2, y))
	case max(ax, ay) < 0x1p-27:
		return z
	}
	re := math.Log1p(4*ax/((ax-1)*(ax-1)+squared(ay))) / 4
	if ax == 1 && ay < epsilon {
		re = (math.Ln2 - LogReal(ay)) / 2
	}
	im := Atan2(2*ay, (1-ax)*(1+ax)-ay*ay) / 2
	switch {
	case ax == 1:
		im = Atan2(2, -ay) / 2
	case ay < epsilon:
		im = Atan2(2*ay, (1-ax)*(1+ax)) / 2
	}
	return complex(math.Copysign(re, x), math.Copysign(im, y))
}

// Atan is the number whose tangent z is.
func Atan(z complex128) complex128 { return mirrored(Atanh, z) }

// squared is x², 0 where that is nothing beside what it is added to.
func squared(x float64) float64 {
	if x < 0x1p-509 {
		return 0
	}
	return x * x
}

// realOfInverse is the real part of 1 / (x + iy), of which one is large.
func realOfInverse(x, y float64) float64 {
	if math.IsInf(x, 0) || math.IsInf(y, 0) {
		return math.Copysign(0, x)
	}
	m := math.Hypot(x/4, y/4)
	return x / 4 / m / m / 4
}
