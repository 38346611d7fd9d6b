package ir

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Attributes of rare use are carried through as text. The functions in this
// file read what the verifier has to know of them.

// Fields splits the text of a struct-like attribute, #name<key = value, …>, into
// its entries; nested brackets are not split.
func (a Verbatim) Fields() map[string]string {
	_, text, _ := strings.Cut(string(a), "<")
	text, ok := strings.CutSuffix(strings.TrimSpace(text), ">")
	if !ok {
		return nil
	}
	fields := make(map[string]string)
	depth, start := 0, 0
	add := func(end int) {
		if key, value, ok := strings.Cut(text[start:end], "="); ok {
			fields[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
		start = end + 1
	}
	for i, c := range text {
		switch c {
		case '<', '[', '{', '(':
			depth++
		case '>', ']', '}', ')':
			depth--
		case ',':
			if depth == 0 {
				add(i)
			}
		}
	}
	if start < len(text) {
		add(len(text))
	}
	return fields
}

// ListOf reads a list of numbers, [1, 2]; ? is Dynamic. It reports false for
// anything else.
func ListOf(text string) ([]int, bool) {
	text, ok := strings.CutPrefix(strings.TrimSpace(text), "[")
	text, end := strings.CutSuffix(text, "]")
	if !ok || !end {
		return nil, false
	}
	if strings.TrimSpace(text) == "" {
		return nil, true
	}
	var list []int
	for _, s := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if strings.TrimSpace(s) == "?" {
			n, err = Dynamic, nil
		}
		if err != nil {
			return nil, false
		}
		list = append(list, n)
	}
	return list, true
}

var segmentsPattern = regexp.MustCompile(`^array<i32: (\d+), (\d+)>$`)

// Segments are the two groups that the operands of op fall into, by its attribute
// operandSegmentSizes; false where that does not say all of them.
func (op *Op) Segments() (first, second int, ok bool) {
	a := op.Attrs.Get("operandSegmentSizes")
	if a == nil {
		return 0, 0, false
	}
	m := segmentsPattern.FindStringSubmatch(a.String())
	if m == nil {
		return 0, 0, false
	}
	first, _ = strconv.Atoi(m[1])
	second, _ = strconv.Atoi(m[2])
	return first, second, first+second == len(op.Operands)
}

// Bounds are the largest sizes that the dimensions of t can have, Dynamic where
// that is not known. It reports false where t's encoding says no bounds.
func (t *Type) Bounds() ([]int, bool) {
	if text, ok := strings.CutPrefix(t.Text, "#stablehlo.bounds<"); ok {
		return ListOf("[" + strings.TrimSuffix(text, ">") + "]")
	}
	if strings.HasPrefix(t.Text, "#stablehlo.type_extensions<") {
		return ListOf(Verbatim(t.Text).Fields()["bounds"])
	}
	return nil, false
}

// SoundBounds checks that there is a bound, or none, for each dimension, and
// none for those of known size.
func SoundBounds(t *Type) *Rule {
	bounds, ok := t.Bounds()
	switch {
	case strings.HasPrefix(t.Text, oldBounds):
		return NewRule("type-7", "found %s, want %sbounds = […]>", t.Text, oldBounds)
	case !ok:
		return nil
	}
	if len(bounds) != len(t.Shape) {
		return NewRule("type-7", "%s has %s for %s", t, Counted(len(bounds), "bound"), Counted(len(t.Shape), "dimension"))
	}
	for d, b := range bounds {
		if b != Dynamic && t.Shape[d] != Dynamic {
			return NewRule("type-7", "%s has the bound %d for dimension %d, which has size %d", t, b, d, t.Shape[d])
		}
	}
	return nil
}

// withinBounds reports whether no known size of u is beyond the bound that t
// has there.
func withinBounds(t, u *Type) bool {
	bounds, ok := t.Bounds()
	for d, b := range bounds {
		if ok && b != Dynamic && d < len(u.Shape) && u.Shape[d] > b {
			return false
		}
	}
	return true
}

// oldBounds begins the encoding of bounds as StableHLO spelt it once.
const oldBounds = "#stablehlo.type_extensions<"

// NewEncoding is the encoding of a tensor as StableHLO spells it now.
func NewEncoding(text string) string {
	if sizes, ok := strings.CutPrefix(text, oldBounds+"bounds = ["); ok {
		return "#stablehlo.bounds<" + strings.TrimSuffix(sizes, "]>") + ">"
	}
	return text
}

// Settled checks that every size of t is known, but for at most one that has a
// bound.
func Settled(t *Type) *Rule {
	bounds, _ := t.Bounds()
	open := 0
	for d, n := range t.Shape {
		if n != Dynamic {
			continue
		}
		if open++; open > 1 || d >= len(bounds) || bounds[d] == Dynamic {
			return Broken(0, "result is %s, want known sizes, or one that has a bound", t)
		}
	}
	return nil
}

// accuracyModes are the modes of a result accuracy.
var accuracyModes = []string{"DEFAULT", "HIGHEST", "TOLERANCE"}

// accuracyFits checks that a result accuracy has one of the modes, that no tolerance
// is negative, and that one that asks for the highest, or for nothing, has none.
func accuracyFits(a Attr) *Rule {
	v, _ := a.(Verbatim)
	f := v.Fields()
	mode := strings.TrimSuffix(strings.TrimPrefix(f["mode"], "#stablehlo.result_accuracy_mode<"), ">")
	if !slices.Contains(accuracyModes, mode) {
		return NewRule("op-6", "result_accuracy has the mode %s, want one of %s", f["mode"], strings.Join(accuracyModes, ", "))
	}
	for _, name := range []string{"atol", "rtol", "ulps"} {
		x, err := strconv.ParseFloat(f[name], 64)
		switch {
		case f[name] == "":
		case err != nil || x < 0:
			return NewRule("op-6", "result_accuracy has %s = %s, want a number that is not negative", name, f[name])
		case x != 0 && mode != "TOLERANCE":
			return NewRule("op-6", "result_accuracy %s with %s = %s, want no tolerances", mode, name, f[name])
		}
	}
	return nil
}

// An algorithm is how a dot_general is computed: the types that its operands are
// rounded to, the type of the sums, how many products of components of the operands
// are summed, and whether the sums may be less precise than their type. All of
// those that exist have one component for each operand.
type algorithm struct {
	lhs, rhs, sum      string
	products           string
	impreciseAllowed   bool
	anyEightBitOperand bool // lhs and rhs stand for any type of eight bits
}

// algorithms are those that some hardware has.
var algorithms = []algorithm{
	{sum: "f32", products: "1", anyEightBitOperand: true, impreciseAllowed: true},
	{lhs: "f16", rhs: "f16", sum: "f16", products: "1"},
	{lhs: "f16", rhs: "f16", sum: "f32", products: "1"},
	{lhs: "bf16", rhs: "bf16", sum: "bf16", products: "1"},
	{lhs: "bf16", rhs: "bf16", sum: "f32", products: "1"},
	{lhs: "bf16", rhs: "bf16", sum: "f32", products: "3"},
	{lhs: "bf16", rhs: "bf16", sum: "f32", products: "6"},
	{lhs: "bf16", rhs: "bf16", sum: "f32", products: "9"},
	{lhs: "tf32", rhs: "tf32", sum: "f32", products: "1"},
	{lhs: "tf32", rhs: "tf32", sum: "f32", products: "3"},
	{lhs: "f32", rhs: "f32", sum: "f32", products: "1"},
	{lhs: "f64", rhs: "f64", sum: "f64", products: "1"},
}

func (g algorithm) matches(f map[string]string) bool {
	operands := f["lhs_precision_type"] == g.lhs && f["rhs_precision_type"] == g.rhs
	if g.anyEightBitOperand {
		l, r := DTypeByName(f["lhs_precision_type"]), DTypeByName(f["rhs_precision_type"])
		operands = l.IsFloat() && r.IsFloat() && l.Bits() == 8 && r.Bits() == 8
	}
	return operands && f["accumulation_type"] == g.sum && f["num_primitive_operations"] == g.products &&
		f["lhs_component_count"] == "1" && f["rhs_component_count"] == "1" &&
		(g.impreciseAllowed || f["allow_imprecise_accumulation"] != "true")
}

// algorithmFields are the entries of a #stablehlo.dot_algorithm, all of them.
var algorithmFields = []string{"lhs_precision_type", "rhs_precision_type", "accumulation_type", "lhs_component_count", "rhs_component_count",
	"num_primitive_operations", "allow_imprecise_accumulation"}

// AlgorithmFits checks that the algorithm of a dot_general exists.
func AlgorithmFits(a Attr) *Rule {
	v, ok := a.(Verbatim)
	f := v.Fields()
	if !ok || !strings.HasPrefix(string(v), "#stablehlo.dot_algorithm<") || len(f) != len(algorithmFields) || strings.Count(string(v), "=") != len(f) {
		return Broken(0, "the algorithm is %s, want a #stablehlo.dot_algorithm with %s", a, strings.Join(algorithmFields, ", "))
	}
	if imprecise := f["allow_imprecise_accumulation"]; imprecise != "true" && imprecise != "false" {
		return Broken(0, "allow_imprecise_accumulation is %s, want true or false", imprecise)
	}
	if slices.ContainsFunc(algorithms, func(g algorithm) bool { return g.matches(f) }) {
		return nil
	}
	return Broken(24, "no hardware has the algorithm %s", v)
}

var axisRefPattern = regexp.MustCompile(`("(?:[^"\\]|\\.)*")(?::\((\d+)\)(\d+))?`)

// AxisRefs are the axes that the attribute called name lists, in order, nested
// lists flattened: #sdy<axis_ref_list{"x", "y":(1)2}>.
func (op *Op) AxisRefs(name string) []AxisRef {
	text, _ := op.Attrs.Get(name).(Verbatim)
	return AxisRefsIn(string(text))
}

// AxisLists are the axes that the attribute called name has for each dimension:
// #sdy<list_of_axis_ref_lists[{"x"}, {}]>.
func (op *Op) AxisLists(name string) [][]AxisRef {
	text, _ := op.Attrs.Get(name).(Verbatim)
	_, body, _ := strings.Cut(string(text), "[")
	var lists [][]AxisRef
	for _, part := range strings.SplitAfter(body, "}") {
		if strings.Contains(part, "{") {
			lists = append(lists, AxisRefsIn(part))
		}
	}
	return lists
}

// An Exchange is one part of an sdy.all_to_all: axes that go from one dimension
// to another.
type Exchange struct {
	Axes     []AxisRef
	From, To int
}

// Exchanges are what op, an sdy.all_to_all, exchanges:
// #sdy<all_to_all_param_list[{"x"}: 0->1]>.
func (op *Op) Exchanges() []Exchange {
	text, _ := op.Attrs.Get("params").(Verbatim)
	_, body, _ := strings.Cut(string(text), "[")
	var out []Exchange
	for part := range strings.SplitSeq(body, "{") {
		list, dims, ok := strings.Cut(part, "}")
		from, to, arrow := strings.Cut(strings.TrimLeft(dims, " :"), "->")
		if !ok || !arrow {
			continue
		}
		x := Exchange{Axes: AxisRefsIn("{" + list + "}")}
		x.From, _ = strconv.Atoi(strings.TrimSpace(from))
		x.To, _ = strconv.Atoi(strings.TrimRight(strings.TrimSpace(to), ", ]>"))
		out = append(out, x)
	}
	return out
}

// AxisRefsIn is the axes and sub-axes, "x" or "x":(1)2, that occur in text, in order.
func AxisRefsIn(text string) []AxisRef {
	var refs []AxisRef
	for _, m := range axisRefPattern.FindAllStringSubmatch(text, -1) {
		axis, _ := strconv.Unquote(m[1])
		r := Ax(axis)
		r.Pre, _ = strconv.Atoi(m[2])
		r.Size, _ = strconv.Atoi(m[3])
		refs = append(refs, r)
	}
	return refs
}
