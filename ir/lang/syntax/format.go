package syntax

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/participle/v2/lexer"
)

// Format returns src with canonical spacing, indentation and alignment. Lines
// stay lines and comments stay where they are; blank lines become at most one.
// What Format returns, it leaves as it is. The error, a [diag.List], says why
// src cannot be read.
func Format(file string, src []byte) ([]byte, error) {
	var r Reporter
	s := &Source{Name: file, Text: WithoutMark(src)}
	Parse(s, &r)
	if len(r.List) > 0 {
		r.List.Sort()
		return nil, r.List.Err()
	}
	lines, err := TokenLines(s)
	if err != nil {
		return nil, err // cannot be: it was parsed
	}
	f := &formatter{}
	for _, l := range lines {
		f.line(l)
	}
	return f.finish(), nil
}

// A token is one token of a line; whether it is unary, a call or a block follows
// from the token before it.
type token struct {
	Text string
	Kind string // the lexer's rule
}

// TokenLines are the tokens of s by line, spaces left out; an empty line has
// none.
func TokenLines(s *Source) ([][]token, error) {
	lex, err := tokenRules{}.LexString(s.Name, s.Text)
	if err != nil {
		return nil, err
	}
	all, err := lexer.ConsumeAll(lex)
	if err != nil {
		return nil, err
	}
	names := lexer.SymbolsByRune(tokenRules{})
	lines := [][]token{nil}
	for _, t := range all {
		switch kind := names[t.Type]; {
		case t.EOF():
		case kind == "Space":
			for range strings.Count(t.Value, "\n") {
				lines = append(lines, nil)
			}
		default:
			lines[len(lines)-1] = append(lines[len(lines)-1], token{strings.TrimRight(t.Value, " \t\r"), kind})
		}
	}
	return lines, nil
}

// A formatter lays out line after line.
type formatter struct {
	out   []outLine
	stack []string // what the open brackets are: ( [ settings shard body rules
	item  string   // the keyword of the block at the outermost level
	last  token    // before the next one, comments aside; none at the start
	unary bool     // last is a sign
}

// An outLine is a line in columns, which are aligned with those of neighbouring
// lines of one kind.
type outLine struct {
	kind    string // "" aligns with none
	parts   []string
	comment string
}

func (f *formatter) line(ts []token) {
	if len(ts) == 0 {
		f.out = append(f.out, outLine{})
		return
	}
	var l outLine
	if c := ts[len(ts)-1]; c.Kind == "Comment" {
		l.comment, ts = c.Text, ts[:len(ts)-1]
	}
	for len(ts) > 0 && ts[len(ts)-1].Text == ";" { // the end of the line does as well
		ts = ts[:len(ts)-1]
	}
	indent := f.indent(ts)
	if len(ts) == 0 {
		f.out = append(f.out, outLine{parts: []string{indent + l.comment}})
		return
	}
	var cuts []int
	l.kind, cuts = f.columns(ts)
	var b strings.Builder
	b.WriteString(indent)
	for i, t := range ts {
		switch {
		case slices.Contains(cuts, i):
			l.parts = append(l.parts, b.String())
			b.Reset()
		case i > 0 && f.space(t):
			b.WriteByte(' ')
		}
		b.WriteString(t.Text)
		f.push(t)
	}
	l.parts = append(l.parts, b.String())
	f.out = append(f.out, l)
}

// indent is two blanks for each brace that stays open, four for each other
// bracket, and two for the rest of a statement that began on an earlier line.
func (f *formatter) indent(ts []token) string {
	open := f.stack
	for _, t := range ts {
		if !slices.Contains([]string{")", "]", "}"}, t.Text) || len(open) == 0 {
			break
		}
		open = open[:len(open)-1]
	}
	n := 0
	for _, bracket := range open {
		if n++; bracket == "(" || bracket == "[" {
			n++
		}
	}
	if len(ts) > 0 && len(open) == len(f.stack) && !f.within("(", "[") && (isBinary(ts[0]) || isBinary(f.last)) {
		n++
	}
	return strings.Repeat("  ", n)
}

// within reports whether the innermost open bracket is one of kinds.
func (f *formatter) within(kinds ...string) bool {
	return len(f.stack) > 0 && slices.Contains(kinds, f.stack[len(f.stack)-1])
}

