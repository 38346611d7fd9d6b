package eval

import (
	"cmp"
	"math"
	"slices"

	"ppc/internal/elementary"
	"ppc/ir"
)

var square = unaryOp{
	func(x float64) float64 { return x * x },
	func(_ ir.DType, x int64) int64 { return x * x },
	func(x complex128) complex128 { return x * x },
}

// acos keeps its accuracy near 1, where pi/2 - asin(x) would lose it.
func acos(x float64) float64 {
	if x == -1 {
		return math.Pi
	}
	return 2 * math.Atan2(math.Sqrt((1-x)*(1+x)), 1+x)
}

// digamma is far from zero the series log(x) - 1/(2x) - sum of B(2k)/(2k x^2k),
// B the Bernoulli numbers; nearer, digamma(x) = digamma(x+1) - 1/x, and below
// zero digamma(1-x) - pi/tan(pi x). At zero it is -Inf, as in XLA.
func digamma(x float64) float64 {
	switch {
	case x == 0:
		return math.Inf(-1)
	case math.IsInf(x, -1), x <= 0 && x == math.Floor(x):
		return math.NaN()
	case x < 0:
		return digamma(1-x) - math.Pi/math.Tan(math.Pi*(x-math.Round(x)))
	}
	sum := 0.0
	for ; x < 10; x++ {
		sum -= 1 / x
	}
	s := 0.0
	for _, c := range []float64{1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12} { // of x^-14 to x^-2
		s = (s + c) / (x * x)
	}
	return sum + math.Log(x) - 1/(2*x) - s
}

// polygamma is the derivative of order n of digamma: for n above 0
// (-1)^(n+1) n! zeta(n+1, x), and NaN where n is no order.
func polygamma(n, x float64) float64 {
	switch {
	case n == 0:
		return digamma(x)
	case n < 0 || n != math.Floor(n):
		return math.NaN()
	}
	v := math.Gamma(n+1) * elementary.Zeta(n+1, x)
	if math.Mod(n, 2) == 0 {
		return -v
	}
	return v
}

// isInfinite tells infinities of a sign, or of either.
func isInfinite(sign int) each {
	return func(op *ir.Op, out *tensor, in []*tensor) error {
		for k := range out.i {
			out.i[k] = truth(math.IsInf(in[0].f[k&indexMask(in[0])], sign))
		}
		return nil
	}
}

// nextAfter counts the bits of a number up or down: those of a type order its
// numbers of one sign by their magnitude.
func nextAfter(op *ir.Op, out *tensor, in []*tensor) error {
	x, y := in[0], in[1]
	t := out.elem
	for k := range out.f {
		from, to := x.f[k&indexMask(x)], y.f[k&indexMask(y)]
		switch {
		case math.IsNaN(from) || math.IsNaN(to):
			out.f[k] = math.NaN()
		case from == to:
			out.f[k] = to
		default:
			out.f[k] = nextTo(t, from, from == 0 || (from < to) == (from > 0), to < 0)
		}
	}
	return nil
}

// nextTo is the number of type t next to v, larger in magnitude where up; of zero
// the smallest, of the given sign.
func nextTo(t ir.DType, v float64, up, negative bool) float64 {
	bits := make([]byte, t.Size())
	if v == 0 {
		v = math.Copysign(0, 1)
		if negative {
			v = math.Copysign(0, -1)
		}
	}
	t.PutFloat(bits, v)
	by := 1
	if !up {
		by = -1
	}
	for i := range bits { // with carry
		n := int(bits[i]) + by
		bits[i] = byte(n)
		if n >= 0 && n < 256 {
			break
		}
	}
	return t.GetFloat(bits)
}

// topK returns, along the last dimension, the k largest elements and their indices,
// of equal ones the first. NaN is larger than every number.
func topK(e *exec) ([]*tensor, error) {
	x, values, places := e.in[0], e.result(0), e.result(1)
	n, k := x.shape[len(x.shape)-1], e.op.Int("k")
	order := make([]int, n)
	for row := range values.len() / max(k, 1) {
		for i := range order {
			order[i] = row*n + i
		}
		slices.SortStableFunc(order, func(i, j int) int {
			switch {
			case x.f != nil:
				return cmp.Compare(totalOrder(x.f[j]), totalOrder(x.f[i]))
			case x.elem == ir.UI64:
				return cmp.Compare(uint64(x.i[j]), uint64(x.i[i]))
			}
			return cmp.Compare(x.i[j], x.i[i])
		})
		for i := range k {
			values.set(row*k+i, x, order[i])
			places.i[row*k+i] = int64(order[i] - row*n)
		}
	}
	return []*tensor{values, places}, nil
}
