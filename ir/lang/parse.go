package lang

import (
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"

	"ppc/internal/diag"
)

// A source is one file, the standard library's included, or one --set.
type source struct {
	name string
	text string
	rank int  // in the order of reading
	std  bool // of the standard library
}

// MaxSource is how many bytes of one file are read.
const MaxSource = 1 << 18

// Bounds on what is read, so that time and memory stay within bounds too.
const (
	maxDepth = 100  // nested brackets
	maxChain = 500  // operators in a row
	maxFiles = 1000 // included files
)

// A reporter collects the errors and warnings of a run.
type reporter struct {
	list  diag.List
	warns diag.List
	count int  // of errors, those that the list no longer takes included
	blind bool // some source could not be read: what it declares is missing
}

// maxErrors bounds the list: nobody reads more.
const maxErrors = 100

// report adds an error: text is its template, from messages.go. It returns
// nil where the list is full.
func (r *reporter) report(at span, hint string, text message, args ...any) *diag.Diagnostic {
	if r.count++; r.count > maxErrors {
		return nil
	}
	d := diagnostic(at, hint, text, args...)
	r.list = append(r.list, d)
	return d
}

// warn adds a warning: name is that of its row in Warnings, text its template,
// from messages.go. It returns nil where the list is full.
func (r *reporter) warn(at span, name, hint string, text message, args ...any) *diag.Diagnostic {
	if len(r.warns) == maxErrors {
		return nil
	}
	d := diagnostic(at, hint, text, args...)
	d.Warning = name
	r.warns = append(r.warns, d)
	return d
}

func diagnostic(at span, hint string, text message, args ...any) *diag.Diagnostic {
	d := &diag.Diagnostic{Msg: text.format(args...), Template: string(text), Hint: hint}
	if at.src != nil {
		d.File, d.Line, d.Col, d.Len, d.Rank = at.src.name, at.line, at.col, at.len, at.src.rank
		d.Text = diag.LineOf(at.src.text, at.line)
	}
	return d
}

// parse reads one source. It reports what is wrong and returns what it could
// read, which is not nil.
func parse(src *source, r *reporter) *file {
	f := &file{src: src}
	if !readable(src, r) {
		r.blind = true
		return f
	}
	text := src.text
	for range maxSyntax {
		root, err := fileParser.ParseString(src.name, text)
		if err == nil {
			newConverter(src, r).file(f, root)
			break
		}
		r.blind = true
		at := syntaxError(src, err, r)
		if text = withoutBlock(text, at.line, at.col); text == "" {
			break
		}
	}
	return f
}

// maxSyntax bounds how many blocks of a file are reported that cannot be parsed.
const maxSyntax = 10

// beginsBlock finds the lines with which a block begins, unless they are in one.
var beginsBlock = regexp.MustCompile(`(?m)^(?:` + strings.Join(blockWords, "|") + `)\b`)

// withoutBlock is text with blanks in place of the block that a place is in: from
// the last line before it that begins a block outside of all braces, up to the
// first line after it that looks as if it began one. So what is wrong in other
// blocks is found as well. It is "" where the block has no beginning or no end.
func withoutBlock(text string, line, col int) string {
	from, place := -1, 0
	for n := 1; n < line; n++ {
		place += strings.IndexByte(text[place:], '\n') + 1
	}
	place = min(place+col-1, len(text)) // by bytes: of a line in other letters it is not far off
	for _, at := range beginsBlock.FindAllStringIndex(text, -1) {
		if at[0] > place {
			if from < 0 {
				return ""
			}
			blank := strings.Map(func(c rune) rune {
				if c == '\n' {
					return c
				}
				return ' '
			}, text[from:at[0]])
			return text[:from] + blank + text[at[0]:]
		}
		if braces(text[:at[0]]) == 0 {
			from = at[0]
		}
	}
	return ""
}

