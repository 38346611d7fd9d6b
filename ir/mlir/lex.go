package mlir

import (
	"fmt"
	"strings"

	"ppc/internal/diag"
	"ppc/internal/lines"
	"ppc/internal/slab"
	"ppc/ir"
	"ppc/ir/mlir/names"
)

// A tokenKind is what a token is. Punctuation has its own text as kind.
type tokenKind uint8

const (
	endToken     tokenKind = iota
	nameToken              // stablehlo.add, tensor, loc
	valueToken             // %a
	symbolToken            // @f, @"any text"
	hashToken              // #name
	bangToken              // !name
	caretToken             // ^bb0
	intToken               // 12, 0x1F
	floatToken             // 1.0e5
	stringToken            // "text"
	punctToken             // one character, or ->
	invalidToken           // what no token begins with
)

// A token is a piece of the source: src[start:end].
type token struct {
	kind       tokenKind
	start, end int
}

// A parser reads one source. It looks one token ahead: tok is the next one,
// and the lexer goes on after it, so that what is no sequence of tokens
// (dimensions, numbers of a literal, attributes that are carried through) is
// read from the text at tok.end.
//
// After a syntax error the parser has failed: the next token is the end of the
// text, whatever is read, until the loop over functions goes on with the next
// one. So loops over tokens end by themselves, and what they have read is not
// used. Errors that leave the syntax clear are recorded and reading goes on.
type parser struct {
	file  string
	src   string
	lines lines.Index
	tok   token
	depth int
	errs  diag.List

	failed bool
	resume int // where the token begins at which it failed

	nodes int // attributes, types and bytes of verbatim text so far, those that an alias stands for included

	ahead *ahead // of the parser of the text, where it is large
	draft *draft // of one that reads ahead: what it reads
	room  int    // of one that reads ahead: for so many ops of a draft

	m         *ir.Module
	aliases   map[string]*alias      // of all parsers of a text
	own       map[string]*alias      // of one that reads ahead: the aliases that it has met
	resources map[string]string      // hex text of dialect resources, by key
	literals  map[string]*ir.Literal // resources that were used, by key and type
	inlined   *inlinedMeshes

	fn     *ir.Func
	scopes []scope
	outer  map[string][]*ir.Value // memory for the names of the next function
	known  map[string]*ir.Type    // types of tensors, by text
	shared *types                 // the same of all parsers, where there are several

	read    []*ir.Op // of the blocks that have not ended
	states  []*state // for the ops to come
	opSlab  slab.Of[ir.Op]
	origins slab.Of[ir.Origin]
	values  slab.Of[*ir.Value]
}

// maxErrors is how many errors are reported.
const maxErrors = 20

// maxDepth bounds the nesting of types, attributes, locations and regions.
const maxDepth = 256

// maxNodes bounds what aliases of aliases may stand for, beyond what the text
// itself can.
const maxNodes = 1 << 22

// report records an error at offset at, unless the parser has failed. It fails where there
// are too many, and at the first one where it reads ahead.
func (s *parser) report(at int, format string, args ...any) {
	if s.failed {
		return
	}
	if len(s.errs) >= maxErrors || s.draft != nil {
		s.giveUp()
		return
	}
	line, col := s.lines.Find(s.src, at)
	s.errs = append(s.errs, &diag.Diagnostic{File: s.file, Line: line, Col: col, Len: s.lenAt(at), Text: s.lines.Text(s.src, line),
		Msg: fmt.Sprintf(format, args...), Template: format})
}

// lenAt is the length of the token at offset at, if that is the next one.
func (s *parser) lenAt(at int) int {
	if s.tok.start == at {
		return max(1, s.tok.end-s.tok.start)
	}
	return 1
}

// fail reports a syntax error and gives up on the function.
func (s *parser) fail(at int, format string, args ...any) {
	s.report(at, format, args...)
	s.giveUp()
}

