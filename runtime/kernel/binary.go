package kernel

import (
	"math"

	"ppc/internal/elementary"
	"ppc/ir"
)

func add[T number](_ *Work, dst, src []Mem) {
	d, x, y := views2[T, T](dst, src)
	for i := range d {
		d[i] = x[i] + y[i]
	}
}

func subtract[T number](_ *Work, dst, src []Mem) {
	d, x, y := views2[T, T](dst, src)
	for i := range d {
		d[i] = x[i] - y[i]
	}
}

func multiply[T number](_ *Work, dst, src []Mem) {
	d, x, y := views2[T, T](dst, src)
	for i := range d {
		d[i] = x[i] * y[i]
	}
}

func divide[T float | complexes](_ *Work, dst, src []Mem) {
	d, x, y := views2[T, T](dst, src)
	for i := range d {
		d[i] = x[i] / y[i]
	}
}

func maximum[T ordered](_ *Work, dst, src []Mem) {
	d, x, y := views2[T, T](dst, src)
	for i := range d {
		d[i] = max(x[i], y[i])
	}
}

func minimum[T ordered](_ *Work, dst, src []Mem) {
	d, x, y := views2[T, T](dst, src)
	for i := range d {
		d[i] = min(x[i], y[i])
	}
}

func and[T integer](_ *Work, dst, src []Mem) {
	d, x, y := views2[T, T](dst, src)
	for i := range d {
		d[i] = x[i] & y[i]
	}
}

func or[T integer](_ *Work, dst, src []Mem) {
	d, x, y := views2[T, T](dst, src)
	for i := range d {
		d[i] = x[i] | y[i]
	}
}

func xor[T integer](_ *Work, dst, src []Mem) {
	d, x, y := views2[T, T](dst, src)
	for i := range d {
		d[i] = x[i] ^ y[i]
	}
}

// quotient truncates; by zero it is all ones. The smallest number divided by
// -1 is itself, as Go has it too.
func quotient[T integer](_ *Work, dst, src []Mem) {
	d, x, y := views2[T, T](dst, src)
	for i := range d {
		if y[i] == 0 {
			d[i] = ^T(0)
			continue
		}
		d[i] = x[i] / y[i]
	}
}

// modulo has the dividend's sign; by zero it is the dividend.
func modulo[T integer](_ *Work, dst, src []Mem) {
	d, x, y := views2[T, T](dst, src)
	for i := range d {
		if y[i] == 0 {
			d[i] = x[i]
			continue
		}
		d[i] = x[i] % y[i]
	}
}

// intPower multiplies by squaring and wraps. A negative exponent gives what
// truncation leaves: zero, but for the bases 1 and -1.
func intPower[T integer](_ *Work, dst, src []Mem) {
	d, x, y := views2[T, T](dst, src)
	for i := range d {
		b, e := x[i], y[i]
		if e < 0 {
			switch {
			case b == 1, b == ^T(0) && e&1 == 0:
				d[i] = 1
			case b == ^T(0):
				d[i] = b
			default:
				d[i] = 0
			}
			continue
		}
		p := T(1)
		for ; e > 0; e >>= 1 {
			if e&1 != 0 {
				p *= b
			}
			b *= b
		}
		d[i] = p
	}
}

// The shifts take their distance as an unsigned number; from the width on,
// nothing of the number is left but, in the arithmetic one, the sign.

func shiftLeft[T unsigned](_ *Work, dst, src []Mem) {
	d, x, y := views2[T, T](dst, src)
	for i := range d {
		d[i] = x[i] << y[i]
	}
}

func shiftRight[T unsigned](_ *Work, dst, src []Mem) {
	d, x, y := views2[T, T](dst, src)
	for i := range d {
		d[i] = x[i] >> y[i]
	}
}

func shiftArithmetic[T signed, U unsigned](_ *Work, dst, src []Mem) {
	d, x := views1[T, T](dst, src)
	y := View[U](src[1])[:len(d)]
	for i := range d {
		d[i] = x[i] >> y[i]
	}
}

// zipF64 applies f, in float64 and rounded once.
func zipF64[T float](f func(x, y float64) float64) Func {
	return func(_ *Work, dst, src []Mem) {
		d, x, y := views2[T, T](dst, src)
		for i := range d {
			d[i] = T(f(float64(x[i]), float64(y[i])))
		}
	}
}

func zipC64(f func(x, y complex128) complex128) Func {
	return func(_ *Work, dst, src []Mem) {
		d, x, y := views2[complex64, complex64](dst, src)
		for i := range d {
			d[i] = complex64(f(complex128(x[i]), complex128(y[i])))
		}
	}
}

func zipC128(f func(x, y complex128) complex128) Func {
	return func(_ *Work, dst, src []Mem) {
		d, x, y := views2[complex128, complex128](dst, src)
		for i := range d {
			d[i] = f(x[i], y[i])
		}
	}
}

