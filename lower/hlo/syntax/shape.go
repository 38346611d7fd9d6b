package syntax

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"ppc/ir"
)

// MaxDepth is how deep tuples and operands may be nested.
const MaxDepth = 100

// A Shape is a type and the layouts of its tensors, in order, as the text has
// them; "" where the text has none or the default.
type Shape struct {
	Type    *ir.Type
	layouts []string
}

// Layout is the attribute that keeps the layouts of h; "" if all are the default.
func (h *Shape) Layout() string {
	for _, l := range h.layouts {
		if l != "" {
			return strings.Join(h.layouts, " ")
		}
	}
	return ""
}

// shapeNext reports whether a shape comes next: a tuple, a type before [, or a
// buffer b(.
func (s *Scanner) shapeNext() bool {
	if s.Peek() == '(' {
		return true
	}
	pos, w := s.Pos, s.lookWord()
	defer func() { s.Pos = pos }()
	switch s.Pos += len(w); {
	case w == "b":
		return strings.HasPrefix(s.Src[s.Pos:s.End], "(")
	case isType(w):
		return s.Peek() == '['
	}
	return w != "" && strings.HasPrefix(s.Src[s.Pos:s.End], "[")
}

func (s *Scanner) Shape() Shape {
	var h Shape
	h.Type = s.shapeInto(&h, 0)
	return h
}

func (s *Scanner) shapeInto(h *Shape, depth int) *ir.Type {
	if depth > MaxDepth {
		s.Fail("tuples are nested more than %d deep", MaxDepth)
	}
	if s.Err != nil {
		return ir.Token()
	}
	s.Space()
	if start := s.Pos; strings.HasPrefix(s.Src[s.Pos:s.End], "b(") { // a buffer: carried through
		s.Pos += len("b(")
		if in := s.shapeInto(new(Shape), depth+1); s.Err == nil && !in.IsTensor() {
			s.FailAt(start, "want the buffer of a tensor")
		}
		s.Expect(")")
		h.layouts = append(h.layouts, "")
		return &ir.Type{Kind: ir.OpaqueType, Text: s.Src[start:s.Pos]}
	}
	if s.Accept("(") {
		t := ir.Tuple()
		for !s.Accept(")") && s.Err == nil {
			if len(t.Elems) > 0 {
				s.Expect(",")
			}
			t.Elems = append(t.Elems, s.shapeInto(h, depth+1))
		}
		return t
	}
	at := s.Pos
	name := s.Word("a shape")
	s.Expect("[")
	var t *ir.Type
	switch elem := ir.DTypeByHLO(name); {
	case name == "token":
		t = ir.Token()
	case name == "opaque":
		t = &ir.Type{Kind: ir.OpaqueType, Text: "opaque[]"}
	case elem == ir.InvalidDType || name == "invalid":
		s.FailAt(at, "%s is no element type", name)
		return ir.Token()
	default:
		t = s.tensor(elem, at)
	}
	s.Expect("]")
	if s.layoutNext() {
		at := s.Pos
		text := s.group()
		layout, err := checkLayout(text, t.Rank())
		if err != nil {
			s.FailAt(at, "%v", err)
		}
		h.layouts = append(h.layouts, layout)
	} else {
		h.layouts = append(h.layouts, "")
	}
	return t
}

// maxElements bounds the elements of a tensor, so that sizes can be multiplied
// without a thought.
const maxElements = 1 << 48

// tensor reads the sizes of a tensor whose type begins at byte at. What is written alike
// is one type.
func (s *Scanner) tensor(elem ir.DType, at int) *ir.Type {
	end := strings.IndexByte(s.Src[s.Pos:s.End], ']')
	if end < 0 {
		return s.dims(elem)
	}
	end += s.Pos
	text := s.Src[at:end]
	if t := s.types[text]; t != nil {
		s.Pos = end
		return t
	}
	t := s.dims(elem)
	if s.Err == nil && s.Pos == end {
		if s.types == nil {
			s.types = make(map[string]*ir.Type)
		}
		s.types[text] = t
	}
	return t
}

