package mlir

import (
	"fmt"
	"strconv"
	"strings"

	"ppc/ir"
	"ppc/ir/mlir/names"
)

// constant is the syntax of a constant: attributes and the literal, whose type is
// the result's.
type constant struct{}

func (constant) attrs() []string { return []string{"value"} }
func (constant) fits(op *ir.Op) bool {
	return op.Literal("value") != nil && len(op.Results) == 1
}
func (constant) print(p *printer, op *ir.Op, f *syntax) {
	if quantized(op) {
		p.genericRest(op)
		return
	}
	p.suffixDict(restAttrs(op, f))
	p.print(" ", op.Literal("value").String())
}

// quantized reports whether the result has another type than the literal; the
// constant is then written generically, but for the quotes of its name.
func quantized(op *ir.Op) bool { return !op.Literal("value").Type.Equal(op.Results[0].Type) }

func (constant) read(s *parser, st *state) {
	if s.at("(") { // of another type than its result
		s.genericRest(st)
		return
	}
	dict{}.read(s, st)
	at := s.tok.start
	a := s.attr()
	st.set("value", a)
	switch v := a.(type) {
	case *ir.Literal:
		st.results = []*ir.Type{v.Type}
	case ir.Int:
		st.results = []*ir.Type{ir.Scalar(v.Type)}
	case ir.Float:
		st.results = []*ir.Type{ir.Scalar(v.Type)}
	default:
		s.constantOf(st, at, a)
	}
}

// constantOf reads a constant whose value is not understood: its type is what
// stands at the end of it.
func (s *parser) constantOf(st *state, at int, a ir.Attr) {
	text := a.String()
	i := strings.LastIndex(text, " : ")
	if _, ok := a.(ir.Verbatim); !ok || i < 0 {
		s.fail(at, "found %.40s, want the elements of a tensor", text)
		return
	}
	st.results = []*ir.Type{{Kind: ir.OpaqueType, Text: text[i+len(" : "):]}}
}

// precisionFormat is the format of reduce_precision: e5m10.
type precisionFormat struct{}

func (precisionFormat) attrs() []string { return []string{"exponent_bits", "mantissa_bits"} }
func (precisionFormat) fits(op *ir.Op) bool {
	e, ok := op.Attrs.Get("exponent_bits").(ir.Int)
	m, ok2 := op.Attrs.Get("mantissa_bits").(ir.Int)
	return ok && ok2 && e.Type == ir.I32 && m.Type == ir.I32 && e.Value >= 0 && m.Value >= 0
}
func (precisionFormat) print(p *printer, op *ir.Op, f *syntax) {
	p.printf("e%dm%d", op.Int("exponent_bits"), op.Int("mantissa_bits"))
}
func (precisionFormat) read(s *parser, st *state) {
	e, m, ok := strings.Cut(strings.TrimPrefix(s.text(), "e"), "m")
	if s.tok.kind != nameToken || !ok || !names.IsNumber(e) || !names.IsNumber(m) {
		s.wanted("a format such as e5m10")
	}
	s.next()
	st.set("exponent_bits", ir.Int{Value: s.smallInt(e), Type: ir.I32})
	st.set("mantissa_bits", ir.Int{Value: s.smallInt(m), Type: ir.I32})
}

// sliceRanges is the bounds of a slice: [0:4, 1:7:2].
type sliceRanges struct{}

func (sliceRanges) attrs() []string { return []string{"limit_indices", "start_indices", "strides"} }
func (sliceRanges) fits(op *ir.Op) bool {
	for _, name := range []list{"limit_indices", "start_indices", "strides"} {
		if !name.fits(op) || len(op.Ints(string(name))) != len(op.Ints("start_indices")) {
			return false
		}
	}
	return true
}
func (sliceRanges) print(p *printer, op *ir.Op, f *syntax) {
	start, limit, strides := op.Ints("start_indices"), op.Ints("limit_indices"), op.Ints("strides")
	p.print("[")
	for i := range start {
		if i > 0 {
			p.print(", ")
		}
		p.printf("%d:%d", start[i], limit[i])
		if strides[i] != 1 {
			p.printf(":%d", strides[i])
		}
	}
	p.print("]")
}
func (sliceRanges) read(s *parser, st *state) {
	start, limit, strides := ir.Ints{}, ir.Ints{}, ir.Ints{}
	s.list("[", "]", func() {
		start = append(start, s.integer())
		s.expect(":")
		limit = append(limit, s.integer())
		stride := 1
		if s.accept(":") {
			stride = s.integer()
		}
		strides = append(strides, stride)
	})
	st.set("start_indices", start)
	st.set("limit_indices", limit)
	st.set("strides", strides)
}

