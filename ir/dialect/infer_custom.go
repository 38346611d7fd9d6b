package dialect

import (
	"slices"
	"strconv"
	"strings"

	"ppc/ir"
)

// inferCustomCall: the semantics of a custom call are its target's, but C1 layouts
// are given of all operands and results or of none; C2 a tensor's layout is a
// permutation of its dimensions, and nothing else has one; C3 the backend
// configuration has the form that api_version says; C4 a result that shares its
// buffer with an operand has the operand's type.
func inferCustomCall(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := customAttrs(op); r != nil {
		return nil, r
	}
	in, out := op.Attrs.Get("operand_layouts"), op.Attrs.Get("result_layouts")
	if (in == nil) != (out == nil) {
		return nil, ir.Broken(1, "layouts of operands or of results alone, want both or none")
	}
	results := ir.TypesOf(op.Results)
	if len(results) == 1 && results[0].Kind == ir.TupleType {
		results = results[0].Elems
	}
	if r := first(layoutsFit("operand", in, ir.TypesOf(op.Operands)), layoutsFit("result", out, results), configFits(op)); r != nil {
		return nil, r
	}
	aliases, _ := op.Attrs.Get("output_operand_aliases").(ir.Array)
	for _, a := range aliases {
		if v, ok := a.(ir.Verbatim); ok {
			if r := aliasFits(op, v.Fields()); r != nil {
				return nil, r
			}
		}
	}
	return ir.TypesOf(op.Results), nil
}

// customAttrs checks the kinds of the attributes that a custom call may have.
func customAttrs(op *ir.Op) *ir.Rule {
	isKind := func(name, want string, is func(ir.Attr) bool) *ir.Rule {
		if a := op.Attrs.Get(name); a != nil && !is(a) {
			return ir.Broken(0, "%s is %s, want %s", name, a, want)
		}
		return nil
	}
	all := func(is func(ir.Attr) bool) func(ir.Attr) bool {
		return func(a ir.Attr) bool {
			l, ok := a.(ir.Array)
			return ok && !slices.ContainsFunc(l, func(e ir.Attr) bool { return !is(e) })
		}
	}
	return first(
		isKind("has_side_effect", "true or false", func(a ir.Attr) bool {
			i, ok := a.(ir.Int)
			return ir.Is[ir.Bool](a) || ok && i.Type == ir.I1
		}),
		isKind("api_version", "0 to 4 of type i32", func(a ir.Attr) bool {
			i, ok := a.(ir.Int)
			return ok && i.Type == ir.I32 && 0 <= i.Value && i.Value <= typedFFI
		}),
		isKind("backend_config", "a string or a dictionary", func(a ir.Attr) bool { return ir.Is[ir.Str](a) || ir.Is[ir.Dict](a) }),
		isKind("called_computations", "a list of functions", all(ir.Is[ir.Sym])),
		isKind("output_operand_aliases", "a list of aliases", all(func(a ir.Attr) bool {
			v, ok := a.(ir.Verbatim)
			return ok && strings.HasPrefix(string(v), "#stablehlo.output_operand_alias<")
		})))
}

// inferComposite: the name is that of an op in a dialect (4).
func inferComposite(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if name := op.Str("name"); !namespaced(name) {
		return nil, ir.Broken(4, "the name is %q, want that of an op in a dialect, such as my.op", name)
	}
	return inferGiven(op)
}

// namespaced reports whether name is words of letters, digits, _ and $, joined by
// points, two at least, of which the first begins with a letter.
func namespaced(name string) bool {
	words := strings.Split(name, ".")
	for i, w := range words {
		for k, c := range w {
			letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
			if !letter && (i == 0 && k == 0 || c != '_' && c != '$' && (c < '0' || c > '9')) {
				return false
			}
		}
		if w == "" {
			return false
		}
	}
	return len(words) > 1
}

