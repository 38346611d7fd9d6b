package mlir

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"ppc/ir"
)

// noAttrs is for parts that stand for no attribute.
type noAttrs struct{}

func (noAttrs) attrs() []string { return nil }

// text is punctuation and keywords.
type text string

const (
	sp    = text(" ")
	comma = text(", ")
)

func (text) attrs() []string                          { return nil }
func (text) fits(*ir.Op) bool                         { return true }
func (t text) print(p *printer, op *ir.Op, f *syntax) { p.print(string(t)) }

func (t text) read(s *parser, st *state) {
	switch t {
	case sp:
	case comma:
		s.expect(",")
	default:
		s.expectWords(string(t))
	}
}

// expectWords moves past the words of t, each a token.
func (s *parser) expectWords(t string) {
	for word := range strings.FieldsSeq(t) {
		s.expect(word)
	}
}

// glued is a key and the equals sign after it, without a blank.
type glued string

func (glued) attrs() []string                          { return nil }
func (glued) fits(*ir.Op) bool                         { return true }
func (g glued) print(p *printer, op *ir.Op, f *syntax) { p.print(string(g)) }
func (g glued) read(s *parser, st *state)              { s.key(string(g)) }

// key moves past a key, the comma before it if t has one, and "=".
func (s *parser) key(t string) {
	if t[0] == ',' {
		s.expect(",")
	}
	s.expect(strings.Trim(t, " ,="))
	s.expect("=")
}

// arg is one operand.
type arg int

func (arg) attrs() []string                          { return nil }
func (a arg) fits(op *ir.Op) bool                    { return int(a) < len(op.Operands) }
func (a arg) print(p *printer, op *ir.Op, f *syntax) { p.print(p.use(op.Operands[a])) }
func (arg) count(n *count)                           { n.fixed++ }
func (a arg) read(s *parser, st *state)              { st.operands = append(st.operands, s.operand()) }

// args is all operands, after lead if there are any.
type args struct{ lead string }

func (args) attrs() []string  { return nil }
func (args) fits(*ir.Op) bool { return true }
func (args) count(n *count)   { n.variadic = true }
func (a args) print(p *printer, op *ir.Op, f *syntax) {
	if len(op.Operands) > 0 {
		p.print(a.lead)
		p.uses(op.Operands)
	}
}
func (args) read(s *parser, st *state) {
	for s.tok.kind == valueToken {
		st.operands = append(st.operands, s.operand())
		// The comma before what follows the operands is not theirs.
		after := s.tok
		if !s.accept(",") {
			return
		}
		if s.tok.kind != valueToken {
			s.back(after)
			return
		}
	}
}

// list is an attribute that is a list of integers: [0, 2].
type list string

func (l list) attrs() []string { return []string{string(l)} }
func (l list) fits(op *ir.Op) bool {
	switch a := op.Attrs.Get(string(l)).(type) {
	case ir.Ints:
		return true
	case *ir.Literal:
		return a.Type.Rank() == 1 && a.Type.Elem.IsInt()
	}
	return false
}
func (l list) print(p *printer, op *ir.Op, f *syntax) { writeInts(&p.b, op.Ints(string(l))) }
func (l list) read(s *parser, st *state)              { st.set(string(l), ir.Ints(s.ints())) }

func writeInts(b io.StringWriter, xs []int) {
	b.WriteString("[")
	for i, x := range xs {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(x))
	}
	b.WriteString("]")
}

// number is an attribute that is an integer of type i64 or i32, written without it.
type number string

func (n number) attrs() []string { return []string{string(n)} }
func (n number) fits(op *ir.Op) bool {
	a, ok := op.Attrs.Get(string(n)).(ir.Int)
	return ok && a.Type == n.dtype()
}
func (n number) print(p *printer, op *ir.Op, f *syntax) { p.print(strconv.Itoa(op.Int(string(n)))) }
func (n number) read(s *parser, st *state) {
	st.set(string(n), ir.Int{Value: s.integer(), Type: n.dtype()})
}

// dtype is the type of the attribute: the index of a tuple's element is an i32.
func (n number) dtype() ir.DType {
	if n == "index" {
		return ir.I32
	}
	return ir.I64
}

// word is an attribute that is a word of a set of StableHLO's. With a lead, it
// may be missing.
type word struct{ name, set, lead string }

func (w word) attrs() []string { return []string{w.name} }
func (w word) fits(op *ir.Op) bool {
	a := op.Attrs.Get(w.name)
	if a == nil {
		return w.lead != ""
	}
	e, ok := a.(ir.Enum)
	return ok && e.Dialect == "stablehlo" && e.Set == w.set
}
func (w word) print(p *printer, op *ir.Op, f *syntax) {
	if op.Attrs.Has(w.name) {
		p.print(w.lead, op.Word(w.name))
	}
}
func (w word) read(s *parser, st *state) {
	if !s.comes(w.lead) {
		return
	}
	if s.tok.kind != nameToken {
		s.wanted("one of the words of " + w.set)
	}
	st.set(w.name, ir.HLOEnum(w.set, strings.Clone(s.take())))
}

