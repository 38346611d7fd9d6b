package mlir

import (
	"math"
	"strconv"
	"strings"

	"ppc/ir"
	"ppc/ir/mlir/element"
)

// attr reads an attribute.
func (s *parser) attr() ir.Attr {
	s.enter()
	defer s.leave()
	s.node(1)
	switch s.tok.kind {
	case stringToken:
		return ir.Str(unquote(s.take()))
	case intToken, floatToken:
		return s.numberAttr()
	case symbolToken:
		return s.symbolAttr()
	case hashToken:
		return s.hashAttr()
	case bangToken:
		return ir.TypeAttr{Type: s.typ()}
	case nameToken:
		return s.namedAttr()
	}
	switch {
	case s.at("-"):
		return s.numberAttr()
	case s.at("["):
		out := ir.Array{}
		s.list("[", "]", func() { out = append(out, s.attr()) })
		return out
	case s.at("{"):
		return ir.Dict(s.dict())
	case s.at("("):
		return ir.TypeAttr{Type: s.typ()}
	}
	s.wanted("an attribute")
	return ir.Unit{}
}

// dict reads {a = 1 : i64, b}.
func (s *parser) dict() ir.Attrs {
	at := s.tok.start
	st := new(state)
	s.dictInto(st)
	return s.sorted(at, st.attrs)
}

// dictInto reads a dictionary and adds it to what is known of an op.
func (s *parser) dictInto(st *state) {
	s.list("{", "}", func() {
		name := s.attrName()
		if !s.accept("=") {
			st.set(name, ir.Unit{})
			return
		}
		st.set(name, s.attr())
	})
}

func (s *parser) attrName() string {
	switch s.tok.kind {
	case stringToken:
		if t := unquote(s.text()); t != "" {
			s.next()
			return t
		}
	case nameToken:
		return strings.Clone(s.take())
	}
	s.wanted("an attribute's name")
	return ""
}

// symbol reads the name of a symbol.
func (s *parser) symbol() string {
	t := s.take()[1:]
	if t[0] == '"' {
		return unquote(t)
	}
	return strings.Clone(t)
}

// symbolAttr reads @f. References into nested symbols are carried through.
func (s *parser) symbolAttr() ir.Attr {
	start, end := s.tok.start, s.tok.end
	name := s.symbol()
	if !strings.HasPrefix(s.src[end:], "::") {
		return ir.Sym(name)
	}
	for strings.HasPrefix(s.src[end:], "::@") {
		s.seek(end + 2)
		end = s.tok.end
	}
	return ir.Verbatim(s.rawTo(start, end))
}

func (s *parser) namedAttr() ir.Attr {
	start := s.tok.start
	switch t := s.text(); t {
	case "true", "false":
		s.next()
		return ir.Bool(t == "true")
	case "unit":
		s.next()
		return ir.Unit{}
	case "dense":
		return s.dense()
	case "dense_resource":
		return s.resource()
	case "array":
		return s.array()
	case "loc":
		s.seek(s.tok.end)
		return ir.Verbatim(s.raw(start))
	default:
		if isTypeName(t) {
			return ir.TypeAttr{Type: s.typ()}
		}
		if s.tok.end < len(s.src) && s.src[s.tok.end] == '<' { // affine_map<…>
			return ir.Verbatim(s.raw(start))
		}
	}
	s.wanted("an attribute")
	return ir.Unit{}
}

// numberAttr reads 3 : i64 or 1.0 : f32; integers are i64 and others f64 where
// the text does not say.
func (s *parser) numberAttr() ir.Attr {
	start := s.tok.start
	neg := s.accept("-")
	if s.tok.kind != intToken && s.tok.kind != floatToken {
		s.wanted("a number")
	}
	isInt := s.tok.kind == intToken
	end := s.tok.end
	text := s.take()
	t := ir.F64
	if isInt {
		t = ir.I64
	}
	if s.accept(":") {
		typ := s.typ()
		if typ.Kind != ir.ScalarType || typ.Elem.IsComplex() {
			return ir.Verbatim(s.rawText(start, end) + " : " + typ.String())
		}
		t = typ.Elem
	}
	if neg {
		text = "-" + text
	}
	return s.numberOf(start, t, text)
}