// dotDims is the dimension numbers of dot_general.
type dotDims struct{}

func (dotDims) attrs() []string { return []string{"dot_dimension_numbers"} }
func (dotDims) fits(op *ir.Op) bool {
	_, ok := op.Attrs.Get("dot_dimension_numbers").(ir.Dot)
	return ok
}
func (dotDims) print(p *printer, op *ir.Op, f *syntax) {
	d := op.Attrs.Get("dot_dimension_numbers").(ir.Dot)
	pair := func(name string, lhs, rhs []int) {
		p.print(name, " = ")
		writeInts(&p.b, lhs)
		p.print(" x ")
		writeInts(&p.b, rhs)
	}
	p.print(", ")
	if len(d.LhsBatch)+len(d.RhsBatch) > 0 {
		pair("batching_dims", d.LhsBatch, d.RhsBatch)
		p.print(", ")
	}
	pair("contracting_dims", d.LhsContract, d.RhsContract)
}
func (dotDims) read(s *parser, st *state) {
	var d ir.Dot
	pair := func(lhs, rhs *[]int) {
		s.expect("=")
		*lhs = s.ints()
		s.expect("x")
		*rhs = s.ints()
	}
	s.expect(",")
	contracting := true
	if s.accept("batching_dims") {
		pair(&d.LhsBatch, &d.RhsBatch)
		contracting = s.comes(", contracting_dims")
	} else {
		s.expect("contracting_dims")
	}
	if contracting {
		pair(&d.LhsContract, &d.RhsContract)
	}
	st.set("dot_dimension_numbers", d)
}

// precisionConfig is the precision of each operand, if it is there.
type precisionConfig struct{}

const precisionName = "precision_config"

func (precisionConfig) attrs() []string { return []string{precisionName} }
func (precisionConfig) fits(op *ir.Op) bool {
	a := op.Attrs.Get(precisionName)
	if a == nil {
		return true
	}
	words, ok := a.(ir.Array)
	for _, w := range words {
		e, isEnum := w.(ir.Enum)
		ok = ok && isEnum && e.Dialect == "stablehlo" && e.Set == "precision"
	}
	return ok
}
func (precisionConfig) print(p *printer, op *ir.Op, f *syntax) {
	words, ok := op.Attrs.Get(precisionName).(ir.Array)
	if !ok {
		return
	}
	ss := make([]string, len(words))
	for i, w := range words {
		ss[i] = w.(ir.Enum).Value
	}
	p.print(", precision = [", strings.Join(ss, ", "), "]")
}
func (precisionConfig) read(s *parser, st *state) {
	if !s.comes(", precision =") {
		return
	}
	words := ir.Array{}
	s.list("[", "]", func() {
		if s.tok.kind != nameToken {
			s.wanted("a precision")
		}
		words = append(words, ir.HLOEnum("precision", strings.Clone(s.take())))
	})
	st.set(precisionName, words)
}

// dotAlgorithm is the algorithm of dot_general, if it is there.
type dotAlgorithm struct{}

const algorithmOpen = "#stablehlo.dot_algorithm<"

func (dotAlgorithm) attrs() []string { return []string{"algorithm"} }
func (dotAlgorithm) fits(op *ir.Op) bool {
	a := op.Attrs.Get("algorithm")
	v, ok := a.(ir.Verbatim)
	return a == nil || ok && strings.HasPrefix(string(v), algorithmOpen)
}
func (dotAlgorithm) print(p *printer, op *ir.Op, f *syntax) {
	if v, ok := op.Attrs.Get("algorithm").(ir.Verbatim); ok {
		p.print(", algorithm = <", strings.TrimPrefix(string(v), algorithmOpen))
	}
}
func (dotAlgorithm) read(s *parser, st *state) {
	if s.comes(", algorithm =") {
		if !s.at("<") {
			s.wanted(`"<"`)
		}
		st.set("algorithm", ir.Verbatim(strings.TrimSuffix(algorithmOpen, "<")+s.raw(s.tok.start)))
	}
}

// convDims is the dimension numbers of a convolution: [b, 0, f]x[0, i, o]->[b, 0, f].
type convDims struct{}

