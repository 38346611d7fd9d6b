package elementary

import "math"

// BesselI1e is exp(-|x|) I1(x), where I1 is the modified Bessel function of the
// first kind of order 1.
func BesselI1e(x float64) float64 {
	a := math.Abs(x)
	switch {
	case math.IsNaN(x) || a == 0:
		return x
	case math.IsInf(a, 0):
		return math.Copysign(0, x)
	case a > 30:
		return math.Copysign(besselFar(a), x)
	}
	return math.Copysign(besselNear(a)*ExpReal(-a), x)
}

// besselNear is I1(x) for positive x: its power series, whose terms are positive.
func besselNear(x float64) float64 {
	half := x / 2
	sq, low := square(half)
	term, termLow := half, 0.0
	sum, rest := half, 0.0
	for k := 1.0; term > sum*1e-19; k++ {
		by := k * (k + 1)
		product, err := term*sq, math.FMA(term, sq, -term*sq)
		q := product / by
		termLow = (math.FMA(-q, by, product) + err + term*low + termLow*sq) / by
		term = q
		var r float64
		sum, r = twoSum(sum, term)
		rest += r + termLow
	}
	return sum + rest
}

// besselFar is exp(-x) I1(x) for large x: its asymptotic series.
func besselFar(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; k < 2*x; k++ {
		next := -term * (4 - (2*k-1)*(2*k-1)) / (8 * k * x)
		if math.Abs(next) >= math.Abs(term) || math.Abs(next) < 1e-18 {
			break
		}
		term = next
		sum += term
	}
	return sum / math.Sqrt(2*math.Pi*x)
}
