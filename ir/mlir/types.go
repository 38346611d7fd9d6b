package mlir

import (
	"math/bits"
	"strconv"
	"strings"

	"ppc/ir"
	"ppc/ir/mlir/names"
)

// typ reads a type.
func (s *parser) typ() *ir.Type {
	s.enter()
	defer s.leave()
	s.node(1)
	switch s.tok.kind {
	case nameToken:
		return s.namedType()
	case bangToken:
		return s.dialectType()
	}
	if s.at("(") {
		var in []*ir.Type
		s.list("(", ")", func() { in = append(in, s.typ()) })
		return s.functionAfter(in)
	}
	s.wanted("a type")
	return new(ir.Type)
}

// functionAfter reads "-> results" of a function type.
func (s *parser) functionAfter(in []*ir.Type) *ir.Type {
	s.expect("->")
	return &ir.Type{Kind: ir.FuncType, NumIn: len(in), Elems: append(in, s.typeOrList()...)}
}

// isTypeName reports whether a type may begin with the name t.
func isTypeName(t string) bool {
	switch t {
	case "tensor", "tuple", "none", "complex", "vector", "memref":
		return true
	}
	return ir.DTypeByName(t) != ir.InvalidDType || isOddInt(t) || t == "tf32" || t == "f80" || t == "f128"
}

// notElement are names of types that tensors have no elements of.
var notElement = map[string]bool{"tensor": true, "tuple": true, "none": true, "memref": true}

// isOddInt reports whether t is an integer type that tensors do not have: i7, si32.
func isOddInt(t string) bool {
	t = strings.TrimPrefix(strings.TrimPrefix(t, "s"), "u")
	bits, ok := strings.CutPrefix(t, "i")
	n, err := strconv.Atoi(bits)
	return ok && names.IsNumber(bits) && err == nil && n < 1<<24 // MLIR has no wider ones
}

func (s *parser) namedType() *ir.Type {
	start := s.tok.start
	switch t := s.text(); {
	case t == "tensor":
		return s.tensor()
	case t == "tuple":
		s.next()
		return &ir.Type{Kind: ir.TupleType, Elems: s.typeList()}
	case t == "none":
		s.next()
		return &ir.Type{Kind: ir.NoneType}
	case t == "complex":
		if elem := s.elem(); elem != ir.InvalidDType {
			return ir.Scalar(elem)
		}
		s.seek(start)
		s.next()
		s.expect("<")
		if t := s.text(); !isTypeName(t) || notElement[t] || t == "complex" || t == "vector" {
			s.wanted("an integer or floating-point type")
		}
		return s.opaque(start)
	case t == "vector", t == "memref":
		return s.opaque(start)
	case ir.DTypeByName(t) != ir.InvalidDType:
		s.next()
		return ir.Scalar(ir.DTypeByName(t))
	case isTypeName(t):
		return s.opaque(start)
	}
	s.wanted("a type")
	return new(ir.Type)
}

// typeList reads <T, U>.
func (s *parser) typeList() []*ir.Type {
	var ts []*ir.Type
	s.list("<", ">", func() { ts = append(ts, s.typ()) })
	return ts
}

func (s *parser) dialectType() *ir.Type {
	start := s.tok.start
	switch t := s.text(); t {
	case "!stablehlo.token":
		s.next()
		return ir.Token()
	case "!stablehlo.future":
		s.next()
		return &ir.Type{Kind: ir.FutureType, Elems: s.typeList()}
	default:
		if a := s.alias(t); a != nil {
			s.next()
			return s.typeOf(a)
		}
		if strings.HasPrefix(t, "!stablehlo.") {
			s.fail(start, "there is no type %s, want !stablehlo.token or !stablehlo.future", t)
		}
		return s.opaque(start)
	}
}

// opaque carries a type through unread: a name and what follows in brackets.
func (s *parser) opaque(start int) *ir.Type {
	s.seek(start)
	return &ir.Type{Kind: ir.OpaqueType, Text: s.raw(start)}
}

// maxElements bounds the number of elements of a tensor, so that its size in
// bytes is an int.
const maxElements = 1 << 58

