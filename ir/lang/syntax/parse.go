package syntax

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"

	"ppc/internal/diag"
)

// SettingBlocks are the blocks whose entries --set may override.
var SettingBlocks = []string{"axes", "types", "mesh", "pipeline", "train", "hardware"}

// A Source is one file, the standard library's included, or one --set.
type Source struct {
	Name string
	Text string
	Rank int  // in the order of reading
	Std  bool // of the standard library
}

// MaxSource is how many bytes of one file are read.
const MaxSource = 1 << 18

// Bounds on what is read, so that time and memory stay within bounds too.
const (
	maxDepth = 100  // nested brackets
	maxChain = 500  // operators in a row
	MaxFiles = 1000 // included files
)

// A Reporter collects the errors and warnings of a run.
type Reporter struct {
	List  diag.List
	Warns diag.List
	Count int  // of errors, those that the list no longer takes included
	Blind bool // some source could not be read: what it declares is missing
}

// maxErrors bounds the list of errors that are reported.
const maxErrors = 100

// Report adds an error: text is its template, from messages.go. It returns
// nil where the list is full.
func (r *Reporter) Report(at Span, hint string, text Message, args ...any) *diag.Diagnostic {
	if r.Count++; r.Count > maxErrors {
		return nil
	}
	d := Diagnostic(at, hint, text, args...)
	r.List = append(r.List, d)
	return d
}

// Warn adds a warning: name is that of its row in Warnings, text its template,
// from messages.go. It returns nil where the list is full.
func (r *Reporter) Warn(at Span, name, hint string, text Message, args ...any) *diag.Diagnostic {
	if len(r.Warns) == maxErrors {
		return nil
	}
	d := Diagnostic(at, hint, text, args...)
	d.Warning = name
	r.Warns = append(r.Warns, d)
	return d
}

// Diagnostic is a message at a place, with a hint at the cure.
func Diagnostic(at Span, hint string, text Message, args ...any) *diag.Diagnostic {
	d := &diag.Diagnostic{Msg: text.Format(args...), Template: string(text), Hint: hint}
	if at.Src != nil {
		d.File, d.Line, d.Col, d.Len, d.Rank = at.Src.Name, at.Line, at.Col, at.Len, at.Src.Rank
		d.Text = diag.LineOf(at.Src.Text, at.Line)
	}
	return d
}

// Parse reads one source. It reports what is wrong and returns what it could
// read, which is not nil.
func Parse(src *Source, r *Reporter) *File {
	f := &File{Src: src}
	if !readable(src, r) {
		r.Blind = true
		return f
	}
	text := src.Text
	for range maxSyntax {
		root, err := fileParser.ParseString(src.Name, text)
		if err == nil {
			newConverter(src, r).file(f, root)
			break
		}
		r.Blind = true
		at := syntaxError(src, err, wantBlock, r)
		if text = withoutBlock(text, at.Line, at.Col); text == "" {
			break
		}
	}
	return f
}

// maxSyntax bounds how many blocks of a file are reported that cannot be parsed.
const maxSyntax = 10

// beginsBlock finds the lines with which a block begins, unless they are in one.
var beginsBlock = regexp.MustCompile(`(?m)^(?:` + strings.Join(BlockWords, "|") + `)\b`)

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
		if !slices.ContainsFunc(opened(text[:at[0]]), func(b bracket) bool { return b.char == '{' }) {
			from = at[0]
		}
	}
	return ""
}

// A bracket is one that is open.
type bracket struct {
	char byte
	line int
}

// opened are the brackets that are open at the end of text, the innermost last. One that is closed ends
// those within it.
func opened(text string) []bracket {
	var open []bracket
	line := 0
	for of := range strings.Lines(text) {
		line++
		quoted := false
	characters:
		for i := range len(of) {
			switch c := of[i]; {
			case c == '"':
				quoted = !quoted
			case quoted:
			case strings.HasPrefix(of[i:], "//"):
				break characters
			case strings.IndexByte("([{", c) >= 0:
				open = append(open, bracket{c, line})
			case strings.IndexByte(")]}", c) >= 0:
				of := "([{"[strings.IndexByte(")]}", c)]
				for n, b := range slices.Backward(open) {
					if b.char == of {
						open = open[:n]
						break
					}
				}
			}
		}
	}
	return open
}

