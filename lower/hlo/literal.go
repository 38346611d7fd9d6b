package hlo

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"ppc/ir"
)

// literalText is l as the argument of constant: 1.5, {1, 2}, { { 1 }, { 2 } }.
func literalText(l *ir.Literal) string {
	var b strings.Builder
	i := 0
	writeNested(&b, l, l.Type.Shape, &i)
	return b.String()
}

func writeNested(b *strings.Builder, l *ir.Literal, shape []int, i *int) {
	if len(shape) == 0 {
		writeElem(b, l, *i)
		*i++
		return
	}
	open, end := "{", "}"
	if len(shape) > 1 {
		open, end = "{ ", " }"
	}
	b.WriteString(open)
	for k := range shape[0] {
		if k > 0 {
			b.WriteString(", ")
		}
		writeNested(b, l, shape[1:], i)
	}
	b.WriteString(end)
}

func writeElem(b *strings.Builder, l *ir.Literal, i int) {
	t, size := l.Type.Elem, l.Type.Elem.Size()
	bits := l.Data
	if len(l.Data) > size {
		bits = l.Data[i*size:]
	}
	switch t.Class() {
	case ir.Boolean:
		b.WriteString(strconv.FormatBool(l.Int(i) != 0))
	case ir.Unsigned:
		b.WriteString(strconv.FormatUint(uint64(l.Int(i)), 10))
	case ir.Floating:
		b.WriteString(floatText(t, bits))
	case ir.Complex:
		p := t.Part()
		fmt.Fprintf(b, "(%s, %s)", floatText(p, bits), floatText(p, bits[p.Size():]))
	default:
		b.WriteString(strconv.FormatInt(l.Int(i), 10))
	}
}

// floatText is the number of type t that bits starts with: the shortest
// decimal that brings it back, and the payload of a NaN that is not the usual.
func floatText(t ir.DType, bits []byte) string {
	v := t.GetFloat(bits)
	switch {
	case math.IsNaN(v):
		return nanText(t, bits)
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	size := 64
	if t != ir.F64 {
		size = 32
	}
	return strconv.FormatFloat(v, 'g', -1, size)
}

// nanFields are the mantissa widths of the types whose NaNs have a payload.
var nanFields = map[ir.DType]int{ir.F16: 10, ir.BF16: 7, ir.F32: 23, ir.F64: 52}

func nanText(t ir.DType, bits []byte) string {
	width, ok := nanFields[t]
	if !ok {
		return "nan"
	}
	var u uint64
	switch t.Size() {
	case 2:
		u = uint64(binary.LittleEndian.Uint16(bits))
	case 4:
		u = uint64(binary.LittleEndian.Uint32(bits))
	case 8:
		u = binary.LittleEndian.Uint64(bits)
	}
	sign := ""
	if u>>(t.Bits()-1) != 0 {
		sign = "-"
	}
	if payload := u & (1<<width - 1); payload != 1<<(width-1) {
		return fmt.Sprintf("%snan(0x%x)", sign, payload)
	}
	return sign + "nan"
}