// tensor reads tensor<4x?xf32, encoding>. A tensor of what is no DType is
// carried through unread.
func (s *parser) tensor() *ir.Type {
	start := s.tok.start
	if end := strings.IndexByte(s.src[start:], '>'); end >= 0 {
		if t := s.known[s.src[start:start+end+1]]; t != nil {
			s.seek(start + end + 1)
			return t
		}
	}
	s.next()
	if !s.at("<") {
		s.wanted(`"<"`)
	}
	shape, end := s.dims(s.tok.end)
	if end < 0 {
		return s.opaque(start)
	}
	s.seek(end)
	var quant *ir.Quant
	elem := ir.InvalidDType
	if s.tok.kind == bangToken {
		quant = s.quantized()
	} else {
		elem = s.elem()
	}
	if elem == ir.InvalidDType && quant == nil {
		s.seek(end)
		if t := s.text(); s.tok.kind != bangToken && (!isTypeName(t) || notElement[t]) {
			s.wanted("an element type")
		}
		return s.opaque(start)
	}
	t := &ir.Type{Kind: ir.TensorType, Elem: elem, Quant: quant, Shape: shape}
	if s.accept(",") {
		t.Text = ir.NewEncoding(s.encoding())
		if r := ir.SoundBounds(t); r != nil {
			s.report(start, "%s [%s]", r.Msg, r.Label)
		}
	}
	if text := s.src[start:min(s.tok.end, len(s.src))]; quant == nil && t.Text == "" && s.at(">") && strings.IndexByte(text, '>') == len(text)-1 {
		t = s.keep(text, t)
	}
	s.expect(">")
	return t
}

// keep has t, which the text may write in so many bytes again, shared by all that
// are written so, and returns what they share.
func (s *parser) keep(text string, t *ir.Type) *ir.Type {
	if s.known == nil {
		s.known = make(map[string]*ir.Type)
	}
	if len(text) >= 128 || len(s.known) >= 1<<12 {
		return t
	}
	if s.shared != nil {
		t = s.shared.keep(text, t)
	}
	s.known[text] = t
	return t
}

// keep is described at [parser.keep].
func (x *types) keep(text string, t *ir.Type) *ir.Type {
	x.Lock()
	defer x.Unlock()
	if first := x.known[text]; first != nil {
		return first
	}
	x.known[text] = t
	return t
}

// quantized reads a quantized element type, or an alias of one. It is nil where
// the next token begins another type.
func (s *parser) quantized() *ir.Quant {
	if text := s.aliasText(s.text()); text != "" {
		s.next()
		return ir.ParseQuant(text)
	}
	return ir.ParseQuant(s.raw(s.tok.start))
}

// encoding reads the encoding of a tensor as text.
func (s *parser) encoding() string {
	if s.tok.kind == hashToken {
		if text := s.aliasText(s.text()); text != "" {
			s.next()
			return text
		}
	}
	return s.raw(s.tok.start)
}

// dims reads dimensions, each with the x after it, from offset i on. It
// returns them and where the element type begins, or -1 for an unranked tensor.
func (s *parser) dims(i int) ([]int, int) {
	var shape []int
	n := uint64(1)
	for {
		i = s.skipSpace(i)
		end := s.scan(i, isDigit)
		switch {
		case i < len(s.src) && s.src[i] == '*' && len(shape) == 0:
			return nil, -1
		case i < len(s.src) && s.src[i] == '?':
			end = i + 1
			shape = append(shape, ir.Dynamic)
		case end == i:
			return shape, i
		default:
			size := s.sizeAt(i, end)
			shape = append(shape, size)
			hi, lo := bits.Mul64(n, uint64(max(size, 1)))
			if n = lo; hi > 0 || n > maxElements {
				s.fail(i, "the tensor has more than %d elements", uint64(maxElements))
				return nil, -1
			}
		}
		if i = s.skipSpace(end); i >= len(s.src) || s.src[i] != 'x' {
			s.seek(i)
			s.wanted(`"x" after a dimension`)
			return nil, -1
		}
		i++
	}
}

