package scalar

import "math"

// Magnitudes are the smallest but zero and the largest of n elements of x, step apart: infinity and zero where all are zero,
// NaN where one is.
func Magnitudes(x []float32, n, step int) (lo, hi float32) {
	lo = float32(math.Inf(1))
	for i := range n {
		v := float32(math.Abs(float64(x[i*step])))
		if v != 0 {
			lo = min(lo, v)
		}
		hi = max(hi, v)
	}
	return lo, hi
}
