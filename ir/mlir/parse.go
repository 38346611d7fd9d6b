package mlir

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"ppc/ir"
	"ppc/ir/mlir/names"
)

// Parse reads a module. It resolves names, checks that values are used with
// the type that they have, and fills in what the text leaves to default, but
// does not verify. The error is a [diag.List].
//
// The text is one module, or the functions and meshes of one. src must not change
// while it is read; the module keeps nothing of it.
func Parse(file string, src []byte) (*ir.Module, error) {
	s := newParser(file, src)
	if !utf8.Valid(src) {
		s.fail(firstInvalid(s.src), "the text is not UTF-8")
		return nil, s.errs.Err()
	}
	s.findAliases()
	s.readAhead(draftBytes, runtime.GOMAXPROCS(0)-1)
	return s.module()
}

func newParser(file string, src []byte) *parser {
	return &parser{file: file, src: unsafe.String(unsafe.SliceData(src), len(src)), m: new(ir.Module), aliases: make(map[string]*alias)}
}

// module reads the text, of which aliases have been found, and drafts may have been read.
func (s *parser) module() (*ir.Module, error) {
	s.inlined = newInlinedMeshes(s.src)
	s.readResources()
	s.restart(0)
	s.topLevel()
	s.ahead.end()
	s.m.Meshes = append(s.m.Meshes, s.inlined.meshes...)
	if len(s.errs) > 0 {
		s.errs.Sort()
		return nil, s.errs
	}
	if s.m.Form.Has(ir.Resharded) {
		ir.StateRegionShardings(s.m)
	}
	return s.m, nil
}

func firstInvalid(src string) int {
	for i, r := range src {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(src[i:]); n == 1 {
				return i
			}
		}
	}
	return 0
}

// restart makes the token at offset at the next one, whatever came before.
func (s *parser) restart(at int) {
	s.failed = false
	s.seek(at)
}

// topLevel reads what stands outside of functions. After a syntax error it
// goes on with the next function.
func (s *parser) topLevel() {
	modules, open := 0, 0
	for s.tok.kind != endToken {
		switch {
		case s.at("module") || s.at("builtin.module"):
			if modules++; modules > 1 || s.fnCount() > 0 {
				s.fail(s.tok.start, "a second module; one file holds one")
				break
			}
			s.moduleHead()
			if !s.failed {
				open++
			}
		case open > 0 && s.accept("}"):
			open--
			s.optionalLoc()
		default:
			s.item()
		}
		if s.failed && !s.recoverAtFunction() {
			return
		}
	}
	if open > 0 && len(s.errs) == 0 {
		s.wanted(`"}" at the end of the module`)
	}
}

func (s *parser) fnCount() int { return len(s.m.Funcs) }

// recoverAtFunction makes the next line that starts a function the next to
// read; it reports whether there is one.
func (s *parser) recoverAtFunction() bool {
	s.fn, s.scopes, s.outer, s.read = nil, nil, nil, nil
	if len(s.errs) >= maxErrors {
		return false
	}
	for i := s.resume; ; {
		n := strings.IndexByte(s.src[i:], '\n')
		if n < 0 {
			return false
		}
		i += n + 1
		if strings.HasPrefix(strings.TrimLeft(s.src[i:min(len(s.src), i+64)], " \t"), "func.func") {
			s.restart(i)
			return true
		}
	}
}

// item reads one function, mesh or definition of an alias.
func (s *parser) item() {
	switch {
	case s.tok.kind == hashToken || s.tok.kind == bangToken:
		s.aliasDefinition()
	case s.at("sdy.mesh"):
		s.mesh()
	case s.at("func.func") || s.at("func"):
		s.function()
	case strings.HasPrefix(s.src[s.tok.start:], metadataOpen):
		s.seek(s.metadataEnd(s.tok.start))
	default:
		s.wanted("func.func or sdy.mesh")
	}
}

func (s *parser) moduleHead() {
	s.next()
	if s.tok.kind == symbolToken {
		s.m.Name = s.symbol()
	}
	if s.accept("attributes") {
		s.m.Attrs = s.dict()
	}
	s.moduleForm()
	s.expect("{")
}

// formName is the attribute of a module that keeps its Form.
const formName = "pp.form"

