package elementary

import "math"

// A wide is the sum of two numbers, of which the second is what rounding has left of the
// first: a number of some 100 bits.
type wide struct{ hi, lo float64 }

func product(a, b float64) wide {
	p := a * b
	return wide{p, math.FMA(a, b, -p)}
}

func (a wide) times(b wide) wide {
	p := product(a.hi, b.hi)
	return normal(p.hi, p.lo+(a.hi*b.lo+a.lo*b.hi))
}

func (a wide) plus(b wide) wide {
	sum, rest := twoSum(a.hi, b.hi)
	return normal(sum, rest+(a.lo+b.lo))
}

// over is a/b.
func (a wide) over(b wide) wide {
	q := a.hi / b.hi
	p := product(q, b.hi)
	rest := (a.hi - p.hi) - p.lo + a.lo - q*b.lo
	return normal(q, rest/b.hi)
}

// normal is hi + lo, of which lo is the smaller.
func normal(hi, lo float64) wide {
	sum := hi + lo
	return wide{sum, lo - (sum - hi)}
}

// ln2 is the logarithm of 2: the first 42 bits, of which multiples are exact, and the rest.
var ln2 = wide{0x1.62e42fefa38p-1, 0x1.ef35793c7673p-45}

// PowReal is x to the power of y, to an ulp or two: math.Pow multiplies the errors of its
// squares, and for a power that is no integer takes the exponential of a logarithm that is
// rounded.
func PowReal(x, y float64) float64 {
	a, integer := math.Abs(x), y == math.Trunc(y)
	if !(a > 0) || a == 1 || math.IsInf(a, 1) || math.IsNaN(y) || math.IsInf(y, 0) || x < 0 && !integer || math.Abs(y) == 0.5 || integer && -2 < y && y < 3 {
		return math.Pow(x, y)
	}
	v := power(a, y)
	if x < 0 && math.Mod(y, 2) != 0 {
		return -v
	}
	return v
}

// power is PowReal of positive numbers: exp(y log(x)), the logarithm and the product in
// twice the precision.
func power(x, y float64) float64 {
	log := logarithm(x)
	p := product(y, log.hi)
	switch { // beyond what a float64 holds, by far
	case p.hi > 800:
		return math.Inf(1)
	case p.hi < -800:
		return 0
	}
	p = normal(p.hi, p.lo+y*log.lo)
	n := math.Round(p.hi / math.Ln2)
	r := wide{p.hi - n*ln2.hi, p.lo}.plus(product(-n, ln2.lo))
	e := math.Expm1(r.hi)
	sum, rest := twoSum(1, e)
	return math.Ldexp(sum+(rest+r.lo*(1+e)), int(n))
}

// logarithm is log(x) of a positive x: that of its exponent, and of its fraction f
// 2 (s + s^3/3 + s^5/5 + …) with s = (f-1) / (f+1).
func logarithm(x float64) wide {
	f, exponent := math.Frexp(x)
	if f < math.Sqrt2/2 {
		f, exponent = 2*f, exponent-1
	}
	sum, rest := twoSum(f, 1)
	s := wide{f - 1, 0}.over(wide{sum, rest})
	sq := s.times(s)
	tail := 0.0
	for k := 29; k >= 9; k -= 2 {
		tail = tail*sq.hi + 1/float64(k)
	}
	series := wide{tail * sq.hi, 0}
	for _, k := range []float64{7, 5, 3} {
		series = series.plus(wide{1, 0}.over(wide{k, 0})).times(sq)
	}
	log := series.plus(wide{1, 0}).times(s)
	e := float64(exponent)
	return wide{e * ln2.hi, 0}.plus(product(e, ln2.lo)).plus(wide{2 * log.hi, 2 * log.lo})
}
