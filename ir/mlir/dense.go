package mlir

import (
	"bytes"
	"fmt"
	"strings"

	"ppc/internal/decimal"
	"ppc/ir"
	"ppc/ir/mlir/element"
	"ppc/ir/mlir/names"
)

// dense reads dense<…> : type. What is no tensor of numbers is carried
// through. The type comes last, so the elements are passed over first and read
// when it is known.
func (s *parser) dense() ir.Attr {
	start := s.tok.start
	s.next()
	if !s.at("<") {
		s.wanted(`"<"`)
	}
	from := s.tok.end
	to := s.elementsEnd(from)
	s.seek(to + 1)
	s.expect(":")
	typeAt := s.tok.start
	t := s.typ()
	if t.Quant != nil {
		s.report(typeAt, "a literal of type %s, want one of what it is stored in: stablehlo.constant() {value = dense<…> : %s} : () -> %[1]s", t, t.Stored())
		return ir.Verbatim("dense<> : " + t.String())
	}
	if t.Kind == ir.TensorType && t.Text == "" && t.IsStatic() {
		if l := s.literal(t, from, to); l != nil {
			return l
		}
		return ir.Verbatim("dense<> : " + t.String())
	}
	if t.Kind == ir.TensorType && !t.IsStatic() {
		s.report(typeAt, "a literal of type %s, want a tensor of known sizes", t)
	}
	if t.Kind != ir.OpaqueType && t.Kind != ir.TensorType {
		s.fail(typeAt, "found the type %s, want a tensor", t)
	}
	end := s.tok.start
	after := s.tok
	text := s.rawTo(start, end)
	s.back(after)
	return ir.Verbatim(text)
}

// elementsEnd returns the offset of the > that ends the elements at i.
func (s *parser) elementsEnd(i int) int {
	if n := strings.IndexByte(s.src[i:], '>'); n >= 0 && strings.IndexByte(s.src[i:i+n], '"') < 0 && strings.IndexByte(s.src[i:i+n], '/') < 0 {
		return i + n
	}
	for k := i; k < len(s.src); k++ {
		switch s.src[k] {
		case '>':
			return k
		case '"':
			k = s.pastString(k) - 1
		case '/':
			k = max(k, s.skipSpace(k)-1)
		}
	}
	s.fail(i, `the elements have no end, want ">"`)
	return i
}

// literal reads the elements in src[from:to] as a literal of type t. It
// reports what is wrong with them, and then returns nil.
func (s *parser) literal(t *ir.Type, from, to int) *ir.Literal {
	e := &elements{s: s, t: t, i: from, end: to, sizes: t.Shape, counts: make([]int, 0, 8)}
	e.skip()
	var data []byte
	switch {
	case e.i >= to:
		if t.NumElements() != 0 {
			s.report(from, "no elements for %s", t)
			return nil
		}
	case s.src[e.i] == '"':
		data = e.blob()
	default:
		data = e.list()
	}
	if e.bad {
		return nil
	}
	return &ir.Literal{Type: t, Data: splatOf(data, t)}
}

// splatOf is data, or its first element if all are equal.
func splatOf(data []byte, t *ir.Type) []byte {
	size := t.Elem.Size()
	if len(data) > size && bytes.Equal(data[size:], data[:len(data)-size]) {
		return bytes.Clone(data[:size])
	}
	return data
}

// elements reads the elements of one literal.
type elements struct {
	s      *parser
	t      *ir.Type
	i, end int
	bad    bool
	sizes  []int
	counts []int // of the open brackets, outermost first: how many things each holds
}

func (e *elements) skip() { e.i = min(e.end, e.s.skipSpace(e.i)) }

// fail reports an error at offset at.
func (e *elements) fail(at int, format string, args ...any) {
	if !e.bad {
		e.s.report(at, format, args...)
	}
	e.bad = true
}

