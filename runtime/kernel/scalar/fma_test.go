package scalar

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// fma32 rounds once.
func TestFMA32(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200000 {
		x, y := math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32())
		z := float32(-float64(x) * float64(y) * (1 + float64(int(r.IntN(5))-2)*0x1p-24))
		if r.IntN(2) == 0 {
			z = math.Float32frombits(r.Uint32())
		}
		p := float64(x) * float64(y)
		if p-p != 0 || z-z != 0 {
			continue
		}
		want, _ := new(big.Float).SetPrec(2000).Add(new(big.Float).SetPrec(2000).SetFloat64(p), new(big.Float).SetPrec(2000).SetFloat64(float64(z))).Float32()
		if got := fma32(x, y, z); got != want {
			t.Fatalf("%g * %g + %g is %g, want %g", x, y, z, got, want)
		}
	}
}
