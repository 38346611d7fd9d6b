package elementary

import (
	"math"
	"math/cmplx"
)

func finite(x float64) bool { return x-x == 0 }

// scaled is exp(x) v, where exp(x) alone may be too large for a float64.
func scaled(x, v float64) float64 {
	if e := ExpReal(x); !math.IsInf(e, 1) || math.IsInf(x, 1) {
		return e * v
	}
	h := math.Exp(x / 2)
	return h * v * h
}

// Exp is exp(x) (cos(y) + i sin(y)).
func Exp(z complex128) complex128 {
	x, y := real(z), imag(z)
	switch {
	case y == 0:
		return complex(ExpReal(x), y)
	case !finite(y):
		return cmplx.NaN()
	}
	s, c := Sincos(y)
	return complex(scaled(x, c), scaled(x, s))
}

// Expm1 is exp(z) - 1: with z = x + iy, its real part is
// expm1(x) cos(y) - 2 sin²(y/2).
func Expm1(z complex128) complex128 {
	x, y := real(z), imag(z)
	if x > 700 || !finite(x) || !finite(y) {
		w := Exp(z)
		return complex(real(w)-1, imag(w))
	}
	if y == 0 {
		return complex(math.Expm1(x), y)
	}
	h := SinReal(y / 2)
	s, c := Sincos(y)
	return complex(math.Expm1(x)*c-2*h*h, math.Exp(x)*s)
}

// Log is log|z| and the angle of z.
func Log(z complex128) complex128 { return complex(logAbs(real(z), imag(z)), Atan2(imag(z), real(z))) }

// logAbs is log|x + iy|: near 1 that of the distance of the square from 1,
// which is summed without rounding; very small and very large numbers are
// scaled.
func logAbs(x, y float64) float64 {
	switch m := math.Hypot(x, y); {
	case m > 0.5 && m < 2:
		xx, dx := square(x)
		yy, dy := square(y)
		return math.Log1p(total(max(xx, yy), -1, min(xx, yy), dx, dy)) / 2
	case math.IsInf(m, 1) && finite(x) && finite(y) || m > 0x1p1000 && finite(m):
		return math.Log(math.Hypot(x/4, y/4)) + 2*math.Ln2
	case m < 0x1p-900:
		return math.Log(math.Hypot(x*0x1p200, y*0x1p200)) - 200*math.Ln2
	default:
		return math.Log(m)
	}
}

// Log1p is log(1 + z): |1 + z|² is 1 + (2x + x² + y²).
func Log1p(z complex128) complex128 {
	x, y := real(z), imag(z)
	if !(max(math.Abs(x), math.Abs(y)) < 4) {
		return Log(complex(1+x, y))
	}
	angle := Atan2(y, 1+x)
	xx, dx := square(x)
	yy, dy := square(y)
	if d := total(2*x, xx, yy, dx, dy); d > -0.5 {
		return complex(math.Log1p(d)/2, angle)
	}
	return complex(logAbs(1+x, y), angle)
}

