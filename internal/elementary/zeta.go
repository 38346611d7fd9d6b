package elementary

import "math"

// ZetaTerms are how many terms of [Zeta] are summed up as they are.
const ZetaTerms = 10

// ZetaTail are B(2j)/(2j)!, j = 1, 2, …, B the Bernoulli numbers.
var ZetaTail = []float64{1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160, -691.0 / 1307674368000, 1.0 / 74724249600,
	-3617.0 / 10670622842880000, 43867.0 / 5109094217170944000, -174611.0 / 802857662698291200000, 77683.0 / 14101100039391805440000, -236364091.0 / 1693824136731743669452800000}

// Zeta is Hurwitz's zeta function, the sum over k of 1/(q+k)^x: the first terms as they
// are and the rest by the formula of Euler and Maclaurin, which below zero is as good as
// the numbers of terms allow. It is infinite at its poles for even x; NaN for others, below
// 1, and below zero for x that are no integers.
func Zeta(x, q float64) float64 {
	pole := q <= 0 && q == math.Floor(q)
	switch {
	case x == 1, pole && math.Mod(x, 2) == 0:
		return math.Inf(1)
	case !(x > 1), math.IsInf(x, 1), pole, q < 0 && x != math.Floor(x), math.IsNaN(q), math.IsInf(q, 1):
		return math.NaN()
	}
	terms, rough := make([]float64, ZetaTerms, ZetaTerms+2), 0.0
	for k := range terms {
		terms[k] = PowReal(q+float64(k), -x)
		rough += terms[k]
	}
	if math.IsInf(rough, 0) { // of which no exact sum can be made
		return rough
	}
	last := terms[ZetaTerms-1]
	if sum := total(terms...); math.Abs(last) < math.Abs(sum)*0x1p-60 || last == 0 {
		return sum
	}
	w := q + ZetaTerms - 1
	tail := 0.0
	for j := len(ZetaTail); j > 0; j-- {
		tail = ZetaTail[j-1] + (x+float64(2*j-1))*(x+float64(2*j))/(w*w)*tail
	}
	return total(append(terms, last*w/(x-1), last*(x/w*tail-0.5))...)
}