// braces is how many braces are open at the end of text.
func braces(text string) int {
	open := 0
	for line := range strings.Lines(text) {
		quoted := false
	characters:
		for i, c := range line {
			switch {
			case c == '"':
				quoted = !quoted
			case quoted:
			case strings.HasPrefix(line[i:], "//"):
				break characters
			case c == '{':
				open++
			case c == '}':
				open--
			}
		}
	}
	return open
}

// parseSetting reads one key = value, as --set has it after the block's name.
func parseSetting(src *source, r *reporter) (setting, bool) {
	if !readable(src, r) {
		return setting{}, false
	}
	root, err := entryParser.ParseString(src.name, src.text)
	if err != nil {
		syntaxError(src, err, r)
		return setting{}, false
	}
	c := newConverter(src, r)
	return c.setting(root), true
}

// readable reports whether src is within the bounds that the parser asks for:
// UTF-8, not too deep, not too long.
func readable(src *source, r *reporter) bool {
	depth, line, col, odd := 0, 1, 1, 0
	comment, quoted, opened := false, false, span{}
	at := func() span { return span{src, line, col, 1} }
	unclosed := func() bool {
		if quoted {
			text := []rune(strings.TrimRight(diag.LineOf(src.text, opened.line), " \t\r"))
			opened.len = len(text) - opened.col + 1
			r.report(opened, `end it with "`, errQuote)
		}
		return quoted
	}
	for i := 0; i < len(src.text); {
		c, n := utf8.DecodeRuneInString(src.text[i:])
		switch {
		case c == utf8.RuneError && n == 1:
			r.report(at(), "save the file as UTF-8", errUTF8, src.text[i])
			return false
		case c == '\n':
			if unclosed() {
				return false
			}
			comment = false
		case comment:
		case c == '"':
			quoted, opened = !quoted, at()
		case quoted:
		case !isOurs(c):
			if odd++; odd <= maxOdd {
				r.character(at(), c)
			}
		case c == '/' && strings.HasPrefix(src.text[i:], "//"):
			comment = true
		case strings.ContainsRune("([{", c):
			if depth++; depth > maxDepth {
				r.report(at(), "name the inner parts first: x = …", errDepth, depth, maxDepth)
				return false
			}
		case strings.ContainsRune(")]}", c):
			depth--
		}
		if i += n; c == '\n' {
			line, col = line+1, 1
		} else {
			col++
		}
		if i > MaxSource {
			r.report(span{src, 1, 1, 1}, "split it and use include", errSize, len(src.text), MaxSource)
			return false
		}
	}
	return !unclosed() && odd == 0
}

// maxOdd bounds how many characters of one source are reported.
const maxOdd = 10

// syntaxError reports the parser's error in our words; it returns the place.
func syntaxError(src *source, err error, r *reporter) span {
	var at participle.Error
	var chain *chainError
	if errors.As(err, &chain) {
		r.report(span{src, chain.pos.Line, chain.pos.Column, 1}, "name the inner parts first: x = …", errLong, maxChain)
		return span{src, chain.pos.Line, chain.pos.Column, 1}
	}
	var unexpected *participle.UnexpectedTokenError
	if !errors.As(err, &at) || !errors.As(err, &unexpected) { // not by this grammar
		r.report(span{src, 1, 1, 1}, err.Error(), errToken, "input", wantBlock)
		return span{src, 1, 1, 1}
	}
	p := at.Position()
	where := span{src, p.Line, p.Column, 1}
	t := unexpected.Unexpected
	where.len = utf8.RuneCountInString(t.Value)
	if t.EOF() {
		r.report(where, "", errEnd, wanted(unexpected))
		return where
	}
	want := wanted(unexpected)
	hint := ""
	if want == wantBlock {
		hint = suggest(blockWord, t.Value, blockWords)
	}
	r.report(where, hint, errToken, shorten(strings.Trim(t.Value, `"`)), want)
	return where
}

// blockWords begin the blocks of a file.
var blockWords = []string{"axes", "types", "fn", "layer", "model", "mesh", "shard", "pipeline", "train", "hardware", "include"}

