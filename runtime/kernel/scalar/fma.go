// Package scalar computes without vectors. Its elementary functions have the bits
// of the vector kernels: they are generated from the same programs.
package scalar

import "math"

// fma32 is x*y + z, rounded once. The sum is rounded to odd in float64, which
// has more than twice the bits, so that rounding it again is rounding once.
func fma32(x, y, z float32) float32 {
	p, c := float64(float64(x)*float64(y)), float64(z) // the product is exact
	s := float64(p + c)
	t := float64(s - p)
	rest := float64(float64(p-float64(s-t)) + float64(c-t))
	if b := math.Float64bits(s); rest != 0 && rest == rest && s-s == 0 && b&1 == 0 {
		if (rest > 0) == (s > 0) {
			b++
		} else {
			b--
		}
		s = math.Float64frombits(b)
	}
	return float32(s)
}