// number reads a number of type t, which the text does not say.
func (s *parser) number(t ir.DType) ir.Attr {
	start, text := s.tok.start, ""
	if s.accept("-") {
		text = "-"
	}
	if s.tok.kind != intToken && s.tok.kind != floatToken {
		s.wanted("a number")
	}
	return s.numberOf(start, t, text+s.take())
}

// numberOf is the number that text, at offset start, says.
func (s *parser) numberOf(start int, t ir.DType, text string) ir.Attr {
	data := make([]byte, 8)
	if msg := element.Put(data, t, text); msg != "" {
		s.report(start, "%s", msg)
		return ir.Int{Type: t}
	}
	if t.IsFloat() {
		f := ir.Float{Value: t.GetFloat(data), Type: t}
		if math.IsNaN(f.Value) && f.String() != text+" : "+t.String() {
			return ir.Verbatim(element.HexText(data[:t.Size()]) + " : " + t.String())
		}
		return f
	}
	return ir.Int{Value: int(t.GetInt(data)), Type: t}
}

// rawText is the text between two offsets without blanks.
func (s *parser) rawText(start, end int) string {
	return strings.Join(strings.Fields(s.src[start:end]), "")
}

// integer reads an integer that may be negative.
func (s *parser) integer() int {
	start := s.tok.start
	sign := ""
	if s.accept("-") {
		sign = "-"
	}
	if s.tok.kind != intToken {
		s.wanted("an integer")
	}
	n, err := strconv.ParseInt(sign+s.text(), 0, 64)
	if err != nil && strings.HasPrefix(s.text(), "0") {
		n, err = strconv.ParseInt(sign+s.text(), 10, 64)
	}
	if err != nil {
		s.fail(start, "%s%.40s does not fit in 64 bits", sign, s.text())
	}
	s.next()
	return int(n)
}

// smallInt is the value of the digits t, or a number larger than any that
// means something.
func (s *parser) smallInt(t string) int {
	n, err := strconv.Atoi(t)
	if err != nil || n > math.MaxInt32 {
		return math.MaxInt32
	}
	return n
}

// ints reads [0, -1].
func (s *parser) ints() []int {
	out := []int{}
	s.list("[", "]", func() { out = append(out, s.integer()) })
	return out
}

// array reads array<i64: 1, 2>. Arrays of other types than i64 and i1 are
// carried through.
func (s *parser) array() ir.Attr {
	start := s.tok.start
	s.next()
	if !s.at("<") {
		s.wanted(`"<"`)
	}
	s.next()
	elem := s.text()
	if elem != "i64" && elem != "i1" {
		s.seek(start)
		return ir.Verbatim(s.raw(start))
	}
	s.next()
	ints, bools := ir.Ints{}, ir.Bools{}
	for first := true; !s.at(">") && !s.failed; first = false {
		if first {
			s.expect(":")
		} else {
			s.expect(",")
		}
		if elem == "i64" {
			ints = append(ints, s.integer())
		} else {
			bools = append(bools, s.boolean())
		}
	}
	s.expect(">")
	if elem == "i64" {
		return ints
	}
	return bools
}

// boolean reads true, false, 1 or 0.
func (s *parser) boolean() bool {
	switch t := s.text(); t {
	case "true", "1":
		s.next()
		return true
	case "false", "0":
		s.next()
		return false
	}
	s.wanted("true or false")
	return false
}

