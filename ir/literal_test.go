package ir

import (
	"math"
	"testing"
)

// Literals print as MLIR prints them.
func TestLiteralText(t *testing.T) {
	for _, c := range []struct {
		l    *Literal
		want string
	}{
		{SplatOf(Tensor(F32, 4, 8), 0.1), "dense<1.000000e-01>"},
		{Floats64(Tensor(F32, 2), 1, -0.5), "dense<[1.000000e+00, -5.000000e-01]>"},
		{Floats64(Tensor(F32, 2, 1), 3.1415927, 1e30), "dense<[[3.14159274], [1.000000e+30]]>"},
		{Floats64(Tensor(F32, 2), math.Inf(1), math.Inf(-1)), "dense<[0x7F800000, 0xFF800000]>"},
		{SplatOf(Tensor(BF16), math.Inf(-1)), "dense<0xFF80>"},
		{SplatOf(Tensor(F64), math.NaN()), "dense<0x7FF8000000000001>"},
		{SplatOf(Tensor(F8E4M3FN), 448), "dense<4.480000e+02>"},
		{SplatOf(Tensor(F8E4M3FN), math.NaN()), "dense<0x7F>"},
		{SplatOf(Tensor(F32), math.Copysign(0, -1)), "dense<-0.000000e+00>"},
		{Ints64(Tensor(I4, 3), 7, 8, -1), "dense<[7, -8, -1]>"},
		{Ints64(Tensor(UI64, 2), -1, 1), "dense<[18446744073709551615, 1]>"},
		{Ints64(Tensor(I1, 2), 1, 0), "dense<[true, false]>"},
		{SplatOf(Tensor(C64), 2), "dense<(2.000000e+00,0.000000e+00)>"},
		{Floats64(Tensor(F32, 0, 3)), "dense<>"},
		{Ints64(Tensor(I8, 101), append(make([]int, 100), 1)...), `dense<"0x` + zeros(200) + `01">`},
		{Ints64(Tensor(I8, 101), make([]int, 101)...), "dense<0>"},
		{Floats64(Tensor(F32, 2), 0.9, 1e-6), "dense<[0.899999976, 9.99999997E-7]>"},
	} {
		if got := c.l.Dense(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.l.Type, got, c.want)
		}
	}
}

func zeros(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = '0'
	}
	return string(b)
}

// Elements read back as they were written, from a splat as from a full literal.
func TestLiteralElements(t *testing.T) {
	for elem := InvalidDType + 1; elem < NumDTypes; elem++ {
		if elem == F8E8M0FNU {
			continue // has no zero
		}
		full, splat := Floats64(Tensor(elem, 3), 0, 1, 1), SplatOf(Tensor(elem, 3), 1)
		if got := []float64{full.Float(0), full.Float(1), splat.Float(2)}; got[0] != 0 || got[1] != 1 || got[2] != 1 {
			t.Errorf("%s: elements are %v", elem, got)
		}
		if full.Int(1) != 1 || splat.Int(2) != 1 || splat.Complex(1) != 1 {
			t.Errorf("%s: one is %d, %d, %v", elem, full.Int(1), splat.Int(2), splat.Complex(1))
		}
		if full.IsSplat() || !splat.IsSplat() || !elem.IsComplex() && (!splat.IsAll(1) || full.IsAll(1)) {
			t.Errorf("%s: splats are not told apart", elem)
		}
	}
}
