// Package decimal reads numbers that are written in few digits. Most are, and are the
// quotient or the product of two numbers that a machine has exactly: they are rounded
// once, as strconv rounds them, and read several times as fast.
package decimal

// A Number is a number that is written in at most 18 digits: Digits times ten to
// the power of Exp.
type Number struct {
	Digits uint64
	Exp    int
	Neg    bool
	Point  bool // it is written with one
}

// maxDigits is how many digits a uint64 holds, whatever they are.
const maxDigits = 18

// At is the number at the start of s, and how long it is; 0 where there is
// none, or one that is written otherwise: too long, in words.
func At(s string) (d Number, n int) {
	i := 0
	if i < len(s) && s[i] == '-' {
		d.Neg = true
		i++
	}
	first, seen := i, 0
	for ; i < len(s); i++ {
		c := s[i]
		if c-'0' <= 9 {
			d.Digits = d.Digits*10 + uint64(c-'0')
			seen++
			if d.Point {
				d.Exp--
			}
			continue
		}
		if c != '.' || d.Point || i == first {
			break
		}
		d.Point = true
	}
	if seen == 0 || seen > maxDigits {
		return Number{}, 0
	}
	if d.Point && i < len(s) && (s[i] == 'e' || s[i] == 'E') {
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
			return Number{}, 0
		}
		if neg {
			exp = -exp
		}
		d.Exp += exp
		i = k
	}
	return d, i
}

// powers are those powers of ten that a float64 has exactly; the first 11 are
// those of float32.
var powers = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

const powers32 = 10

// Float32 is d, where that takes one rounding of exact numbers.
func (d Number) Float32() (v float32, ok bool) {
	exp := max(d.Exp, -d.Exp)
	if d.Digits >= 1<<24 || exp > powers32 {
		return 0, false
	}
	v = float32(d.Digits)
	if d.Exp < 0 {
		v /= float32(powers[exp])
	} else {
		v *= float32(powers[exp])
	}
	if d.Neg {
		v = -v
	}
	return v, true
}

// Float64 is d, where that takes one rounding of exact numbers.
func (d Number) Float64() (v float64, ok bool) {
	exp := max(d.Exp, -d.Exp)
	if d.Digits >= 1<<53 || exp >= len(powers) {
		return 0, false
	}
	v = float64(d.Digits)
	if d.Exp < 0 {
		v /= powers[exp]
	} else {
		v *= powers[exp]
	}
	if d.Neg {
		v = -v
	}
	return v, true
}
