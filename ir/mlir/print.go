package mlir

import (
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/ir/mlir/names"
	"ppc/ir/verify"
)

// Options say what [PrintWith] writes beyond the plain text.
type Options struct {
	Locs    bool // loc(…) after every op: its origin
	Generic bool // ops in MLIR's generic form
}

// Print returns the text of m.
func Print(m *ir.Module) string { return PrintWith(m, Options{}) }

// PrintWith returns the text of m as opts say.
func PrintWith(m *ir.Module, opts Options) string {
	p := &printer{opts: opts}
	p.module(m)
	return p.b.String()
}

// A Line is one line of the text of a module, and the op that begins on it; nil
// where none does.
type Line struct {
	Text string
	Op   *ir.Op
}

// Lines returns the text of m line by line.
func Lines(m *ir.Module) []Line {
	p := &printer{starts: make(map[int]*ir.Op)}
	p.module(m)
	var out []Line
	at := 0
	for text := range strings.Lines(p.b.String()) {
		begin := at + len(text) - len(strings.TrimLeft(text, " "))
		out = append(out, Line{strings.TrimRight(text, "\n"), p.starts[begin]})
		at += len(text)
	}
	return out
}

// WithErrors returns the text of m with each error as a comment under its op.
// Errors of no op stand under the head of their function or of the module.
func WithErrors(m *ir.Module, errs *verify.Errors) string {
	p := &printer{ops: make(map[*ir.Op][]*verify.Error), funcs: make(map[*ir.Func][]*verify.Error)}
	if errs != nil {
		for _, e := range errs.List {
			if e.Op != nil {
				p.ops[e.Op] = append(p.ops[e.Op], e)
			} else {
				p.funcs[e.Func] = append(p.funcs[e.Func], e)
			}
		}
	}
	p.module(m)
	return p.b.String()
}

type printer struct {
	b      buffer
	opts   Options
	indent int
	names  []string // of the function at hand, by ID
	inFunc bool     // directly in a function's body, where func.call is call

	starts map[int]*ir.Op // by place in the text, the ops that begin there; nil where nobody asks

	ops     map[*ir.Op][]*verify.Error
	funcs   map[*ir.Func][]*verify.Error
	pending []*verify.Error // to come on lines of their own after this one
}

func (p *printer) print(ss ...string) {
	for _, s := range ss {
		p.b.WriteString(s)
	}
}