// dims reads the sizes of a tensor; <=n is a size of at most n, ? any.
func (s *Scanner) dims(elem ir.DType) *ir.Type {
	t := ir.Tensor(elem)
	var bounds []string
	bounded, total := false, 1
	for s.Peek() != ']' && s.Err == nil {
		if len(t.Shape) > 0 {
			s.Expect(",")
		}
		switch {
		case s.Accept("?"):
			t.Shape, bounds = append(t.Shape, ir.Dynamic), append(bounds, "?")
		case s.Accept("<="):
			n := s.Integer()
			if n < 0 {
				s.Fail("want a bound from 0, found %d", n)
			}
			t.Shape, bounds, bounded = append(t.Shape, ir.Dynamic), append(bounds, strconv.Itoa(n)), true
		default:
			n := s.Integer()
			if total *= max(n, 1); n < 0 || n > maxElements || total > maxElements {
				s.Fail("want sizes from 0, of at most %d elements in all", maxElements)
			}
			t.Shape, bounds = append(t.Shape, n), append(bounds, "?")
		}
	}
	if bounded {
		t.Text = "#stablehlo.bounds<" + strings.Join(bounds, ", ") + ">"
	}
	return t
}

// layoutNext reports whether the brace that comes next, if one does, opens a
// layout and not a computation.
func (s *Scanner) layoutNext() bool {
	if s.Err != nil || s.Peek() != '{' {
		return false
	}
	pos := s.Pos
	defer func() { s.Pos = pos }()
	s.Pos++
	c := s.Peek()
	return c == ':' || '0' <= c && c <= '9'
}

// layoutTail reads what a layout may say after the order of dimensions, in this order: how
// dimensions are stored, tiles, what a size is a multiple of, the types of indices and pointers,
// bits, a memory space, splits and bytes in front.
func layoutTail(s *Scanner) {
	number := func(s *Scanner) {
		if n := s.Integer(); n < 0 {
			s.Fail("want a number from 0, found %d", n)
		}
	}
	one := func(word string) {
		if s.Keyword(word) {
			s.Expect("(")
			number(s)
			s.Expect(")")
		}
	}
	if s.Keyword("D") {
		list("(", func(s *Scanner) {
			among("D", "C", "S", "H")(s)
			s.Accept("+")
			s.Accept("~")
		}, ")")(s)
	}
	if s.Keyword("T") {
		for first := true; first || s.Peek() == '('; first = false {
			list("(", func(s *Scanner) {
				if !s.Accept("*") {
					number(s)
				}
			}, ")")(s)
		}
	}
	one("L")
	for _, mark := range []string{"#", "*"} {
		if s.Accept(mark) {
			s.Expect("(")
			among("u2", "u4", "u8", "u16", "u32", "u64")(s)
			s.Expect(")")
		}
	}
	one("E")
	one("S")
	if s.Keyword("SC") {
		for first := true; first || s.Peek() == '('; first = false {
			s.Expect("(")
			number(s)
			list(":", number, ")")(s)
		}
	}
	one("M")
}

// memoryOnly finds a memory space alone, which leaves the order of dimensions the default.
var memoryOnly = regexp.MustCompile(`^\s*S\([0-9]+\)\s*$`)

// comments finds comments in a layout.
var comments = regexp.MustCompile(`/\*.*?\*/`)

// checkLayout returns text, or "" where it is the default layout of a tensor
// of the given rank.
func checkLayout(text string, rank int) (string, error) {
	text = strings.Join(strings.Fields(comments.ReplaceAllString(text, "")), "") // one word, see Layout
	order, rest, _ := strings.Cut(text[1:len(text)-1], ":")
	tail := &Scanner{Src: rest, End: len(rest)}
	if layoutTail(tail); tail.Err == nil && tail.Peek() != 0 {
		tail.Fail("want tiles T(…), a tail L(…), types, bits E(…), a memory space S(…) and so on")
	}
	if tail.Err != nil {
		return "", fmt.Errorf("%s after the order of a layout: %s", rest, tail.Err.Msg)
	}
	var dims []int
	for _, f := range strings.Split(order, ",") {
		if f = strings.TrimSpace(f); f == "" && order == "" {
			continue
		}
		n, err := strconv.Atoi(f)
		if err != nil || n < 0 || n >= rank {
			return "", fmt.Errorf("%s is no dimension of a tensor of rank %d", f, rank)
		}
		dims = append(dims, n)
	}
	if len(dims) != rank && !(len(dims) == 0 && memoryOnly.MatchString(rest)) {
		return "", fmt.Errorf("layout %s has %d dimensions, the tensor has %d", text, len(dims), rank)
	}
	natural := rest == ""
	seen := make([]bool, rank)
	for i, d := range dims {
		if seen[d] {
			return "", fmt.Errorf("layout %s has dimension %d twice", text, d)
		}
		seen[d] = true
		natural = natural && d == rank-1-i
	}
	if natural {
		return "", nil
	}
	return text, nil
}