// hashAttr reads an attribute of a dialect, or an alias.
func (s *parser) hashAttr() ir.Attr {
	start, name := s.tok.start, s.text()
	if a := s.alias(name); a != nil {
		s.next()
		return s.attrOf(a)
	}
	switch name {
	case "#stablehlo.dot":
		var d ir.Dot
		s.fields(field{"lhs_batching_dimensions", &d.LhsBatch}, field{"rhs_batching_dimensions", &d.RhsBatch},
			field{"lhs_contracting_dimensions", &d.LhsContract}, field{"rhs_contracting_dimensions", &d.RhsContract})
		return d
	case "#chlo.ragged_dot":
		var d ir.RaggedDims
		s.fields(field{"lhs_batching_dimensions", &d.LhsBatch}, field{"rhs_batching_dimensions", &d.RhsBatch},
			field{"lhs_contracting_dimensions", &d.LhsContract}, field{"rhs_contracting_dimensions", &d.RhsContract},
			field{"lhs_ragged_dimensions", &d.LhsRagged}, field{"rhs_group_dimensions", &d.RhsGroup})
		return d
	case "#stablehlo.gather":
		var d ir.GatherDims
		s.fields(field{"offset_dims", &d.OffsetDims}, field{"collapsed_slice_dims", &d.CollapsedSliceDims},
			field{"operand_batching_dims", &d.OperandBatchingDims}, field{"start_indices_batching_dims", &d.StartIndicesBatchingDims},
			field{"start_index_map", &d.StartIndexMap}, field{"index_vector_dim", &d.IndexVectorDim})
		return d
	case "#stablehlo.scatter":
		var d ir.ScatterDims
		s.fields(field{"update_window_dims", &d.UpdateWindowDims}, field{"inserted_window_dims", &d.InsertedWindowDims},
			field{"input_batching_dims", &d.InputBatchingDims}, field{"scatter_indices_batching_dims", &d.ScatterIndicesBatchingDims},
			field{"scatter_dims_to_operand_dims", &d.ScatterDimsToOperandDims}, field{"index_vector_dim", &d.IndexVectorDim})
		return d
	case "#stablehlo.conv":
		return s.convAttr()
	case "#stablehlo.channel_handle":
		var c ir.Channel
		s.allFields(field{"handle", &c.Handle}, field{"type", &c.Type})
		return c
	case "#stablehlo.dot_algorithm":
		return s.dotAlgorithm(start)
	case "#stablehlo.result_accuracy":
		return s.accuracy()
	case "#stablehlo.replica_group_mesh_axes":
		return s.meshAxes()
	case "#pp.axis_shift":
		return s.axisShift()
	case "#pp.axis_move":
		return s.axisMove()
	case "#sdy.sharding":
		s.next()
		return s.sharding()
	case "#sdy.sharding_per_value":
		s.next()
		s.expect("<")
		out := s.shardings()
		s.expect(">")
		return out
	case "#stablehlo", "#chlo":
		dialect := strings.Clone(name[1:])
		if e, ok := s.enumAttr(); ok {
			e.Dialect = dialect
			return e
		}
		s.seek(start)
	}
	if s.tok.end >= len(s.src) || s.src[s.tok.end] != '<' {
		if strings.IndexByte(name, '.') < 0 {
			s.fail(start, "there is no alias %s", name)
		}
	} else if strings.IndexByte(name, '.') > 0 {
		s.checkMnemonic(start, name)
	}
	return ir.Verbatim(s.raw(start))
}

// enumAttr reads #stablehlo<precision HIGH>.
func (s *parser) enumAttr() (ir.Enum, bool) {
	s.next()
	if !s.accept("<") || s.tok.kind != nameToken {
		return ir.Enum{}, false
	}
	at, set := s.tok.start, strings.Clone(s.take())
	if s.tok.kind != nameToken {
		return ir.Enum{}, false
	}
	word := strings.Clone(s.take())
	if !s.at(">") {
		return ir.Enum{}, false
	}
	s.checkEnum(at, set)
	s.next()
	return ir.HLOEnum(set, word), true
}

// A field is one entry of a struct-like attribute.
type field struct {
	name string
	dest any // *[]int, *int, *bool or func() which reads it
}

// fields reads what follows the name of a struct-like attribute:
// <name = [0, 1], name = 2>, in any order. A bool has no value.
func (s *parser) fields(fields ...field) {
	s.next()
	s.fieldsAfter("<", fields...)
}