func (s *parser) moduleForm() {
	a := s.m.Attrs.Get(formName)
	if a == nil {
		return
	}
	text, ok := a.(ir.Str)
	form, known := ir.ParseForm(string(text))
	if !ok || !known {
		s.report(s.tok.start, "%s = %s names no properties of a module", formName, a)
		return
	}
	s.m.Form = form
	s.m.Attrs.Delete(formName)
}

// function reads func.func.
func (s *parser) function() {
	start := s.tok.start
	s.next()
	f := ir.NewFunc("")
	f.Origin = s.place(start)
	switch {
	case s.accept("private"):
		f.Private = true
	case s.at("public") || s.at("nested"):
		f.Attrs.Set(visibility, ir.Str(s.take()))
	}
	if s.tok.kind != symbolToken {
		s.wanted("the function's name")
		return
	}
	f.Name = s.symbol()
	s.fn = f
	s.scopes = append(s.scopes[:0], scope{isolated: true, values: s.outer})
	declared := s.params(f)
	if s.accept("->") {
		f.Results = s.funcResults()
	}
	if s.accept("attributes") {
		s.funcAttrs(f, s.dict())
	}
	if s.at("{") {
		s.body(f)
	} else {
		s.declaration(f, declared)
	}
	if o, ok := s.optionalLoc(); ok {
		f.Origin = o
	}
	if s.failed {
		return
	}
	s.m.Funcs = append(s.m.Funcs, f)
	if s.outer = s.scopes[0].values; len(s.outer) > maxGap { // much to clear
		s.outer = nil
	}
	clear(s.outer)
	s.fn, s.scopes = nil, s.scopes[:0]
}

// funcAttrs adds attrs to those of f.
func (s *parser) funcAttrs(f *ir.Func, attrs ir.Attrs) {
	if len(f.Attrs) == 0 {
		f.Attrs = attrs
		return
	}
	for _, a := range f.Attrs {
		attrs.Set(a.Name, a.Attr)
	}
	f.Attrs = attrs
}

// A param is a parameter of a function that has no body.
type param struct {
	typ   *ir.Type
	attrs ir.Attrs
}

// params reads the parameters of f. Those of a declaration may have no names.
func (s *parser) params(f *ir.Func) []param {
	var unnamed []param
	s.list("(", ")", func() {
		if s.tok.kind != valueToken {
			if len(f.Body.Args) > 0 {
				s.wanted("a parameter's name")
			}
			t := s.typ()
			var attrs ir.Attrs
			if s.at("{") {
				attrs = s.dict()
			}
			unnamed = append(unnamed, param{t, attrs})
			return
		}
		if unnamed != nil {
			s.wanted("a type")
			return
		}
		at, name := s.tok.start, s.take()
		s.expect(":")
		v := f.NewArg(f.Body, s.typ(), strings.Clone(name[1:]))
		if s.at("{") {
			v.Sharding, v.Attrs = takeSharding(s.dict())
		}
		s.optionalLoc()
		s.define(at, name[1:], v)
	})
	return unnamed
}

// takeSharding splits the sharding off the attributes of a parameter or result.
func takeSharding(attrs ir.Attrs) (*ir.Sharding, ir.Attrs) {
	sharding, ok := attrs.Get(shardingName).(*ir.Sharding)
	if ok {
		attrs.Delete(shardingName)
	}
	if len(attrs) == 0 {
		attrs = nil
	}
	return sharding, attrs
}

func (s *parser) funcResults() []ir.Result {
	if !s.at("(") {
		return []ir.Result{{Type: s.typ()}}
	}
	var rs []ir.Result
	s.list("(", ")", func() {
		r := ir.Result{Type: s.typ()}
		if s.at("{") {
			r.Sharding, r.Attrs = takeSharding(s.dict())
		}
		rs = append(rs, r)
	})
	return rs
}

func (s *parser) body(f *ir.Func) {
	s.expect("{")
	if s.tok.kind == caretToken { // its arguments are the parameters
		s.next()
		if s.at("(") {
			s.blockArgs(f.Body)
		}
		s.expect(":")
	}
	s.ops(f.Body)
	s.expect("}")
	if s.failed {
		return
	}
	if end := f.Body.Terminator(); end != nil && end.Kind == ir.Return { // JAX ends comparators of top_k so
		end.Kind = ir.FuncReturn
	}
	names.Recover(f, syntaxResult)
	f.Renumber()
}