func (p *printer) printf(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

// newline ends a line, writes the errors of the op that the line began, and
// starts the next at the indentation.
func (p *printer) newline() {
	p.b.WriteByte('\n')
	for _, e := range p.pending {
		p.printf("%*s// error: %s [%s]\n", p.indent, "", oneLine(e.Rule.Msg), e.Rule.Label)
	}
	p.pending = nil
	for range p.indent {
		p.b.WriteByte(' ')
	}
}

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", " ") }

func (p *printer) module(m *ir.Module) {
	p.print("module")
	if m.Name != "" {
		p.print(" ", ir.SymbolText(m.Name))
	}
	attrs := m.Attrs
	if m.Form != 0 {
		attrs.Set("pp.form", ir.Str(m.Form.String()))
	}
	if len(attrs) > 0 {
		p.print(" attributes ", attrs.String())
	}
	p.print(" {")
	p.pending = p.funcs[nil]
	p.indent += 2
	for _, mesh := range m.Meshes {
		p.newline()
		p.mesh(mesh)
	}
	for _, f := range m.Funcs {
		p.newline()
		p.function(f)
	}
	p.indent -= 2
	p.newline()
	p.print("}\n")
}

func (p *printer) mesh(m *ir.Mesh) {
	p.print("sdy.mesh ", ir.SymbolText(m.Name), " = ", meshText(m))
	if len(m.Attrs) > 0 {
		p.print(" ", m.Attrs.String())
	}
}

// meshText is m in Shardy's spelling: <["x"=2], device_ids=[1, 0]>.
func meshText(m *ir.Mesh) string {
	var b strings.Builder
	b.WriteString("<[")
	for i, a := range m.Axes {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s=%d", ir.QuoteText(a.Name), a.Size)
	}
	b.WriteByte(']')
	if m.DeviceIDs != nil {
		b.WriteString(", device_ids=")
		writeInts(&b, m.DeviceIDs)
	}
	b.WriteByte('>')
	return b.String()
}

func (p *printer) function(f *ir.Func) {
	attrs := f.Attrs
	p.print("func.func ")
	if f.Private {
		p.print("private ")
	} else if v := attrs.Str(visibility); v != "" {
		p.print(v, " ")
	}
	attrs.Delete(visibility)
	p.print(ir.SymbolText(f.Name), "(")
	if f.Body == nil {
		p.declaredParams(f)
		attrs.Delete(functionType)
		attrs.Delete(argAttrs)
	} else {
		p.names = names.Of(f, syntaxResult)
		for i, a := range f.Params() {
			if i > 0 {
				p.print(", ")
			}
			p.print(p.use(a), ": ", typeText(a))
			if a != nil {
				p.suffixDict(withSharding(a.Attrs, a.Sharding))
			}
		}
	}
	p.print(")")
	p.results(f.Results)
	if len(attrs) > 0 {
		p.print(" attributes ", attrs.String())
	}
	p.pending = p.funcs[f]
	if f.Body != nil {
		p.print(" {")
		p.indent += 2
		p.inFunc = true
		p.opsOf(f.Body)
		p.inFunc = false
		p.indent -= 2
		p.newline()
		p.print("}")
	}
	p.loc(f.Origin)
}

// The attributes of a function in which its text is kept where a Func has no
// field for it: explicit public visibility, and the parameters of a declaration.
const (
	visibility   = "sym_visibility"
	functionType = "function_type"
	argAttrs     = "arg_attrs"
)

func (p *printer) declaredParams(f *ir.Func) {
	t, _ := f.Attrs.Get(functionType).(ir.TypeAttr)
	attrs, _ := f.Attrs.Get(argAttrs).(ir.Array)
	if t.Type == nil || t.Type.Kind != ir.FuncType {
		return
	}
	for i, in := range t.Type.Elems[:t.Type.NumIn] {
		if i > 0 {
			p.print(", ")
		}
		p.print(in.String())
		if i < len(attrs) {
			if d, ok := attrs[i].(ir.Dict); ok {
				p.suffixDict(ir.Attrs(d))
			}
		}
	}
}

func (p *printer) results(rs []ir.Result) {
	if len(rs) == 0 {
		return
	}
	p.print(" -> ")
	if len(rs) == 1 && len(rs[0].Attrs) == 0 && rs[0].Sharding == nil && rs[0].Type != nil && rs[0].Type.Kind != ir.FuncType {
		p.print(rs[0].Type.String())
		return
	}
	p.print("(")
	for i, r := range rs {
		if i > 0 {
			p.print(", ")
		}
		p.print(r.Type.String())
		p.suffixDict(withSharding(r.Attrs, r.Sharding))
	}
	p.print(")")
}

const shardingName = "sdy.sharding"

func withSharding(attrs ir.Attrs, s *ir.Sharding) ir.Attrs {
	if s != nil {
		attrs.Set(shardingName, s)
	}
	return attrs
}

func (p *printer) suffixDict(attrs ir.Attrs) {
	if len(attrs) > 0 {
		p.print(" ", attrs.String())
	}
}

func (p *printer) opsOf(b *ir.Block) {
	from := p.b.Len()
	for i, op := range b.Ops {
		if i >= 1<<12 && i&(i-1) == 0 {
			p.b.expect(from, i, len(b.Ops))
		}
		p.newline()
		p.op(op)
	}
}

func (p *printer) op(op *ir.Op) {
	if p.pending = p.ops[op]; p.starts != nil {
		p.starts[p.b.Len()] = op
	}
	p.defs(op.Results)
	if f := syntaxOf(op.Name()); f != nil && f.parts != nil && !p.opts.Generic && f.fits(op) {
		p.print(p.spelling(op))
		for _, part := range f.parts {
			part.print(p, op, f)
		}
	} else {
		p.generic(op)
	}
	p.loc(op.Origin)
}

// spelling is the name of op where no quotes are needed.
func (p *printer) spelling(op *ir.Op) string {
	if p.inFunc {
		return strings.TrimPrefix(op.Name(), "func.")
	}
	return op.Name()
}

// defs writes the results of an op, in groups: %a, %b:2 = .
func (p *printer) defs(rs []*ir.Value) {
	if len(rs) == 0 {
		return
	}
	for i := 0; i < len(rs); {
		if i > 0 {
			p.print(", ")
		}
		name := p.use(rs[i])
		base, _, grouped := strings.Cut(name, "#")
		n := 1
		for grouped && i+n < len(rs) && strings.HasPrefix(p.use(rs[i+n]), base+"#") {
			n++
		}
		p.print(base)
		if n > 1 {
			p.printf(":%d", n)
		}
		i += n
	}
	p.print(" = ")
}

// use is how v is written where it is used.
func (p *printer) use(v *ir.Value) string {
	if v == nil || v.ID <= 0 || int(v.ID) >= len(p.names) || p.names[v.ID] == "" {
		return "%<undefined>"
	}
	return p.names[v.ID]
}

func (p *printer) uses(vs []*ir.Value) {
	for i, v := range vs {
		if i > 0 {
			p.print(", ")
		}
		p.print(p.use(v))
	}
}

func (p *printer) types(vs []*ir.Value) {
	for i, v := range vs {
		if i > 0 {
			p.print(", ")
		}
		p.print(typeText(v))
	}
}

func typeText(v *ir.Value) string {
	if v == nil {
		return "<no type>"
	}
	return v.Type.String()
}

func (p *printer) functional(op *ir.Op) {
	p.print("(")
	p.types(op.Operands)
	p.print(") -> ")
	if rs := op.Results; len(rs) == 1 && (rs[0] == nil || rs[0].Type == nil || rs[0].Type.Kind != ir.FuncType) {
		p.print(typeText(rs[0]))
		return
	}
	p.print("(")
	p.types(op.Results)
	p.print(")")
}

// generic writes op in the form that every op has.
func (p *printer) generic(op *ir.Op) {
	p.print(ir.QuoteText(op.Name()))
	p.genericRest(op)
}

// genericRest is generic after the name.
func (p *printer) genericRest(op *ir.Op) {
	p.print("(")
	p.uses(op.Operands)
	p.print(")")
	props, rest := splitAttrs(op)
	if len(props) > 0 {
		p.print(" <", genericAttrs(op, props).String(), ">")
	}
	if len(op.Regions) > 0 {
		p.print(" (")
		for i, r := range op.Regions {
			if i > 0 {
				p.print(", ")
			}
			p.region(r)
		}
		p.print(")")
	}
	p.suffixDict(rest)
	p.print(" : ")
	p.functional(op)
}

// splitAttrs divides the attributes of op, with its sharding, into inherent
// ones and others.
func splitAttrs(op *ir.Op) (props, rest ir.Attrs) {
	for _, a := range allAttrs(op) {
		if isInherent(op, a.Name) {
			props = append(props, a)
		} else {
			rest = append(rest, a)
		}
	}
	return props, rest
}

// allAttrs are the attributes of op and, as one more, the shardings of its results.
func allAttrs(op *ir.Op) ir.Attrs {
	if !slices.ContainsFunc(op.Results, func(v *ir.Value) bool { return v != nil && v.Sharding != nil }) {
		return op.Attrs
	}
	attrs := op.Attrs
	attrs.Set(shardingName, perValue(op.Results))
	return attrs
}

// perValue is the shardings of vs. Shardy knows no value without sharding
// next to one that has it: it is written as open in every dimension.
func perValue(vs []*ir.Value) ir.PerValue {
	mesh := ""
	for _, v := range vs {
		if v != nil && v.Sharding != nil {
			mesh = v.Sharding.Mesh
			break
		}
	}
	out := make(ir.PerValue, len(vs))
	for i, v := range vs {
		switch {
		case v != nil && v.Sharding != nil:
			out[i] = v.Sharding
		case v != nil && v.Type.IsTensor():
			out[i] = &ir.Sharding{Mesh: mesh, Dims: slices.Repeat([]ir.DimSharding{{Open: true}}, v.Type.Rank())}
		default:
			out[i] = &ir.Sharding{Mesh: mesh}
		}
	}
	return out
}

// region writes b in braces, with its arguments.
func (p *printer) region(b *ir.Block) {
	p.braced(b, func() {
		if b != nil && len(b.Args) > 0 {
			p.newline()
			p.print("^bb0")
			p.params(b.Args)
			p.print(":")
		}
	})
}

// body writes the ops of b in braces, in a form that has its arguments elsewhere.
func (p *printer) body(b *ir.Block) { p.braced(b, func() {}) }

// braced writes the ops of b, after a head, in braces.
func (p *printer) braced(b *ir.Block, head func()) {
	inFunc := p.inFunc
	p.inFunc = false
	p.print("{")
	head()
	if b != nil {
		p.indent += 2
		p.opsOf(b)
		p.indent -= 2
	}
	p.newline()
	p.print("}")
	p.inFunc = inFunc
}

// params writes block arguments with their types: (%a: T, %b: U).
func (p *printer) params(vs []*ir.Value) {
	p.print("(")
	for i, v := range vs {
		if i > 0 {
			p.print(", ")
		}
		p.print(p.use(v), ": ", typeText(v))
	}
	p.print(")")
}

// loc writes where something comes from, if asked to.
func (p *printer) loc(o *ir.Origin) {
	if p.opts.Locs {
		p.print(" loc(", locText(o), ")")
	}
}

// locText is o as an MLIR location. The layer and the pass, which MLIR's
// locations lack, are the metadata of a fused one.
func locText(o *ir.Origin) string {
	if o == nil {
		return "unknown"
	}
	s := "unknown"
	if o.Pos.Line > 0 {
		s = fmt.Sprintf("%s:%d:%d", ir.QuoteText(o.Pos.File), o.Pos.Line, o.Pos.Col)
	}
	if o.Name() != "" {
		if s == "unknown" {
			s = ir.QuoteText(o.Name())
		} else {
			s = ir.QuoteText(o.Name()) + "(" + s + ")"
		}
	}
	var meta ir.Attrs
	if o.Layer() != "" {
		meta.Set("layer", ir.Str(o.Layer()))
	}
	if o.Pass() != "" {
		meta.Set("pass", ir.Str(o.Pass()))
	}
	if len(meta) > 0 {
		s = "fused<" + meta.String() + ">[" + s + "]"
	}
	return s
}