func (convDims) attrs() []string { return []string{"dimension_numbers"} }
func (convDims) fits(op *ir.Op) bool {
	d, ok := op.Attrs.Get("dimension_numbers").(ir.ConvDims)
	if ok {
		_, ok = d.Short()
	}
	return ok
}
func (convDims) print(p *printer, op *ir.Op, f *syntax) {
	text, _ := op.Attrs.Get("dimension_numbers").(ir.ConvDims).Short()
	p.print(text)
}
func (convDims) read(s *parser, st *state) { st.set("dimension_numbers", s.convDims()) }

// convDims reads [b, 0, f]x[0, i, o]->[b, 0, f].
func (s *parser) convDims() ir.ConvDims {
	var sides [3]ir.ConvSide
	for i, sep := range []string{"", "x", "->"} {
		if i > 0 {
			s.expect(sep)
		}
		at := s.tok.start
		var labels []string
		s.list("[", "]", func() { labels = append(labels, s.take()) })
		side, err := ir.ConvSideOf(i, labels)
		if err != nil {
			s.fail(at, "%v", err)
		}
		sides[i] = side
	}
	return ir.ConvDims{Input: sides[0], Kernel: sides[1], Output: sides[2]}
}

// convAttr reads #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, or the raw
// form, which names each dimension.
func (s *parser) convAttr() ir.Attr {
	s.next()
	s.expect("<")
	if !s.at("raw") {
		d := s.convDims()
		s.expect(">")
		return d
	}
	var sides [3]ir.ConvSide
	var fields []field
	for i, n := range ir.ConvNames() {
		fields = append(fields, field{n[0], &sides[i].First}, field{n[1], &sides[i].Second}, field{n[2], &sides[i].Spatial})
	}
	s.fieldsAfter("raw", fields...)
	return ir.ConvDims{Input: sides[0], Kernel: sides[1], Output: sides[2]}
}

// convWindow is the window of a convolution: {stride = [1], pad = [[0, 1]]}.
type convWindow struct{}

// windowParts are what a window may say, in the order in which it is written.
var windowParts = []struct{ key, attr string }{
	{"stride", "window_strides"}, {"pad", "padding"}, {"lhs_dilate", "lhs_dilation"}, {"rhs_dilate", "rhs_dilation"}, {"reverse", "window_reversal"},
}

func (convWindow) attrs() []string {
	var names []string
	for _, w := range windowParts {
		names = append(names, w.attr)
	}
	return names
}