// giveUp makes the end of the text what is read from here on.
func (s *parser) giveUp() {
	if !s.failed {
		s.failed, s.resume = true, s.tok.start
		s.tok = token{endToken, len(s.src), len(s.src)}
	}
}

// wanted fails because the next token is not what is wanted.
func (s *parser) wanted(what string) {
	if !s.failed {
		s.fail(s.tok.start, "found %s, want %s", s.found(), what)
	}
}

const badString = "a string without an end, or with an escape that does not exist"

// found is the next token for a message.
func (s *parser) found() string {
	switch t := s.text(); {
	case s.tok.kind == endToken:
		return "the end of the text"
	case s.tok.kind == invalidToken && strings.HasPrefix(t, `"`):
		return badString
	case len(t) > 40:
		return fmt.Sprintf("%.40q…", t)
	default:
		return fmt.Sprintf("%q", t)
	}
}

// enter goes one level deeper; leave comes back.
func (s *parser) enter() {
	if s.depth++; s.depth > maxDepth {
		s.fail(s.tok.start, "nested more than %d levels deep", maxDepth)
	}
}

func (s *parser) leave() { s.depth-- }

// node counts n attributes or types.
func (s *parser) node(n int) {
	if s.nodes += n; s.nodes > maxNodes+2*len(s.src) {
		s.fail(s.tok.start, "the aliases stand for too much")
	}
}

// text is the text of the next token.
func (s *parser) text() string { return s.src[s.tok.start:s.tok.end] }

// take returns the text of the next token and moves on.
func (s *parser) take() string {
	t := s.text()
	s.next()
	return t
}

// at reports whether the next token is the punctuation or the name t.
func (s *parser) at(t string) bool {
	return (s.tok.kind == punctToken || s.tok.kind == nameToken) && s.text() == t
}

// accept moves past t if it is the next token.
func (s *parser) accept(t string) bool {
	if s.at(t) {
		s.next()
		return true
	}
	return false
}

// expect moves past t, which must be the next token.
func (s *parser) expect(t string) {
	if !s.accept(t) {
		s.wanted(fmt.Sprintf("%q", t))
	}
}

// list calls item for each of a list of things between open and end, separated
// by commas; one more comma may stand before the end.
func (s *parser) list(open, end string, item func()) {
	s.expect(open)
	for more := !s.at(end) && !s.failed; more; more = s.accept(",") {
		item()
	}
	s.expect(end)
}

// seek makes the token at offset at the next one.
func (s *parser) seek(at int) {
	if s.failed {
		return
	}
	s.tok.end = at
	s.next()
}

// back makes t, which was the next token before, the next one.
func (s *parser) back(t token) {
	if !s.failed {
		s.tok = t
	}
}

// next moves past the next token.
func (s *parser) next() {
	i := s.skipSpace(s.tok.end)
	s.tok = s.lex(i)
}

// skipSpace returns the offset of what comes after blanks and comments at i.
func (s *parser) skipSpace(i int) int {
	for i < len(s.src) {
		switch c := s.src[i]; {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			i++
		case c == '/' && strings.HasPrefix(s.src[i:], "//"):
			if n := strings.IndexByte(s.src[i:], '\n'); n >= 0 {
				i += n
			} else {
				i = len(s.src)
			}
		default:
			return i
		}
	}
	return i
}

// lex returns the token at i, where no blank is.
func (s *parser) lex(i int) token {
	if i >= len(s.src) {
		return token{endToken, i, i}
	}
	switch c := s.src[i]; {
	case names.IsLetter(c) || c == '_':
		return token{nameToken, i, s.scan(i+1, isBareByte)}
	case '0' <= c && c <= '9':
		return s.lexNumber(i)
	case c == '"':
		return s.lexString(i, i, stringToken)
	case c == '%':
		return s.lexPrefixed(i, valueToken)
	case c == '#':
		return s.lexPrefixed(i, hashToken)
	case c == '!':
		return s.lexPrefixed(i, bangToken)
	case c == '^':
		return s.lexPrefixed(i, caretToken)
	case c == '@' && strings.HasPrefix(s.src[i:], `@"`):
		return s.lexString(i, i+1, symbolToken)
	case c == '@':
		return s.lexPrefixed(i, symbolToken)
	case strings.HasPrefix(s.src[i:], "->"):
		return token{punctToken, i, i + 2}
	case strings.IndexByte("()[]{}<>,=:-+*?/|", c) >= 0:
		return token{punctToken, i, i + 1}
	}
	return token{invalidToken, i, i + 1}
}

