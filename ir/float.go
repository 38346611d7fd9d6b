package ir

import (
	"math"
)

// A floatFormat says how a floating-point type of at most 16 bits encodes
// numbers: a sign, unless it has none, an exponent with a bias, a mantissa. An
// exponent of zero means subnormal numbers.
type floatFormat struct {
	exp, man, bias int
	special        specials
}

// specials says which codes of a format are no finite numbers.
type specials uint8

const (
	ieee      specials = iota // the largest exponent: infinity, and NaN where the mantissa is not zero
	finite                    // none: a number that is too large becomes the largest, NaN becomes -0
	nanOnes                   // all ones is NaN; no infinity
	nanZero                   // the code of -0 is NaN; no infinity, no -0
	scaleOnly                 // no sign, no zero, no mantissa: powers of two; all ones is NaN
)

// formatTable has the formats of the types that are not Go's own.
var formatTable = [NumDTypes]floatFormat{
	F4E2M1FN:      {2, 1, 1, finite},
	F6E2M3FN:      {2, 3, 1, finite},
	F6E3M2FN:      {3, 2, 3, finite},
	F8E3M4:        {3, 4, 3, ieee},
	F8E4M3:        {4, 3, 7, ieee},
	F8E4M3FN:      {4, 3, 7, nanOnes},
	F8E4M3FNUZ:    {4, 3, 8, nanZero},
	F8E4M3B11FNUZ: {4, 3, 11, nanZero},
	F8E5M2:        {5, 2, 15, ieee},
	F8E5M2FNUZ:    {5, 2, 16, nanZero},
	F8E8M0FNU:     {8, 0, 127, scaleOnly},
	BF16:          {8, 7, 127, ieee},
	F16:           {5, 10, 15, ieee},
}

// sign is the sign bit.
func (f *floatFormat) sign() uint32 { return 1 << (f.exp + f.man) }

// largest is the code of the largest finite number.
func (f *floatFormat) largest() uint32 {
	switch f.special {
	case ieee:
		return (1<<f.exp-1)<<f.man - 1
	case nanOnes, scaleOnly:
		return f.sign() - 2
	}
	return f.sign() - 1
}

// overflow is the code, without a sign, of a number larger than the largest finite
// one.
func (f *floatFormat) overflow() uint32 {
	switch f.special {
	case finite:
		return f.largest()
	case nanZero:
		return f.sign()
	}
	return f.largest() + 1 // infinity, or the only NaN
}

// nan is the code of a quiet NaN, without a sign.
func (f *floatFormat) nan() uint32 {
	switch f.special {
	case ieee:
		return f.overflow() | 1<<(f.man-1)
	case finite:
		return f.sign()
	}
	return f.overflow()
}

// encode rounds x once to the nearest number of the format, ties to even, and
// returns its code.
func (f *floatFormat) encode(x float64) uint32 {
	if f.special == scaleOnly {
		return f.encodeScale(x)
	}
	bits := math.Float64bits(x)
	sign := uint32(bits>>63) << (f.exp + f.man)
	if x != x {
		return f.nan() | sign
	}
	code := f.overflow()
	if !math.IsInf(x, 0) {
		code = f.round(bits)
	}
	if f.special == nanZero && (code == 0 || code == f.sign()) {
		return code // no -0, and one NaN
	}
	return code | sign
}

// round is the code of the magnitude of the finite number with the given bits.
// A mantissa that rounds up to the next power of two carries into the exponent,
// and a subnormal one into the first normal number, by the addition alone. A
// float64 too small for its own implicit bit is zero in every format here.
func (f *floatFormat) round(bits uint64) uint32 {
	e := int(bits>>52&0x7ff) - 1023
	m := bits&(1<<52-1) | 1<<52 // the magnitude is m * 2^(e-52)
	shift, base := 52-f.man, e+f.bias-1
	if base < 0 { // subnormal
		shift, base = shift-base, 0
	}
	if shift > 54 {
		return 0
	}
	q, rest, half := m>>shift, m&(1<<shift-1), uint64(1)<<(shift-1)
	if rest > half || rest == half && q&1 == 1 {
		q++
	}
	if code := uint32(base)<<f.man + uint32(q); code <= f.largest() {
		return code
	}
	return f.overflow()
}

// encodeScale rounds to the nearest power of two, ties up. Zero, negative numbers
// and those that are too large become NaN; those that are too small become the
// smallest.
func (f *floatFormat) encodeScale(x float64) uint32 {
	if !(x > 0) || math.IsInf(x, 1) {
		return f.nan()
	}
	frac, e := math.Frexp(x) // x = frac * 2^e, 0.5 <= frac < 1
	if frac < 0.75 {
		e--
	}
	return uint32(min(max(e+f.bias, 0), int(f.nan())))
}