// list reads one element, which is a splat, or nested lists that have the
// type's shape.
func (e *elements) list() []byte {
	most := (e.end-e.i)/2 + 1 // of a digit and a comma each
	data := make([]byte, 0, min(most, e.t.NumElements())*e.t.Elem.Size())
	comma, item := false, false // came last: a comma, an element or a list
	for e.skip(); e.i < e.end && !e.bad; e.skip() {
		switch c := e.s.src[e.i]; {
		case c == ']' && !comma:
			e.close()
			item = true
		case c == ']':
			e.fail(e.i, `found "]" after a comma, want an element`)
		case c == ',' && item && len(e.counts) > 0:
			e.i++
			comma, item = true, false
		case item:
			e.fail(e.i, "found %q, want a comma before it", string(c))
		case c == '[':
			e.open()
			comma = false
		default:
			if len(e.counts) != len(e.sizes) && (len(e.counts) > 0 || len(data) > 0) {
				e.fail(e.i, "an element where the shape of %s has a list", e.t)
				return nil
			}
			e.more()
			data = e.element(data)
			comma, item = false, true
		}
	}
	if len(e.counts) > 0 {
		e.fail(e.end, `found ">", want "]"`)
	}
	return data
}

// more counts one more thing in the innermost open bracket.
func (e *elements) more() {
	if n := len(e.counts); n > 0 {
		if e.counts[n-1]++; e.counts[n-1] > e.sizes[n-1] {
			e.fail(e.i, "more than %d elements in dimension %d of %s", e.sizes[n-1], n-1, e.t)
		}
	}
}

func (e *elements) open() {
	if len(e.counts) == len(e.sizes) {
		e.fail(e.i, "lists nested deeper than the shape of %s", e.t)
		return
	}
	e.more()
	e.counts = append(e.counts, 0)
	e.i++
}

func (e *elements) close() {
	n := len(e.counts)
	if n == 0 {
		e.fail(e.i, `found "]", want an element`)
		return
	}
	if e.counts[n-1] != e.sizes[n-1] {
		e.fail(e.i, "found %d of the %d elements of dimension %d of %s", e.counts[n-1], e.sizes[n-1], n-1, e.t)
	}
	e.counts = e.counts[:n-1]
	e.i++
}

// element reads one element and appends its bytes to data.
func (e *elements) element(data []byte) []byte {
	switch {
	case e.t.Elem.IsComplex() && e.s.src[e.i] != '(':
		e.fail(e.i, "found %q, want a complex number: (real, imaginary)", string(e.s.src[e.i]))
		return data
	case e.t.Elem.IsComplex():
		return e.complex(data)
	}
	return e.number(data, e.t.Elem.Part())
}

func (e *elements) complex(data []byte) []byte {
	e.i++
	for k, want := range []byte{',', ')'} {
		e.skip()
		data = e.number(data, e.t.Elem.Part())
		e.skip()
		if e.i >= e.end || e.s.src[e.i] != want {
			e.fail(e.i, "want %q after part %d of a complex number", string(want), k)
			return data
		}
		e.i++
	}
	return data
}

// number reads one number of type t and appends its bytes to data.
func (e *elements) number(data []byte, t ir.DType) []byte {
	start := e.i
	if d, n := decimal.At(e.s.src[start:e.end]); n > 0 && !(start+n < e.end && isNumberByte(e.s.src[start+n])) {
		size := t.Size()
		data = append(data, zeros[:size]...)
		if element.PutDecimal(data[len(data)-size:], t, d) {
			e.i += n
			return data
		}
		data = data[:len(data)-size]
	}
	for e.i < e.end && isNumberByte(e.s.src[e.i]) {
		e.i++
	}
	text := e.s.src[start:e.i]
	if text == "" {
		e.fail(start, "found %q, want an element", string(e.s.src[start]))
		return data
	}
	data = append(data, zeros[:t.Size()]...)
	if msg := element.Put(data[len(data)-t.Size():], t, text); msg != "" {
		e.fail(start, "%s", msg)
	}
	return data
}

// zeros is what the largest element may be.
var zeros [16]byte

func isNumberByte(c byte) bool {
	return isDigit(c) || names.IsLetter(c) || c == '-' || c == '+' || c == '.'
}

