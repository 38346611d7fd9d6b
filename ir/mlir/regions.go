package mlir

import (
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
)

// loop is the syntax of a while: operands, both regions. The regions share the
// names of their arguments.
type loop struct{ noAttrs }

func (loop) count(n *count) { n.variadic, n.regions = true, true }
func (loop) fits(op *ir.Op) bool {
	return len(op.Regions) == 2 && op.Regions[0] != nil && op.Regions[1] != nil && sameLists(op.Operands, op.Results) &&
		sameLists(op.Regions[0].Args, op.Operands) && sameLists(op.Regions[1].Args, op.Operands)
}
func (loop) print(p *printer, op *ir.Op, f *syntax) {
	p.print("(")
	for i, a := range op.Regions[0].Args {
		if i > 0 {
			p.print(", ")
		}
		p.print(p.use(a), " = ", p.use(op.Operands[i]))
	}
	p.print(")")
	if len(op.Operands) > 0 {
		p.print(" : ")
		p.types(op.Operands)
	}
	if rest := restAttrs(op, f); len(rest) > 0 {
		p.print(" attributes ", rest.String())
	}
	p.newline()
	p.print("cond ")
	p.body(op.Regions[0])
	p.print(" do ")
	p.body(op.Regions[1])
}
func (loop) read(s *parser, st *state) {
	var names []definition
	s.list("(", ")", func() {
		if s.tok.kind != valueToken {
			s.wanted("an argument's name")
			return
		}
		names = append(names, definition{s.tok.start, strings.Clone(s.take()[1:]), 1})
		s.expect("=")
		st.operands = append(st.operands, s.operand())
	})
	if len(names) > 0 {
		var at int
		at, st.results = s.types()
		s.checkTypes(at, st.operands, st.results)
	}
	if s.accept("attributes") {
		s.dictInto(st)
	}
	args := func(b *ir.Block) {
		for i, d := range names {
			s.define(d.at, d.name, s.fn.NewArg(b, st.results[i], d.name))
		}
	}
	for _, word := range []string{"cond", "do"} {
		s.expect(word)
		st.regions = append(st.regions, s.region(scope{}, args))
	}
}

// reduction is the syntax of a reduce: operands in pairs, dimensions, and the
// region, which is named by its op alone where it is nothing but that.
type reduction struct{}

func (reduction) attrs() []string { return []string{"dimensions"} }
func (reduction) count(n *count)  { n.variadic, n.regions = true, true }
func (reduction) fits(op *ir.Op) bool {
	n := len(op.Operands)
	return n > 0 && n%2 == 0 && list("dimensions").fits(op) && len(op.Regions) == 1 && op.Regions[0] != nil && len(op.Regions[0].Args) == n
}

func (reduction) print(p *printer, op *ir.Op, f *syntax) {
	n := len(op.Operands) / 2
	for i := range n {
		if i > 0 {
			p.print(", ")
		}
		p.print("(", p.use(op.Operands[i]), " init: ", p.use(op.Operands[n+i]), ")")
	}
	kind := combinerOf(op)
	if kind != ir.Invalid {
		p.print(" applies ", kind.String())
	}
	p.print(" across dimensions = ")
	writeInts(&p.b, op.Ints("dimensions"))
	p.suffixDict(restAttrs(op, f))
	p.print(" : ")
	p.functional(op)
	if kind != ir.Invalid {
		return
	}
	p.newline()
	p.print(" reducer")
	args := op.Regions[0].Args
	for i := range n {
		if i > 0 {
			p.print(" ")
		}
		p.params([]*ir.Value{args[i], args[n+i]})
	}
	p.print("  ")
	p.body(op.Regions[0])
}
func (reduction) read(s *parser, st *state) {
	var inits []*ir.Value
	for {
		s.expect("(")
		st.operands = append(st.operands, s.operand())
		s.expect("init")
		s.expect(":")
		inits = append(inits, s.operand())
		s.expect(")")
		if !s.accept(",") {
			break
		}
	}
	st.operands = append(st.operands, inits...)
	kind, at := ir.Invalid, s.tok.start
	if s.accept("applies") {
		at = s.tok.start
		if kind = ir.KindByName(s.text()); !kind.Combines() {
			s.wanted("an op that combines two values")
		}
		s.next()
	}
	s.expect("across")
	s.expect("dimensions")
	s.expect("=")
	list("dimensions").read(s, st)
	dict{}.read(s, st)
	s.expect(":")
	s.functionType(st)
	if kind != ir.Invalid {
		st.regions = []*ir.Block{s.combiner(at, kind, st)}
		return
	}
	s.expect("reducer")
	st.regions = []*ir.Block{s.region(scope{}, s.reducerArgs)}
}