func (convWindow) fits(op *ir.Op) bool {
	for _, w := range windowParts {
		switch a := op.Attrs.Get(w.attr).(type) {
		case nil:
		case ir.Ints:
			if w.key == "pad" || w.key == "reverse" {
				return false
			}
		case ir.Bools:
			if w.key != "reverse" {
				return false
			}
		case *ir.Literal:
			if w.key != "pad" || a.Type.Rank() != 2 || a.Type.Shape[1] != 2 || a.Type.Elem != ir.I64 {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func (convWindow) print(p *printer, op *ir.Op, f *syntax) {
	var ss []string
	for _, w := range windowParts {
		switch a := op.Attrs.Get(w.attr).(type) {
		case ir.Ints:
			var b strings.Builder
			writeInts(&b, a)
			ss = append(ss, w.key+" = "+b.String())
		case ir.Bools:
			vs := make([]string, len(a))
			for i, v := range a {
				vs[i] = strconv.FormatBool(v)
			}
			ss = append(ss, w.key+" = ["+strings.Join(vs, ", ")+"]")
		case *ir.Literal:
			vs := make([]string, a.Type.Shape[0])
			for i := range vs {
				vs[i] = fmt.Sprintf("[%d, %d]", a.Int(2*i), a.Int(2*i+1))
			}
			ss = append(ss, w.key+" = ["+strings.Join(vs, ", ")+"]")
		}
	}
	p.print("{", strings.Join(ss, ", "), "}")
}
func (convWindow) read(s *parser, st *state) {
	s.list("{", "}", func() {
		for _, w := range windowParts {
			if !s.accept(w.key) {
				continue
			}
			s.expect("=")
			switch w.key {
			case "pad":
				st.set(w.attr, s.padding())
			case "reverse":
				bools := ir.Bools{}
				s.list("[", "]", func() { bools = append(bools, s.boolean()) })
				st.set(w.attr, bools)
			default:
				st.set(w.attr, ir.Ints(s.ints()))
			}
			return
		}
		s.wanted("stride, pad, lhs_dilate, rhs_dilate or reverse")
	})
}

// padding reads [[0, 1], [2, 0]].
func (s *parser) padding() *ir.Literal {
	var all []int
	s.list("[", "]", func() {
		at := s.tok.start
		pair := s.ints()
		if len(pair) != 2 {
			s.fail(at, "%d numbers, want the padding before and after", len(pair))
		}
		all = append(all, pair...)
	})
	if s.failed {
		return nil
	}
	l := ir.Ints64(ir.Tensor(ir.I64, len(all)/2, 2), all...)
	return &ir.Literal{Type: l.Type, Data: splatOf(l.Data, l.Type)}
}

// returned is the operands of a terminator, if there are any.
type returned struct{ noAttrs }

func (returned) count(n *count)      { n.variadic = true }
func (returned) fits(op *ir.Op) bool { return len(op.Results) == 0 }
func (returned) print(p *printer, op *ir.Op, f *syntax) {
	before := op.Kind != ir.Return
	if before {
		p.suffixDict(restAttrs(op, f))
	}
	if len(op.Operands) > 0 || !before { // MLIR prints the blank also where nothing follows it
		p.print(" ")
		p.uses(op.Operands)
	}
	if !before {
		p.suffixDict(restAttrs(op, f))
	}
	if len(op.Operands) > 0 {
		p.print(" : ")
		p.types(op.Operands)
	}
}
func (returned) read(s *parser, st *state) {
	dict{}.read(s, st)
	st.operands = s.operands(st.operands)
	dict{}.read(s, st)
	if len(st.operands) > 0 {
		at, ts := s.types()
		s.checkTypes(at, st.operands, ts)
	}
}

// types reads ": T, U".
func (s *parser) types() (at int, ts []*ir.Type) {
	s.expect(":")
	at = s.tok.start
	ts = append(ts, s.typ())
	for s.accept(",") {
		ts = append(ts, s.typ())
	}
	return at, ts
}

// barrier is the syntax of an optimization_barrier, whose results have the types of
// its operands.
type barrier struct{ noAttrs }

func (barrier) count(n *count)      { n.variadic = true }
func (barrier) fits(op *ir.Op) bool { return sameLists(op.Operands, op.Results) }
func (barrier) print(p *printer, op *ir.Op, f *syntax) {
	p.suffixDict(restAttrs(op, f))
	if len(op.Operands) == 0 {
		p.print("()")
		return
	}
	p.print(" ")
	p.uses(op.Operands)
	p.print(" : ")
	p.types(op.Operands)
}
func (barrier) read(s *parser, st *state) {
	dict{}.read(s, st)
	if s.accept("(") {
		s.expect(")")
		return
	}
	st.operands = s.operands(st.operands)
	dict{}.read(s, st)
	var at int
	at, st.results = s.types()
	s.checkTypes(at, st.operands, st.results)
}

// sameLists reports whether as and bs have the same types.
func sameLists(as, bs []*ir.Value) bool {
	if len(as) != len(bs) {
		return false
	}
	for i := range as {
		if as[i] == nil || bs[i] == nil || as[i].Type == nil || !as[i].Type.Equal(bs[i].Type) {
			return false
		}
	}
	return true
}

// shardingText is an attribute that is a sharding, without its dialect.
type shardingText string

func (t shardingText) attrs() []string { return []string{string(t)} }
func (t shardingText) fits(op *ir.Op) bool {
	_, ok := op.Attrs.Get(string(t)).(*ir.Sharding)
	return ok
}
func (t shardingText) print(p *printer, op *ir.Op, f *syntax) {
	p.print(op.Attrs.Get(string(t)).String())
}
func (t shardingText) read(s *parser, st *state) { st.set(string(t), s.sharding()) }

// optionalSharding is a sharding after a key, if it is there.
type optionalSharding struct{ name, lead string }

func (o optionalSharding) attrs() []string { return []string{o.name} }
func (o optionalSharding) fits(op *ir.Op) bool {
	return !op.Attrs.Has(o.name) || shardingText(o.name).fits(op)
}
func (o optionalSharding) print(p *printer, op *ir.Op, f *syntax) {
	if op.Attrs.Has(o.name) {
		p.print(o.lead, op.Attrs.Get(o.name).String())
	}
}
func (o optionalSharding) read(s *parser, st *state) {
	if s.at(strings.Trim(o.lead, " =")) {
		s.key(o.lead)
		st.set(o.name, s.sharding())
	}
}
