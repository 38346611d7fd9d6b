package ir

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Literal is the value of a constant tensor. Data holds its elements in row-major
// order, little-endian, [DType.Size] bytes each; or one element only, which all
// elements equal (a splat). Literals are immutable.
type Literal struct {
	Type *Type
	Data []byte
}

func (*Literal) attr() {}

// IsSplat reports whether Data holds one element, which all others equal.
func (l *Literal) IsSplat() bool {
	return len(l.Data) == l.Type.Elem.Size() && l.Type.NumElements() != 0
}

// SplatOf returns a literal of type t whose every element is v, which is
// rounded or wrapped to the element type.
func SplatOf(t *Type, v float64) *Literal {
	l := &Literal{t, make([]byte, t.Elem.Size())}
	t.Elem.PutFloat(l.Data, v)
	return l
}

// Ints64 returns a one-dimensional or given-shape literal of integers.
func Ints64(t *Type, vs ...int) *Literal {
	size := t.Elem.Size()
	l := &Literal{t, make([]byte, size*len(vs))}
	for i, v := range vs {
		t.Elem.PutInt(l.Data[i*size:], int64(v))
	}
	return l
}

// Floats64 returns a literal of type t with the given elements, rounded.
func Floats64(t *Type, vs ...float64) *Literal {
	size := t.Elem.Size()
	l := &Literal{t, make([]byte, size*len(vs))}
	for i, v := range vs {
		t.Elem.PutFloat(l.Data[i*size:], v)
	}
	return l
}

func (l *Literal) at(i int) []byte {
	size := l.Type.Elem.Size()
	if l.IsSplat() {
		return l.Data
	}
	return l.Data[i*size:]
}

// Float is element i as a float64 (of a complex number, the real part).
func (l *Literal) Float(i int) float64 { return l.Type.Elem.GetFloat(l.at(i)) }

// Int is element i as an integer; unsigned 64-bit numbers keep their bits.
func (l *Literal) Int(i int) int64 { return l.Type.Elem.GetInt(l.at(i)) }

// Index is element i, an integer, as an index: numbers beyond the largest int
// become the largest int.
func (l *Literal) Index(i int) int {
	v := l.Int(i)
	if l.Type.Elem == UI64 && v < 0 {
		return math.MaxInt
	}
	return int(v)
}

// Complex is element i as a complex number.
func (l *Literal) Complex(i int) complex128 {
	b, p := l.at(i), l.Type.Elem.Part()
	if !l.Type.Elem.IsComplex() {
		return complex(p.GetFloat(b), 0)
	}
	return complex(p.GetFloat(b), p.GetFloat(b[p.Size():]))
}

// IsAll reports whether every element is the number v.
func (l *Literal) IsAll(v float64) bool {
	if l.Type.Elem.IsComplex() {
		return false
	}
	n := l.Type.NumElements()
	if l.IsSplat() {
		n = 1
	}
	for i := range n {
		if l.Float(i) != v {
			return false
		}
	}
	return n > 0
}

// PutFloat writes v, converted to t, to the front of b. Floating-point types
// round once; integer types drop the fraction, wrap what they cannot hold, and
// take NaN as 0.
func (t DType) PutFloat(b []byte, v float64) {
	switch t {
	case F64:
		binary.LittleEndian.PutUint64(b, math.Float64bits(v))
	case F32:
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(v)))
	case BF16, F16:
		binary.LittleEndian.PutUint16(b, uint16(formatTable[t].encode(v)))
	case C64, C128:
		p := t.Part()
		p.PutFloat(b, v)
		p.PutFloat(b[p.Size():], 0)
	case I1:
		b[0] = 0
		if v != 0 {
			b[0] = 1
		}
	case UI64:
		binary.LittleEndian.PutUint64(b, unsigned(v))
	default:
		if t.IsFloat() {
			b[0] = byte(formatTable[t].encode(v))
			return
		}
		t.PutInt(b, signed(v))
	}
}

// signed is v without its fraction, clamped to int64; Go leaves the conversion of
// other numbers to the machine.
func signed(v float64) int64 {
	switch {
	case v != v:
		return 0
	case v >= 1<<63:
		return math.MaxInt64
	case v < -1<<63:
		return math.MinInt64
	}
	return int64(v)
}

// unsigned is signed for uint64, where negative numbers wrap.
func unsigned(v float64) uint64 {
	switch {
	case v >= 1<<64:
		return math.MaxUint64
	case v >= 1<<63:
		return uint64(v)
	}
	return uint64(signed(v))
}