// blob reads a string of hexadecimal digits, the bytes of all elements or of
// one. Booleans may have a bit each, as older versions of MLIR wrote them.
func (e *elements) blob() []byte {
	at, end := e.i, stringEnd(e.s.src, e.i)
	e.i = end
	if e.skip(); e.i < e.end {
		e.fail(e.i, `want ">" after the bytes`)
		return nil
	}
	return e.bytes(at, ir.UnquotedText(e.s.src[at:end]))
}

// bytes are the bytes of a literal from hexadecimal digits.
func (e *elements) bytes(at int, text string) []byte {
	digits, ok := strings.CutPrefix(text, "0x")
	if !ok {
		e.fail(at, "%.40q is no string of hexadecimal bytes", text)
		return nil
	}
	return e.hex(at, digits)
}

func (e *elements) hex(at int, digits string) []byte {
	data, ok := element.FromHex(digits)
	if !ok {
		e.fail(at, "%q is no string of hexadecimal bytes", fmt.Sprintf("0x%.38s", digits))
		return nil
	}
	n, size := e.t.NumElements(), e.t.Elem.Size()
	switch {
	case len(data) == n*size || len(data) == size && n > 0:
		if e.t.Elem == ir.I1 {
			return element.UnpackBytes(data, n)
		}
		return data
	case e.t.Elem == ir.I1 && len(data) == (n+7)/8:
		return element.UnpackBits(data, n)
	}
	e.fail(at, "found %d bytes, %s has %d", len(data), e.t, n*size)
	return nil
}

const metadataOpen = "{-#"

// metadataEnd returns the offset after the file metadata at i: {-# … #-}.
func (s *parser) metadataEnd(i int) int {
	n := strings.Index(s.src[i:], "#-}")
	if n < 0 {
		s.fail(i, `the file metadata has no end, want "#-}"`)
		return len(s.src)
	}
	return i + n + len("#-}")
}

// readResources reads the blobs of the file metadata, which stands at the end:
// {-# dialect_resources: { builtin: { key: "0x…" } } #-}.
func (s *parser) readResources() {
	if !strings.Contains(s.src, metadataOpen) {
		return
	}
	at := strings.LastIndex(s.src, metadataOpen)
	if strings.Contains(s.src[:at], "#-}") {
		return
	}
	end := s.metadataEnd(at) - len("#-}")
	s.resources, s.literals = make(map[string]string), make(map[string]*ir.Literal)
	s.seek(at + len(metadataOpen))
	for s.tok.start < end && s.tok.kind != endToken {
		key := s.text()
		if s.tok.kind == stringToken {
			key = unquote(key)
		}
		isKey := s.tok.kind == nameToken || s.tok.kind == stringToken
		s.next()
		if isKey && s.accept(":") && s.tok.kind == stringToken {
			s.resources[key] = s.text()
			s.next()
		}
	}
}

// resource reads dense_resource<key> : type. The first four bytes of the blob
// are its alignment.
func (s *parser) resource() ir.Attr {
	start := s.tok.start
	s.unshared()
	s.next()
	s.expect("<")
	key := s.text()
	if s.tok.kind == stringToken {
		key = unquote(key)
	}
	s.next()
	s.expect(">")
	s.expect(":")
	t := s.typ()
	text, ok := s.resources[key]
	switch {
	case !ok:
		s.fail(start, "there is no resource %s", key)
	case t.Kind != ir.TensorType || !t.IsStatic():
		s.fail(start, "found the type %s, want a static tensor", t)
	}
	if s.failed {
		return ir.Unit{}
	}
	id := key + ":" + t.String()
	if l := s.literals[id]; l != nil {
		return l
	}
	digits := ir.UnquotedText(text)
	if len(digits) < len("0x")+8 {
		s.fail(start, "resource %s has no alignment", key)
		return ir.Unit{}
	}
	e := &elements{s: s, t: t}
	data := e.hex(start, digits[len("0x")+8:])
	if e.bad {
		return ir.Verbatim("dense<> : " + t.String())
	}
	l := &ir.Literal{Type: t, Data: splatOf(data, t)}
	s.literals[id] = l
	return l
}
