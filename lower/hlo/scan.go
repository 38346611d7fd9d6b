package hlo

import (
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"ppc/internal/diag"
	"ppc/ir"
)

// A scanner reads HLO text. Its methods skip white space and comments first.
// It keeps the first error; after it, nothing is accepted.
type scanner struct {
	file string
	src  string
	pos  int
	end  int // where the text ends
	err  *diag.Diagnostic

	depth int // of computations in attributes

	lines []int // where the lines begin, as far as anybody asked
}

// place is the line and the column of byte pos, both counted from 1.
func (s *scanner) place(pos int) (line, col int) {
	if s.lines == nil {
		s.lines = []int{0}
	}
	for last := s.lines[len(s.lines)-1]; last <= pos; {
		n := strings.IndexByte(s.src[last:], '\n')
		if n < 0 {
			n = len(s.src) - last
		}
		last += n + 1
		s.lines = append(s.lines, last)
	}
	line = sort.SearchInts(s.lines, pos+1)
	return line, utf8.RuneCountInString(s.src[s.lines[line-1]:pos]) + 1
}

// failAt reports an error at byte pos, unless there was one before.
func (s *scanner) failAt(pos int, format string, args ...any) {
	if s.err != nil {
		return
	}
	pos = min(pos, len(s.src))
	start := strings.LastIndexByte(s.src[:pos], '\n') + 1
	line := s.src[start:]
	if i := strings.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	s.err = &diag.Diagnostic{File: s.file, Line: strings.Count(s.src[:pos], "\n") + 1, Col: len([]rune(s.src[start:pos])) + 1, Len: 1,
		Text: line, Msg: fmt.Sprintf(format, args...), Template: format}
	s.pos = s.end
}

func (s *scanner) fail(format string, args ...any) { s.failAt(s.pos, format, args...) }

// space skips white space and comments.
func (s *scanner) space() {
	for s.pos < s.end {
		switch c := s.src[s.pos]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f':
			s.pos++
		case strings.HasPrefix(s.src[s.pos:s.end], "//"):
			n := strings.IndexByte(s.src[s.pos:s.end], '\n')
			if n < 0 {
				n = s.end - s.pos
			}
			s.pos += n
		case strings.HasPrefix(s.src[s.pos:s.end], "/*"):
			n := strings.Index(s.src[s.pos+2:s.end], "*/")
			if n < 0 {
				s.fail("the comment does not end")
				return
			}
			s.pos += n + 4
		default:
			return
		}
	}
}

// peek is the next byte, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.pos < s.end {
		return s.src[s.pos]
	}
	return 0
}

// accept skips text if it comes next.
func (s *scanner) accept(text string) bool {
	s.space()
	if s.err == nil && strings.HasPrefix(s.src[s.pos:s.end], text) {
		s.pos += len(text)
		return true
	}
	return false
}

func (s *scanner) expect(text string) {
	if !s.accept(text) {
		s.fail("want %q, found %s", text, s.next())
	}
}

// next describes what comes next.
func (s *scanner) next() string {
	c := s.peek()
	if c == 0 {
		return "the end"
	}
	if w := s.lookWord(); w != "" {
		return strconv.Quote(w)
	}
	return strconv.Quote(string(rune(c)))
}