func zipFloats(f func(x, y float64) float64) byType {
	return byType{ir.F32: zipF64[float32](f), ir.F64: zipF64[float64](f)}
}

func zipComplexes(f func(x, y complex128) complex128) byType {
	return byType{ir.C64: zipC64(f), ir.C128: zipC128(f)}
}

// before orders complex numbers by real and then by imaginary part.
func before(x, y complex128) bool {
	if real(x) != real(y) {
		return real(x) < real(y)
	}
	return imag(x) < imag(y)
}

func complexMax(x, y complex128) complex128 {
	if before(x, y) {
		return y
	}
	return x
}

func complexMin(x, y complex128) complex128 {
	if before(y, x) {
		return y
	}
	return x
}

func complexProduct(x, y complex128) complex128 { return x * y }

// binaries are the ops on two operands of one type. Types with a carrier use its.
var binaries = map[ir.Kind]byType{
	ir.Add: ints(add[int8], add[int16], add[int32], add[int64]).with(byType{
		ir.I1: or[uint8], ir.F32: add[float32], ir.F64: add[float64], ir.C64: add[complex64], ir.C128: add[complex128]}),
	ir.Subtract: ints(subtract[int8], subtract[int16], subtract[int32], subtract[int64]).with(byType{
		ir.F32: subtract[float32], ir.F64: subtract[float64], ir.C64: subtract[complex64], ir.C128: subtract[complex128]}),
	ir.Multiply: ints(multiply[int8], multiply[int16], multiply[int32], multiply[int64]).with(byType{
		ir.I1: and[uint8], ir.F32: multiply[float32], ir.F64: multiply[float64], ir.C64: zipC64(complexProduct), ir.C128: multiply[complex128]}),
	ir.Divide: {ir.F32: divide[float32], ir.F64: divide[float64], ir.C64: divide[complex64], ir.C128: divide[complex128],
		ir.I8: quotient[int8], ir.I16: quotient[int16], ir.I32: quotient[int32], ir.I64: quotient[int64],
		ir.UI8: quotient[uint8], ir.UI16: quotient[uint16], ir.UI32: quotient[uint32], ir.UI64: quotient[uint64]},
	ir.Remainder: zipFloats(math.Mod).with(byType{
		ir.I8: modulo[int8], ir.I16: modulo[int16], ir.I32: modulo[int32], ir.I64: modulo[int64],
		ir.UI8: modulo[uint8], ir.UI16: modulo[uint16], ir.UI32: modulo[uint32], ir.UI64: modulo[uint64]}),
	ir.Maximum: zipComplexes(complexMax).with(byType{ir.I1: or[uint8], ir.F32: maximum[float32], ir.F64: maximum[float64],
		ir.I8: maximum[int8], ir.I16: maximum[int16], ir.I32: maximum[int32], ir.I64: maximum[int64],
		ir.UI8: maximum[uint8], ir.UI16: maximum[uint16], ir.UI32: maximum[uint32], ir.UI64: maximum[uint64]}),
	ir.Minimum: zipComplexes(complexMin).with(byType{ir.I1: and[uint8], ir.F32: minimum[float32], ir.F64: minimum[float64],
		ir.I8: minimum[int8], ir.I16: minimum[int16], ir.I32: minimum[int32], ir.I64: minimum[int64],
		ir.UI8: minimum[uint8], ir.UI16: minimum[uint16], ir.UI32: minimum[uint32], ir.UI64: minimum[uint64]}),
	ir.Power: zipFloats(elementary.PowReal).with(zipComplexes(elementary.Pow)).with(byType{
		ir.I8: intPower[int8], ir.I16: intPower[int16], ir.I32: intPower[int32], ir.I64: intPower[int64],
		ir.UI8: intPower[uint8], ir.UI16: intPower[uint16], ir.UI32: intPower[uint32], ir.UI64: intPower[uint64]}),
	ir.Atan2:             zipFloats(elementary.Atan2).with(zipComplexes(elementary.Atan2C)),
	ir.And:               ints(and[uint8], and[uint16], and[uint32], and[uint64]).with(byType{ir.I1: and[uint8]}),
	ir.Or:                ints(or[uint8], or[uint16], or[uint32], or[uint64]).with(byType{ir.I1: or[uint8]}),
	ir.Xor:               ints(xor[uint8], xor[uint16], xor[uint32], xor[uint64]).with(byType{ir.I1: xor[uint8]}),
	ir.ShiftLeft:         ints(shiftLeft[uint8], shiftLeft[uint16], shiftLeft[uint32], shiftLeft[uint64]),
	ir.ShiftRightLogical: ints(shiftRight[uint8], shiftRight[uint16], shiftRight[uint32], shiftRight[uint64]).with(smallShiftRight),
	ir.ShiftRightArithmetic: ints(shiftArithmetic[int8, uint8], shiftArithmetic[int16, uint16],
		shiftArithmetic[int32, uint32], shiftArithmetic[int64, uint64]).with(smallShiftArithmetic),
}
