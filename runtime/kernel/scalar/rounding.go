package scalar

import "math"

// Rounding returns how numbers of expBits bits of exponent and manBits of mantissa are rounded to those of e
// and m, by their bits. The bits of a number but its sign are an integer that grows with it, so that this is what is
// rounded to a multiple, and a carry goes on into the exponent.
func Rounding[T uint16 | uint32 | uint64](expBits, manBits, e, m int) func(bits T) T {
	sign, inf := T(1)<<(expBits+manBits), T(1<<expBits-1)<<manBits
	cut := max(0, manBits-m)
	kept, half := ^T(0)<<cut, T(1)<<cut>>1
	lowest, highest := T(1), inf-1 // without the sign, of what is neither 0 nor infinite
	if e < expBits {
		bias, own := 1<<max(0, e-1)-1, 1<<(expBits-1)-1
		lowest, highest = T(own+1-bias)<<manBits, T(own+bias+1)<<manBits-1
	}
	return func(bits T) T {
		abs := bits &^ sign
		switch {
		case abs > inf && m == 0: // has no room for a NaN
			return bits&sign | inf
		case abs >= inf:
			return bits
		}
		if cut > 0 {
			abs = (abs + half - 1 + abs>>cut&1) & kept
		}
		switch {
		case abs < lowest:
			abs = 0
		case abs > highest:
			abs = inf
		}
		return bits&sign | abs
	}
}

// F16FromFloat32 is x in f16, rounded to nearest, ties to even.
func F16FromFloat32(x float32) uint16 {
	b := math.Float32bits(x)
	sign, abs := uint16(b>>16)&0x8000, b&0x7fffffff
	switch {
	case abs > 0x7f800000:
		return sign | 0x7e00
	case abs >= 0x47800000: // 65536 and more
		return sign | 0x7c00
	case abs < 0x38800000: // below the smallest normal number: count units of 2^-24
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(abs))*(1<<24)))
	}
	return sign | uint16((abs-0x38000000+0xfff+abs>>13&1)>>13)
}