func isWordByte(c byte) bool {
	return c == '_' || c == '.' || c == '-' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// lookWord is the word that comes next, "" if none does. A word does not end
// in the - of an arrow.
func (s *scanner) lookWord() string {
	s.space()
	i := s.pos
	for i < s.end && isWordByte(s.src[i]) {
		i++
	}
	if i < s.end && s.src[i] == '>' && i > s.pos && s.src[i-1] == '-' {
		i--
	}
	return s.src[s.pos:i]
}

// word skips a word.
func (s *scanner) word(what string) string {
	w := s.lookWord()
	if w == "" {
		s.fail("want %s, found %s", what, s.next())
	} else {
		s.pos += len(w)
	}
	return w
}

// keyword skips text if it is the next word.
func (s *scanner) keyword(text string) bool {
	if s.lookWord() != text {
		return false
	}
	s.pos += len(text)
	return true
}

// name skips the name of an instruction or a computation.
func (s *scanner) name() string {
	s.accept("%")
	return s.word("a name")
}

// integer skips a decimal number.
func (s *scanner) integer() int {
	w := s.lookWord()
	n, err := strconv.Atoi(w)
	if err != nil {
		s.fail("want an integer, found %s", s.next())
		return 0
	}
	s.pos += len(w)
	return n
}

// group skips a bracketed text, strings in it included, and returns it with
// its brackets.
func (s *scanner) group() string {
	s.space()
	start := s.pos
	s.skip(firstBracket)
	return s.src[start:s.pos]
}

// value skips the value of an attribute: up to a comma, white space or a
// closing bracket outside of brackets.
func (s *scanner) value() string { return s.skip(separator) }

// An ending is what a value goes up to.
type ending int

const (
	separator    ending = iota // what stands between attributes
	firstBracket               // the first bracket that closes, with it
)

func (s *scanner) skip(until ending) string {
	s.space()
	start := s.pos
	var open []byte
	for s.pos < s.end {
		c := s.src[s.pos]
		switch {
		case c == '"' || c == '\'':
			s.str()
			continue
		case len(open) == 0 && (c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			if s.inMesh(s.src[start:s.pos]) {
				s.pos++
				continue
			}
			return s.src[start:s.pos]
		case c == '(' || c == '[' || c == '{':
			open = append(open, c)
		case c == ')' || c == ']' || c == '}':
			if len(open) == 0 {
				return s.src[start:s.pos]
			}
			if o := open[len(open)-1]; o == '(' && c != ')' || o == '[' && c != ']' || o == '{' && c != '}' {
				s.fail("%q does not close %q", string(c), string(o))
				return ""
			}
			open = open[:len(open)-1]
			if until == firstBracket && len(open) == 0 {
				s.pos++
				return s.src[start:s.pos]
			}
		case c == '/' && len(open) > 0:
			at := s.pos
			if s.space(); s.pos > at {
				continue
			}
		}
		s.pos++
	}
	if len(open) > 0 {
		s.failAt(start, "%q is not closed", string(open[0]))
	}
	return s.src[start:s.pos]
}

// inMesh reports whether the value that begins with text goes on at a comma or
// white space: mesh['x'=2] {'x'} and mesh['x'=2], device_ids=(1,0) {'x'} are one.
func (s *scanner) inMesh(text string) bool {
	if !strings.HasPrefix(text, "mesh[") && !strings.HasPrefix(text, "maximal_mesh[") || strings.HasSuffix(text, "}") {
		return false
	}
	rest := s.src[s.pos:s.end]
	return rest[0] == ' ' || strings.HasPrefix(rest, ", device_ids=(")
}

// str skips a quoted string.
func (s *scanner) str() {
	start, quote := s.pos, s.src[s.pos]
	for s.pos++; s.pos < s.end; s.pos++ {
		switch s.src[s.pos] {
		case '\\':
			s.pos++
		case quote:
			s.pos++
			return
		}
	}
	s.failAt(start, "the string does not end")
}

// unquote is the text of a quoted string.
func unquote(s string) (string, error) {
	if len(s) < 2 || s[0] != '"' && s[0] != '\'' || s[len(s)-1] != s[0] {
		return "", fmt.Errorf("want a string, found %s", s)
	}
	var b strings.Builder
	for i := 1; i < len(s)-1; i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case '0', '1', '2', '3':
			if i+2 < len(s)-1 {
				if n, err := strconv.ParseUint(s[i:i+3], 8, 8); err == nil {
					b.WriteByte(byte(n))
					i += 2
					continue
				}
			}
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

// maxDepth is how deep tuples and operands may be nested.
const maxDepth = 100

// A shape is a type and the layouts of its tensors, in order, as the text has
// them; "" where the text has none or the default.
type shape struct {
	typ     *ir.Type
	layouts []string
}

// layout is the attribute that keeps the layouts of h; "" if all are the default.
func (h *shape) layout() string {
	for _, l := range h.layouts {
		if l != "" {
			return strings.Join(h.layouts, " ")
		}
	}
	return ""
}

// shapeNext reports whether a shape comes next: a tuple, a word before [, or a
// buffer b(.
func (s *scanner) shapeNext() bool {
	if s.peek() == '(' {
		return true
	}
	w := s.lookWord()
	rest := s.src[s.pos+len(w) : s.end]
	return w != "" && strings.HasPrefix(rest, "[") || w == "b" && strings.HasPrefix(rest, "(")
}

func (s *scanner) shape() shape {
	var h shape
	h.typ = s.shapeInto(&h, 0)
	return h
}

func (s *scanner) shapeInto(h *shape, depth int) *ir.Type {
	if depth > maxDepth {
		s.fail("tuples are nested more than %d deep", maxDepth)
	}
	if s.err != nil {
		return ir.Token()
	}
	s.space()
	if start := s.pos; strings.HasPrefix(s.src[s.pos:s.end], "b(") { // a buffer: carried through
		s.pos++
		s.group()
		h.layouts = append(h.layouts, "")
		return &ir.Type{Kind: ir.OpaqueType, Text: s.src[start:s.pos]}
	}
	if s.accept("(") {
		t := ir.Tuple()
		for !s.accept(")") && s.err == nil {
			if len(t.Elems) > 0 {
				s.expect(",")
			}
			t.Elems = append(t.Elems, s.shapeInto(h, depth+1))
		}
		return t
	}
	at := s.pos
	name := s.word("a shape")
	s.expect("[")
	var t *ir.Type
	switch elem := ir.DTypeByHLO(name); {
	case name == "token":
		t = ir.Token()
	case name == "opaque":
		t = &ir.Type{Kind: ir.OpaqueType, Text: "opaque[]"}
	case elem == ir.InvalidDType || name == "invalid":
		s.failAt(at, "%s is no element type", name)
		return ir.Token()
	default:
		t = s.dims(elem)
	}
	s.expect("]")
	if s.layoutNext() {
		at := s.pos
		text := s.group()
		layout, err := checkLayout(text, t.Rank())
		if err != nil {
			s.failAt(at, "%v", err)
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

// dims reads the sizes of a tensor; <=n is a size of at most n, ? any.
func (s *scanner) dims(elem ir.DType) *ir.Type {
	t := ir.Tensor(elem)
	var bounds []string
	bounded, total := false, 1
	for s.peek() != ']' && s.err == nil {
		if len(t.Shape) > 0 {
			s.expect(",")
		}
		switch {
		case s.accept("?"):
			t.Shape, bounds = append(t.Shape, ir.Dynamic), append(bounds, "?")
		case s.accept("<="):
			t.Shape, bounds, bounded = append(t.Shape, ir.Dynamic), append(bounds, strconv.Itoa(s.integer())), true
		default:
			n := s.integer()
			if total *= max(n, 1); n < 0 || n > maxElements || total > maxElements {
				s.fail("want sizes from 0, of at most %d elements in all", maxElements)
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
func (s *scanner) layoutNext() bool {
	if s.err != nil || s.pos >= s.end || s.src[s.pos] != '{' {
		return false
	}
	rest := strings.TrimLeft(s.src[s.pos+1:min(s.pos+40, s.end)], " ")
	return rest != "" && (rest[0] == ':' || '0' <= rest[0] && rest[0] <= '9')
}

// layoutTail is what a layout may say after the order of dimensions.
var layoutTail = regexp.MustCompile(`^\s*(?:D\([^()]*\))?(?:T(?:\([-0-9*, ]+\))+)?(?:L\([0-9]+\))?(?:#\(\w+\))?(?:\*\(\w+\))?(?:E\([0-9]+\))?(?:S\([0-9]+\))?(?:SC(?:\([0-9:, ]*\))+)?(?:P\(.*\))?(?:M\([0-9]+\))?\s*$`)

// checkLayout returns text, or "" where it is the default layout of a tensor
// of the given rank.
func checkLayout(text string, rank int) (string, error) {
	order, rest, _ := strings.Cut(text[1:len(text)-1], ":")
	if !layoutTail.MatchString(rest) {
		return "", fmt.Errorf("%s after the order of a layout, want tiles T(…), a tail L(…), types, bits E(…), a memory space S(…) and so on", rest)
	}
	var dims []int
	for _, f := range strings.Split(order, ",") {
		if f = strings.TrimSpace(f); f == "" {
			continue
		}
		n, err := strconv.Atoi(f)
		if err != nil || n < 0 || n >= rank {
			return "", fmt.Errorf("%s is no dimension of a tensor of rank %d", f, rank)
		}
		dims = append(dims, n)
	}
	if len(dims) != rank && len(dims) != 0 {
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
