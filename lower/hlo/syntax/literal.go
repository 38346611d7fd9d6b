package syntax

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"ppc/ir"
)

// ErrBeyond is the error of a value that HLO has and StableHLO has not: the
// instruction is carried through unread.
var ErrBeyond = errors.New("the value has no StableHLO form")

// LiteralText is l as the argument of constant: 1.5, {1, 2}, { { 1 }, { 2 } }.
func LiteralText(l *ir.Literal) string {
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
var nanFields = map[ir.DType]int{ir.F8E5M2: 2, ir.F16: 10, ir.BF16: 7, ir.F32: 23, ir.F64: 52}

func nanText(t ir.DType, bits []byte) string {
	width, ok := nanFields[t]
	if !ok {
		return "nan"
	}
	var u uint64
	switch t.Size() {
	case 1:
		u = uint64(bits[0])
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

// CheckLiteral reports what is wrong with the argument of a constant of a type that may be a
// tuple.
func CheckLiteral(t *ir.Type, text string) error {
	s := &Scanner{Src: text, End: len(text)}
	if s.literalOf(t); s.Err == nil && s.Peek() != 0 {
		s.Fail("want the end, found %s", s.Next())
	}
	if s.Err != nil {
		return errors.New(s.Err.Msg)
	}
	return nil
}

// literalOf reads the numbers of a constant of type t: (1, {2, 3}) of a tuple, which may say none.
func (s *Scanner) literalOf(t *ir.Type) {
	if t.Kind == ir.TupleType {
		if s.Expect("("); s.Accept(")") {
			return
		}
		for i, e := range t.Elems {
			if i > 0 {
				s.Expect(",")
			}
			s.literalOf(e)
		}
		s.Expect(")")
		return
	}
	if !t.IsTensor() {
		s.Fail("there are no constants of type %s", t)
		return
	}
	s.Space()
	start := s.Pos
	if c := s.Peek(); c == '{' || c == '(' {
		s.group()
	} else {
		s.numberOrWord()
	}
	if _, err := ParseLiteral(t, s.Src[start:s.Pos]); err != nil && !errors.Is(err, ErrBeyond) {
		s.FailAt(start, "%v", err)
	}
}

// ParseLiteral reads the argument of a constant of type t, or returns
// [ErrBeyond] where the numbers were left out ({...}).
func ParseLiteral(t *ir.Type, text string) (*ir.Literal, error) {
	if i := strings.Index(text, "..."); i >= 0 && (t.Rank() == 0 || strings.Count(text[:i], "{")-strings.Count(text[:i], "}") != 1) {
		return nil, fmt.Errorf("constant of type %s: ... stands for the numbers of a tensor in its outer braces", t)
	} else if i >= 0 || !t.IsStatic() {
		return nil, ErrBeyond
	}
	s := &Scanner{Src: text, End: len(text)}
	r := &literalReader{Scanner: s, t: t.Elem, elem: make([]byte, t.Elem.Size())}
	if s.Peek() == '{' || t.Rank() == 0 {
		r.read(t.Shape)
	} else {
		r.element() // a splat
		if t.NumElements() == 0 && s.Err == nil {
			s.Fail("want {}, which has no elements")
		}
	}
	if s.Err == nil && s.Peek() != 0 {
		s.Fail("want the end, found %s", s.Next())
	}
	if s.Err != nil {
		return nil, fmt.Errorf("constant of type %s: %s", t, s.Err.Msg)
	}
	if t.NumElements() == 0 {
		r.data = nil
	}
	return &ir.Literal{Type: t, Data: r.data}, nil
}

type literalReader struct {
	*Scanner
	t    ir.DType
	elem []byte
	data []byte
}

func (r *literalReader) read(shape []int) {
	if len(shape) == 0 {
		r.element()
		return
	}
	if shape[0] == 0 && r.Peek() == '{' { // any nesting of empty braces
		if text := r.group(); strings.Trim(text, "{}, \t\r\n") != "" {
			r.Fail("want {}, which has no elements")
		}
		return
	}
	r.Expect("{")
	for i := range shape[0] {
		if i > 0 {
			r.Expect(",")
		}
		if r.Err != nil {
			return
		}
		r.read(shape[1:])
	}
	r.Expect("}")
}

func (r *literalReader) element() {
	var err error
	if r.t.IsComplex() {
		p := r.t.Part()
		r.Expect("(")
		err = putNumber(p, r.elem, r.number())
		r.Expect(",")
		if e := putNumber(p, r.elem[p.Size():], r.number()); err == nil {
			err = e
		}
		r.Expect(")")
	} else {
		err = putNumber(r.t, r.elem, r.number())
	}
	if err != nil {
		r.Fail("%v", err)
	}
	r.data = append(r.data, r.elem...)
}

// number skips a number: digits, signs, a point, letters, nan(0x1).
func (r *literalReader) number() string {
	r.Space()
	start := r.Pos
	for r.Pos < r.End && (isWordByte(r.Src[r.Pos]) || r.Src[r.Pos] == '+') {
		r.Pos++
	}
	if strings.HasSuffix(r.Src[start:r.Pos], "nan") && r.Pos < r.End && r.Src[r.Pos] == '(' {
		r.group()
	}
	if r.Pos == start {
		r.Fail("want a number, found %s", r.Next())
	}
	return r.Src[start:r.Pos]
}

// putNumber writes the number of type t that text spells to the front of b.
func putNumber(t ir.DType, b []byte, text string) error {
	bad := fmt.Errorf("%s is no number of type %s", text, t.HLO())
	switch t.Class() {
	case ir.Boolean:
		n, err := strconv.ParseInt(text, 10, 64) // other than zero is true
		if err != nil && text != "true" && text != "false" {
			return bad
		}
		b[0] = 0
		if text == "true" || n != 0 {
			b[0] = 1
		}
	case ir.Unsigned:
		if v, err := strconv.ParseInt(text, 10, 64); err == nil && v < 0 && t == ir.UI64 {
			t.PutInt(b, v) // the bits of a signed number
			return nil
		}
		v, err := strconv.ParseUint(text, 10, t.Bits())
		if err != nil {
			return bad
		}
		t.PutInt(b, int64(v))
	case ir.Signed:
		v, err := strconv.ParseInt(text, 10, t.Bits())
		if err != nil {
			return bad
		}
		t.PutInt(b, v)
	default:
		return putFloat(t, b, text)
	}
	return nil
}

func putFloat(t ir.DType, b []byte, text string) error {
	bad := fmt.Errorf("%s is no number of type %s", text, t.HLO())
	if i := strings.Index(text, "nan"); i == 0 || i == 1 {
		return putNaN(t, b, text)
	}
	size := 64
	if t == ir.F32 {
		size = 32
	}
	if decimal.FindString(text) != text && text != "inf" && text != "-inf" {
		return bad
	}
	v, err := strconv.ParseFloat(text, size)
	if err != nil {
		return bad
	}
	t.PutFloat(b, v)
	if !math.IsInf(v, 0) && (math.IsInf(t.GetFloat(b), 0) || math.IsNaN(t.GetFloat(b))) {
		return bad
	}
	return nil
}

// putNaN writes nan, -nan or nan(0x400000).
func putNaN(t ir.DType, b []byte, text string) error {
	sign, payload := strings.HasPrefix(text, "-"), ""
	text = strings.TrimPrefix(text, "-")
	if text != "nan" {
		if !strings.HasPrefix(text, "nan(0x") || !strings.HasSuffix(text, ")") {
			return fmt.Errorf("%s is no number", text)
		}
		payload = text[len("nan(0x") : len(text)-1]
	}
	t.PutFloat(b, math.NaN())
	width, ok := nanFields[t]
	if !ok {
		if payload != "" {
			return fmt.Errorf("a NaN of type %s has no payload", t.HLO())
		}
		return nil
	}
	u := uint64(1) << (width - 1)
	if payload != "" {
		v, err := strconv.ParseUint(payload, 16, width)
		if err != nil || v == 0 {
			return fmt.Errorf("%s is no NaN of type %s", text, t.HLO())
		}
		u = v
	}
	u |= (1<<(t.Bits()-1-width) - 1) << width
	if sign {
		u |= 1 << (t.Bits() - 1)
	}
	for i := range t.Size() {
		b[i] = byte(u >> (8 * i))
	}
	return nil
}