// allFields is fields where none may be left out.
func (s *parser) allFields(fields ...field) {
	s.next()
	at := s.tok.start
	seen := s.fieldsAfter("<", fields...)
	for _, f := range fields {
		if !seen[f.name] {
			s.fail(at, "%s is missing", f.name)
		}
	}
}

// fieldsAfter reads the entries between open and ">", and returns which there are.
func (s *parser) fieldsAfter(open string, fields ...field) (seen map[string]bool) {
	seen = make(map[string]bool)
	s.list(open, ">", func() {
		if len(seen) > 0 && s.at(">") {
			return // StableHLO allows a comma after the last entry
		}
		at, name := s.tok.start, s.text()
		for _, f := range fields {
			if f.name != name || s.tok.kind != nameToken {
				continue
			}
			if seen[name] {
				s.fail(at, "%s is given twice", name)
			}
			seen[name] = true
			s.next()
			s.readField(f)
			return
		}
		names := make([]string, len(fields))
		for i, f := range fields {
			names[i] = f.name
		}
		s.wanted(strings.Join(names, ", "))
	})
	return seen
}

func (s *parser) readField(f field) {
	if b, ok := f.dest.(*bool); ok {
		*b = true
		return
	}
	s.expect("=")
	switch d := f.dest.(type) {
	case *[]int:
		*d = s.ints()
	case *int:
		*d = s.integer()
	case func():
		d()
	}
}

// An alias is a name for an attribute, a type or a location. It may be used
// before it is defined, and is read once.
type alias struct {
	start int // offset of what it stands for
	end   int // offset of the token after it, once it is read
	busy  bool
	nodes int

	attr   ir.Attr
	typ    *ir.Type
	origin *ir.Origin
	isLoc  bool
}

// findAliases notes the lines that define an alias: #name = … or !name = ….
func (s *parser) findAliases() {
	for i := 0; i >= 0 && i < len(s.src); {
		if c := s.src[i]; c == '#' || c == '!' {
			t := s.lex(i)
			if k := s.skipSpace(t.end); k < len(s.src) && s.src[k] == '=' && t.kind != invalidToken {
				s.aliases[s.src[i:t.end]] = &alias{start: k + 1}
			}
		}
		n := strings.IndexByte(s.src[i:], '\n')
		if n < 0 {
			return
		}
		i += n + 1
	}
}

// alias is the alias called name, or nil.
func (s *parser) alias(name string) *alias {
	a := s.aliases[name]
	if a == nil || s.draft == nil {
		return a
	}
	own := s.own[name]
	if own == nil {
		own = &alias{start: a.start}
		s.own[name] = own
	}
	return own
}

// aliasDefinition passes over the definition of an alias, which it reads.
func (s *parser) aliasDefinition() {
	a := s.aliases[s.text()]
	if a == nil {
		s.wanted("func.func or sdy.mesh")
		return
	}
	bang := s.tok.kind == bangToken
	if bang {
		s.typeOf(a)
	} else {
		s.attrOf(a)
	}
	s.seek(a.end)
}

// resolve reads what a stands for, unless that has been done.
func (s *parser) resolve(a *alias, read func()) {
	if a.busy {
		s.fail(a.start, "an alias stands for itself")
		return
	}
	if a.end > 0 {
		s.node(a.nodes)
		return
	}
	after, before := s.tok, s.nodes
	a.busy = true
	s.seek(a.start)
	read()
	a.busy = false
	if s.failed {
		return
	}
	a.end = s.tok.start
	a.nodes = s.nodes - before
	s.tok = after
}

func (s *parser) attrOf(a *alias) ir.Attr {
	s.resolve(a, func() {
		if a.isLoc = s.at("loc"); a.isLoc {
			a.origin = s.location()
		} else {
			a.attr = s.attr()
		}
	})
	if a.attr == nil {
		return ir.Verbatim("loc(unknown)")
	}
	return a.attr
}

func (s *parser) typeOf(a *alias) *ir.Type {
	s.resolve(a, func() { a.typ = s.typ() })
	if a.typ == nil {
		s.wanted("a type")
		return new(ir.Type)
	}
	return a.typ
}
