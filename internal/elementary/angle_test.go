package elementary

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// An angle is reduced to the bits that a division with 1,400 bits gives.
func TestReduced(t *testing.T) {
	quarter := quarterTurn()
	at := func(v float64) *big.Float { return new(big.Float).SetPrec(quarter.Prec()).SetFloat64(v) }
	exact := func(x float64) (int, float64) {
		q := at(0).Quo(at(x), quarter)
		n, _ := q.Add(q, at(math.Copysign(0.5, x))).Int(nil)
		rest, _ := at(0).Sub(at(x), at(0).Mul(at(0).SetInt(n), quarter)).Float64()
		return int(new(big.Int).And(n, big.NewInt(3)).Int64()), rest
	}
	xs := []float64{exactAngle, 6381956970095103 * 0x1p797, math.MaxFloat64}
	r := rand.New(rand.NewPCG(1, 2))
	for e := 29; e < 1024; e++ {
		for range 4 {
			xs = append(xs, math.Ldexp(1+r.Float64(), e))
		}
		nearest := at(0).Mul(quarter, at(math.Floor(math.Ldexp(1+r.Float64(), min(e, 52))))) // a multiple of a quarter turn
		near, _ := nearest.SetMantExp(nearest, e-min(e, 52)).Float64()
		if !math.IsInf(near, 0) {
			xs = append(xs, near)
		}
	}
	for _, x := range xs {
		for _, x := range []float64{x, -x} {
			quarters, rest := reduced(x)
			if n, want := exact(x); quarters != n || rest != want {
				t.Errorf("%g is %d quarter turns and %g, want %d and %g", x, quarters, rest, n, want)
			}
		}
	}
}

func BenchmarkReduced(b *testing.B) {
	for b.Loop() {
		reduced(1e300)
	}
}
