package eval

import (
	"fmt"
	"math"
	"math/cmplx"

	"ppc/ir"
)

// An each function computes an elementwise op: element k of out from element k
// of every operand. An operand of one element has it everywhere. out has been
// made with the type of the result.
type each func(op *ir.Op, out *tensor, in []*tensor) error

// A unaryOp is an op of one operand, by the class of its elements. A nil
// function means that the op is not evaluated on that class.
type unaryOp struct {
	f func(x float64) float64
	i func(t ir.DType, x int64) int64
	c func(x complex128) complex128
}

// A binaryOp is an op of two operands of one type.
type binaryOp struct {
	f func(x, y float64) float64
	i func(t ir.DType, x, y int64) int64
	c func(x, y complex128) complex128

	// bulk is f of many numbers, without a call for each: of element k&mx of x and
	// element k&my of y. It is nil where a call is little of what f takes.
	bulk func(out, x, y []float64, mx, my int)
}

func (u unaryOp) each(op *ir.Op, out *tensor, in []*tensor) error {
	x := in[0]
	switch {
	case x.f != nil && u.f != nil:
		for k := range out.f {
			out.f[k] = u.f(x.f[k&indexMask(x)])
		}
	case x.i != nil && u.i != nil:
		for k := range out.i {
			out.i[k] = u.i(x.elem, x.i[k&indexMask(x)])
		}
	case x.c != nil && u.c != nil:
		for k := range out.c {
			out.c[k] = u.c(x.c[k&indexMask(x)])
		}
	default:
		return undefined(x)
	}
	out.round()
	return nil
}

func (b binaryOp) each(op *ir.Op, out *tensor, in []*tensor) error {
	x, y := in[0], in[1]
	mx, my := indexMask(x), indexMask(y)
	switch {
	case x.f != nil && b.bulk != nil:
		b.bulk(out.f, x.f, y.f, mx, my)
	case x.f != nil && b.f != nil:
		for k := range out.f {
			out.f[k] = b.f(x.f[k&mx], y.f[k&my])
		}
	case x.i != nil && b.i != nil:
		for k := range out.i {
			out.i[k] = b.i(x.elem, x.i[k&mx], y.i[k&my])
		}
	case x.c != nil && b.c != nil:
		for k := range out.c {
			out.c[k] = b.c(x.c[k&mx], y.c[k&my])
		}
	default:
		return undefined(x)
	}
	out.round()
	return nil
}

// indexMask is the mask that takes an element's number to its place in x: a
// single element serves all.
func indexMask(x *tensor) int {
	if x.len() == 1 {
		return 0
	}
	return -1
}

func undefined(x *tensor) error {
	if x.len() == 0 {
		return nil
	}
	return fmt.Errorf("not evaluated on elements of type %s", x.elem)
}

// absolute: of a complex number, its modulus.
func absolute(op *ir.Op, out *tensor, in []*tensor) error {
	x := in[0]
	if x.c == nil {
		return unaryOp{f: math.Abs, i: func(_ ir.DType, x int64) int64 { return max(x, -x) }}.each(op, out, in)
	}
	for k := range out.f {
		out.f[k] = cmplx.Abs(x.c[k&indexMask(x)])
	}
	out.round()
	return nil
}