// combiner is the region of a reduce that is named by its op alone.
func (s *parser) combiner(at int, kind ir.Kind, st *state) *ir.Block {
	b := new(ir.Block)
	x := st.operands[0].Type
	if len(st.operands) != 2 || x != nil && !x.IsTensor() {
		s.fail(at, "a reduce of %s, want one tensor where an op stands for the region", counted(len(st.operands)/2, "value"))
	}
	if x == nil || s.failed { // reported
		return b
	}
	t := x.WithShape()
	l, r := s.fn.NewArg(b, t, ""), s.fn.NewArg(b, t, "")
	in := &ir.Builder{Func: s.fn, Block: b, Origin: s.place(at)}
	op := in.Emit(kind, []*ir.Value{l, r}, nil, nil, []*ir.Type{t})
	in.Emit(ir.Return, op.Results, nil, nil, nil)
	return b
}

// reducerArgs reads pairs of arguments, (%l0: T, %r0: T) (%l1: U, %r1: U), as
// l0, l1, r0, r1.
func (s *parser) reducerArgs(b *ir.Block) {
	for s.at("(") {
		at, n := s.tok.start, len(b.Args)
		s.blockArgs(b)
		if len(b.Args) != n+2 {
			s.fail(at, "%s, want two", counted(len(b.Args)-n, "argument"))
			return
		}
	}
	pairs := b.Args
	b.Args = make([]*ir.Value, len(pairs))
	for i, v := range pairs {
		v.Index = i/2 + i%2*(len(pairs)/2)
		b.Args[v.Index] = v
	}
}

// combinerOf is the op that the region of a reduce consists of: it combines
// both arguments and returns the result. It is Invalid where the region is more.
func combinerOf(op *ir.Op) ir.Kind {
	r := op.Regions[0]
	if len(op.Operands) != 2 || len(r.Args) != 2 || len(r.Ops) != 2 || op.Operands[0] == nil {
		return ir.Invalid
	}
	body, ret := r.Ops[0], r.Ops[1]
	plain := body.Kind.Combines() && ret.Kind == ir.Return && len(body.Attrs)+len(ret.Attrs) == 0 &&
		len(body.Results) == 1 && body.Results[0].Sharding == nil &&
		slices.Equal(body.Operands, r.Args) && slices.Equal(ret.Operands, body.Results)
	if !plain || !op.Operands[0].Type.IsTensor() {
		return ir.Invalid
	}
	want := op.Operands[0].Type.WithShape()
	for _, v := range []*ir.Value{r.Args[0], r.Args[1], body.Results[0]} {
		if !v.Type.Equal(want) {
			return ir.Invalid
		}
	}
	return body.Kind
}

// manualComputation is the syntax of an sdy.manual_computation.
type manualComputation struct{}

func (manualComputation) attrs() []string {
	return []string{"in_shardings", "manual_axes", "out_shardings"}
}
func (manualComputation) count(n *count) { n.variadic, n.regions = true, true }
func (manualComputation) fits(op *ir.Op) bool {
	_, in := op.Attrs.Get("in_shardings").(ir.PerValue)
	_, out := op.Attrs.Get("out_shardings").(ir.PerValue)
	axes, ok := op.Attrs.Get("manual_axes").(ir.Array)
	for _, a := range axes {
		_, isStr := a.(ir.Str)
		ok = ok && isStr
	}
	return in && out && ok && len(op.Regions) == 1 && op.Regions[0] != nil
}

func (manualComputation) print(p *printer, op *ir.Op, f *syntax) {
	p.print("(")
	p.uses(op.Operands)
	p.print(") in_shardings=", shardingsText(op, "in_shardings"), " out_shardings=", shardingsText(op, "out_shardings"), " manual_axes={")
	for i, a := range op.Attrs.Get("manual_axes").(ir.Array) {
		if i > 0 {
			p.print(", ")
		}
		p.print(a.String())
	}
	p.print("} ")
	p.computation(op, f)
}

// computation writes the region of op, a function of its operands: parameters,
// ops, attributes that are left, and the type.
func (p *printer) computation(op *ir.Op, f *syntax) {
	p.params(op.Regions[0].Args)
	p.print(" ")
	p.body(op.Regions[0])
	p.suffixDict(restAttrs(op, f))
	p.print(" : ")
	p.functional(op)
}

// computation reads what the printer's writes.
func (s *parser) computation(st *state, in scope) {
	st.regions = []*ir.Block{s.region(in, s.blockArgs)}
	dict{}.read(s, st)
	s.expect(":")
	s.functionType(st)
}