// GetFloat reads a number of type t from the front of b.
func (t DType) GetFloat(b []byte) float64 {
	switch t {
	case F64:
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	case F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case BF16:
		return float64(BF16ToFloat32(binary.LittleEndian.Uint16(b)))
	case F16:
		return float64(F16ToFloat32(binary.LittleEndian.Uint16(b)))
	case C64, C128:
		return t.Part().GetFloat(b)
	case UI64:
		return float64(binary.LittleEndian.Uint64(b))
	}
	if t.IsFloat() {
		return formatTable[t].decode(uint32(b[0]))
	}
	return float64(t.GetInt(b))
}

// PutInt writes v, wrapped to the width of integer type t or rounded to
// floating-point type t, to the front of b.
func (t DType) PutInt(b []byte, v int64) {
	if t.IsFloat() || t.IsComplex() {
		t.PutFloat(b, float64(v))
		return
	}
	switch t.Size() {
	case 1:
		switch t {
		case I1:
			v &= 1
		case I2, UI2:
			v &= 3
		case I4, UI4:
			v &= 15
		}
		b[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	case 8:
		binary.LittleEndian.PutUint64(b, uint64(v))
	}
}

// GetInt reads a number of type t from the front of b as an integer:
// sign-extended when t is signed, without its fraction when t is not an integer.
func (t DType) GetInt(b []byte) int64 {
	switch t {
	case I1:
		return int64(b[0] & 1)
	case I2, I4:
		shift := 64 - t.Bits()
		return int64(b[0]) << shift >> shift
	case UI2, UI4, UI8:
		return int64(b[0])
	case I8:
		return int64(int8(b[0]))
	case I16:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case UI16:
		return int64(binary.LittleEndian.Uint16(b))
	case I32:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	case UI32:
		return int64(binary.LittleEndian.Uint32(b))
	case I64, UI64, Index:
		return int64(binary.LittleEndian.Uint64(b))
	}
	return signed(t.GetFloat(b))
}

// blobThreshold is the number of elements beyond which MLIR prints the bytes
// of a literal instead of the numbers.
const blobThreshold = 100

// String is l in MLIR's spelling, with its type: dense<[1, 2]> : tensor<2xi32>.
func (l *Literal) String() string {
	var b strings.Builder
	l.writeDense(&b)
	b.WriteString(" : ")
	l.Type.write(&b)
	return b.String()
}

// Dense is l in MLIR's spelling, without its type: dense<[1, 2]>.
func (l *Literal) Dense() string {
	var b strings.Builder
	l.writeDense(&b)
	return b.String()
}

func (l *Literal) writeDense(b *strings.Builder) {
	b.WriteString("dense<")
	n := l.Type.NumElements()
	switch {
	case n == 0 && len(l.Data) == 0:
	case n == 0, l.IsSplat() || allEqual(l.Data, l.Type.Elem.Size()):
		l.writeElem(b, 0)
	case n > blobThreshold:
		b.WriteString(`"0x`)
		b.WriteString(strings.ToUpper(hex.EncodeToString(l.Data)))
		b.WriteByte('"')
	default:
		i := 0
		l.writeNested(b, l.Type.Shape, &i)
	}
	b.WriteByte('>')
}

// allEqual reports whether data is at least one element of the given size,
// and all are equal.
func allEqual(data []byte, size int) bool {
	return size > 0 && len(data) >= size && bytes.Equal(data[size:], data[:len(data)-size])
}

func (l *Literal) writeNested(b *strings.Builder, shape []int, i *int) {
	if len(shape) == 0 {
		l.writeElem(b, *i)
		*i++
		return
	}
	b.WriteByte('[')
	for k := range shape[0] {
		if k > 0 {
			b.WriteString(", ")
		}
		l.writeNested(b, shape[1:], i)
	}
	b.WriteByte(']')
}

func (l *Literal) writeElem(b *strings.Builder, i int) {
	t := l.Type.Elem
	switch t.Class() {
	case Boolean:
		b.WriteString(strconv.FormatBool(l.Int(i) != 0))
	case Floating:
		b.WriteString(FormatFloat(t, l.Float(i), l.at(i)))
	case Complex:
		p := t.Part()
		fmt.Fprintf(b, "(%s,%s)", FormatFloat(p, p.GetFloat(l.at(i)), l.at(i)), FormatFloat(p, p.GetFloat(l.at(i)[p.Size():]), l.at(i)[p.Size():]))
	default:
		if t == UI64 {
			b.WriteString(strconv.FormatUint(uint64(l.Int(i)), 10))
			return
		}
		b.WriteString(strconv.FormatInt(l.Int(i), 10))
	}
}