var binaryTokens = []string{"+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "=", "->"}

func isBinary(t token) bool { return t.Kind == "Punct" && slices.Contains(binaryTokens, t.Text) }

// startsOperand reports whether an operand follows t, so that - is a sign.
func startsOperand(t token) bool {
	return t.Kind == "" || isBinary(t) || slices.Contains([]string{"(", "[", "{", ",", ":", "!", "return", "if"}, t.Text)
}

// space reports whether there is a blank between the last token and t.
func (f *formatter) space(t token) bool {
	last := f.last
	switch {
	case slices.Contains([]string{"(", "["}, last.Text), slices.Contains([]string{")", "]", ",", ";", ":"}, t.Text), f.unary:
		return false
	case last.Text == "{" || t.Text == "}":
		return !f.within("rules") && !(last.Text == "{" && t.Text == "}")
	case t.Text == "(":
		return isBinary(last) || slices.Contains([]string{",", ":", "if", "return", "{", "}"}, last.Text)
	case t.Text == "[":
		return last.Kind != "Ident"
	}
	return true
}

// push notes that t was written.
func (f *formatter) push(t token) {
	f.unary = t.Text == "!" || t.Text == "-" && startsOperand(f.last)
	if len(f.stack) == 0 && t.Kind == "Keyword" && f.last.Text != "." {
		f.item = t.Text
	}
	switch t.Text {
	case "(", "[":
		f.stack = append(f.stack, t.Text)
	case "{":
		f.stack = append(f.stack, f.brace())
	case ")", "]", "}":
		if len(f.stack) > 0 {
			f.stack = f.stack[:len(f.stack)-1]
		}
	}
	f.last = t
}

// brace says what the brace after the last token opens.
func (f *formatter) brace() string {
	switch {
	case len(f.stack) == 0 && f.item == "shard":
		return "shard"
	case len(f.stack) == 0 && slices.Contains(SettingBlocks, f.item), f.within("settings"):
		return "settings"
	case f.within("(", "[") || slices.Contains([]string{"=", "return", "->"}, f.last.Text):
		return "rules"
	}
	return "body"
}

// columns says where a line aligns with its neighbours: param a: f32[b] = ones
// at the type, the value and what follows it, settings at the =, rules at the arrow.
func (f *formatter) columns(ts []token) (kind string, cuts []int) {
	at := func(text string, after int) []int { // outside of brackets, after a token
		var found []int
		depth := 0
		for i, t := range ts {
			if slices.Contains([]string{")", "]", "}"}, t.Text) {
				depth--
			}
			if depth == 0 && i > after && t.Text == text && t.Kind != "String" {
				found = append(found, i)
			}
			if slices.Contains([]string{"(", "[", "{"}, t.Text) {
				depth++
			}
		}
		return found
	}
	switch {
	case ts[0].Text == "param" && f.within("body"):
		if colon := at(":", 0); len(colon) > 0 && colon[0]+1 < len(ts) {
			cuts = append(cuts, colon[0]+1)
			if eq := at("=", colon[0]); len(eq) > 0 {
				cuts = append(cuts, eq[0])
				if after := append(at("frozen", eq[0]), at("as", eq[0])...); len(after) > 0 {
					cuts = append(cuts, after[0])
				}
			}
		}
		return "param", cuts
	case ts[0].Text == "shard" && ts[len(ts)-1].Text == "}":
		return "shard", at("{", 0)
	case f.within("settings"):
		if eq := at("=", 0); len(eq) == 1 {
			return "setting" + strings.Repeat("{", len(f.stack)), eq // those of inner braces align among themselves
		}
	case f.within("shard"):
		if arrow := at("->", 0); len(arrow) == 1 {
			return "rule", arrow
		}
	}
	return "", nil
}

// finish aligns neighbours and joins the lines.
func (f *formatter) finish() []byte {
	f.dropBlanks()
	for i := 0; i < len(f.out); {
		j := i + 1
		for f.out[i].kind != "" && j < len(f.out) && f.out[j].kind == f.out[i].kind {
			j++
		}
		alignParts(f.out[i:j])
		i = j
	}
	f.alignComments()
	var b bytes.Buffer
	for _, l := range f.out {
		line := strings.Join(l.parts, "")
		b.WriteString(strings.TrimRight(line+l.comment, " "))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// dropBlanks leaves at most one empty line in a row, and none at the ends of
// the file and of blocks.
func (f *formatter) dropBlanks() {
	blank := func(l outLine) bool { return len(l.parts) == 0 }
	var out []outLine
	for _, l := range f.out {
		n := len(out)
		if blank(l) && (n == 0 || blank(out[n-1]) || strings.HasSuffix(out[n-1].text(), "{")) {
			continue
		}
		if n > 0 && blank(out[n-1]) && strings.HasPrefix(strings.TrimSpace(l.text()), "}") {
			out = out[:n-1]
		}
		out = append(out, l)
	}
	for len(out) > 0 && blank(out[len(out)-1]) {
		out = out[:len(out)-1]
	}
	f.out = out
}

func (l *outLine) text() string { return strings.Join(l.parts, "") }

// alignParts stretches the parts of neighbours to common widths.
func alignParts(lines []outLine) {
	for k := 0; ; k++ {
		width, more := 0, false
		for _, l := range lines {
			if k+1 < len(l.parts) {
				width = max(width, utf8.RuneCountInString(l.parts[k])+1)
				more = true
			}
		}
		if !more {
			return
		}
		for i, l := range lines {
			if k+1 < len(l.parts) {
				lines[i].parts[k] += strings.Repeat(" ", width-utf8.RuneCountInString(l.parts[k]))
			}
		}
	}
}

// alignComments puts the comments at the ends of neighbouring lines into one
// column.
func (f *formatter) alignComments() {
	for i := 0; i < len(f.out); {
		j := i
		width := 0
		for j < len(f.out) && f.out[j].comment != "" {
			width = max(width, utf8.RuneCountInString(f.out[j].text()))
			j++
		}
		for k := i; k < j; k++ {
			l := &f.out[k]
			pad := width - utf8.RuneCountInString(l.text()) + 2
			l.parts[len(l.parts)-1] += strings.Repeat(" ", pad)
		}
		i = max(j, i+1)
	}
}