// Sqrt is the root in the right half plane, on the side of z. Very large and very
// small numbers are scaled by a power of 4 and back.
func Sqrt(z complex128) complex128 {
	x, y, scale := real(z), imag(z), 1.0
	switch m := max(math.Abs(x), math.Abs(y)); {
	case m == 0:
		return complex(0, y)
	case math.IsInf(y, 0):
		return complex(math.Inf(1), y)
	case math.IsInf(x, 1):
		if y != y {
			return complex(x, y)
		}
		return complex(x, math.Copysign(0, y))
	case math.IsInf(x, -1):
		if y != y {
			return complex(y, -x)
		}
		return complex(0, math.Copysign(-x, y))
	case x != x || y != y:
		return cmplx.NaN()
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
	return complex(t, math.Copysign(u, imag(z)))
}

// Rsqrt is 1 / sqrt(z).
func Rsqrt(z complex128) complex128 { return 1 / Sqrt(z) }

// Cbrt is the root whose angle is a third of that of z.
func Cbrt(z complex128) complex128 {
	x, y, scale := real(z), imag(z), 1.0
	switch m := max(math.Abs(x), math.Abs(y)); {
	case m == 0:
		return complex(0, y)
	case !finite(m):
		return cmplx.Pow(z, 1.0/3)
	case m > 0x1p900:
		x, y, scale = x*0x1p-300, y*0x1p-300, 0x1p100
	case m < 0x1p-900:
		x, y, scale = x*0x1p300, y*0x1p300, 0x1p-100
	}
	s, c := math.Sincos(Atan2(y, x) / 3)
	r := math.Cbrt(math.Hypot(x, y)) * scale
	return complex(r*c, r*s)
}

// Sign is z / |z|, and 0 of 0.
func Sign(z complex128) complex128 {
	x, y := real(z), imag(z)
	switch m := max(math.Abs(x), math.Abs(y)); {
	case z == 0:
		return 0
	case m > 0x1p1000:
		x, y = x*0x1p-200, y*0x1p-200
	case m < 0x1p-900:
		x, y = x*0x1p200, y*0x1p200
	}
	m := math.Hypot(x, y)
	return complex(x/m, y/m)
}

// LogisticC is 1 / (1 + exp(-z)).
func LogisticC(z complex128) complex128 {
	if real(z) < 0 { // where exp(-z) may be too large
		e := Exp(z)
		return e / (1 + e)
	}
	return 1 / (1 + Exp(-z))
}

// turned is f along the other axis: sin(z) is -i sinh(iz), and so on.
func turned(f func(complex128) complex128, z complex128) complex128 {
	w := f(complex(-imag(z), real(z)))
	return complex(imag(w), -real(w))
}

// mirrored is f with the parts of numbers swapped: asin(z) is
// i conj(asinh(conj(-iz))), and so on.
func mirrored(f func(complex128) complex128, z complex128) complex128 {
	w := f(complex(imag(z), real(z)))
	return complex(imag(w), real(w))
}

// Sin is the sine.
func Sin(z complex128) complex128 { return turned(Sinh, z) }

// Cos is the cosine.
func Cos(z complex128) complex128 { return Cosh(complex(-imag(z), real(z))) }

// Tan is the tangent.
func Tan(z complex128) complex128 { return turned(Tanh, z) }

// halves are sinh(x) c and cosh(x) s without overflow on the way.
func halves(x, s, c float64) (sinh, cosh float64) {
	if math.Abs(x) < 700 {
		return math.Sinh(x) * c, math.Cosh(x) * s
	}
	h := math.Exp(math.Abs(x) / 2)
	return math.Copysign(1, x) * (h / 2 * c * h), h / 2 * s * h
}

// Sinh is sinh(x) cos(y) + i cosh(x) sin(y).
func Sinh(z complex128) complex128 {
	x, y := real(z), imag(z)
	switch {
	case y == 0:
		return complex(SinhReal(x), y)
	case !finite(y) && x == 0:
		return complex(x, math.NaN())
	case !finite(y) && math.IsInf(x, 0):
		return complex(x, math.NaN())
	}
	s, c := Sincos(y)
	return complex(halves(x, s, c))
}

// Cosh is cosh(x) cos(y) + i sinh(x) sin(y).
func Cosh(z complex128) complex128 {
	x, y := real(z), imag(z)
	switch {
	case y == 0:
		return complex(CoshReal(x), math.Copysign(0, y)*math.Copysign(1, x))
	case !finite(y) && x == 0:
		return complex(math.NaN(), 0)
	case !finite(y) && math.IsInf(x, 0):
		return complex(math.Inf(1), math.NaN())
	}
	s, c := Sincos(y)
	if x == 0 {
		return complex(c, x*s)
	}
	im, re := halves(x, c, s)
	return complex(re, im)
}

// Tanh is, with t = tan(y), b = 1 + t² and s = sinh(x),
// (b s sqrt(1 + s²) + i t) / (1 + b s²); far from 0 its limit, and how far from it.
func Tanh(z complex128) complex128 {
	x, y := real(z), imag(z)
	switch {
	case x != x:
		if y == 0 {
			return complex(x, y)
		}
		return cmplx.NaN()
	case math.IsInf(x, 0):
		if !finite(y) {
			return complex(math.Copysign(1, x), math.Copysign(0, y))
		}
		s, c := Sincos(y)
		return complex(math.Copysign(1, x), math.Copysign(0, s*c))
	case !finite(y):
		if x == 0 {
			return complex(x, math.NaN())
		}
		return cmplx.NaN()
	case math.Abs(x) >= 22:
		e := math.Exp(-math.Abs(x))
		s, c := Sincos(y)
		return complex(math.Copysign(1, x), 4*s*c*e*e)
	}
	t, s := TanReal(y), math.Sinh(x)
	b, r := 1+t*t, math.Sqrt(1+s*s)
	d := 1 + b*s*s
	return complex(b*r*s/d, t/d)
}

// Pow is x to the power of y.
func Pow(x, y complex128) complex128 { return cmplx.Pow(x, y) }

// Atan2C is the angle of (y, x) continued to complex numbers:
// -i log((x + iy) / sqrt(x² + y²)), which of x = 1 is the number whose tangent y is.
func Atan2C(y, x complex128) complex128 {
	if x == 1 {
		return Atan(y)
	}
	return -1i * Log((x+1i*y)/Sqrt(x*x+y*y))
}