// comes moves past the lead of a part that may be missing, and reports whether
// it is there.
func (s *parser) comes(lead string) bool {
	after := s.tok
	for word := range strings.FieldsSeq(strings.ReplaceAll(lead, "=", " = ")) {
		if !s.accept(word) {
			s.back(after)
			return false
		}
	}
	return true
}

// flag is a boolean attribute that may be missing.
type flag struct{ name, lead string }

func (w flag) attrs() []string { return []string{w.name} }
func (w flag) fits(op *ir.Op) bool {
	a := op.Attrs.Get(w.name)
	_, ok := a.(ir.Bool)
	return a == nil || ok
}
func (w flag) print(p *printer, op *ir.Op, f *syntax) {
	if op.Attrs.Has(w.name) {
		p.print(w.lead, strconv.FormatBool(op.Bool(w.name)))
	}
}
func (w flag) read(s *parser, st *state) {
	if s.comes(w.lead) {
		st.set(w.name, ir.Bool(s.boolean()))
	}
}

// symbol is an attribute written as @name: a symbol, or the target of a custom call.
type symbol string

func (s symbol) attrs() []string { return []string{string(s)} }
func (s symbol) fits(op *ir.Op) bool {
	switch op.Attrs.Get(string(s)).(type) {
	case ir.Sym:
		return s != callTarget
	case ir.Str:
		return s == callTarget
	}
	return false
}
func (s symbol) print(p *printer, op *ir.Op, f *syntax) {
	name := op.Sym(string(s))
	if s == callTarget {
		name = op.Str(string(s))
	}
	p.print(ir.SymbolText(name))
}
func (s symbol) read(p *parser, st *state) {
	if p.tok.kind != symbolToken {
		p.wanted("a symbol")
		return
	}
	if name := p.symbol(); s == callTarget {
		st.set(string(s), ir.Str(name))
	} else {
		st.set(string(s), ir.Sym(name))
	}
}

// callTarget is the symbol that is a string.
const callTarget symbol = "call_target_name"

// quoted is an attribute that is a string.
type quoted string

func (q quoted) attrs() []string { return []string{string(q)} }
func (q quoted) fits(op *ir.Op) bool {
	_, ok := op.Attrs.Get(string(q)).(ir.Str)
	return ok
}
func (q quoted) print(p *printer, op *ir.Op, f *syntax) { p.print(ir.QuoteText(op.Str(string(q)))) }
func (q quoted) read(s *parser, st *state)              { st.set(string(q), ir.Str(s.stringText())) }

// dict is the attributes that no other part stands for, but for those that
// have their default.
type dict struct{ noAttrs }

func (dict) fits(*ir.Op) bool { return true }

func (dict) print(p *printer, op *ir.Op, f *syntax) { p.suffixDict(restAttrs(op, f)) }
func (dict) read(s *parser, st *state) {
	if s.at("{") {
		s.dictInto(st)
	}
}

func restAttrs(op *ir.Op, f *syntax) ir.Attrs {
	all := allAttrs(op)
	left := func(a ir.NamedAttr) bool {
		value, ok := f.defaults[a.Name]
		return f.stands[a.Name] || ok && a.Attr.String() == value
	}
	if !slices.ContainsFunc(all, left) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), left)
}

// typing is the types of operands and results, in one of several short forms
// where these say all, else as a function type.
type typing int

const (
	functionalTypes typing = iota // : (T, U) -> V
	sameTypes                     // : T where all types are T
	selectTypes                   // : P, T where the last operands and the result are T
	arrowTypes                    // : T, U -> V
	listTypes                     // : T, U of the operands, or one T for all; no result
	castTypes                     // : T to U
	resultType                    // : T, which all operands have too
	complexType                   // : T, of which the operands are the parts
	tupleType                     // : T, of whose elements the operands are
	tokenType                     // : T, the token type
	guessTypes                    // any of these, of an op without a syntax
)

func (typing) attrs() []string { return nil }

// fits: the short forms that have no long form must be able to say the types.
func (t typing) fits(op *ir.Op) bool {
	switch t {
	case functionalTypes, sameTypes, selectTypes:
		return true
	case arrowTypes:
		return len(op.Operands) > 0 && len(op.Results) > 0
	case listTypes:
		return len(op.Operands) > 0 && len(op.Results) == 0
	case castTypes:
		return len(op.Operands) == 1 && len(op.Results) == 1
	}
	if len(op.Results) != 1 || op.Results[0].Type == nil {
		return false
	}
	want := t.operands(op.Results[0].Type, len(op.Operands))
	return want != nil && slices.EqualFunc(op.Operands, want, func(v *ir.Value, t *ir.Type) bool { return v != nil && v.Type.Equal(t) })
}