const wantBlock = "a block: axes, types, fn, layer, model, mesh, shard, pipeline, train, hardware or include"

// shorten cuts a long word for a message.
func shorten(word string) string {
	if r := []rune(word); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return word
}

// wanted turns the grammar's account of what could stand at a place into a
// few words.
func wanted(e *participle.UnexpectedTokenError) string {
	_, want, ok := strings.Cut(e.Message(), "(expected ")
	want = strings.TrimSuffix(want, ")")
	if !ok || want == "" {
		return wantBlock
	}
	if want == `"}"` {
		return "} or name = value"
	}
	for _, w := range []struct{ prefix, words string }{
		{`"param"`, "a statement: name = expression, param, if or return"},
		{"WeightNode", "a statement: name = expression, param, if or return"},
		{"exprNode", "an expression"}, {"ExprNode", "an expression"},
		{"NameNode", "a name"}, {"(<ident>", "a name"}, {"<ident>", "a name"}, {"TypeNode", "a type"}, {"BodyNode", "{"}, {"<string>", "a file name in quotes"},
	} {
		if strings.HasPrefix(want, w.prefix) {
			return w.words
		}
	}
	if strings.HasPrefix(want, `"`) {
		if end := strings.IndexByte(want[1:], '"'); end >= 0 {
			return want[1 : 1+end]
		}
	}
	return want
}

// A converter turns the parser's tree into the one the checker walks, and
// demands the separators that the grammar left optional.
type converter struct {
	src   *source
	r     *reporter
	lines []string
}

func newConverter(src *source, r *reporter) *converter {
	return &converter{src, r, strings.Split(src.text, "\n")}
}

func (c *converter) span(from, to lexer.Position) span {
	s := span{c.src, from.Line, from.Column, 1}
	if to.Line == from.Line {
		s.len = max(1, to.Column-from.Column)
	} else {
		s.len = c.rest(from.Line, from.Column)
	}
	return s
}

// rest is the length of a line from a column on, comment aside.
func (c *converter) rest(line, col int) int {
	text, _, _ := strings.Cut(c.lines[line-1], "//")
	return max(1, utf8.RuneCountInString(strings.TrimRight(text, " \t\r"))-col+1)
}

// separated demands a separator or the end of the line between neighbours.
func (c *converter) separated(has bool, end, next lexer.Position) {
	if !has && end.Line == next.Line {
		c.r.report(span{c.src, next.Line, next.Column, 1}, "", errSeparator)
	}
}

// comma demands one between neighbours.
func (c *converter) comma(has bool, next lexer.Position) {
	if !has {
		c.r.report(span{c.src, next.Line, next.Column, 1}, "", errComma)
	}
}

func (c *converter) file(f *file, root *fileNode) {
	for i, it := range root.Items {
		if i > 0 {
			c.separated(root.Items[i-1].Sep, root.Items[i-1].EndPos, it.Pos)
		}
		switch {
		case it.Include != nil:
			f.includes = append(f.includes, includeDecl{c.span(it.Pos, it.EndPos), unquote(it.Include.Path)})
		case it.Settings != nil:
			f.blocks = append(f.blocks, block{c.word(it.Settings.Pos, it.Settings.Kind), it.Settings.Kind, c.settings(it.Settings.Entries)})
		case it.Shard != nil:
			f.shards = append(f.shards, shardBlock{c.word(it.Shard.Of.Pos, it.Shard.Of.Name), it.Shard.Of.Name, c.rules(it.Shard.Rules)})
		case it.Func != nil:
			f.funcs = append(f.funcs, c.fn(it.Func))
		}
	}
}

func (c *converter) word(p lexer.Position, word string) span {
	return span{c.src, p.Line, p.Column, utf8.RuneCountInString(word)}
}

func (c *converter) name(n *nameNode) nameRef {
	return nameRef{c.word(n.Pos, n.Name), unquote(n.Name)}
}

func unquote(s string) string { return strings.Trim(s, `"`) }