// customFactors: an annotation passes all dimensions through, a call that says how many
// dimensions are of a batch those; other calls have no rule.
func customFactors(op *ir.Op) *ir.Factors {
	if op.Annotates() && op.Results[0].Type.IsTensor() {
		return pointwise(op)
	}
	d, _ := op.Attrs.Get("mhlo.frontend_attributes").(ir.Dict)
	batch, _ := strconv.Atoi(ir.Attrs(d).Str("num_batch_dims"))
	ts := append(ir.Types(op.Operands), ir.Types(op.Results)...)
	for _, t := range ts {
		if !t.IsTensor() || t.Rank() < batch || !slices.Equal(t.Shape[:batch], ts[0].Shape[:batch]) {
			return nil
		}
	}
	if batch < 1 {
		return nil
	}
	f, operands := ir.NewFactors(op), len(op.Operands)
	for d, size := range ts[0].Shape[:batch] {
		f.Add(size, ir.PassThrough, ir.Repeat(d, operands), ir.Repeat(d, len(op.Results)))
	}
	for i, t := range ts {
		for d := batch; d < t.Rank(); d++ {
			in := ir.Repeat(-1, len(ts))
			in[i] = d
			f.Add(t.Shape[d], ir.NeedReplication, in[:operands], in[operands:])
		}
	}
	return f
}

func layoutsFit(what string, a ir.Attr, ts []*ir.Type) *ir.Rule {
	if a == nil {
		return nil
	}
	layouts, ok := a.(ir.Array)
	if !ok || len(layouts) != len(ts) {
		return ir.Broken(1, "%s_layouts are %s, want a layout for each of %d", what, a, len(ts))
	}
	for i, t := range ts {
		l, ok := layouts[i].(*ir.Literal)
		if !ok || l.Type.Rank() != 1 || l.Type.Elem != ir.Index || l.Type.Shape[0] > ir.MaxList {
			return ir.Broken(2, "layout of %s %d is %s, want a list of dimensions of type index", what, i, layouts[i])
		}
		rank := 0
		if t.IsTensor() {
			rank = t.Rank()
		}
		dims := ir.Attrs{{Name: "", Attr: l}}.Ints("")
		slices.Sort(dims)
		if !slices.Equal(dims, upTo(rank)) {
			return ir.Broken(2, "layout of %s %d is %s, want a permutation of the %d dimensions of %s", what, i, l, rank, t)
		}
	}
	return nil
}

// upTo returns 0, 1, … n-1.
func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// typedFFI is the api_version that takes a dictionary; the earlier ones take a
// string.
const typedFFI = 4

func configFits(op *ir.Op) *ir.Rule {
	config := op.Attrs.Get("backend_config")
	if config == nil {
		return nil
	}
	version := 1
	if op.Attrs.Has("api_version") {
		version = op.Int("api_version")
	}
	if want := version == typedFFI; want != ir.Is[ir.Dict](config) {
		return ir.Broken(3, "backend_config is %s for api_version %d, which takes a %s", config, version, map[bool]string{true: "dictionary", false: "string"}[want])
	}
	return nil
}

// aliasFits checks one output_operand_alias.
func aliasFits(op *ir.Op, f map[string]string) *ir.Rule {
	i, err := strconv.Atoi(f["operand_index"])
	if err != nil || i < 0 || i >= len(op.Operands) {
		return ir.Broken(4, "output_operand_aliases name operand %s of %d", f["operand_index"], len(op.Operands))
	}
	outPath, ok := ir.ListOf(f["output_tuple_indices"])
	inPath, ok2 := ir.ListOf(f["operand_tuple_indices"])
	if !ok || !ok2 {
		return ir.Broken(4, "output_operand_aliases have output_tuple_indices = %s and operand_tuple_indices = %s, want lists", f["output_tuple_indices"], f["operand_tuple_indices"])
	}
	results := ir.Tuple(ir.TypesOf(op.Results)...)
	if len(op.Results) == 1 {
		results = op.Results[0].Type
	}
	in, out := partAt(op.Operands[i].Type, inPath), partAt(results, outPath)
	switch {
	case in == nil:
		return ir.Broken(4, "output_operand_aliases: %s has no element [%s]", op.Operands[i].Type, ir.JoinInts(inPath))
	case out == nil:
		return ir.Broken(4, "output_operand_aliases: %s has no element [%s]", results, ir.JoinInts(outPath))
	case !in.Equal(out):
		return ir.Broken(4, "output_operand_aliases: operand %s and result %s share a buffer, want one type", in, out)
	}
	return nil
}

// partAt is the element of t at path, an index into each nested tuple, or nil.
func partAt(t *ir.Type, path []int) *ir.Type {
	for _, i := range path {
		if t.Kind != ir.TupleType || i < 0 || i >= len(t.Elems) {
			return nil
		}
		t = t.Elems[i]
	}
	return t
}
