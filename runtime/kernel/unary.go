package kernel

import (
	"math"
	"math/bits"
	"math/cmplx"

	"ppc/internal/elementary"
	"ppc/ir"
)

func negate[T number](_ *Work, dst, src []Mem) {
	d, x := views1[T, T](dst, src)
	for i := range d {
		d[i] = -x[i]
	}
}

func absInt[T signed](_ *Work, dst, src []Mem) {
	d, x := views1[T, T](dst, src)
	for i := range d {
		d[i] = x[i]
		if x[i] < 0 {
			d[i] = -x[i] // the smallest number is its own negative
		}
	}
}

func absFloat[T float](_ *Work, dst, src []Mem) {
	d, x := views1[T, T](dst, src)
	for i := range d {
		d[i] = T(math.Abs(float64(x[i])))
	}
}

func sqrt[T float](_ *Work, dst, src []Mem) {
	d, x := views1[T, T](dst, src)
	for i := range d {
		d[i] = T(math.Sqrt(float64(x[i])))
	}
}

func signInt[T signed](_ *Work, dst, src []Mem) {
	d, x := views1[T, T](dst, src)
	for i := range d {
		d[i] = min(max(x[i], -1), 1)
	}
}

func signUint[T unsigned](_ *Work, dst, src []Mem) {
	d, x := views1[T, T](dst, src)
	for i := range d {
		d[i] = min(x[i], 1)
	}
}

func not[T unsigned](_ *Work, dst, src []Mem) {
	d, x := views1[T, T](dst, src)
	for i := range d {
		d[i] = ^x[i]
	}
}

func notBool(_ *Work, dst, src []Mem) {
	d, x := views1[uint8, uint8](dst, src)
	for i := range d {
		d[i] = x[i] ^ 1
	}
}

func population[T unsigned](_ *Work, dst, src []Mem) {
	d, x := views1[T, T](dst, src)
	for i := range d {
		d[i] = T(bits.OnesCount64(uint64(x[i])))
	}
}

func leadingZeros[T unsigned](width int) Func {
	return func(_ *Work, dst, src []Mem) {
		d, x := views1[T, T](dst, src)
		for i := range d {
			d[i] = T(width - bits.Len64(uint64(x[i])))
		}
	}
}

func isFinite[T float](_ *Work, dst, src []Mem) {
	d, x := views1[bool, T](dst, src)
	for i := range d {
		d[i] = x[i]-x[i] == 0
	}
}

func absC64(_ *Work, dst, src []Mem) {
	d, x := views1[float32, complex64](dst, src)
	for i := range d {
		d[i] = float32(cmplx.Abs(complex128(x[i])))
	}
}

func absC128(_ *Work, dst, src []Mem) {
	d, x := views1[float64, complex128](dst, src)
	for i := range d {
		d[i] = cmplx.Abs(x[i])
	}
}

// mapF64 applies f, in float64 and rounded once.
func mapF64[T float](f func(float64) float64) Func {
	return func(_ *Work, dst, src []Mem) {
		d, x := views1[T, T](dst, src)
		for i := range d {
			d[i] = T(f(float64(x[i])))
		}
	}
}

func mapC64(f func(complex128) complex128) Func {
	return func(_ *Work, dst, src []Mem) {
		d, x := views1[complex64, complex64](dst, src)
		for i := range d {
			d[i] = complex64(f(complex128(x[i])))
		}
	}
}

func mapC128(f func(complex128) complex128) Func {
	return func(_ *Work, dst, src []Mem) {
		d, x := views1[complex128, complex128](dst, src)
		for i := range d {
			d[i] = f(x[i])
		}
	}
}

func mapFloats(f func(float64) float64) byType {
	return byType{ir.F32: mapF64[float32](f), ir.F64: mapF64[float64](f)}
}

func mapComplexes(g func(complex128) complex128) byType {
	return byType{ir.C64: mapC64(g), ir.C128: mapC128(g)}
}

func mapBoth(f func(float64) float64, g func(complex128) complex128) byType {
	return mapFloats(f).with(mapComplexes(g))
}

func rsqrt(x float64) float64 { return 1 / math.Sqrt(x) }

// sign keeps zeros, signed as they are, and NaN.
func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x
}

// unaries are the ops on one operand whose result has the operand's type, but
// for abs of complex numbers. Types with a carrier use its.
var unaries = map[ir.Kind]byType{
	ir.Abs: {ir.F32: absFloat[float32], ir.F64: absFloat[float64], ir.C64: absC64, ir.C128: absC128,
		ir.I8: absInt[int8], ir.I16: absInt[int16], ir.I32: absInt[int32], ir.I64: absInt[int64]},
	ir.Cbrt:                mapBoth(math.Cbrt, elementary.Cbrt),
	ir.Ceil:                mapFloats(math.Ceil),
	ir.CountLeadingZeros:   ints(leadingZeros[uint8](8), leadingZeros[uint16](16), leadingZeros[uint32](32), leadingZeros[uint64](64)).with(smallLeadingZeros),
	ir.Cosine:              mapBoth(elementary.CosReal, elementary.Cos),
	ir.Exponential:         mapBoth(elementary.ExpReal, elementary.Exp),
	ir.ExponentialMinusOne: mapBoth(math.Expm1, elementary.Expm1),
	ir.Floor:               mapFloats(math.Floor),
	ir.Log:                 mapBoth(elementary.LogReal, elementary.Log),
	ir.LogPlusOne:          mapBoth(math.Log1p, elementary.Log1p),
	ir.Logistic:            mapBoth(elementary.Logistic, elementary.LogisticC),
	ir.Negate: ints(negate[int8], negate[int16], negate[int32], negate[int64]).with(byType{
		ir.F32: negate[float32], ir.F64: negate[float64], ir.C64: negate[complex64], ir.C128: negate[complex128]}),
	ir.Not:              ints(not[uint8], not[uint16], not[uint32], not[uint64]).with(byType{ir.I1: notBool}),
	ir.PopulationCount:  ints(population[uint8], population[uint16], population[uint32], population[uint64]).with(smallPopulation),
	ir.RoundNearestAfz:  mapFloats(math.Round),
	ir.RoundNearestEven: mapFloats(math.RoundToEven),
	ir.Rsqrt:            mapBoth(rsqrt, elementary.Rsqrt),
	ir.Sign: mapBoth(sign, elementary.Sign).with(byType{ir.I8: signInt[int8], ir.I16: signInt[int16], ir.I32: signInt[int32], ir.I64: signInt[int64],
		ir.UI8: signUint[uint8], ir.UI16: signUint[uint16], ir.UI32: signUint[uint32], ir.UI64: signUint[uint64]}),
	ir.Sine: mapBoth(elementary.SinReal, elementary.Sin),
	ir.Sqrt: byType{ir.F32: sqrt[float32], ir.F64: sqrt[float64], ir.C64: mapC64(elementary.Sqrt), ir.C128: mapC128(elementary.Sqrt)},
	ir.Tan:  mapBoth(elementary.TanReal, elementary.Tan),
	ir.Tanh: mapBoth(math.Tanh, elementary.Tanh),

	// The passes make other ops of these functions of real numbers.
	ir.Acos:  mapComplexes(elementary.Acos),
	ir.Acosh: mapComplexes(elementary.Acosh),
	ir.Asin:  mapComplexes(elementary.Asin),
	ir.Asinh: mapComplexes(elementary.Asinh),
	ir.Atanh: mapComplexes(elementary.Atanh),
	ir.Cosh:  mapComplexes(elementary.Cosh),
	ir.Sinh:  mapComplexes(elementary.Sinh),
}