// decode is the number with the given code.
func (f *floatFormat) decode(code uint32) float64 {
	if f.special == scaleOnly {
		if code == f.nan() {
			return math.NaN()
		}
		return math.Ldexp(1, int(code)-f.bias)
	}
	sign, code := code&f.sign(), code&(f.sign()-1)
	x := f.magnitude(code)
	switch {
	case f.special == nanZero && sign != 0 && code == 0:
		return math.NaN()
	case sign != 0:
		return -x
	}
	return x
}

func (f *floatFormat) magnitude(code uint32) float64 {
	e, m := int(code>>f.man), float64(code&(1<<f.man-1))
	switch {
	case code > f.largest() && f.special == ieee && m == 0:
		return math.Inf(1)
	case code > f.largest():
		return math.NaN()
	case e == 0:
		return math.Ldexp(m, 1-f.bias-f.man)
	}
	return math.Ldexp(m+float64(int(1)<<f.man), e-f.bias-f.man)
}

// Round rounds x to the nearest value of floating-point type t, ties to even.
func (t DType) Round(x float64) float64 {
	switch {
	case t == F32:
		return float64(float32(x))
	case t == F64:
		return x
	case t.IsFloat() && t.Bits() <= 16:
		return formatTable[t].nearest(x)
	}
	return x
}

// nearest is the number of the format that is nearest to x.
func (f *floatFormat) nearest(x float64) float64 {
	bits := math.Float64bits(x)
	e := int(bits>>52&0x7ff) - 1023
	if f.special == scaleOnly || e < 1-f.bias || e >= 1<<f.exp-2-f.bias {
		return f.decode(f.encode(x))
	}
	// A normal number that is one when it is rounded, be it up to the next power of two: a
	// float64 with so many fewer bits of mantissa.
	shift := 52 - f.man
	bits += 1<<(shift-1) - 1 + bits>>shift&1
	return math.Float64frombits(bits &^ (1<<shift - 1))
}

// BF16ToFloat32 is the value of bfloat16 bits.
func BF16ToFloat32(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// BF16FromFloat64 rounds x once to the nearest bfloat16, ties to even.
func BF16FromFloat64(x float64) uint16 { return uint16(formatTable[BF16].encode(x)) }

// F16FromFloat64 rounds x once to the nearest float16, ties to even.
func F16FromFloat64(x float64) uint16 { return uint16(formatTable[F16].encode(x)) }

// F16ToFloat32 is the value of float16 bits.
func F16ToFloat32(b uint16) float32 {
	sign, exp, man := uint32(b>>15)<<31, uint32(b>>10)&31, uint32(b)&1023
	switch exp {
	case 31:
		return math.Float32frombits(sign | 0xff<<23 | man<<13)
	case 0:
		v := float32(man) * (1.0 / (1 << 24))
		return math.Float32frombits(sign | math.Float32bits(v))
	}
	return math.Float32frombits(sign | (exp+112)<<23 | man<<13)
}

// ReducedPrecision is v, a number of type t, rounded to e exponent bits and m mantissa
// bits: to nearest, ties to the even code of t. Too large for the exponent bits is
// infinite, too small to be normal is zero; where t has no more of them its own range
// counts, subnormal numbers included. Types of 8 bits and less are rounded as f16.
func (t DType) ReducedPrecision(v float64, e, m int) float64 {
	switch {
	case v != v && m == 0: // has no room for a NaN
		return math.Copysign(math.Inf(1), v)
	case v == 0 || v != v || math.IsInf(v, 0):
		return v
	}
	own := t.roundingFormat()
	lowest := 2 - 1<<(own.exp-1) // exponent of the smallest normal number
	_, exp := math.Frexp(v)
	if exp = max(exp-1, lowest); m < int(own.man) {
		x := math.Ldexp(v, m-exp)
		q := math.RoundToEven(x)
		if m == 0 && math.Abs(x) == 1.5 && (exp-lowest)%2 == 1 { // the code is the exponent, which is even
			q = math.Trunc(x)
		}
		v = math.Ldexp(q, exp-m)
	}
	if e < int(own.exp) && v != 0 && !math.IsInf(v, 0) {
		bias := 1<<(e-1) - 1
		switch _, exp := math.Frexp(v); {
		case exp-1 > bias:
			return math.Copysign(math.Inf(1), v)
		case exp-1 < 1-bias:
			return math.Copysign(0, v)
		}
	}
	return v
}

// roundingFormat is the format that numbers of type t are rounded in.
func (t DType) roundingFormat() floatFormat {
	switch {
	case t == F64:
		return floatFormat{exp: 11, man: 52}
	case t == F32, t == F8E8M0FNU:
		return floatFormat{exp: 8, man: 23}
	case t == BF16:
		return formatTable[BF16]
	}
	return formatTable[F16]
}
