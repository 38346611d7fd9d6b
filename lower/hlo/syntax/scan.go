package syntax

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"ppc/internal/diag"
	"ppc/ir"
)

// Quoted reads a quoted string.
func (s *Scanner) Quoted() string {
	if c := s.Peek(); c != '\'' && c != '"' {
		s.Fail("want a quoted name, found %s", s.Next())
		return ""
	}
	start := s.Pos
	s.str()
	name, err := Unquote(s.Src[start:s.Pos])
	if err != nil {
		s.Fail("%v", err)
	}
	return name
}

// Ints reads numbers between open and end.
func (s *Scanner) Ints(open, end string) []int {
	s.Expect(open)
	var xs []int
	for !s.Accept(end) && s.Err == nil {
		if len(xs) > 0 {
			s.Expect(",")
		}
		xs = append(xs, s.Integer())
	}
	return xs
}

// A Scanner reads HLO text. Its methods skip white space and comments first.
// It keeps the first error; after it, nothing is accepted.
type Scanner struct {
	File string
	Src  string
	Pos  int
	End  int // where the text ends
	Err  *diag.Diagnostic

	depth int  // of computations in attributes
	lone  bool // the text is one instruction

	lines []int               // where the lines begin, as far as anybody asked
	types map[string]*ir.Type // of tensors, by their text up to the sizes
}

// Place is the line and the column of byte pos, both counted from 1.
func (s *Scanner) Place(pos int) (line, col int) {
	if s.lines == nil {
		s.lines = []int{0}
	}
	for last := s.lines[len(s.lines)-1]; last <= pos; {
		n := strings.IndexByte(s.Src[last:], '\n')
		if n < 0 {
			n = len(s.Src) - last
		}
		last += n + 1
		s.lines = append(s.lines, last)
	}
	line = sort.SearchInts(s.lines, pos+1)
	return line, utf8.RuneCountInString(s.Src[s.lines[line-1]:pos]) + 1
}

// FailAt reports an error at byte pos, unless there was one before.
func (s *Scanner) FailAt(pos int, format string, args ...any) {
	if s.Err != nil {
		return
	}
	pos = min(pos, len(s.Src))
	start := strings.LastIndexByte(s.Src[:pos], '\n') + 1
	line := s.Src[start:]
	if i := strings.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	s.Err = &diag.Diagnostic{File: s.File, Line: strings.Count(s.Src[:pos], "\n") + 1, Col: len([]rune(s.Src[start:pos])) + 1, Len: 1,
		Text: line, Msg: fmt.Sprintf(format, args...), Template: format}
	s.Pos = s.End
}

func (s *Scanner) Fail(format string, args ...any) { s.FailAt(s.Pos, format, args...) }

// Space skips white space and comments.
func (s *Scanner) Space() {
	for s.Pos < s.End {
		switch c := s.Src[s.Pos]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f':
			s.Pos++
		case strings.HasPrefix(s.Src[s.Pos:s.End], "//"):
			n := strings.IndexByte(s.Src[s.Pos:s.End], '\n')
			if n < 0 {
				n = s.End - s.Pos
			}
			s.Pos += n
		case strings.HasPrefix(s.Src[s.Pos:s.End], "/*"):
			n := strings.Index(s.Src[s.Pos+2:s.End], "*/")
			if n < 0 {
				s.Fail("the comment does not end")
				return
			}
			s.Pos += n + 4
		default:
			return
		}
	}
}

// Peek is the next byte, 0 at the end.
func (s *Scanner) Peek() byte {
	s.Space()
	if s.Pos < s.End {
		return s.Src[s.Pos]
	}
	return 0
}

// Accept skips text if it comes next.
func (s *Scanner) Accept(text string) bool {
	s.Space()
	if s.Err == nil && strings.HasPrefix(s.Src[s.Pos:s.End], text) {
		s.Pos += len(text)
		return true
	}
	return false
}

func (s *Scanner) Expect(text string) {
	if !s.Accept(text) {
		s.Fail("want %q, found %s", text, s.Next())
	}
}