// declaration keeps the parameters of f, which has no body, as its attributes.
func (s *parser) declaration(f *ir.Func, params []param) {
	for _, a := range f.Body.Args {
		params = append(params, param{a.Type, withSharding(a.Attrs, a.Sharding)})
	}
	f.Body = nil
	t := &ir.Type{Kind: ir.FuncType, NumIn: len(params)}
	attrs, some := make(ir.Array, len(params)), false
	for i, p := range params {
		t.Elems = append(t.Elems, p.typ)
		attrs[i] = ir.Dict(p.attrs)
		some = some || len(p.attrs) > 0
	}
	for _, r := range f.Results {
		t.Elems = append(t.Elems, r.Type)
	}
	f.Attrs.Set(functionType, ir.TypeAttr{Type: t})
	if some {
		f.Attrs.Set(argAttrs, attrs)
	}
}

// ops reads the ops of b up to the closing brace, which it leaves.
func (s *parser) ops(b *ir.Block) {
	first := len(s.read)
	for !s.at("}") {
		switch s.tok.kind {
		case endToken:
			s.wanted(`an op or "}"`)
			return
		case caretToken:
			s.fail(s.tok.start, "a second block; a region has one")
			return
		}
		if s.ahead != nil && s.tok.start >= s.ahead.from && s.takeOver() {
			continue
		}
		op := s.op()
		if s.failed {
			return
		}
		s.read = append(doubled(s.read), op)
	}
	b.Ops = append([]*ir.Op(nil), s.read[first:]...)
	clear(s.read[first:])
	s.read = s.read[:first]
}

// doubled is s, in twice the memory where it is full: a list of a million grows in fewer
// steps than append takes, which leave less behind.
func doubled[T any](s []T) []T {
	if len(s) < cap(s) {
		return s
	}
	return slices.Grow(s, max(16, len(s)))
}

// region reads a region in braces, whose names are of the scope in. args, if not
// nil, are read before: the arguments of its block.
func (s *parser) region(in scope, args func(b *ir.Block)) *ir.Block {
	b := new(ir.Block)
	if s.failed {
		return b
	}
	s.enter()
	defer s.leave()
	s.scopes = append(s.scopes, in)
	if args != nil {
		args(b)
	}
	s.expect("{")
	if s.tok.kind == caretToken {
		s.next()
		if s.at("(") {
			s.blockArgs(b)
		}
		s.expect(":")
	}
	s.ops(b)
	s.expect("}")
	s.scopes = s.scopes[:len(s.scopes)-1]
	return b
}

// blockArgs reads (%a: T, %b: U) as arguments of b.
func (s *parser) blockArgs(b *ir.Block) {
	s.list("(", ")", func() {
		if s.tok.kind != valueToken {
			s.wanted("an argument's name")
			return
		}
		at, name := s.tok.start, s.take()[1:]
		s.expect(":")
		v := s.fn.NewArg(b, s.typ(), strings.Clone(name))
		s.optionalLoc()
		s.define(at, name, v)
	})
}

// A definition is the left side of an op: %a:2.
type definition struct {
	at   int
	name string
	n    int
}

// A state is an op while it is read.
type state struct {
	at       int // offset of its name
	name     string
	kind     ir.Kind
	form     *syntax // nil where nothing is known of ops of this name
	operands []*ir.Value
	attrs    []ir.NamedAttr // in the order of the text
	regions  []*ir.Block
	results  []*ir.Type
	wanted   int // how many results the text names

	defs  []definition
	types []*ir.Type // while types are read
}

// state is the state of an op of which nothing has been read.
func (s *parser) state() *state {
	n := len(s.states)
	if n == 0 {
		return new(state)
	}
	st := s.states[n-1]
	s.states = s.states[:n-1]
	return st
}

// clear makes st that of an op of which nothing has been read. An op has copies of
// its slices.
func (st *state) clear() {
	st.at, st.name, st.kind, st.form, st.wanted = 0, "", 0, nil, 0
	st.operands, st.attrs, st.regions = st.operands[:0], st.attrs[:0], st.regions[:0]
	st.results, st.defs, st.types = st.results[:0], st.defs[:0], st.types[:0]
}

func (st *state) set(name string, a ir.Attr) {
	st.attrs = append(st.attrs, ir.NamedAttr{Name: name, Attr: a})
}

