package kernel

import (
	"math"
	"math/bits"
	"math/cmplx"

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

func mapBoth(f func(float64) float64, g func(complex128) complex128) byType {
	return mapFloats(f).with(byType{ir.C64: mapC64(g), ir.C128: mapC128(g)})
}

func logistic(x float64) float64        { return 1 / (1 + math.Exp(-x)) }
func logisticC(x complex128) complex128 { return 1 / (1 + cmplx.Exp(-x)) }
func rsqrt(x float64) float64           { return 1 / math.Sqrt(x) }
func rsqrtC(x complex128) complex128    { return 1 / cmplx.Sqrt(x) }
func cbrtC(x complex128) complex128     { return cmplx.Pow(x, 1.0/3) }

// expC is cmplx.Exp, which turns to NaN only half of exp(-Inf ± i Inf).
func expC(z complex128) complex128 {
	if math.IsInf(real(z), -1) && (math.IsNaN(imag(z)) || math.IsInf(imag(z), 0)) {
		return cmplx.NaN()
	}
	return cmplx.Exp(z)
}

// logC is cmplx.Log where the modulus may be too large for a float64.
func logC(z complex128) complex128 {
	if m := max(math.Abs(real(z)), math.Abs(imag(z))); m > math.MaxFloat64/4 && !math.IsInf(m, 1) {
		return cmplx.Log(z/4) + 2*math.Ln2
	}
	return cmplx.Log(z)
}

// expMinusOneC keeps its accuracy near 0: with z = x + iy, exp(z) - 1 is
// expm1(x) cos(y) - 2 sin²(y/2) + i exp(x) sin(y).
func expMinusOneC(z complex128) complex128 {
	x, y := real(z), imag(z)
	h := math.Sin(y / 2)
	return complex(math.Expm1(x)*math.Cos(y)-2*h*h, math.Exp(x)*math.Sin(y))
}

// logPlusOneC keeps its accuracy near 0: |1 + z|² is 1 + (2x + x² + y²).
func logPlusOneC(z complex128) complex128 {
	x, y := real(z), imag(z)
	if cmplx.Abs(z) > 0.5 {
		return logC(1 + z)
	}
	return complex(math.Log1p(x*(2+x)+y*y)/2, math.Atan2(y, 1+x))
}

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

func signC(x complex128) complex128 {
	if x == 0 {
		return 0
	}
	return x / complex(cmplx.Abs(x), 0)
}

// unaries are the ops on one operand whose result has the operand's type, but
// for abs of complex numbers. bf16 and f16 use f32's.
var unaries = map[ir.Kind]byType{
	ir.Abs: {ir.F32: absFloat[float32], ir.F64: absFloat[float64], ir.C64: absC64, ir.C128: absC128,
		ir.I8: absInt[int8], ir.I16: absInt[int16], ir.I32: absInt[int32], ir.I64: absInt[int64]},
	ir.Cbrt:                mapBoth(math.Cbrt, cbrtC),
	ir.Ceil:                mapFloats(math.Ceil),
	ir.CountLeadingZeros:   ints(leadingZeros[uint8](8), leadingZeros[uint16](16), leadingZeros[uint32](32), leadingZeros[uint64](64)),
	ir.Cosine:              mapBoth(math.Cos, cmplx.Cos),
	ir.Exponential:         mapBoth(math.Exp, expC),
	ir.ExponentialMinusOne: mapBoth(math.Expm1, expMinusOneC),
	ir.Floor:               mapFloats(math.Floor),
	ir.Log:                 mapBoth(math.Log, logC),
	ir.LogPlusOne:          mapBoth(math.Log1p, logPlusOneC),
	ir.Logistic:            mapBoth(logistic, logisticC),
	ir.Negate: ints(negate[int8], negate[int16], negate[int32], negate[int64]).with(byType{
		ir.F32: negate[float32], ir.F64: negate[float64], ir.C64: negate[complex64], ir.C128: negate[complex128]}),
	ir.Not:              ints(not[uint8], not[uint16], not[uint32], not[uint64]).with(byType{ir.I1: notBool}),
	ir.PopulationCount:  ints(population[uint8], population[uint16], population[uint32], population[uint64]),
	ir.RoundNearestAfz:  mapFloats(math.Round),
	ir.RoundNearestEven: mapFloats(math.RoundToEven),
	ir.Rsqrt:            mapBoth(rsqrt, rsqrtC),
	ir.Sign: mapBoth(sign, signC).with(byType{ir.I8: signInt[int8], ir.I16: signInt[int16], ir.I32: signInt[int32], ir.I64: signInt[int64],
		ir.UI8: signUint[uint8], ir.UI16: signUint[uint16], ir.UI32: signUint[uint32], ir.UI64: signUint[uint64]}),
	ir.Sine: mapBoth(math.Sin, cmplx.Sin),
	ir.Sqrt: byType{ir.F32: sqrt[float32], ir.F64: sqrt[float64], ir.C64: mapC64(cmplx.Sqrt), ir.C128: mapC128(cmplx.Sqrt)},
	ir.Tan:  mapBoth(math.Tan, cmplx.Tan),
	ir.Tanh: mapBoth(math.Tanh, cmplx.Tanh),
}
