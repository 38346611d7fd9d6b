package mlir

import (
	"encoding/binary"
	"math"

	"ppc/ir"
)

// A decimal is a number that is written in at most 18 digits: digits times ten to
// the power of exp.
type decimal struct {
	digits uint64
	exp    int
	neg    bool
	point  bool
}

// maxDigits is how many digits a uint64 holds, whatever they are.
const maxDigits = 18

// decimalAt is the number at the start of s, and how long it is; 0 where there is
// none, or one that is written otherwise: too long, in words, hexadecimal.
func decimalAt(s string) (d decimal, n int) {
	i := 0
	if i < len(s) && s[i] == '-' {
		d.neg = true
		i++
	}
	first, seen := i, 0
	for ; i < len(s); i++ {
		c := s[i]
		if c-'0' <= 9 {
			d.digits = d.digits*10 + uint64(c-'0')
			seen++
			if d.point {
				d.exp--
			}
			continue
		}
		if c != '.' || d.point || i == first {
			break
		}
		d.point = true
	}
	if seen == 0 || seen > maxDigits {
		return decimal{}, 0
	}
	if d.point && i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		k, neg, exp := i+1, false, 0
		if k < len(s) && (s[k] == '+' || s[k] == '-') {
			neg = s[k] == '-'
			k++
		}
		from := k
		for ; k < len(s) && k < from+4 && s[k]-'0' <= 9; k++ {
			exp = exp*10 + int(s[k]-'0')
		}
		if k == from {
			return decimal{}, 0
		}
		if neg {
			exp = -exp
		}
		d.exp += exp
		i = k
	}
	if i < len(s) && isNumberByte(s[i]) {
		return decimal{}, 0
	}
	return d, i
}

// powers are those powers of ten that a float64 has exactly; the first 11 are
// those of float32.
var powers = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

const powers32 = 10

// put writes d as a number of type t, if that takes one rounding of two exact
// numbers, as ParseFloat would round.
func (d decimal) put(b []byte, t ir.DType) bool {
	if !t.IsFloat() {
		return !d.point && putInt(b, t, d.digits, d.neg) == ""
	}
	exp := max(d.exp, -d.exp)
	switch {
	case !d.point || exp >= len(powers) || t == ir.F8E8M0FNU: // which has neither zero nor sign
		return false
	case t == ir.F32:
		if d.digits >= 1<<24 || exp > powers32 {
			return false
		}
		v, p := float32(d.digits), float32(powers[exp])
		if d.exp < 0 {
			v /= p
		} else {
			v *= p
		}
		if d.neg {
			v = -v
		}
		binary.LittleEndian.PutUint32(b, math.Float32bits(v))
		return true
	case d.digits >= 1<<53:
		return false
	}
	v := float64(d.digits)
	if d.exp < 0 {
		v /= powers[exp]
	} else {
		v *= powers[exp]
	}
	if d.neg {
		v = -v
	}
	t.PutFloat(b, v)
	return true
}

// hexValues is the value of each hexadecimal digit, 0xff of other bytes.
var hexValues = func() (values [256]byte) {
	for c := range values {
		values[c] = 0xff
		if isHex(byte(c)) {
			values[c] = hexDigit(byte(c))
		}
	}
	return values
}()

// fromHex are the bytes that hexadecimal digits say; false where digits are not such.
func fromHex(digits string) ([]byte, bool) {
	if len(digits)%2 != 0 {
		return nil, false
	}
	data := make([]byte, len(digits)/2)
	wrong := byte(0)
	for i := range data {
		hi, lo := hexValues[digits[2*i]], hexValues[digits[2*i+1]]
		wrong |= hi | lo
		data[i] = hi<<4 | lo
	}
	return data, wrong < 0x10
}