// operands are the types of n operands of an op whose result is r; nil where
// they cannot be such.
func (t typing) operands(r *ir.Type, n int) []*ir.Type {
	switch t {
	case complexType:
		if r.IsTensor() && r.Elem.IsComplex() {
			r = r.WithElem(r.Elem.Part())
			return []*ir.Type{r, r}
		}
		return nil
	case tupleType:
		if r.Kind == ir.TupleType && len(r.Elems) == n {
			return append([]*ir.Type{}, r.Elems...)
		}
		return nil
	}
	return append([]*ir.Type{}, slices.Repeat([]*ir.Type{r}, n)...)
}

func (t typing) print(p *printer, op *ir.Op, f *syntax) {
	p.print(" : ")
	switch {
	case t == castTypes:
		p.types(op.Operands)
		p.print(" to ")
		p.types(op.Results)
	case t == listTypes:
		p.types(op.Operands)
	case t == arrowTypes:
		p.types(op.Operands)
		p.print(" -> ")
		if len(op.Results) == 1 {
			p.types(op.Results)
		} else {
			p.print("(")
			p.types(op.Results)
			p.print(")")
		}
	case t >= resultType, t == sameTypes && allSame(op):
		p.print(op.Results[0].Type.String())
	case t == selectTypes && isPlainSelect(op):
		p.print(typeText(op.Operands[0]), ", ", op.Results[0].Type.String())
	default:
		p.functional(op)
	}
}

func allSame(op *ir.Op) bool {
	if len(op.Results) != 1 || op.Results[0].Type == nil {
		return false
	}
	for _, v := range op.Operands {
		if v == nil || !v.Type.Equal(op.Results[0].Type) {
			return false
		}
	}
	return true
}

func isPlainSelect(op *ir.Op) bool {
	if len(op.Results) != 1 || op.Results[0].Type == nil {
		return false
	}
	for _, v := range op.Operands[1:] {
		if v == nil || !v.Type.Equal(op.Results[0].Type) {
			return false
		}
	}
	return op.Operands[0] != nil && op.Operands[0].Type != nil
}

func (t typing) read(s *parser, st *state) {
	s.expect(":")
	if s.at("(") {
		s.functionType(st)
		return
	}
	at := s.tok.start
	ts := append(st.types[:0], s.typ())
	for s.accept(",") {
		ts = append(ts, s.typ())
	}
	st.types = ts
	switch {
	case t == arrowTypes || t == guessTypes && s.at("->"):
		s.expect("->")
		st.results = append(st.results, s.typeOrList()...)
		s.checkTypes(at, st.operands, ts)
	case t == castTypes:
		s.checkTypes(at, st.operands, ts)
		s.expect("to")
		st.results = append(st.results, s.typ())
	case t == listTypes && len(ts) > 1:
		s.checkTypes(at, st.operands, ts)
	case t == selectTypes && len(ts) == 2 && len(st.operands) == 3:
		s.checkTypes(at, st.operands, []*ir.Type{ts[0], ts[1], ts[1]})
		st.results = append(st.results, ts[1:]...)
	case t == guessTypes && len(ts) == len(st.operands) && len(ts) > 1:
		s.checkTypes(at, st.operands, ts)
		if st.wanted > 0 {
			st.results = append(st.results, ts...)
		}
	case len(ts) > 1:
		s.fail(at, "%s for %s, want one or a function type", counted(len(ts), "type"), st.name)
	default:
		t.readOne(s, st, at, ts[0])
	}
}

// readOne is read where the text has one type.
func (t typing) readOne(s *parser, st *state, at int, one *ir.Type) {
	if t == complexType || t == tupleType {
		n := len(st.operands)
		want := t.operands(one, n)
		if len(want) != n || want == nil {
			s.fail(at, "%s of %s cannot have the result type %s", st.name, counted(n, "operand"), one)
		}
		s.checkTypes(at, st.operands, want)
	} else {
		for i, v := range st.operands {
			s.checkType(at, i, v, one)
		}
	}
	if t != listTypes && (t != guessTypes || st.wanted > 0) {
		st.results = append(st.results, one)
	}
}

// oneType is ": T", which all operands have; no result.
type oneType struct{ noAttrs }

func (oneType) fits(op *ir.Op) bool {
	if len(op.Operands) == 0 || len(op.Results) > 0 {
		return false
	}
	for _, v := range op.Operands {
		if v == nil || v.Type == nil || !v.Type.Equal(op.Operands[0].Type) {
			return false
		}
	}
	return true
}
func (oneType) print(p *printer, op *ir.Op, f *syntax) { p.print(" : ", typeText(op.Operands[0])) }
func (oneType) read(s *parser, st *state)              { listTypes.read(s, st) }

