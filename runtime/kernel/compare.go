package kernel

import (
	"fmt"

	"ppc/ir"
	"ppc/runtime/kernel/scalar"
)

func equal[T comparable](_ *Work, dst, src []Mem) {
	d, x, y := views2[bool, T](dst, src)
	for i := range d {
		d[i] = x[i] == y[i]
	}
}

func unequal[T comparable](_ *Work, dst, src []Mem) {
	d, x, y := views2[bool, T](dst, src)
	for i := range d {
		d[i] = x[i] != y[i]
	}
}

func less[T ordered](_ *Work, dst, src []Mem) {
	d, x, y := views2[bool, T](dst, src)
	for i := range d {
		d[i] = x[i] < y[i]
	}
}

func lessEqual[T ordered](_ *Work, dst, src []Mem) {
	d, x, y := views2[bool, T](dst, src)
	for i := range d {
		d[i] = x[i] <= y[i]
	}
}

// swapped exchanges the operands of f.
func swapped(f Func) Func {
	if f == nil {
		return nil
	}
	return func(w *Work, dst, src []Mem) {
		w.swap = [2]Mem{src[1], src[0]}
		f(w, dst, w.swap[:])
	}
}

func (a byType) swapped() byType {
	for t, f := range a {
		a[t] = swapped(f)
	}
	return a
}

var (
	lessThan = byType{ir.I1: less[uint8], ir.F32: less[float32], ir.F64: less[float64],
		ir.I8: less[int8], ir.I16: less[int16], ir.I32: less[int32], ir.I64: less[int64],
		ir.UI8: less[uint8], ir.UI16: less[uint16], ir.UI32: less[uint32], ir.UI64: less[uint64]}
	atMost = byType{ir.I1: lessEqual[uint8], ir.F32: lessEqual[float32], ir.F64: lessEqual[float64],
		ir.I8: lessEqual[int8], ir.I16: lessEqual[int16], ir.I32: lessEqual[int32], ir.I64: lessEqual[int64],
		ir.UI8: lessEqual[uint8], ir.UI16: lessEqual[uint16], ir.UI32: lessEqual[uint32], ir.UI64: lessEqual[uint64]}
	comparisons = map[string]byType{
		"EQ": ints(equal[uint8], equal[uint16], equal[uint32], equal[uint64]).with(byType{ir.I1: equal[uint8],
			ir.F32: equal[float32], ir.F64: equal[float64], ir.C64: equal[complex64], ir.C128: equal[complex128]}),
		"NE": ints(unequal[uint8], unequal[uint16], unequal[uint32], unequal[uint64]).with(byType{ir.I1: unequal[uint8],
			ir.F32: unequal[float32], ir.F64: unequal[float64], ir.C64: unequal[complex64], ir.C128: unequal[complex128]}),
		"LT": lessThan,
		"LE": atMost,
		"GT": lessThan.swapped(),
		"GE": atMost.swapped(),
	}
)

// orderKey maps the bits of a floating-point number to an integer in the order
// of IEEE 754's totalOrder: negative numbers have all other bits turned.
func orderKey[S signed](bits S, width int) S { return bits ^ bits>>(width-1)&^(S(-1)<<(width-1)) }

func totalOrder[S signed](width int, holds signedOrder[S]) Func {
	return func(_ *Work, dst, src []Mem) {
		d, x, y := views2[bool, S](dst, src)
		for i := range d {
			d[i] = holds(orderKey(x[i], width), orderKey(y[i], width))
		}
	}
}

// A signedOrder says whether a pair of keys is in the order that it is of.
type signedOrder[S signed] func(a, b S) bool

func totalOrders(holds16 signedOrder[int16], holds32 signedOrder[int32], holds64 signedOrder[int64]) byType {
	return byType{ir.BF16: totalOrder(16, holds16), ir.F16: totalOrder(16, holds16), ir.F32: totalOrder(32, holds32), ir.F64: totalOrder(64, holds64)}
}

func keysEqual[S signed](a, b S) bool   { return a == b }
func keysUnequal[S signed](a, b S) bool { return a != b }
func keysLess[S signed](a, b S) bool    { return a < b }
func keysAtMost[S signed](a, b S) bool  { return a <= b }

var (
	totallyLess      = totalOrders(keysLess, keysLess, keysLess)
	totallyAtMost    = totalOrders(keysAtMost, keysAtMost, keysAtMost)
	totalComparisons = map[string]byType{
		"EQ": totalOrders(keysEqual, keysEqual, keysEqual),
		"NE": totalOrders(keysUnequal, keysUnequal, keysUnequal),
		"LT": totallyLess,
		"LE": totallyAtMost,
		"GT": totallyLess.swapped(),
		"GE": totallyAtMost.swapped(),
	}
)

func buildCompare(op *ir.Op) (Func, error) {
	t, dir := op.Operands[0].Type.Elem, op.Word("comparison_direction")
	f := comparisons[dir].forType(t, ir.I1)
	if op.Word("compare_type") == "TOTALORDER" && t.IsFloat() {
		f = totalComparisons[dir].forType(t, ir.I1)
	}
	return orMissing(f, op, t)
}

