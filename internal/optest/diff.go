package optest

import (
	"math"
	"math/cmplx"
	"slices"

	"ppc/ir"
)

// MaxDiff returns the largest absolute difference between got and want, and
// that divided by the largest magnitude in want. Infinities and NaNs differ by
// nothing from their like, and infinitely from all else; so do tensors of
// different shapes. Element types may differ.
func MaxDiff(got, want *ir.Literal) (abs, rel float64) {
	if got == nil || want == nil || !slices.Equal(got.Type.Shape, want.Type.Shape) {
		return math.Inf(1), math.Inf(1)
	}
	scale := 0.0
	for k := range want.Type.NumElements() {
		abs = max(abs, distance(got, want, k))
		if m := cmplx.Abs(want.Complex(k)); !math.IsNaN(m) && !math.IsInf(m, 0) {
			scale = max(scale, m)
		}
	}
	if abs == 0 {
		return 0, 0
	}
	return abs, abs / scale
}

// distance is |got - want| at element k.
func distance(got, want *ir.Literal, k int) float64 {
	if !got.Type.Elem.IsFloat() && !want.Type.Elem.IsFloat() && got.Type.Elem == want.Type.Elem && !got.Type.Elem.IsComplex() {
		if got.Int(k) == want.Int(k) {
			return 0
		}
		return max(math.Abs(got.Float(k)-want.Float(k)), 1)
	}
	a, b := got.Complex(k), want.Complex(k)
	return math.Hypot(distanceReal(real(a), real(b)), distanceReal(imag(a), imag(b)))
}

func distanceReal(a, b float64) float64 {
	if a == b || math.IsNaN(a) && math.IsNaN(b) {
		return 0
	}
	if d := math.Abs(a - b); !math.IsNaN(d) {
		return d
	}
	return math.Inf(1)
}