// op reads one op and defines its results. It is nil where the parser fails.
func (s *parser) op() *ir.Op {
	s.enter()
	defer s.leave()
	st := s.state()
	s.definitions(st)
	st.at = s.tok.start
	for _, d := range st.defs {
		st.wanted += d.n
	}
	switch s.tok.kind {
	case stringToken:
		s.setName(st, unquote(s.take()))
		s.genericRest(st)
	case nameToken:
		s.setName(st, s.customName())
		s.custom(st)
	default:
		s.wanted("an op")
	}
	if s.failed {
		return nil
	}
	op := s.finish(st)
	if o, ok := s.optionalLoc(); ok {
		at := ir.Origin{Text: &op.Origin.Pos}
		if o != nil {
			at.Pos = o.Pos
		}
		op.Origin = at.Saying(o.Said())
	}
	s.defineResults(st.defs, op)
	st.clear()
	s.states = append(s.states, st)
	return op
}

func (s *parser) setName(st *state, name string) {
	st.name, st.form = name, syntaxOf(name)
	if st.form != nil {
		st.kind = st.form.kind
	} else {
		st.kind = ir.KindByName(name)
	}
	if st.kind == ir.Unknown {
		st.name = strings.Clone(name) // which the op keeps
	}
}

// customName reads the name of an op without quotes; the dialect func may be left out.
func (s *parser) customName() string {
	name := s.take()
	if strings.IndexByte(name, '.') < 0 && ir.KindByName("func."+name) != ir.Unknown {
		return "func." + name
	}
	return name
}

// custom reads what follows the name of an op that is not written generically.
func (s *parser) custom(st *state) {
	switch {
	case st.form != nil && st.form.parts != nil:
		for _, part := range st.form.parts {
			if part.read(s, st); s.failed {
				return
			}
		}
	case strings.IndexByte(st.name, '.') < 0:
		s.fail(st.at, "found %q, want an op", st.name)
	default:
		s.guess(st)
	}
}

// guess reads an op whose form is not known in the most common one: operands,
// attributes, types.
func (s *parser) guess(st *state) {
	if s.at("(") || s.at("<") {
		s.fail(st.at, "the form of %s is not known; write it generically: \"%s\"(…) : (…) -> …", st.name, st.name)
	}
	st.operands = s.operands(st.operands)
	dict{}.read(s, st)
	if s.at(":") {
		typing(guessTypes).read(s, st)
	}
}

// finish makes the op of st.
func (s *parser) finish(st *state) *ir.Op {
	op := s.opSlab.New()
	op.Kind, op.Regions, op.Origin = st.kind, slices.Clone(st.regions), s.place(st.at)
	if n := len(st.operands); n > 0 {
		op.Operands = s.values.Slice(n)
		copy(op.Operands, st.operands)
		if s.draft != nil && s.draft.found > len(s.draft.slots) {
			s.draft.noteSlots(op.Operands)
		}
	}
	if op.Kind == ir.Unknown {
		op.Spelling = st.name
	}
	op.Attrs = s.sorted(st.at, slices.Clone(st.attrs))
	s.normalize(st.at, op, st.form)
	if n := len(st.results); n > 0 {
		op.Results = s.values.Slice(n)
	}
	for i, t := range st.results {
		v := s.fn.NewValue(t, "")
		v.Def, v.Index = op, i
		op.Results[i] = v
	}
	if shardings, ok := op.Attrs.Get(shardingName).(ir.PerValue); ok && len(op.Results) > 0 {
		if len(shardings) != len(op.Results) {
			s.report(st.at, "%s has %s, %s has %s", st.name, counted(len(op.Results), "result"), shardingName, counted(len(shardings), "sharding"))
		}
		for i, sh := range shardings[:min(len(shardings), len(op.Results))] {
			op.Results[i].Sharding = sh
		}
		op.Attrs.Delete(shardingName)
	}
	if len(op.Attrs) == 0 {
		op.Attrs = nil
	}
	return op
}

// sorted are the attributes of an op or a dictionary at offset at, by name.
func (s *parser) sorted(at int, attrs []ir.NamedAttr) ir.Attrs {
	byName := func(a, b ir.NamedAttr) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(attrs, byName) {
		slices.SortStableFunc(attrs, byName)
	}
	for i := 1; i < len(attrs); i++ {
		if attrs[i].Name == attrs[i-1].Name {
			s.report(at, "attribute %s is given twice", attrs[i].Name)
			return attrs[:i]
		}
	}
	return attrs
}

