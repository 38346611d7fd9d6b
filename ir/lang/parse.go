package lang

import (
	"errors"
	"strconv"
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

// Bounds on what is read, so that time and memory stay within bounds too.
const (
	maxSource = 1 << 20 // bytes of one file
	maxDepth  = 100     // nested brackets
	maxChain  = 500     // operators in a row
	maxFiles  = 1000    // included files
)

// A reporter collects the errors of a run.
type reporter struct {
	list  diag.List
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
	d := &diag.Diagnostic{Msg: text.format(args...), Template: string(text), Hint: hint}
	if at.src != nil {
		d.File, d.Line, d.Col, d.Len, d.Rank = at.src.name, at.line, at.col, at.len, at.src.rank
		d.Text = diag.LineOf(at.src.text, at.line)
	}
	r.list = append(r.list, d)
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
	root, err := fileParser.ParseString(src.name, src.text)
	if err != nil {
		r.blind = true
		syntaxError(src, err, r)
		return f
	}
	c := &converter{src: src, r: r}
	c.file(f, root)
	return f
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
	c := &converter{src: src, r: r}
	return c.setting(root), true
}

// readable reports whether src is within the bounds that the parser asks for:
// UTF-8, not too deep, not too long.
func readable(src *source, r *reporter) bool {
	depth, line, col := 0, 1, 1
	comment, quoted := false, false
	at := func() span { return span{src, line, col, 1} }
	for i := 0; i < len(src.text); {
		c, n := utf8.DecodeRuneInString(src.text[i:])
		switch {
		case c == utf8.RuneError && n == 1:
			r.report(at(), "save the file as UTF-8", errUTF8, src.text[i])
			return false
		case c == '\n':
			comment, quoted = false, false
		case comment:
		case c == '"':
			quoted = !quoted
		case quoted:
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
		if i > maxSource {
			r.report(span{src, 1, 1, 1}, "split it and use include", errSize, len(src.text), maxSource)
			return false
		}
	}
	return true
}

// syntaxError reports the parser's error in our words.
func syntaxError(src *source, err error, r *reporter) {
	var at participle.Error
	var unexpected *participle.UnexpectedTokenError
	if !errors.As(err, &at) || !errors.As(err, &unexpected) { // not by this grammar
		r.report(span{src, 1, 1, 1}, err.Error(), errToken, "input", wantBlock)
		return
	}
	p := at.Position()
	where := span{src, p.Line, p.Column, 1}
	t := unexpected.Unexpected
	where.len = utf8.RuneCountInString(t.Value)
	if t.EOF() {
		r.report(where, "", errEnd, wanted(unexpected))
		return
	}
	if strings.HasPrefix(t.Value, `"`) && len(t.Value) == 1 {
		r.report(where, `end it with "`, errQuote)
		return
	}
	want := wanted(unexpected)
	hint := ""
	if want == wantBlock {
		hint = near(t.Value, blockWords)
	}
	r.report(where, hint, errToken, shorten(strings.Trim(t.Value, `"`)), want)
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
		{"ExprNode", "an expression"}, {"PostfixNode", "an expression"}, {"UnaryNode", "an expression"}, {"ProductNode", "an expression"}, {"PrimaryNode", "an expression"},
		{"<number>", "an expression"},
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
	src *source
	r   *reporter
}

func (c *converter) span(from, to lexer.Position) span {
	s := span{c.src, from.Line, from.Column, 1}
	if to.Line == from.Line {
		s.len = max(1, to.Column-from.Column)
		return s
	}
	line := diag.LineOf(c.src.text, from.Line)
	if i := strings.Index(line, "//"); i >= 0 {
		line = line[:i]
	}
	s.len = max(1, utf8.RuneCountInString(strings.TrimRight(line, " \t\r"))-from.Column+1)
	return s
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

// rules reads a -> x, y and also a -> x, b -> y: the last name before an
// arrow that is not the first is on its left.
func (c *converter) rules(rs []*ruleNode) []rule {
	var out []rule
	for i, r := range rs {
		if i > 0 {
			c.separated(rs[i-1].Sep, rs[i-1].EndPos, r.Pos)
		}
		at := c.span(r.Pos, r.EndPos)
		if len(r.Parts) == 1 {
			c.r.report(at, "write axis -> mesh axis", errArrow, r.Parts[0].Names[0].Name)
			continue
		}
		left := c.names(r.Parts[0])
		for k, part := range r.Parts[1:] {
			right := c.names(part)
			var next []nameRef
			if last := len(right) - 1; k+2 < len(r.Parts) {
				right, next = right[:last], right[last:]
			}
			out = append(out, rule{at, left, right})
			left = next
		}
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
	out := &weightStmt{span: at, typ: c.typ(w.Type)}
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
		out.args = append(out.args, c.named(a.Value, a.Named, nil))
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

// named makes the argument value, or value: named, or value -> to.
func (c *converter) named(value, named, to *exprNode) arg {
	v := c.expr(value)
	a := arg{span: v.at(), value: v}
	if named != nil {
		n, ok := v.(*nameRef)
		if !ok {
			c.r.report(v.at(), "write name: value", errArgName)
			c.r.blind = true
		}
		a.name, a.value = n, c.expr(named)
	}
	if to != nil {
		a.to = c.expr(to)
	}
	return a
}

func (c *converter) args(as []*argNode) []arg {
	out := make([]arg, len(as))
	for i, a := range as {
		if i > 0 {
			c.comma(as[i-1].Sep, a.Pos)
		}
		out[i] = c.named(a.Value, a.Named, a.To)
	}
	return out
}

func (c *converter) expr(e *exprNode) expr {
	var out expr
	for _, t := range e.Terms {
		out = c.join(out, "||", c.and(t))
	}
	return out
}

// join is x op y, or y where there is no x yet. It bounds how long a chain of
// operators may be, since all later walks recurse along it.
func (c *converter) join(x expr, op string, y expr) expr {
	if x == nil {
		return y
	}
	if b, ok := x.(*binaryExpr); ok && b.depth == maxChain {
		c.r.report(y.at(), "name the inner parts first: x = …", errLong, maxChain)
		return y
	}
	a, b := x.at(), y.at()
	at := a
	if a.line == b.line {
		at.len = b.col + b.len - a.col
	}
	out := &binaryExpr{at, op, x, y, 1}
	if b, ok := x.(*binaryExpr); ok {
		out.depth = b.depth + 1
	}
	return out
}

func (c *converter) and(n *andNode) expr {
	var out expr
	for _, t := range n.Terms {
		x := c.sum(t.Left)
		if t.Op != "" {
			x = c.join(x, t.Op, c.sum(t.Right))
		}
		out = c.join(out, "&&", x)
	}
	return out
}

func (c *converter) sum(n *sumNode) expr {
	out := c.product(n.Left)
	for _, r := range n.Rest {
		out = c.join(out, r.Op, c.product(r.Right))
	}
	return out
}

func (c *converter) product(n *productNode) expr {
	out := c.unary(n.Left)
	for _, r := range n.Rest {
		out = c.join(out, r.Op, c.unary(r.Right))
	}
	return out
}

func (c *converter) unary(n *unaryNode) expr {
	x := c.postfix(n.Term)
	if len(n.Ops) > maxChain {
		c.r.report(x.at(), "", errLong, maxChain)
		return x
	}
	for i := len(n.Ops) - 1; i >= 0; i-- {
		at := x.at()
		if at.line == n.Pos.Line {
			at.len += at.col - n.Pos.Column
			at.col = n.Pos.Column
		}
		x = &unaryExpr{at, n.Ops[i], x}
	}
	return x
}

func (c *converter) postfix(n *postfixNode) expr {
	x := c.primary(n.Term)
	if len(n.Calls) > maxChain {
		c.r.report(x.at(), "", errLong, maxChain)
		return x
	}
	for _, call := range n.Calls {
		x = &callExpr{c.span(n.Pos, call.EndPos), x, c.args(call.Args)}
	}
	return x
}

func (c *converter) primary(n *primaryNode) expr {
	at := c.span(n.Pos, n.EndPos)
	switch {
	case n.Number != "":
		v, err := strconv.ParseFloat(n.Number, 64)
		if err != nil {
			c.r.report(at, "", errNumber, n.Number)
		}
		return &numberLit{at, v, !strings.ContainsAny(n.Number, ".eE")}
	case n.Text != nil:
		return &textLit{at, unquote(*n.Text)}
	case n.Name != "":
		return &nameRef{at, n.Name}
	case n.Paren != nil:
		return c.expr(n.Paren)
	case n.List != nil:
		return &listLit{at, c.args(n.List.Items)}
	}
	return &rulesLit{at, c.rules(n.Rules)}
}
