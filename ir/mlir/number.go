package mlir

import (
	"encoding/binary"
	"math"
	"strconv"

	"ppc/internal/decimal"
	"ppc/ir"
)

// putDecimal writes d as a number of type t, where that is what putNumber would write
// and takes little.
func putDecimal(b []byte, t ir.DType, d decimal.Number) bool {
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
