package elementary

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// What the C standard's Annex G says of infinities, and of NaN. That of the
// numbers is tested with the ops.
func TestSpecial(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	zero := math.Copysign(0, -1)
	for _, c := range []struct {
		name    string
		f       func(complex128) complex128
		z, want complex128
	}{
		{"exp", Exp, complex(inf, inf), complex(nan, nan)},
		{"exp", Exp, complex(inf, nan), complex(nan, nan)},
		{"exp", Exp, complex(-inf, inf), complex(nan, nan)},
		{"exp", Exp, complex(-inf, 1), complex(0, 0)},
		{"exp", Exp, complex(inf, 0), complex(inf, 0)},
		{"exp", Exp, complex(1, inf), complex(nan, nan)},
		{"exp", Exp, complex(nan, 0), complex(nan, 0)},
		{"log", Log, complex(zero, 0), complex(-inf, math.Pi)},
		{"log", Log, complex(0, 0), complex(-inf, 0)},
		{"log", Log, complex(-inf, inf), complex(inf, 3*math.Pi/4)},
		{"log", Log, complex(nan, inf), complex(inf, nan)},
		{"sqrt", Sqrt, complex(-3, inf), complex(inf, inf)},
		{"sqrt", Sqrt, complex(nan, -inf), complex(inf, -inf)},
		{"sqrt", Sqrt, complex(-inf, 1), complex(0, inf)},
		{"sqrt", Sqrt, complex(inf, -1), complex(inf, zero)},
		{"sqrt", Sqrt, complex(zero, zero), complex(0, zero)},
		{"sinh", Sinh, complex(0, inf), complex(0, nan)},
		{"sinh", Sinh, complex(inf, 0), complex(inf, 0)},
		{"sinh", Sinh, complex(inf, inf), complex(inf, nan)},
		{"cosh", Cosh, complex(0, inf), complex(nan, 0)},
		{"cosh", Cosh, complex(-inf, inf), complex(inf, nan)},
		{"cosh", Cosh, complex(inf, 1), complex(inf, inf)},
		{"tanh", Tanh, complex(-inf, 1), complex(-1, 0)},
		{"tanh", Tanh, complex(inf, inf), complex(1, 0)},
		{"tanh", Tanh, complex(nan, 0), complex(nan, 0)},
		{"asinh", Asinh, complex(inf, inf), complex(inf, math.Pi/4)},
		{"asinh", Asinh, complex(1, inf), complex(inf, math.Pi/2)},
		{"asinh", Asinh, complex(nan, -inf), complex(-inf, nan)},
		{"acosh", Acosh, complex(-inf, inf), complex(inf, 3*math.Pi/4)},
		{"acosh", Acosh, complex(0, 0), complex(0, math.Pi/2)},
		{"acos", Acos, complex(0, 0), complex(math.Pi/2, zero)},
		{"acos", Acos, complex(inf, 1), complex(0, -inf)},
		{"atanh", Atanh, complex(1, 0), complex(inf, 0)},
		{"atanh", Atanh, complex(inf, 1), complex(0, math.Pi/2)},
		{"atanh", Atanh, complex(-1, inf), complex(zero, math.Pi/2)},
	} {
		got := c.f(c.z)
		if !same(real(got), real(c.want)) || !same(imag(got), imag(c.want)) {
			t.Errorf("%s(%v) is %v, want %v", c.name, c.z, got, c.want)
		}
	}
	if got := Atan2(-1e-300, -1e300); got != -math.Pi {
		t.Errorf("atan2(-1e-300, -1e300) is %v, want -pi", got)
	}
	for _, c := range [][3]float64{{5e-324, 0.1, 4.6706622762338734e-33}, {5e-324, -0.1, 2.141023993724369e+32}, {5e-324, 1e-9, 0.9999992555602052}, {5e-324, -1.5, math.Inf(1)}, {5e-324, math.Inf(-1), math.Inf(1)}, {0x1p-1050, 0.5, 0x1p-525}, {2.13667e-318, -0.7697785909024548, 3.433736289976653e+244}, {5e-324, -0.9, 9.45352569147208e+290}, {1.7e308, 0.99, 1.4065152073912217e+305}, {1e-300, 0.1, 9.999999999999962e-31}, {1e-300, -0.1, 1.0000000000000038e+30}} {
		if got := PowReal(c[0], c[1]); got != c[2] && !(math.Abs(got/c[2]-1) < 1e-15) {
			t.Errorf("pow(%v, %v) = %v, want %v", c[0], c[1], got, c[2])
		}
	}
	if got := LogReal(5e-324); math.Abs(got+744.4400719213812) > 1e-12 {
		t.Errorf("log(5e-324) is %v", got)
	}
}