// definitions reads the left side of an op, if it has one.
func (s *parser) definitions(st *state) {
	if s.tok.kind != valueToken {
		return
	}
	for {
		if s.tok.kind != valueToken {
			s.wanted("a result's name")
			return
		}
		d := definition{s.tok.start, s.take()[1:], 1}
		if s.accept(":") {
			if s.tok.kind != intToken {
				s.wanted("the number of results")
				return
			}
			d.n = s.smallInt(s.take())
			if d.n == 0 {
				s.fail(d.at, "%%%s:0 names no result", d.name)
			}
		}
		st.defs = append(st.defs, d)
		if !s.accept(",") {
			break
		}
	}
	s.expect("=")
}

func (s *parser) defineResults(defs []definition, op *ir.Op) {
	n := 0
	for _, d := range defs {
		n += d.n
	}
	if n != len(op.Results) && len(defs) > 0 {
		s.fail(defs[0].at, "%s gives %s, not %d", op.Name(), counted(len(op.Results), "result"), n)
		return
	}
	i := 0
	for _, d := range defs {
		op.Results[i].Name = s.nameOf(d.name)
		s.define(d.at, d.name, op.Results[i:i+d.n]...)
		i += d.n
	}
}

// nameOf is the name of a value that the text calls name. Numbers are those that
// the printer gives to values without one.
func (s *parser) nameOf(name string) string {
	if names.IsNumber(name) {
		return ""
	}
	return strings.Clone(name)
}

// genericRest reads an op in its generic form after the name.
func (s *parser) genericRest(st *state) {
	s.expect("(")
	st.operands = s.operands(st.operands)
	s.expect(")")
	if s.accept("[") {
		s.fail(s.tok.start, "%s branches to other blocks; a region has one", st.name)
	}
	if s.at("<") {
		s.properties(st)
	}
	if s.at("(") {
		alone := ir.HasByName(st.kind, st.name, ir.Isolated)
		s.list("(", ")", func() { st.regions = append(st.regions, s.region(scope{isolated: alone}, nil)) })
	}
	dict{}.read(s, st)
	s.expect(":")
	s.functionType(st)
}

// properties reads <{a = 1 : i64}>, the inherent attributes of an op, which must have
// some.
func (s *parser) properties(st *state) {
	at := s.tok.start
	s.next()
	s.dictInto(st)
	s.expect(">")
	if op := (&ir.Op{Kind: st.kind, Spelling: st.name}); op.Known() && len(st.attrs) > 0 && !hasInherent(op) {
		s.report(at, "%s has no properties", st.name)
	}
}

// functionType reads the types of operands and results as a function type.
func (s *parser) functionType(st *state) {
	var in []*ir.Type
	at := s.tok.start
	s.list("(", ")", func() { in = append(in, s.typ()) })
	s.checkTypes(at, st.operands, in)
	s.expect("->")
	st.results = append(st.results, s.typeOrList()...)
}

// typeOrList reads one type, or several in parentheses.
func (s *parser) typeOrList() []*ir.Type {
	if !s.at("(") {
		return []*ir.Type{s.typ()}
	}
	var ts []*ir.Type
	s.list("(", ")", func() { ts = append(ts, s.typ()) })
	if s.at("->") { // one result, a function
		return []*ir.Type{s.functionAfter(ts)}
	}
	return ts
}

// checkTypes reports operands that do not have the types ts, which stand at
// offset at.
func (s *parser) checkTypes(at int, operands []*ir.Value, ts []*ir.Type) {
	if len(operands) != len(ts) {
		s.fail(at, "%s, but %s", counted(len(operands), "operand"), counted(len(ts), "type"))
		return
	}
	for i, v := range operands {
		s.checkType(at, i, v, ts[i])
	}
}

func (s *parser) checkType(at, i int, v *ir.Value, t *ir.Type) {
	if v.Type == nil && s.draft != nil {
		v.Type = t
	}
	if v.Type == nil || v.Type.Equal(t) {
		return
	}
	if have, said := v.Type.String(), t.String(); have != said { // the same text is of one that could not be read
		s.report(at, "operand %d is %s, the type here says %s", i, have, said)
	}
}

// counted is n and what it counts: 1 result, 2 results.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// place is the origin of what stands at offset at and says no other.
func (s *parser) place(at int) *ir.Origin {
	if s.draft != nil && at < s.draft.from { // an alias: its line is not known
		s.giveUp()
		return nil
	}
	line, col := s.lines.Find(s.src, at)
	o := s.origins.New()
	o.Pos = ir.Pos{File: s.file, Line: line, Col: col}
	return o
}
