package elementary

import (
	"math"
	"math/big"
	"sync"
)

// Angles below exactAngle are reduced as well by package math, whose reduction of
// larger ones keeps 61 bits of the quotient's fraction: too few where the angle is
// near a multiple of a quarter turn.
const exactAngle = 1 << 29

// Sincos is the sine and the cosine of x.
func Sincos(x float64) (sin, cos float64) {
	if math.Abs(x) < exactAngle || math.IsInf(x, 0) || x != x {
		return math.Sincos(x)
	}
	quarters, rest := reduced(x)
	sin, cos = math.Sincos(rest)
	switch quarters {
	case 1:
		return cos, -sin
	case 2:
		return -sin, -cos
	case 3:
		return -cos, sin
	}
	return sin, cos
}

// SinReal is the sine of x.
func SinReal(x float64) float64 {
	s, _ := Sincos(x)
	return s
}

// CosReal is the cosine of x.
func CosReal(x float64) float64 {
	_, c := Sincos(x)
	return c
}

// TanReal is the tangent of x.
func TanReal(x float64) float64 {
	if math.Abs(x) < exactAngle {
		return math.Tan(x)
	}
	s, c := Sincos(x)
	return s / c
}

// anglePrecision holds the bits of the largest float64 before and of its remainder
// behind the point: no float64 is within 2^-62 of a multiple of a quarter turn.
const anglePrecision = 1024 + 64 + 64 + 64

// reduced is x less the nearest multiple of a quarter turn, and which one it is,
// modulo four.
func reduced(x float64) (quarters int, rest float64) {
	quarter := quarterTurn()
	at := func(v float64) *big.Float { return new(big.Float).SetPrec(anglePrecision).SetFloat64(v) }
	q := at(0).Quo(at(x), quarter)
	n, _ := q.Add(q, at(math.Copysign(0.5, x))).Int(nil)
	remainder := at(0).Sub(at(x), at(0).Mul(at(0).SetInt(n), quarter))
	rest, _ = remainder.Float64()
	return int(new(big.Int).And(n, big.NewInt(3)).Int64()), rest
}

// quarterTurn is pi / 2 = 8 atan(1/5) - 2 atan(1/239).
var quarterTurn = sync.OnceValue(func() *big.Float {
	const bits = anglePrecision + 64
	one := new(big.Int).Lsh(big.NewInt(1), bits)
	inverse := func(n int64) *big.Int { // atan(1/n)
		power, sum := new(big.Int).Quo(one, big.NewInt(n)), new(big.Int)
		square := big.NewInt(n * n)
		for k := int64(1); power.Sign() != 0; k += 2 {
			term := new(big.Int).Quo(power, big.NewInt(k))
			if k%4 == 3 {
				term.Neg(term)
			}
			sum.Add(sum, term)
			power.Quo(power, square)
		}
		return sum
	}
	v := new(big.Int).Mul(inverse(5), big.NewInt(8))
	v.Sub(v, new(big.Int).Mul(inverse(239), big.NewInt(2)))
	f := new(big.Float).SetPrec(bits).SetInt(v)
	return f.SetMantExp(f, -bits)
})