func (c *converter) settings(es []*entryNode) []setting {
	out := make([]setting, len(es))
	for i, e := range es {
		if i > 0 {
			c.separated(es[i-1].Sep, es[i-1].EndPos, e.Pos)
		}
		out[i] = c.setting(e)
	}
	return out
}

func (c *converter) setting(e *entryNode) setting {
	s := setting{span: c.span(e.Pos, e.Value.EndPos), key: unquote(e.Key), value: c.expr(e.Value)}
	if e.Body != nil {
		s.body = c.settings(e.Body)
	}
	return s
}

func (c *converter) rules(rs []*ruleNode) []rule {
	var out []rule
	for i, r := range rs {
		if i > 0 {
			c.separated(rs[i-1].Sep, rs[i-1].EndPos, r.Pos)
		}
		var parts [][]nameRef
		for _, p := range r.Parts {
			parts = append(parts, c.names(p))
		}
		out = append(out, c.rule(c.span(r.Pos, r.EndPos), parts)...)
	}
	return out
}

// rule makes the rules of one line: a -> x, y, and also a -> x, b -> y, where
// the last name before an arrow that is not the first is on its left.
func (c *converter) rule(at span, parts [][]nameRef) []rule {
	if len(parts) == 1 {
		c.r.report(at, "write axis -> mesh axis", errArrow, parts[0][0].name)
		return nil
	}
	var out []rule
	left := parts[0]
	for k, right := range parts[1:] {
		var next []nameRef
		if last := len(right) - 1; k+2 < len(parts) {
			right, next = right[:last], right[last:]
		}
		out = append(out, rule{span: at, axes: left, mesh: right})
		left = next
	}
	return out
}

func (c *converter) names(ns *namesNode) []nameRef {
	out := make([]nameRef, len(ns.Names))
	for i, n := range ns.Names {
		out[i] = c.name(n)
	}
	return out
}

func (c *converter) fn(f *funcNode) *funcDecl {
	d := &funcDecl{span: c.word(f.Name.Pos, f.Name.Name), kind: f.Kind, name: unquote(f.Name.Name), body: c.body(f.Body)}
	for i, p := range f.Params {
		if i > 0 {
			c.comma(f.Params[i-1].Sep, p.Pos)
		}
		q := param{span: c.word(p.Pos, p.Name), name: p.Name, typ: c.typ(p.Type)}
		if p.Default != nil {
			q.def = c.expr(p.Default)
		}
		d.params = append(d.params, q)
	}
	return d
}

func (c *converter) typ(t *typeNode) *typeExpr {
	if t == nil {
		return nil
	}
	out := &typeExpr{span: c.span(t.Pos, t.EndPos), elem: t.Elem, open: t.Open}
	for i, a := range t.Axes {
		if i > 0 {
			c.comma(t.Axes[i-1].Sep, a.Pos)
		}
		out.axes = append(out.axes, nameRef{c.word(a.Pos, a.Name), a.Name})
	}
	return out
}

func (c *converter) body(b *bodyNode) []stmt {
	var out []stmt
	for i, s := range b.Stmts {
		if i > 0 {
			c.separated(b.Stmts[i-1].Sep, b.Stmts[i-1].EndPos, s.Pos)
		}
		at := c.span(s.Pos, s.EndPos)
		switch {
		case s.Weight != nil:
			out = append(out, c.weight(at, s.Weight))
		case s.Return != nil:
			out = append(out, c.ret(c.word(s.Pos, "return"), s.Return))
		case s.If != nil:
			out = append(out, c.cond(s.If))
		case s.Assign != nil:
			a := &assignStmt{span: at, value: c.expr(s.Assign.Value)}
			for _, n := range s.Assign.Names {
				a.names = append(a.names, c.name(n))
			}
			out = append(out, a)
		}
	}
	return out
}