// literal is an attribute that is a literal, with its type.
type literal string

func (l literal) attrs() []string { return []string{string(l)} }
func (l literal) fits(op *ir.Op) bool {
	a := op.Literal(string(l))
	return a != nil && len(op.Results) == 0 && len(op.Operands) == 1 && op.Operands[0] != nil && a.Type.Equal(op.Operands[0].Type)
}
func (l literal) print(p *printer, op *ir.Op, f *syntax) { p.print(op.Literal(string(l)).String()) }
func (l literal) read(s *parser, st *state) {
	at := s.tok.start
	a := s.attr()
	if a, ok := a.(*ir.Literal); ok {
		s.checkTypes(at, st.operands, []*ir.Type{a.Type})
	}
	st.set(string(l), a)
}

// optional is an integer or float attribute that may be missing.
type optional struct {
	name, lead string
	typ        ir.DType
}

func (o optional) attrs() []string { return []string{o.name} }
func (o optional) fits(op *ir.Op) bool {
	switch a := op.Attrs.Get(o.name).(type) {
	case nil:
		return true
	case ir.Int:
		return a.Type == o.typ
	case ir.Float:
		return a.Type == o.typ
	}
	return false
}
func (o optional) print(p *printer, op *ir.Op, f *syntax) {
	if a := op.Attrs.Get(o.name); a != nil {
		p.print(o.lead, strings.TrimSuffix(a.String(), " : "+o.typ.String()))
	}
}
func (o optional) read(s *parser, st *state) {
	if s.comes(o.lead) {
		st.set(o.name, s.number(o.typ))
	}
}

// ordinal is an integer attribute that is written as a word.
type ordinal struct {
	name  string
	lead  string
	words []string // by value; "" is not written, lead included
}

func (o ordinal) attrs() []string { return []string{o.name} }
func (o ordinal) fits(op *ir.Op) bool {
	a, ok := op.Attrs.Get(o.name).(ir.Int)
	return ok && a.Type == ir.I32 && 0 <= a.Value && a.Value < len(o.words)
}
func (o ordinal) print(p *printer, op *ir.Op, f *syntax) {
	if w := o.words[op.Int(o.name)]; w != "" {
		p.print(o.lead, w)
	}
}
func (o ordinal) read(s *parser, st *state) {
	i := slices.Index(o.words, "")
	if o.lead != " " {
		s.key(o.lead)
	}
	if k := slices.Index(o.words, s.text()); s.tok.kind == nameToken && k >= 0 {
		i = k
		s.next()
	}
	if i < 0 {
		s.wanted(strings.Join(o.words, ", "))
	}
	st.set(o.name, ir.Int{Value: i, Type: ir.I32})
}

// bracketed is an attribute of the dialect sdy that is carried through, without
// its name: the #sdy<axis_ref_list …> of {"x"}.
type bracketed struct{ name, kind string }

func (b bracketed) attrs() []string { return []string{b.name} }
func (b bracketed) open() string    { return "#sdy<" + b.kind }
func (b bracketed) fits(op *ir.Op) bool {
	v, ok := op.Attrs.Get(b.name).(ir.Verbatim)
	return ok && strings.HasPrefix(string(v), b.open()) && strings.HasSuffix(string(v), ">")
}
func (b bracketed) print(p *printer, op *ir.Op, f *syntax) {
	v := string(op.Attrs.Get(b.name).(ir.Verbatim))
	p.print(strings.TrimSuffix(strings.TrimPrefix(v, b.open()), ">"))
}
func (b bracketed) read(s *parser, st *state) {
	var text string
	switch b.kind {
	case "axis_ref_list":
		text = s.axisList()
	case "list_of_axis_ref_lists":
		text = s.joined(s.axisList)
	default:
		text = s.joined(s.exchange)
	}
	st.set(b.name, ir.Verbatim(b.open()+text+">"))
}

// axisList reads {"x", "y":(1)2}, and returns it as MLIR spells it.
func (s *parser) axisList() string {
	var refs []string
	s.list("{", "}", func() { refs = append(refs, s.axisRef().String()) })
	return "{" + strings.Join(refs, ", ") + "}"
}

// exchange reads {"x"}: 0->1, a part of an all-to-all.
func (s *parser) exchange() string {
	axes := s.axisList()
	s.expect(":")
	from := s.integer()
	s.expect("->")
	return fmt.Sprintf("%s: %d->%d", axes, from, s.integer())
}

// joined reads a list in square brackets of what item reads.
func (s *parser) joined(item func() string) string {
	var items []string
	s.list("[", "]", func() { items = append(items, item()) })
	return "[" + strings.Join(items, ", ") + "]"
}