func same(a, b float64) bool {
	return a == b && math.Signbit(a) == math.Signbit(b) || a != a && b != b || math.Abs(a-b) < 1e-15
}

// Angles of any size are reduced exactly; the values are known to be such.
func TestAngles(t *testing.T) {
	for _, c := range []struct{ x, sin, cos float64 }{
		{1e22, -0.8522008497671888, 0.5232147853951389},
		{math.MaxFloat64, 0.004961954789184062, -0.9999876894265599},
		{-math.MaxFloat64, -0.004961954789184062, -0.9999876894265599},
		{6381956970095103 * 0x1p797, 1, -4.687165924254628e-19}, // nearest of all to a multiple of a quarter turn
		{0x1p600, -0.3456161123444048, -0.9383759922802478},
	} {
		if s, co := Sincos(c.x); math.Abs(s-c.sin) > 3e-16*math.Abs(c.sin) || math.Abs(co-c.cos) > 3e-16*math.Abs(c.cos) {
			t.Errorf("%v: got %v %v, want %v %v", c.x, s, co, c.sin, c.cos)
		}
		if s, co := Sincos(c.x); TanReal(c.x) != s/co || SinReal(c.x) != s || CosReal(c.x) != co {
			t.Errorf("%v: tangent, sine and cosine differ from the pair", c.x)
		}
	}
}

// Powers are within an ulp or so of the exact ones: integer ones, and those of roots, are
// known in any precision.
func TestPowers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	worst := 0.0
	for i := range 20_000 {
		x := math.Ldexp(1+r.Float64(), r.IntN(9)-4)
		n := r.IntN(2400) - 1200 // of a fourth root
		if i%2 == 0 {
			x, n = 1+r.Float64()/16, n*4
		}
		y := float64(n) / 4
		root := new(big.Float).SetPrec(200).SetFloat64(x)
		root.Sqrt(root)
		root.Sqrt(root)
		want := new(big.Float).SetPrec(200).SetInt64(1)
		for k := max(n, -n); k > 0; k >>= 1 {
			if k&1 == 1 {
				want.Mul(want, root)
			}
			root.Mul(root, root)
		}
		if n < 0 {
			want.Quo(big.NewFloat(1).SetPrec(200), want)
		}
		exact, _ := want.Float64()
		got := PowReal(x, y)
		if math.IsInf(exact, 0) || exact < 0x1p-1000 {
			if got != exact && !(math.Abs(got-exact) <= 0x1p-1050) {
				t.Errorf("pow(%v, %v) = %v, want %v", x, y, got, exact)
			}
			continue
		}
		d, _ := new(big.Float).Sub(want, big.NewFloat(got)).Float64()
		_, e := math.Frexp(exact)
		if ulps := math.Abs(d) / math.Ldexp(1, e-53); ulps > worst {
			worst = ulps
			if ulps > 1.25 {
				t.Errorf("pow(%v, %v) = %v, want %v: %.2f ulp", x, y, got, exact, ulps)
			}
		}
	}
	t.Logf("at most %.2f ulp", worst)
}