func (c *converter) weight(at span, w *weightNode) *weightStmt {
	out := &weightStmt{span: at, typ: c.typ(w.Type), frozen: w.Frozen}
	for _, n := range w.Names {
		out.names = append(out.names, c.name(n))
	}
	if w.Init != nil {
		out.init = c.expr(w.Init)
	}
	if w.File != nil {
		out.file = &textLit{c.word(w.File.Pos, w.File.Name), unquote(w.File.Name)}
	}
	return out
}

func (c *converter) ret(at span, r *returnNode) *returnStmt {
	out := &returnStmt{span: at}
	for _, a := range r.Args {
		out.args = append(out.args, c.returned(a))
	}
	return out
}

func (c *converter) cond(n *ifNode) *ifStmt {
	out := &ifStmt{branches: []branch{{c.expr(n.Cond), c.body(n.Then)}}, span: c.word(n.Pos, "if")}
	for i, e := range n.Else {
		if e.Cond == nil {
			out.alt = c.body(e.Body)
			if i < len(n.Else)-1 {
				c.r.report(c.word(n.Else[i+1].Pos, "else"), "", errElse)
			}
			break
		}
		out.branches = append(out.branches, branch{c.expr(e.Cond), c.body(e.Body)})
	}
	return out
}

// arg finishes one argument: its name is what stands before the colon.
func (c *converter) arg(a *arg) {
	if a.key != nil {
		c.place(a.key)
		n, ok := a.key.(*nameRef)
		if !ok {
			c.r.report(a.key.at(), "write name: value", errArgName)
			c.r.blind = true
		}
		a.name = n
	}
	c.place(a.value)
	if a.to != nil {
		c.place(a.to)
	}
	a.span = c.fix(a.span)
}

func (c *converter) args(as []arg) {
	for i := range as {
		c.arg(&as[i])
		if i > 0 && !as[i-1].comma {
			c.r.report(as[i].span, "", errComma)
		}
	}
}

// returned makes an argument of a return statement.
func (c *converter) returned(r *returnArgNode) arg {
	a := arg{span: r.Value.tree.at(), value: r.Value.tree}
	if r.Named != nil {
		a.key, a.value = a.value, r.Named.tree
	}
	c.arg(&a)
	return a
}

func (c *converter) expr(n *exprNode) expr {
	c.place(n.tree)
	return n.tree
}

// fix gives a span its source, and, where it goes on over the end of the line,
// its length on this one.
func (c *converter) fix(s span) span {
	if s.src = c.src; s.len == 0 {
		s.len = c.rest(s.line, s.col)
	}
	return s
}

// place finishes an expression: its spans get their source, the separators in
// it are demanded.
func (c *converter) place(x expr) {
	switch x := x.(type) {
	case *numberLit:
		if x.span = c.fix(x.span); !x.ok {
			c.r.report(x.span, "", errNumber, shorten(x.text))
		}
	case *textLit:
		x.span = c.fix(x.span)
	case *nameRef:
		x.span = c.fix(x.span)
	case *listLit:
		x.span = c.fix(x.span)
		c.args(x.items)
	case *rulesLit:
		x.span = c.fix(x.span)
		x.rules = c.innerRules(x.rules)
	case *unaryExpr:
		x.span = c.fix(x.span)
		c.place(x.x)
	case *binaryExpr:
		x.span = c.fix(x.span)
		c.place(x.x)
		c.place(x.y)
	case *callExpr:
		x.span = c.fix(x.span)
		c.place(x.fn)
		c.args(x.args)
	}
}

// innerRules finishes the rules in the braces of an expression.
func (c *converter) innerRules(rs []rule) []rule {
	var out []rule
	for i, r := range rs {
		if i > 0 {
			p := &rs[i-1]
			c.separated(p.sep, lexer.Position{Line: p.endLine}, lexer.Position{Line: r.line, Column: r.col})
		}
		for _, part := range r.parts {
			for k := range part {
				part[k].span = c.fix(part[k].span)
			}
		}
		out = append(out, c.rule(c.fix(r.span), r.parts)...)
	}
	return out
}