// scan returns the end of the bytes from i on for which ok holds.
func (s *parser) scan(i int, ok func(byte) bool) int {
	for i < len(s.src) && ok(s.src[i]) {
		i++
	}
	return i
}

func isBareByte(c byte) bool {
	return c == '_' || c == '$' || c == '.' || '0' <= c && c <= '9' || names.IsLetter(c)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

// lexPrefixed reads a sigil and a name; an all-digit name ends with its digits.
func (s *parser) lexPrefixed(i int, kind tokenKind) token {
	end := i + 1
	if end < len(s.src) && isDigit(s.src[end]) {
		end = s.scan(end, isDigit)
	} else if kind == symbolToken || kind == bangToken {
		end = s.scan(end, isBareByte)
	} else {
		end = s.scan(end, names.IsNameByte)
	}
	for end > i+1 && s.src[end-1] == '-' && end < len(s.src) && s.src[end] == '>' {
		end-- // the - of ->
	}
	if end == i+1 {
		kind = invalidToken
	}
	return token{kind, i, end}
}

func (s *parser) lexNumber(i int) token {
	if strings.HasPrefix(s.src[i:], "0x") && i+2 < len(s.src) && isHex(s.src[i+2]) {
		return token{intToken, i, s.scan(i+2, isHex)}
	}
	end := s.scan(i, isDigit)
	if end >= len(s.src) || s.src[end] != '.' {
		return token{intToken, i, end}
	}
	end = s.scan(end+1, isDigit)
	if end < len(s.src) && (s.src[end] == 'e' || s.src[end] == 'E') {
		k := end + 1
		if k < len(s.src) && (s.src[k] == '+' || s.src[k] == '-') {
			k++
		}
		if e := s.scan(k, isDigit); e > k {
			end = e
		}
	}
	return token{floatToken, i, end}
}

// lexString reads the string whose opening quote is at quote, as part of a
// token that starts at i.
func (s *parser) lexString(i, quote int, kind tokenKind) token {
	end := stringEnd(s.src, quote)
	if end < 0 {
		return token{invalidToken, i, i + 1}
	}
	return token{kind, i, end}
}

// stringEnd returns the offset after the closing quote of the string at quote,
// or -1. A string does not go beyond its line.
func stringEnd(src string, quote int) int {
	if n := strings.IndexByte(src[quote+1:], '"'); n >= 0 && strings.IndexByte(src[quote+1:quote+1+n], '\\') < 0 && strings.IndexByte(src[quote+1:quote+1+n], '\n') < 0 {
		return quote + n + 2
	}
	for i := quote + 1; i < len(src); i++ {
		switch src[i] {
		case '"':
			return i + 1
		case '\\':
			if i++; !isEscape(src[i:min(i+2, len(src))]) {
				return -1
			}
		case '\n':
			return -1
		}
	}
	return -1
}

// pastString is stringEnd; where there is none it fails, and is the end of the text.
func (s *parser) pastString(quote int) int {
	if end := stringEnd(s.src, quote); end >= 0 {
		return end
	}
	s.fail(quote, badString)
	return len(s.src)
}

// isEscape reports whether t, at most two bytes, may stand after a backslash.
func isEscape(t string) bool {
	return t != "" && strings.IndexByte(`nt\"`, t[0]) >= 0 || len(t) == 2 && isHex(t[0]) && isHex(t[1])
}

// unquote is the value of a string token.
func unquote(t string) string {
	return strings.Clone(ir.UnquotedText(t))
}