// ParseSetting reads one key = value, as --set has it after the block's name.
func ParseSetting(src *Source, r *Reporter) (Setting, bool) {
	if !readable(src, r) {
		return Setting{}, false
	}
	root, err := entryParser.ParseString(src.Name, src.Text)
	if err != nil {
		syntaxError(src, err, wantSetting, r)
		return Setting{}, false
	}
	c := newConverter(src, r)
	return c.setting(root), true
}

// readable reports whether src is within the bounds that the parser asks for:
// UTF-8, not too deep, not too long.
func readable(src *Source, r *Reporter) bool {
	depth, line, col, odd := 0, 1, 1, 0
	comment, quoted, opened := false, false, Span{}
	at := func() Span { return Span{src, line, col, 1} }
	unclosed := func() bool {
		if quoted {
			text := []rune(strings.TrimRight(diag.LineOf(src.Text, opened.Line), " \t\r"))
			opened.Len = len(text) - opened.Col + 1
			r.Report(opened, `end it with "`, errQuote)
		}
		return quoted
	}
	for i := 0; i < len(src.Text); {
		c, n := utf8.DecodeRuneInString(src.Text[i:])
		switch {
		case c == utf8.RuneError && n == 1:
			r.Report(at(), "save the file as UTF-8", errUTF8, src.Text[i])
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
		case c == '/' && strings.HasPrefix(src.Text[i:], "//"):
			comment = true
		case strings.ContainsRune("([{", c):
			if depth++; depth > maxDepth {
				r.Report(at(), "name the inner parts first: x = …", errDepth, depth, maxDepth)
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
			r.Report(Span{src, 1, 1, 1}, "split it and use include", errSize, len(src.Text), MaxSource)
			return false
		}
	}
	return !unclosed() && odd == 0
}

// maxOdd bounds how many characters of one source are reported.
const maxOdd = 10

// syntaxError reports the parser's error in our words, and that src consists of
// parts where it has no other words; it returns the place.
func syntaxError(src *Source, err error, parts string, r *Reporter) Span {
	var at participle.Error
	var chain *chainError
	if errors.As(err, &chain) {
		r.Report(Span{src, chain.pos.Line, chain.pos.Column, 1}, "name the inner parts first: x = …", errLong, maxChain)
		return Span{src, chain.pos.Line, chain.pos.Column, 1}
	}
	var unexpected *participle.UnexpectedTokenError
	if !errors.As(err, &at) || !errors.As(err, &unexpected) { // not by this grammar
		r.Report(Span{src, 1, 1, 1}, err.Error(), errToken, "input", parts)
		return Span{src, 1, 1, 1}
	}
	p := at.Position()
	where := Span{src, p.Line, p.Column, 1}
	t := unexpected.Unexpected
	where.Len = utf8.RuneCountInString(t.Value)
	if t.EOF() {
		hint := ""
		if open := opened(src.Text); len(open) > 0 {
			hint = fmt.Sprintf("the %c of line %d is open", open[len(open)-1].char, open[len(open)-1].line)
		}
		r.Report(where, hint, errEnd, wanted(unexpected, parts))
		return where
	}
	want := wanted(unexpected, parts)
	hint := ""
	switch {
	case t.Value == "/":
		hint = "a comment begins with //"
	case want == wantBlock:
		hint = Suggest(BlockWord, t.Value, BlockWords)
	}
	if end := lineBefore(src, where); end.Src != nil && want != parts && !strings.HasPrefix(want, "}") && !strings.HasPrefix(want, "a statement") {
		r.Report(end, "", errLine, want)
		return where
	}
	r.Report(where, hint, errToken, shorten(strings.Trim(t.Value, `"`)), want)
	return where
}

// lineBefore is the end of the text before a place that begins a line, which has no source where none does.
func lineBefore(src *Source, at Span) Span {
	lines := strings.Split(src.Text, "\n")
	if strings.TrimSpace(string([]rune(lines[at.Line-1])[:at.Col-1])) != "" {
		return Span{}
	}
	for n := at.Line - 2; n >= 0; n-- {
		line, _, _ := strings.Cut(lines[n], "//")
		if line = strings.TrimRight(line, " \t\r"); line != "" {
			return Span{src, n + 1, utf8.RuneCountInString(line) + 1, 1}
		}
	}
	return Span{}
}

// BlockWords begin the blocks of a file.
var BlockWords = []string{"axes", "types", "fn", "layer", "model", "mesh", "shard", "pipeline", "train", "hardware", "include"}

const wantBlock = "a block: axes, types, fn, layer, model, mesh, shard, pipeline, train, hardware or include"

// wantSetting is what a source of one setting consists of.
const wantSetting = "one key = value"

// shorten truncates a long word for a message.
func shorten(word string) string {
	if r := []rune(word); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return word
}

// wanted turns the grammar's account of what may follow at a place into a
// few words; parts, where it gives none.
func wanted(e *participle.UnexpectedTokenError, parts string) string {
	_, want, ok := strings.Cut(e.Message(), "(expected ")
	want = strings.TrimSuffix(want, ")")
	if !ok || want == "" {
		return parts
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
	src   *Source
	r     *Reporter
	lines []string
}

func newConverter(src *Source, r *Reporter) *converter {
	return &converter{src, r, strings.Split(src.Text, "\n")}
}

func (c *converter) span(from, to lexer.Position) Span {
	s := Span{c.src, from.Line, from.Column, 1}
	if to.Line == from.Line {
		s.Len = max(1, to.Column-from.Column)
	} else {
		s.Len = c.rest(from.Line, from.Column)
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
		c.r.Report(Span{c.src, next.Line, next.Column, 1}, "", errSeparator)
		c.r.Blind = true
	}
}

// comma demands one between neighbours.
func (c *converter) comma(has bool, next lexer.Position) {
	if !has {
		c.r.Report(Span{c.src, next.Line, next.Column, 1}, "", errComma)
		c.r.Blind = true
	}
}

func (c *converter) file(f *File, root *fileNode) {
	for i, it := range root.Items {
		if i > 0 {
			c.separated(root.Items[i-1].Sep, root.Items[i-1].EndPos, it.Pos)
		}
		switch {
		case it.Include != nil:
			f.Includes = append(f.Includes, IncludeDecl{c.span(it.Pos, it.EndPos), unquote(it.Include.Path)})
		case it.Settings != nil:
			f.Blocks = append(f.Blocks, Block{c.word(it.Settings.Pos, it.Settings.Kind), it.Settings.Kind, c.settings(it.Settings.Entries)})
		case it.Shard != nil:
			f.Shards = append(f.Shards, ShardBlock{c.word(it.Shard.Of.Pos, it.Shard.Of.Name), it.Shard.Of.Name, c.rules(it.Shard.Rules)})
		case it.Func != nil:
			f.Funcs = append(f.Funcs, c.fn(it.Func))
		}
	}
}

func (c *converter) word(p lexer.Position, word string) Span {
	return Span{c.src, p.Line, p.Column, utf8.RuneCountInString(word)}
}

func (c *converter) name(n *nameNode) NameRef {
	return NameRef{c.word(n.Pos, n.Name), unquote(n.Name)}
}

func unquote(s string) string { return strings.Trim(s, `"`) }

func (c *converter) settings(es []*entryNode) []Setting {
	out := make([]Setting, len(es))
	for i, e := range es {
		if i > 0 {
			c.separated(es[i-1].Sep, es[i-1].EndPos, e.Pos)
		}
		out[i] = c.setting(e)
	}
	return out
}

func (c *converter) setting(e *entryNode) Setting {
	s := Setting{Span: c.span(e.Pos, e.Value.EndPos), Key: unquote(e.Key), Value: c.expr(e.Value)}
	if e.Body != nil {
		s.Body = c.settings(e.Body)
	}
	return s
}

func (c *converter) rules(rs []*ruleNode) []Rule {
	var out []Rule
	for i, r := range rs {
		if i > 0 {
			c.separated(rs[i-1].Sep, rs[i-1].EndPos, r.Pos)
		}
		var parts [][]NameRef
		for _, p := range r.Parts {
			parts = append(parts, c.names(p))
		}
		out = append(out, c.rule(c.span(r.Pos, r.EndPos), parts)...)
	}
	return out
}

// Rule makes the rules of one line: a -> x, y, and also a -> x, b -> y, where
// the last name before an arrow that is not the first is on its left.
func (c *converter) rule(at Span, parts [][]NameRef) []Rule {
	if len(parts) == 1 {
		c.r.Report(at, "write axis -> mesh axis", errArrow, parts[0][0].Name)
		return nil
	}
	var out []Rule
	left := parts[0]
	for k, right := range parts[1:] {
		var next []NameRef
		if last := len(right) - 1; k+2 < len(parts) {
			right, next = right[:last], right[last:]
		}
		out = append(out, Rule{Span: at, Axes: left, Mesh: right})
		left = next
	}
	return out
}

func (c *converter) names(ns *namesNode) []NameRef {
	out := make([]NameRef, len(ns.Names))
	for i, n := range ns.Names {
		out[i] = c.name(n)
	}
	return out
}

func (c *converter) fn(f *funcNode) *FuncDecl {
	d := &FuncDecl{Span: c.word(f.Name.Pos, f.Name.Name), Kind: f.Kind, Name: unquote(f.Name.Name), Body: c.body(f.Body)}
	for i, p := range f.Params {
		if i > 0 {
			c.comma(f.Params[i-1].Sep, p.Pos)
		}
		q := Param{Span: c.word(p.Pos, p.Name), Name: p.Name, Typ: c.typ(p.Type)}
		if p.Default != nil {
			q.Def = c.expr(p.Default)
		}
		d.Params = append(d.Params, q)
	}
	return d
}

func (c *converter) typ(t *typeNode) *TypeExpr {
	if t == nil {
		return nil
	}
	out := &TypeExpr{Span: c.span(t.Pos, t.EndPos), Elem: t.Elem, Open: t.Open}
	for i, a := range t.Axes {
		if i > 0 {
			c.comma(t.Axes[i-1].Sep, a.Pos)
		}
		out.Axes = append(out.Axes, NameRef{c.word(a.Pos, a.Name), a.Name})
	}
	return out
}

func (c *converter) body(b *bodyNode) []Stmt {
	var out []Stmt
	for i, s := range b.Stmts {
		if i > 0 && frozenFirst(b.Stmts[i-1], s) {
			w := out[len(out)-1].(*WeightStmt)
			c.r.Report(c.word(s.Pos, "frozen"), order, errOrder, "frozen", w.Names[0].Name, "before its initial value")
			w.Init, w.Frozen = c.expr(s.Assign.Value), true
			continue
		}
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
			a := &AssignStmt{Span: at, Value: c.expr(s.Assign.Value)}
			for _, n := range s.Assign.Names {
				a.Names = append(a.Names, c.name(n))
			}
			out = append(out, a)
		}
	}
	return out
}

func (c *converter) weight(at Span, w *weightNode) *WeightStmt {
	out := &WeightStmt{Span: at, Typ: c.typ(w.Type), Frozen: w.Frozen}
	for _, n := range w.Names {
		out.Names = append(out.Names, c.name(n))
	}
	if w.Init != nil {
		out.Init = c.expr(w.Init)
	}
	if w.File != nil {
		out.File = &TextLit{c.word(w.File.Pos, w.File.Name), unquote(w.File.Name)}
	}
	if w.Late != nil {
		what, span := "frozen", c.word(w.Late.Pos, "frozen")
		if w.Late.Init != nil {
			what, span, out.Init = "the initial value", c.word(w.Late.Pos, "="), c.expr(w.Late.Init)
		}
		c.r.Report(span, order, errOrder, what, out.Names[0].Name, "after its name in files")
	}
	return out
}

// order is how the parts of a parameter stand.
const order = `param w: f32[embed] = ones frozen as "name"`

// frozenFirst reports whether s goes on with the statement before it, as in param w: f32[embed] frozen = ones: an
// assignment to frozen by the grammar, which knows no lines.
func frozenFirst(before, s *stmtNode) bool {
	w, a := before.Weight, s.Assign
	return w != nil && w.Init == nil && a != nil && a.Names[0].Name == "frozen" && !before.Sep && before.EndPos.Line == s.Pos.Line
}

func (c *converter) ret(at Span, r *returnNode) *ReturnStmt {
	out := &ReturnStmt{Span: at}
	for _, a := range r.Args {
		out.Args = append(out.Args, c.returned(a))
	}
	return out
}

func (c *converter) cond(n *ifNode) *IfStmt {
	out := &IfStmt{Branches: []branch{{c.expr(n.Cond), c.body(n.Then)}}, Span: c.word(n.Pos, "if")}
	for i, e := range n.Else {
		if e.Cond == nil {
			out.Alt = c.body(e.Body)
			if i < len(n.Else)-1 {
				c.r.Report(c.word(n.Else[i+1].Pos, "else"), "", errElse)
			}
			break
		}
		out.Branches = append(out.Branches, branch{c.expr(e.Cond), c.body(e.Body)})
	}
	return out
}

// Arg finishes one argument: its name is what is before the colon.
func (c *converter) arg(a *Arg) {
	if a.key != nil {
		c.place(a.key)
		n, ok := a.key.(*NameRef)
		if !ok {
			c.r.Report(a.key.At(), "write name: value", errArgName)
			c.r.Blind = true
		}
		a.Name = n
	}
	c.place(a.Value)
	if a.To != nil {
		c.place(a.To)
	}
	a.Span = c.fix(a.Span)
}

func (c *converter) args(as []Arg) {
	for i := range as {
		c.arg(&as[i])
		if i > 0 && !as[i-1].comma {
			hint := ""
			if n, ok := as[i-1].Value.(*NameRef); ok && as[i-1].Name == nil {
				hint = "or a colon, where " + n.Name + " is the name of an argument"
			}
			c.r.Report(as[i].Span, hint, errComma)
			c.r.Blind = true
		}
	}
}

// returned makes an argument of a return statement.
func (c *converter) returned(r *returnArgNode) Arg {
	a := Arg{Span: r.Value.tree.At(), Value: r.Value.tree}
	if r.Named != nil {
		a.key, a.Value = a.Value, r.Named.tree
	}
	c.arg(&a)
	return a
}

func (c *converter) expr(n *exprNode) Expr {
	c.place(n.tree)
	return n.tree
}

// fix gives a span its source, and, where it goes on over the end of the line,
// its length on this one.
func (c *converter) fix(s Span) Span {
	if s.Src = c.src; s.Len == 0 {
		s.Len = c.rest(s.Line, s.Col)
	}
	return s
}

// place finishes an expression: its spans get their source, the separators in
// it are demanded.
func (c *converter) place(x Expr) {
	switch x := x.(type) {
	case *NumberLit:
		if x.Span = c.fix(x.Span); !x.ok {
			c.r.Report(x.Span, "", errNumber, shorten(x.text))
		}
	case *TextLit:
		x.Span = c.fix(x.Span)
	case *NameRef:
		x.Span = c.fix(x.Span)
	case *ListLit:
		x.Span = c.fix(x.Span)
		c.args(x.Items)
	case *RulesLit:
		x.Span = c.fix(x.Span)
		x.Rules = c.innerRules(x.Rules)
	case *UnaryExpr:
		x.Span = c.fix(x.Span)
		c.place(x.X)
	case *BinaryExpr:
		x.Span = c.fix(x.Span)
		c.place(x.X)
		c.place(x.Y)
	case *CallExpr:
		x.Span = c.fix(x.Span)
		c.place(x.Fn)
		c.args(x.Args)
	}
}

// innerRules finishes the rules in the braces of an expression.
func (c *converter) innerRules(rs []Rule) []Rule {
	var out []Rule
	for i, r := range rs {
		if i > 0 {
			p := &rs[i-1]
			c.separated(p.sep, lexer.Position{Line: p.endLine}, lexer.Position{Line: r.Line, Column: r.Col})
		}
		for _, part := range r.parts {
			for k := range part {
				part[k].Span = c.fix(part[k].Span)
			}
		}
		out = append(out, c.rule(c.fix(r.Span), r.parts)...)
	}
	return out
}
