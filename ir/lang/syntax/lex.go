package syntax

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/participle/v2/lexer"
)

// The kinds of tokens. Every text is a sequence of tokens: what is none of the others is
// invalid, character by character, so that the parser, not the lexer, reports it.
const (
	commentToken lexer.TokenType = -2 - iota // // to the end of the line
	keywordToken
	identToken   // letters, digits and underscores, no digit first, that are no keyword
	numberToken  // digits with or without a fraction, or a fraction; with or without an exponent
	stringToken  // in quotes, on one line
	punctToken   // see [punctSize]
	spaceToken   // blanks and ends of lines
	invalidToken // one character
)

// tokenRules are the tokens of the language, as the parser asks for them.
type tokenRules struct{}

func (tokenRules) Symbols() map[string]lexer.TokenType {
	return map[string]lexer.TokenType{
		"EOF": lexer.EOF, "Comment": commentToken, "Keyword": keywordToken, "Ident": identToken, "Number": numberToken,
		"String": stringToken, "Punct": punctToken, "Space": spaceToken, "Invalid": invalidToken,
	}
}

func (r tokenRules) Lex(name string, text io.Reader) (lexer.Lexer, error) {
	all, err := io.ReadAll(text)
	if err != nil {
		return nil, err
	}
	return r.LexString(name, string(all))
}

func (tokenRules) LexString(name, text string) (lexer.Lexer, error) {
	return &tokens{rest: text, pos: lexer.Position{Filename: name, Line: 1, Column: 1}}, nil
}

// tokens are the tokens of a text.
type tokens struct {
	rest string
	pos  lexer.Position // where it begins
}

// Next is the next token.
func (l *tokens) Next() (lexer.Token, error) {
	if l.rest == "" {
		return lexer.EOFToken(l.pos), nil
	}
	kind, n := tokenOf(l.rest)
	t := lexer.Token{Type: kind, Value: l.rest[:n], Pos: l.pos}
	l.pos.Advance(t.Value)
	l.rest = l.rest[n:]
	return t, nil
}

// tokenOf is the kind and the size of the token that s begins with.
func tokenOf(s string) (lexer.TokenType, int) {
	c := s[0]
	switch {
	case strings.HasPrefix(s, "//"):
		if n := strings.IndexByte(s, '\n'); n >= 0 {
			return commentToken, n
		}
		return commentToken, len(s)
	case isWord(c) && !isDigit(c):
		n := run(s, isWord)
		if isKeyword(s[:n]) {
			return keywordToken, n
		}
		return identToken, n
	case isDigit(c) || c == '.' && len(s) > 1 && isDigit(s[1]):
		return numberToken, numberSize(s)
	case c == '"':
		if n := strings.IndexAny(s[1:], "\"\n"); n >= 0 && s[1+n] == '"' {
			return stringToken, n + 2
		}
	case isSpace(c):
		return spaceToken, run(s, isSpace)
	}
	if n := punctSize(s); n > 0 {
		return punctToken, n
	}
	_, n := utf8.DecodeRuneInString(s)
	return invalidToken, n
}

// run is how many bytes s begins with that are so.
func run(s string, so func(c byte) bool) int {
	n := 0
	for n < len(s) && so(s[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWord(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func isKeyword(s string) bool {
	switch s {
	case "include", "types", "axes", "mesh", "pipeline", "train", "hardware", "shard", "fn", "layer", "model", "param", "return", "if", "else":
		return true
	}
	return false
}

// numberSize is the size of the number that s begins with.
func numberSize(s string) int {
	n := run(s, isDigit)
	if n < len(s) && s[n] == '.' {
		n++
		n += run(s[n:], isDigit)
	}
	if n == len(s) || s[n] != 'e' && s[n] != 'E' {
		return n
	}
	digits := n + 1
	if digits < len(s) && (s[digits] == '-' || s[digits] == '+') {
		digits++
	}
	if more := run(s[digits:], isDigit); more > 0 {
		return digits + more
	}
	return n
}

// punctSize is the size of the sign that s begins with, 0 for none.
func punctSize(s string) int {
	if len(s) > 1 {
		switch s[:2] {
		case "->", "==", "!=", "<=", ">=", "&&", "||":
			return 2
		}
	}
	if strings.IndexByte("(){}[],:;=<>+-*/%!", s[0]) >= 0 {
		return 1
	}
	return 0
}