func isFinite(op *ir.Op, out *tensor, in []*tensor) error {
	for k := range out.i {
		v := in[0].f[k&indexMask(in[0])]
		out.i[k] = truth(!math.IsNaN(v) && !math.IsInf(v, 0))
	}
	return nil
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// selectEach: element of the second operand where the first is true, of the third elsewhere.
func selectEach(op *ir.Op, out *tensor, in []*tensor) error {
	p, x, y := in[0], in[1], in[2]
	switch mp, mx, my := indexMask(p), indexMask(x), indexMask(y); {
	case out.f != nil:
		selectAll(out.f, p.i, x.f, y.f, mp, mx, my)
	case out.i != nil:
		selectAll(out.i, p.i, x.i, y.i, mp, mx, my)
	case out.c != nil:
		selectAll(out.c, p.i, x.c, y.c, mp, mx, my)
	}
	return nil
}

func selectAll[T any](out []T, p []int64, x, y []T, mp, mx, my int) {
	for k := range out {
		if p[k&mp] != 0 {
			out[k] = x[k&mx]
		} else {
			out[k] = y[k&my]
		}
	}
}

// clamp is minimum(maximum(operand, min), max).
func clamp(op *ir.Op, out *tensor, in []*tensor) error {
	if err := maximum.each(op, out, []*tensor{in[1], in[0]}); err != nil {
		return err
	}
	return minimum.each(op, out, []*tensor{out, in[2]})
}

// compare: NaN is unequal to everything and in no order, but in TOTALORDER, where
// the order is -NaN < -Inf < … < -0 < +0 < … < +Inf < +NaN.
func compare(op *ir.Op, out *tensor, in []*tensor) error {
	direction, total := op.Word("comparison_direction"), op.Word("compare_type") == "TOTALORDER"
	x, y := in[0], in[1]
	mx, my := indexMask(x), indexMask(y)
	switch h := holds[direction]; {
	case x.f != nil && total:
		compareAll(h, out.i, mapped(x.f, totalOrder), mapped(y.f, totalOrder), mx, my)
	case x.f != nil:
		compareAll(h, out.i, x.f, y.f, mx, my)
	case x.i != nil && x.elem == ir.UI64:
		compareAll(h, out.i, mapped(x.i, unsigned), mapped(y.i, unsigned), mx, my)
	case x.i != nil:
		compareAll(h, out.i, x.i, y.i, mx, my)
	case x.c != nil:
		for k := range out.i {
			out.i[k] = truth((x.c[k&mx] == y.c[k&my]) == (direction == "EQ"))
		}
	}
	return nil
}

// An outcome says whether a comparison holds, by how its operands compare; they
// are unordered where one is NaN.
type outcome struct{ less, equal, greater, unordered int64 }

var holds = map[string]outcome{
	"EQ": {equal: 1},
	"NE": {less: 1, greater: 1, unordered: 1},
	"LT": {less: 1},
	"LE": {less: 1, equal: 1},
	"GT": {greater: 1},
	"GE": {equal: 1, greater: 1},
}

func compareAll[T float64 | int64 | uint64](h outcome, out []int64, x, y []T, mx, my int) {
	for k := range out {
		switch a, b := x[k&mx], y[k&my]; {
		case a < b:
			out[k] = h.less
		case a == b:
			out[k] = h.equal
		case a > b:
			out[k] = h.greater
		default:
			out[k] = h.unordered
		}
	}
}

func unsigned(x int64) uint64 { return uint64(x) }

func mapped[T, U any](xs []T, f func(T) U) []U {
	out := make([]U, len(xs))
	for k, x := range xs {
		out[k] = f(x)
	}
	return out
}

// totalOrder maps floats to integers in the total order of IEEE 754.
func totalOrder(x float64) int64 {
	b := int64(math.Float64bits(x))
	if b < 0 {
		return b ^ math.MaxInt64
	}
	return b
}

// convert: to an integer towards zero and held within its range, NaN to 0; to
// a boolean whether it differs from 0; from complex the real part.
func convert(op *ir.Op, out *tensor, in []*tensor) error {
	x := in[0]
	if out.f != nil && len(x.f) == len(out.f) {
		copy(out.f, x.f)
		out.round()
		return nil
	}
	for k := range out.len() {
		j := k & indexMask(x)
		switch {
		case out.f != nil:
			out.f[k] = toFloat(out.elem, x, j)
		case out.i != nil:
			out.i[k] = toInt(out.elem, x, j)
		case x.c != nil:
			out.c[k] = x.c[j]
		default:
			out.c[k] = complex(toFloat(out.elem.Part(), x, j), 0)
		}
	}
	out.round()
	return nil
}

// toFloat is element j of x as a float64 that rounds to t as the element does.
func toFloat(t ir.DType, x *tensor, j int) float64 {
	switch {
	case x.f != nil:
		return x.f[j]
	case x.c != nil:
		return real(x.c[j])
	}
	v := x.i[j]
	if t != ir.F64 {
		v = sticky(x.elem, v)
	}
	if x.elem == ir.UI64 {
		return float64(uint64(v))
	}
	return float64(v)
}

// sticky is v with the low bits that a float64 cannot hold folded into one
// that it can: rounding the result twice is rounding v once.
func sticky(t ir.DType, v int64) int64 {
	const low = 1<<11 - 1
	small := v>>53 == 0 || v>>53 == -1 && t != ir.UI64
	if small || v&low == 0 {
		return v
	}
	return v&^low | (low + 1)
}

// toInt is element j of x as an integer of type t, or before wrapping to it.
func toInt(t ir.DType, x *tensor, j int) int64 {
	if x.i != nil {
		if t == ir.I1 {
			return truth(x.i[j] != 0)
		}
		return x.i[j]
	}
	v := toFloat(ir.F64, x, j)
	switch {
	case t == ir.I1:
		return truth(v != 0)
	case math.IsNaN(v):
		return 0
	case t.Class() == ir.Unsigned:
		return saturateUnsigned(t, v)
	}
	limit := math.Ldexp(1, t.Bits()-1)
	switch {
	case v >= limit:
		return math.MaxInt64 >> (64 - t.Bits())
	case v < -limit:
		return math.MinInt64 >> (64 - t.Bits())
	}
	return int64(v)
}

func saturateUnsigned(t ir.DType, v float64) int64 {
	switch {
	case v <= 0:
		return 0
	case v >= math.Ldexp(1, t.Bits()):
		return wrap(t, -1)
	}
	return int64(uint64(v))
}

// reducePrecision rounds to the given number of mantissa bits, to infinity
// beyond the range of the exponent bits and to zero below it.
func reducePrecision(e *exec) *tensor {
	if e.p.w.opts.Float64 {
		return e.in[0]
	}
	out := e.result(0)
	eb, mb := e.op.Int("exponent_bits"), e.op.Int("mantissa_bits")
	for k, v := range e.in[0].f {
		out.f[k] = out.dither.round(v, func(v float64) float64 { return e.op.Operands[0].Type.Elem.ReducedPrecision(v, eb, mb) })
	}
	out.round()
	return out
}

// partOf is the real or imaginary part of a number: f for real elements, c for
// complex ones.
func partOf(f func(float64) float64, c func(complex128) float64) each {
	return func(_ *ir.Op, out *tensor, in []*tensor) error {
		x := in[0]
		for k := range out.f {
			if x.c != nil {
				out.f[k] = c(x.c[k&indexMask(x)])
			} else {
				out.f[k] = f(x.f[k&indexMask(x)])
			}
		}
		return nil
	}
}

func complexOf(_ *ir.Op, out *tensor, in []*tensor) error {
	x, y := in[0], in[1]
	for k := range out.c {
		out.c[k] = complex(x.f[k&indexMask(x)], y.f[k&indexMask(y)])
	}
	return nil
}