func (s *parser) sizeAt(i, end int) int {
	n := 0
	for _, c := range s.src[i:end] {
		if n = n*10 + int(c-'0'); n > maxElements {
			s.fail(i, "dimension %.30s is too large, want at most %d", s.src[i:end], uint64(maxElements))
			return 0
		}
	}
	return n
}

// elem reads an element type: a name or complex<name>. It is InvalidDType,
// and what was read may be any part of it, where the next tokens are none.
func (s *parser) elem() ir.DType {
	if s.tok.kind != nameToken {
		return ir.InvalidDType
	}
	t := s.take()
	if t != "complex" {
		return ir.DTypeByName(t)
	}
	if !s.accept("<") || s.tok.kind != nameToken {
		return ir.InvalidDType
	}
	t = s.take()
	if !s.at(">") {
		return ir.InvalidDType
	}
	s.next()
	return ir.DTypeByName("complex<" + t + ">")
}

// raw moves past the next token, with what directly follows it in angle
// brackets, or past what stands in brackets if it opens them. It returns the
// text from offset start to there: comments left out, blanks in one piece each
// one space.
func (s *parser) raw(start int) string {
	if s.failed {
		return ""
	}
	i := s.tok.end
	if s.tok.kind == punctToken {
		i = s.tok.start
	} else if i >= len(s.src) || s.src[i] != '<' {
		return s.rawTo(start, i)
	}
	end := s.bracketsEnd(i)
	return s.rawTo(start, end)
}

// bracketsEnd returns the offset after the bracket that closes the one at i, the end of
// the text where it fails.
func (s *parser) bracketsEnd(i int) int {
	var open []byte
	for {
		i = s.skipSpace(i)
		if i >= len(s.src) {
			s.seek(i)
			s.wanted(strconv.Quote(string(open[len(open)-1])))
			return len(s.src)
		}
		switch c := s.src[i]; {
		case strings.HasPrefix(s.src[i:], "->"):
			i++
		case c == '"':
			i = s.pastString(i) - 1
		case closing[c] != 0:
			if open = append(open, closing[c]); len(open) > maxDepth {
				s.fail(i, "nested more than %d levels deep", maxDepth)
				return len(s.src)
			}
		case len(open) == 0:
			s.wanted("an attribute or a type")
			return len(s.src)
		case c == open[len(open)-1]:
			if open = open[:len(open)-1]; len(open) == 0 {
				return i + 1
			}
		case c == '>' || c == ')' || c == ']' || c == '}':
			s.fail(i, "found %q, want %q", string(c), string(open[len(open)-1]))
			return len(s.src)
		}
		i++
	}
}

// closing are, by bracket, the one that closes it; 0 of what is none.
var closing = [256]byte{'<': '>', '(': ')', '[': ']', '{': '}'}

// rawTo makes what follows offset end the next token and returns the text from
// start to there. Aliases in it are replaced by what they stand for.
func (s *parser) rawTo(start, end int) string {
	var b strings.Builder
	last := byte('<') // before what comes next, or one after which no blank stands
	for i := start; i < end && !s.failed; {
		if j := s.skipSpace(i); j > i {
			i = min(j, end)
			if i < end && closing[last] == 0 && strings.IndexByte(">)]},", s.src[i]) < 0 {
				b.WriteByte(' ')
			}
			continue
		}
		j := i + 1
		text := ""
		switch s.src[i] {
		case '"':
			j = s.pastString(i)
		case '#', '!':
			j = s.lex(i).end
			text = s.aliasText(s.src[i:j])
		}
		if text == "" {
			text = s.src[i:j]
		}
		b.WriteString(text)
		last = s.src[j-1]
		i = j
	}
	s.seek(end)
	s.node(b.Len())
	return b.String()
}

// aliasText is what the alias called name stands for, or "" where there is no such.
func (s *parser) aliasText(name string) string {
	a := s.alias(name)
	if a == nil {
		return ""
	}
	if name[0] == '!' {
		return s.typeOf(a).String()
	}
	return s.attrOf(a).String()
}