func (manualComputation) read(s *parser, st *state) {
	s.expect("(")
	st.operands = s.operands(st.operands)
	s.expect(")")
	for _, name := range []string{"in_shardings", "out_shardings"} {
		s.expect(name)
		s.expect("=")
		st.set(name, s.shardings())
	}
	s.expect(manualAxes)
	s.expect("=")
	axes := ir.Array{}
	s.list("{", "}", func() { axes = append(axes, ir.Str(s.stringText())) })
	st.set(manualAxes, axes)
	s.computation(st, scope{isolated: true})
}

const manualAxes = "manual_axes"

// shardingsText is the shardings without their dialect: [<@mesh, [{}]>].
func shardingsText(op *ir.Op, name string) string {
	s := op.Attrs.Get(name).(ir.PerValue).String()
	return strings.TrimSuffix(strings.TrimPrefix(s, "#sdy.sharding_per_value<"), ">")
}

// named is the syntax of an sdy.named_computation.
type named struct{}

func (named) attrs() []string { return []string{"in_shardings", "name", "out_shardings"} }
func (named) count(n *count)  { n.variadic, n.regions = true, true }
func (named) fits(op *ir.Op) bool {
	_, ok := op.Attrs.Get("name").(ir.Str)
	for _, name := range []string{"in_shardings", "out_shardings"} {
		_, is := op.Attrs.Get(name).(ir.PerValue)
		ok = ok && (is || !op.Attrs.Has(name))
	}
	return ok && len(op.Regions) == 1 && op.Regions[0] != nil
}

func (named) print(p *printer, op *ir.Op, f *syntax) {
	p.print("<", ir.QuoteText(op.Str("name")), ">(")
	p.uses(op.Operands)
	p.print(")")
	for _, name := range []string{"in_shardings", "out_shardings"} {
		if op.Attrs.Has(name) {
			p.print(" ", name, "=", shardingsText(op, name))
		}
	}
	p.print(" ")
	p.computation(op, f)
}

func (named) read(s *parser, st *state) {
	s.expect("<")
	st.set("name", ir.Str(s.stringText()))
	s.expect(">")
	s.expect("(")
	st.operands = s.operands(st.operands)
	s.expect(")")
	for _, name := range []string{"in_shardings", "out_shardings"} {
		if s.accept(name) {
			s.expect("=")
			st.set(name, s.shardings())
		}
	}
	s.computation(st, scope{})
}

// scan is the syntax of chlo.scan: inputs, carries, the dimension, and the other
// attributes before the region.
type scan struct{}

func (scan) attrs() []string {
	return []string{"dimension", "operandSegmentSizes", "resultSegmentSizes"}
}
func (scan) count(n *count) { n.variadic, n.regions = true, true }
func (scan) fits(op *ir.Op) bool {
	_, inits, ok := op.Segments()
	sizes := fmt.Sprintf("array<i32: %d, %d>", len(op.Results)-inits, inits)
	given := op.Attrs.Get("resultSegmentSizes")
	return ok && number("dimension").fits(op) && len(op.Regions) == 1 && len(op.Results) >= inits && given != nil && given.String() == sizes
}
func (scan) print(p *printer, op *ir.Op, f *syntax) {
	inputs, _, _ := op.Segments()
	p.print("(")
	p.uses(op.Operands[:inputs])
	p.print(") inits (")
	p.uses(op.Operands[inputs:])
	p.print(") dimension=")
	number("dimension").print(p, op, f)
	p.print("  ")
	if rest := restAttrs(op, f); len(rest) > 0 {
		p.print("attributes ", rest.String(), " ")
	}
	p.region(op.Regions[0])
	p.print(" : ")
	p.functional(op)
}
func (scan) read(s *parser, st *state) {
	s.expect("(")
	st.operands = s.operands(st.operands)
	inputs := len(st.operands)
	s.expectWords(") inits (")
	st.operands = s.operands(st.operands)
	inits := len(st.operands) - inputs
	s.expectWords(") dimension =")
	number("dimension").read(s, st)
	if s.accept("attributes") {
		s.dictInto(st)
	}
	st.regions = []*ir.Block{s.region(scope{isolated: true}, nil)}
	s.expect(":")
	s.functionType(st)
	st.set("operandSegmentSizes", ir.Verbatim(fmt.Sprintf("array<i32: %d, %d>", inputs, inits)))
	st.set("resultSegmentSizes", ir.Verbatim(fmt.Sprintf("array<i32: %d, %d>", len(st.results)-inits, inits)))
}
