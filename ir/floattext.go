package ir

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// FormatFloat is v, of type t with the given bytes, as MLIR spells it: six
// digits and an exponent where these bring v back, else as many digits as the
// type can need, else, and for infinities and NaN, the bits.
//
// Text that XLA and JAX print must come out the same way, so this follows LLVM's
// APFloat::toString, which truncates the number before it rounds: 0.1 is
// 1.000000e-01 as an f32, but 0.9 is 0.899999976.
func FormatFloat(t DType, v float64, bits []byte) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return bitsText(t, bits)
	}
	if v == 0 {
		if math.Signbit(v) {
			return "-0.000000e+00"
		}
		return "0.000000e+00"
	}
	sign := ""
	if v < 0 {
		sign = "-"
	}
	if s := sign + decimalOf(v, shortDigits).scientific(); t.parses(s, v) {
		return s
	}
	digits := 2 + t.precision()*59/196
	if s := sign + decimalOf(v, digits).plain(digits); strings.Contains(s, ".") {
		return s
	}
	return bitsText(t, bits) // a float in MLIR has a point
}

// shortDigits is how many digits MLIR tries first.
const shortDigits = 6

func bitsText(t DType, bits []byte) string {
	var u uint64
	for k := t.Size() - 1; k >= 0; k-- {
		u = u<<8 | uint64(bits[k])
	}
	return fmt.Sprintf("0x%X", u)
}

// precision is the number of significant bits of floating-point type t.
func (t DType) precision() int {
	switch t {
	case F64:
		return 53
	case F32:
		return 24
	}
	return formatTable[t].man + 1
}

// parses reports whether the decimal s is v, rounded to t.
func (t DType) parses(s string, v float64) bool {
	size := 64
	if t == F32 {
		size = 32
	}
	w, err := strconv.ParseFloat(s, size)
	if err != nil {
		return false
	}
	var b [8]byte
	t.PutFloat(b[:], w)
	return t.GetFloat(b[:]) == v
}

// A decimal is 0.digits × 10^(exp + number of digits): the digits have no zero at either end.
type decimal struct {
	digits string
	exp    int
}

// decimalOf is |v| in at most n digits. It first truncates to about n digits and
// then rounds half up.
func decimalOf(v float64, n int) decimal {
	frac, exp := math.Frexp(math.Abs(v))
	num := new(big.Int).SetUint64(uint64(frac * (1 << 53)))
	exp -= 53
	if zeros := int(num.TrailingZeroBits()); zeros > 0 {
		num.Rsh(num, uint(zeros))
		exp += zeros
	}
	if exp > 0 {
		num.Lsh(num, uint(exp))
		exp = 0
	} else {
		num.Mul(num, power(5, -exp)) // N × 2^-e = N × 5^e × 10^-e
	}
	// 196/59 is slightly more than the bits in a digit.
	if spare := num.BitLen() - (n*196+58)/59; spare > 0 {
		drop := spare * 59 / 196
		num.Quo(num, power(10, drop))
		exp += drop
	}
	digits := num.String()
	if len(digits) > n {
		exp += len(digits) - n
		up := digits[n] >= '5'
		digits = digits[:n]
		if up {
			digits = increment(digits)
			exp += n - len(digits)
			if digits == "" {
				digits = "1"
			}
		}
	}
	short := strings.TrimRight(digits, "0")
	return decimal{short, exp + len(digits) - len(short)}
}

func power(base, n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(int64(base)), big.NewInt(int64(n)), nil)
}

// increment adds one to the last digit; nines that become zero are dropped, so
// that all nines give nothing.
func increment(digits string) string {
	digits = strings.TrimRight(digits, "9")
	if digits == "" {
		return ""
	}
	last := len(digits) - 1
	return digits[:last] + string(digits[last]+1)
}

// scientific is d with six decimals and an exponent of two digits or more.
func (d decimal) scientific() string {
	s := d.digits[:1] + "." + d.digits[1:] + strings.Repeat("0", shortDigits-len(d.digits)+1)
	return fmt.Sprintf("%se%+03d", s, d.exp+len(d.digits)-1)
}

// plain is d without an exponent where at most three zeros pad it and it looks
// no more precise than n digits are.
func (d decimal) plain(n int) string {
	point := len(d.digits) + d.exp // digits before the point
	switch {
	case d.exp > 3 || d.exp >= 0 && point > n || point <= 0 && 1-point > 3:
		rest := d.digits[1:]
		if rest == "" {
			rest = "0"
		}
		return fmt.Sprintf("%s.%sE%+d", d.digits[:1], rest, point-1)
	case d.exp >= 0:
		return d.digits + strings.Repeat("0", d.exp)
	case point > 0:
		return d.digits[:point] + "." + d.digits[point:]
	}
	return "0." + strings.Repeat("0", -point) + d.digits
}