// orMissing is f, or the error that op has no kernel for elements of type t.
func orMissing(f Func, op *ir.Op, t ir.DType) (Func, error) {
	if f == nil {
		return nil, fmt.Errorf("%s has no kernel for elements of type %s", op.Name(), t)
	}
	return f, nil
}

// choose takes x where p, y elsewhere; T is any type of the elements' size.
func choose[T any](_ *Work, dst, src []Mem) {
	d, p, x, y := View[T](dst[0]), View[bool](src[0]), View[T](src[1]), View[T](src[2])
	p, x, y = p[:len(d)], x[:len(d)], y[:len(d)]
	for i := range d {
		if p[i] {
			d[i] = x[i]
		} else {
			d[i] = y[i]
		}
	}
}

// chooseAll has one predicate for all elements.
func chooseAll(_ *Work, dst, src []Mem) {
	from := src[2]
	if View[bool](src[0])[0] {
		from = src[1]
	}
	if !Same(dst[0], from) {
		copy(dst[0], from)
	}
}

// bySize is a Func for each size of element.
type bySize map[int]Func

var chooses = bySize{1: choose[uint8], 2: choose[uint16], 4: choose[uint32], 8: choose[uint64], 16: choose[[2]uint64]}

func buildSelect(op *ir.Op) (Func, error) {
	if op.Operands[0].Type.Rank() == 0 && op.Results[0].Type.NumElements() != 1 {
		return chooseAll, nil
	}
	return chooses[op.Results[0].Type.Elem.Size()], nil
}

// clamp is min(max(x, lo), hi); lo and hi may be one element for all.
func clamp[T ordered](_ *Work, dst, src []Mem) {
	d, lo, x, hi := View[T](dst[0]), View[T](src[0]), View[T](src[1]), View[T](src[2])
	x = x[:len(d)]
	if len(lo) == 1 && len(hi) == 1 {
		a, b := lo[0], hi[0]
		for i := range d {
			d[i] = min(max(x[i], a), b)
		}
		return
	}
	loStep, hiStep := step(lo), step(hi)
	for i := range d {
		d[i] = min(max(x[i], lo[i*loStep]), hi[i*hiStep])
	}
}

// step is 0 for a splat, else 1.
func step[T any](x []T) int {
	if len(x) == 1 {
		return 0
	}
	return 1
}

func clampComplex[T complexes](_ *Work, dst, src []Mem) {
	d, lo, x, hi := View[T](dst[0]), View[T](src[0]), View[T](src[1]), View[T](src[2])
	loStep, hiStep := step(lo), step(hi)
	for i := range d {
		d[i] = T(complexMin(complexMax(complex128(x[i]), complex128(lo[i*loStep])), complex128(hi[i*hiStep])))
	}
}

var clamps = byType{ir.I1: clamp[uint8], ir.F32: clamp[float32], ir.F64: clamp[float64], ir.C64: clampComplex[complex64], ir.C128: clampComplex[complex128],
	ir.I8: clamp[int8], ir.I16: clamp[int16], ir.I32: clamp[int32], ir.I64: clamp[int64],
	ir.UI8: clamp[uint8], ir.UI16: clamp[uint16], ir.UI32: clamp[uint32], ir.UI64: clamp[uint64]}

// buildReducePrecision rounds to a format of fewer bits and back.
func buildReducePrecision(op *ir.Op) (Func, error) {
	t := op.Operands[0].Type.Elem
	e, m := op.Int("exponent_bits"), op.Int("mantissa_bits")
	switch t {
	case ir.F16:
		return reducedPrecision[uint16](5, 10, e, m), nil
	case ir.BF16:
		return reducedPrecision[uint16](8, 7, e, m), nil
	case ir.F32:
		if e == 8 && m == 7 {
			return toBF16AndBack, nil
		}
		return reducedPrecision[uint32](8, 23, e, m), nil
	case ir.F64:
		return reducedPrecision[uint64](11, 52, e, m), nil
	}
	f := func(x float64) float64 { return t.ReducedPrecision(x, e, m) }
	return orMissing(mapFloats(f).forType(t, t), op, t)
}

// reducedPrecision rounds numbers of expBits bits of exponent and manBits of mantissa, as [ir.DType.ReducedPrecision] does.
func reducedPrecision[T uint16 | uint32 | uint64](expBits, manBits, e, m int) Func {
	round := scalar.Rounding[T](expBits, manBits, e, m)
	return func(_ *Work, dst, src []Mem) {
		to, from := View[T](dst[0]), View[T](src[0])
		for i := range to {
			to[i] = round(from[i])
		}
	}
}

// toBF16AndBack rounds to what bf16 holds, which vectors do.
func toBF16AndBack(w *Work, dst, src []Mem) {
	depth := w.depth
	narrow := View[uint16](w.temp(len(src[0]) / 2))
	narrowBF16(narrow, View[float32](src[0]))
	widenBF16(View[float32](dst[0]), narrow)
	w.depth = depth
}
