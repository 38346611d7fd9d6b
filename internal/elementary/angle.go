package elementary

import (
	"math"
	"math/big"
	"math/bits"
	"sync"
)

// Angles below exactAngle are reduced as well by package math, whose reduction of
// larger ones keeps 61 bits of the quotient's fraction: too few where the angle is
// near a multiple of a quarter turn.
const exactAngle = 1 << 29

// Sincos is the sine and the cosine of x.
func Sincos(x float64) (sin, cos float64) {
	if math.Abs(x) < exactAngle || math.IsInf(x, 0) || x != x {
		return math.Sincos(x)
	}
	quarters, rest := reduced(x)
	sin, cos = math.Sincos(rest)
	switch quarters {
	case 1:
		return cos, -sin
	case 2:
		return -sin, -cos
	case 3:
		return -cos, sin
	}
	return sin, cos
}

// SinReal is the sine of x.
func SinReal(x float64) float64 {
	s, _ := Sincos(x)
	return s
}

// CosReal is the cosine of x.
func CosReal(x float64) float64 {
	_, c := Sincos(x)
	return c
}

// TanReal is the tangent of x.
func TanReal(x float64) float64 {
	if math.Abs(x) < exactAngle {
		return math.Tan(x)
	}
	s, c := Sincos(x)
	return s / c
}

// turnBits is how many bits behind the point the inverse of a quarter turn has: for the largest angles, those up to
// bit 1226 matter.
const turnBits = 21 * 64

// reduced is x, finite and exactAngle or larger, less the nearest multiple of a quarter turn, and which one that is,
// modulo four. It is the reduction of Payne and Hanek: bits of the inverse that make four quarter turns or more of x
// say nothing, and 256 behind those give the remainder with 139 bits, as no float64 is within 2^-62 of a multiple of a
// quarter turn.
func reduced(x float64) (quarters int, rest float64) {
	t := turns()
	frac, exp := math.Frexp(math.Abs(x))
	mantissa := uint64(frac * (1 << 53))
	at := exp - 53 - 1 + 63 // of the bit that gives two quarter turns, times the last bit of the mantissa
	word, shift := at/64, uint(at%64)

	var f [4]uint64 // quarter turns, in 2^-254
	carry := uint64(0)
	for i := 3; i >= 0; i-- {
		hi, lo := bits.Mul64(mantissa, t.inverse[word+i]<<shift|t.inverse[word+i+1]>>(64-shift))
		var c uint64
		f[i], c = bits.Add64(lo, carry, 0)
		carry = hi + c
	}
	quarters = int(f[0] >> 62)
	f = shiftLeft(f, 2)
	sign := math.Copysign(1, x)
	if f[0]>>63 == 1 { // more than half of one: that much less than the next
		quarters, sign = quarters+1, -sign
		borrow := uint64(0)
		for i := 3; i >= 0; i-- {
			f[i], borrow = bits.Sub64(0, f[i], borrow)
		}
	}
	if x < 0 {
		quarters = -quarters
	}
	lead := 0
	for f[0]>>63 == 0 {
		n := max(1, bits.LeadingZeros64(f[0]))
		f, lead = shiftLeft(f, uint(min(n, 63))), lead+min(n, 63)
	}
	hi, lo := mulHigh(f[0], f[1], t.half[0], t.half[1])
	if hi>>63 == 0 {
		hi, lo, lead = hi<<1|lo>>63, lo<<1, lead+1
	}
	if lo != 0 {
		hi |= 1 // float64 rounds once
	}
	return quarters & 3, sign * math.Ldexp(float64(hi), 1-64-lead)
}

func shiftLeft(f [4]uint64, n uint) [4]uint64 {
	for i := range 3 {
		f[i] = f[i]<<n | f[i+1]>>(64-n)
	}
	f[3] <<= n
	return f
}

// mulHigh is the upper half of the product of two numbers of 128 bits, but for some units in its last place.
func mulHigh(a1, a0, b1, b0 uint64) (hi, lo uint64) {
	hi, lo = bits.Mul64(a1, b1)
	for _, p := range [2][2]uint64{{a1, b0}, {a0, b1}} {
		high, _ := bits.Mul64(p[0], p[1])
		var c uint64
		lo, c = bits.Add64(lo, high, 0)
		hi += c
	}
	return hi, lo
}

// A turnTable has a quarter turn and its inverse.
type turnTable struct {
	inverse []uint64  // bits of 1 / (pi / 2), behind 64 before its point
	half    [2]uint64 // pi / 4, in 2^-128
}

var turns = sync.OnceValue(func() *turnTable {
	quarter := quarterTurn()
	words := func(f *big.Float, n int) []uint64 {
		i, _ := new(big.Float).SetMantExp(f, 64*n).Int(nil)
		out := make([]uint64, n)
		for k := n - 1; k >= 0; k-- {
			out[k] = new(big.Int).And(i, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
			i.Rsh(i, 64)
		}
		return out
	}
	inverse := new(big.Float).SetPrec(turnBits).Quo(big.NewFloat(1), quarter)
	eighth := words(new(big.Float).SetMantExp(quarter, -1), 2)
	return &turnTable{append([]uint64{0}, words(inverse, turnBits/64)...), [2]uint64(eighth)}
})

// quarterTurn is pi / 2 = 8 atan(1/5) - 2 atan(1/239).
var quarterTurn = sync.OnceValue(func() *big.Float {
	const bits = turnBits + 64
	one := new(big.Int).Lsh(big.NewInt(1), bits)
	inverse := func(n int64) *big.Int { // atan(1/n)
		power, sum := new(big.Int).Quo(one, big.NewInt(n)), new(big.Int)
		square := big.NewInt(n * n)
		for k := int64(1); power.Sign() != 0; k += 2 {
			term := new(big.Int).Quo(power, big.NewInt(k))
			if k%4 == 3 {
				term.Neg(term)
			}
			sum.Add(sum, term)
			power.Quo(power, square)
		}
		return sum
	}
	v := new(big.Int).Mul(inverse(5), big.NewInt(8))
	v.Sub(v, new(big.Int).Mul(inverse(239), big.NewInt(2)))
	f := new(big.Float).SetPrec(bits).SetInt(v)
	return f.SetMantExp(f, -bits)
})