// Next describes what comes next.
func (s *Scanner) Next() string {
	c := s.Peek()
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
func (s *Scanner) lookWord() string {
	s.Space()
	i := s.Pos
	for i < s.End && isWordByte(s.Src[i]) {
		i++
	}
	if i < s.End && s.Src[i] == '>' && i > s.Pos && s.Src[i-1] == '-' {
		i--
	}
	return s.Src[s.Pos:i]
}

// Word skips a word.
func (s *Scanner) Word(what string) string {
	w := s.lookWord()
	if w == "" {
		s.Fail("want %s, found %s", what, s.Next())
	} else {
		s.Pos += len(w)
	}
	return w
}

// Keyword skips text if it is the next word.
func (s *Scanner) Keyword(text string) bool {
	if s.lookWord() != text {
		return false
	}
	s.Pos += len(text)
	return true
}

// reserved are the words that are no names, unless % is before or : behind them.
var reserved = []string{"ENTRY", "FileLocations", "FileNames", "FunctionNames", "HloModule", "ROOT", "StackFrames", "false", "inf", "last_tile_dim_replicate", "manual", "maximal", "nan",
	"replicated", "shard_as", "shard_like", "true", "unknown", "unreduced"}

// isType reports whether w names a type, which is no name of an instruction.
func isType(w string) bool {
	return w == "token" || w == "opaque" || w != "invalid" && ir.DTypeByHLO(w) != ir.InvalidDType
}

// name skips the name of an instruction or a computation: %add.1, add.1, or add.1:.
func (s *Scanner) name() string {
	marked := s.Accept("%")
	at := s.Pos
	w := s.lookWord()
	if marked && (w == "" || !strings.HasPrefix(s.Src[s.Pos:s.End], w)) || w != "" && !isLetter(w[0]) {
		s.Fail("want a name, found %s", s.Next())
		return ""
	}
	if w = s.Word("a name"); marked || s.Pos >= s.End {
		return w
	}
	switch c := s.Src[s.Pos]; {
	case c == ':':
		s.Pos++
	case c == '=':
		s.FailAt(at, "want a name, found the attribute %s=: put white space before =", w)
	case slices.Contains(reserved, w) || isType(w):
		s.FailAt(at, "%s is no name: write %%%s", w, w)
	}
	return w
}

func isLetter(c byte) bool { return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// attrName reads the name of an attribute and the = right behind it.
func (s *Scanner) attrName() string {
	at := s.Pos
	w := s.Word("an attribute")
	if s.Err == nil && !isLetter(w[0]) {
		s.FailAt(at, "want an attribute, found %s", w)
	}
	if s.Err == nil && (s.Pos >= s.End || s.Src[s.Pos] != '=') {
		s.Fail("want \"=\" right behind %s, found %s", w, s.Next())
	}
	s.Pos = min(s.Pos+1, s.End)
	return w
}

// Integer skips a decimal number.
func (s *Scanner) Integer() int {
	w := s.lookWord()
	n, err := strconv.Atoi(w)
	if err != nil {
		s.Fail("%v", noInteger(err, s.Next()))
		return 0
	}
	s.Pos += len(w)
	return n
}

// group skips a bracketed text, strings in it included, and returns it with
// its brackets.
func (s *Scanner) group() string {
	s.Space()
	start := s.Pos
	s.skip(firstBracket)
	return s.Src[start:s.Pos]
}

// Value skips the value of an attribute: up to a comma, white space or a
// closing bracket outside of brackets.
func (s *Scanner) Value() string { return s.skip(separator) }

// An ending is what a value goes up to.
type ending int

const (
	separator    ending = iota // the text between attributes
	firstBracket               // the first bracket that closes, with it
)

func (s *Scanner) skip(until ending) string {
	s.Space()
	start := s.Pos
	var open []byte
	for s.Pos < s.End {
		c := s.Src[s.Pos]
		switch {
		case c == '"' || c == '\'':
			s.str()
			continue
		case len(open) == 0 && (c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			if s.inMesh(s.Src[start:s.Pos]) {
				s.Pos++
				continue
			}
			return s.Src[start:s.Pos]
		case c == '(' || c == '[' || c == '{':
			open = append(open, c)
		case c == ')' || c == ']' || c == '}':
			if len(open) == 0 {
				return s.Src[start:s.Pos]
			}
			if o := open[len(open)-1]; o == '(' && c != ')' || o == '[' && c != ']' || o == '{' && c != '}' {
				s.Fail("%q does not close %q", string(c), string(o))
				return ""
			}
			open = open[:len(open)-1]
			if until == firstBracket && len(open) == 0 {
				s.Pos++
				return s.Src[start:s.Pos]
			}
		case c == '/' && len(open) > 0:
			at := s.Pos
			if s.Space(); s.Pos > at {
				continue
			}
		}
		s.Pos++
	}
	if len(open) > 0 {
		s.FailAt(start, "%q is not closed", string(open[0]))
	}
	return s.Src[start:s.Pos]
}

// inMesh reports whether the value that begins with text goes on at a comma or
// white space: mesh['x'=2] {'x'} and mesh['x'=2], device_ids=(1,0) {'x'} are one.
func (s *Scanner) inMesh(text string) bool {
	if !slices.ContainsFunc([]string{"mesh[", "single_device[", "maximal_mesh["}, func(p string) bool { return strings.HasPrefix(text, p) }) || strings.HasSuffix(text, "}") {
		return false
	}
	rest := s.Src[s.Pos:s.End]
	return rest[0] == ' ' || strings.HasPrefix(rest, ", device_ids=(")
}

// str skips a quoted string.
func (s *Scanner) str() {
	start, quote := s.Pos, s.Src[s.Pos]
	for s.Pos++; s.Pos < s.End; s.Pos++ {
		switch s.Src[s.Pos] {
		case '\\':
			s.Pos++
		case quote:
			s.Pos++
			return
		}
	}
	s.FailAt(start, "the string does not end")
}

// Unquote is the text of a quoted string.
func Unquote(s string) (string, error) {
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
