// Package element makes elements of tensors of the numbers in text.
package element

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"ppc/internal/decimal"
	"ppc/ir"
)

// PutDecimal writes d as a number of type t, where that is what Put would write
// and takes little.
func PutDecimal(b []byte, t ir.DType, d decimal.Number) bool {
	switch {
	case !t.IsFloat():
		return !d.Point && putInt(b, t, d.Digits, d.Neg) == ""
	case !d.Point || t == ir.F8E8M0FNU: // which has neither zero nor sign
		return false
	case t == ir.F32:
		v, ok := d.Float32()
		binary.LittleEndian.PutUint32(b, math.Float32bits(v))
		return ok
	}
	v, ok := d.Float64()
	t.PutFloat(b, v)
	return ok
}

// hexValues is the value of each hexadecimal digit, 0xff of other bytes.
var hexValues = func() (values [256]byte) {
	for c := range values {
		values[c] = 0xff
		if n, err := strconv.ParseUint(string(rune(c)), 16, 8); err == nil {
			values[c] = byte(n)
		}
	}
	return values
}()

// FromHex are the bytes that hexadecimal digits say; false where digits are not such.
func FromHex(digits string) ([]byte, bool) {
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

// Put writes the number that text says to b. It returns what is wrong
// with it, or "".
func Put(b []byte, t ir.DType, text string) string {
	digits, neg := strings.CutPrefix(text, "-")
	switch {
	case digits == "true" || digits == "false":
		if t != ir.I1 || neg {
			return fmt.Sprintf("%s is no %s", text, t)
		}
		b[0] = 0
		if digits == "true" {
			b[0] = 1
		}
		return ""
	case digits == "" || digits[0] < '0' || digits[0] > '9':
		return fmt.Sprintf("%.40q is no number", text)
	case strings.HasPrefix(digits, "0x"):
		return putHex(b, t, digits[2:], neg)
	case t.IsFloat():
		return putFloat(b, t, text)
	}
	v, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return fmt.Sprintf("%.40q is no integer of 64 bits", text)
	}
	return putInt(b, t, v, neg)
}

// putInt writes v, or -v, which must fit in t. Integers without a sign of
// their own (i8) may be written as either.
func putInt(b []byte, t ir.DType, v uint64, neg bool) string {
	n := t.Bits()
	limit := uint64(math.MaxUint64)
	switch {
	case neg && (t.Class() == ir.Unsigned || v == 0 || v > 1<<(n-1)): // MLIR takes no -0
		return fmt.Sprintf("-%d does not fit in %s", v, t)
	case t == ir.Index && !neg:
		limit = math.MaxInt64
	case n < 64:
		limit = 1<<n - 1
	}
	if v > limit {
		return fmt.Sprintf("%d does not fit in %s", v, t)
	}
	if neg {
		v = -v
	}
	t.PutInt(b, int64(v))
	return ""
}

// putHex writes an integer, or the bits of a floating-point number.
func putHex(b []byte, t ir.DType, digits string, neg bool) string {
	v, err := strconv.ParseUint(digits, 16, 64)
	switch {
	case err != nil:
		return fmt.Sprintf("0x%.40s is no number of 64 bits", digits)
	case !t.IsFloat():
		return putInt(b, t, v, neg)
	case neg || t.Bits() < 64 && v>>t.Bits() != 0:
		return fmt.Sprintf("0x%s is not the bits of a %s", digits, t)
	}
	var u [8]byte
	binary.LittleEndian.PutUint64(u[:], v)
	copy(b, u[:t.Size()])
	return ""
}

// putFloat writes a decimal number, which must have a point.
func putFloat(b []byte, t ir.DType, text string) string {
	if strings.IndexByte(text, '.') < 0 {
		digits, exponent := text, ""
		if i := strings.IndexAny(text, "eE"); i >= 0 {
			digits, exponent = text[:i], text[i:]
		}
		return fmt.Sprintf("%.40s has no point; as %s write %.40s.0%.10s", text, t, digits, exponent)
	}
	size := 64
	if t == ir.F32 {
		size = 32 // rounded once
	}
	v, err := strconv.ParseFloat(text, size)
	if err != nil && !math.IsInf(v, 0) {
		return fmt.Sprintf("%.40q is no number", text)
	}
	switch {
	case t == ir.F8E8M0FNU && math.Signbit(v):
		return fmt.Sprintf("%.40s is negative, and %s has no sign", text, t)
	case t == ir.F8E8M0FNU && v == 0:
		b[0] = 0 // the smallest number there is
	default:
		t.PutFloat(b, v)
	}
	return ""
}

// HexText is the bytes, least significant first, as one hexadecimal number.
func HexText(b []byte) string {
	var u [8]byte
	copy(u[:], b)
	return fmt.Sprintf("0x%0*X", 2*len(b), binary.LittleEndian.Uint64(u[:]))
}

// UnpackBytes makes every byte but 0 a 1. One byte for several elements is
// older text's, in which all bits of true are set.
func UnpackBytes(data []byte, n int) []byte {
	for i, v := range data {
		if v != 0 {
			data[i] = 1
		}
	}
	return data
}

// UnpackBits makes a byte of each of n bits, the lowest of a byte first.
func UnpackBits(data []byte, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = data[i/8] >> (i % 8) & 1
	}
	return out
}
