package verify

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ppc/ir"
)

// Shardy lets a program say the sharding rule of an op, and keeps a record of how
// shardings were propagated. Both are carried through as text; the functions in
// this file check them as Shardy does.

// A statedRule is #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4} …>.
type statedRule struct {
	operands, results [][]dimFactors
	sizes             []int
	special           [][]int // the groups of specialFactors
}

// dimFactors are the factors of one dimension; free is one that has none.
type dimFactors struct {
	factors []int
	free    bool
}

// specialFactors are the groups of factors that are not passed through. The last
// one is apart from the others: a factor may be in it and in one of them.
var specialFactors = []string{"reduction", "need_replication", "permutation", "blocked_propagation"}

const (
	ruleName = "sdy.sharding_rule"
	ruleOpen = "#sdy.op_sharding_rule<"
)

// A cursor reads the text of an attribute. After something else than what is
// expected it is wrong, and reads nothing more.
type cursor struct {
	text  string
	wrong *ir.Rule
	label string
}

func (c *cursor) skip() { c.text = strings.TrimLeft(c.text, " ") }

// at reports whether word comes next, which it moves past.
func (c *cursor) at(word string) bool {
	c.skip()
	rest, ok := strings.CutPrefix(c.text, word)
	if ok = ok && c.wrong == nil; ok {
		c.text = rest
	}
	return ok
}

func (c *cursor) expect(word string) {
	if !c.at(word) {
		c.fail("want %q", word)
	}
}

func (c *cursor) fail(format string, args ...any) {
	if c.wrong == nil {
		found := "the end"
		if c.text != "" {
			found = strconv.Quote(c.text[:min(len(c.text), 20)])
		}
		c.wrong = ir.NewRule(c.label, "found %s, "+format, append([]any{found}, args...)...)
	}
}

// number reads digits, with a sign before them.
func (c *cursor) number() int {
	c.skip()
	m := numberPattern.FindString(c.text)
	n, err := strconv.Atoi(m)
	if err != nil {
		c.fail("want a number")
		return 0
	}
	c.text = c.text[len(m):]
	return n
}

// list reads items with commas between them, up to the closing word.
func (c *cursor) list(closing string, item func()) {
	for first := true; c.wrong == nil; first = false {
		if first && c.at(closing) {
			return
		}
		item()
		if c.at(closing) {
			return
		}
		c.expect(",")
	}
}

var (
	numberPattern = regexp.MustCompile(`^-?[0-9]+`)
	factorPattern = regexp.MustCompile(`^(?:z_[1-9][0-9]{0,5}|[i-z])`)
	wordPattern   = regexp.MustCompile(`^[A-Za-z0-9_]+`)
)

// parseStatedRule reads a rule, or says what is wrong with its text.
func parseStatedRule(a ir.Attr) (*statedRule, *ir.Rule) {
	text, ok := a.(ir.Verbatim)
	body, open := strings.CutPrefix(string(text), ruleOpen)
	if !ok || !open {
		return nil, ir.NewRule("rule-1", "%s is %s, want %s([i, j])->([i, j]) {i=2, j=4}>", ruleName, a, ruleOpen)
	}
	c := &cursor{text: body, label: "rule-1"}
	r := &statedRule{special: make([][]int, len(specialFactors))}
	r.operands = c.mappings()
	c.expect("->")
	r.results = c.mappings()
	if c.at("{") {
		c.list("}", func() {
			if f := c.factors(); len(f) != 1 || f[0] != len(r.sizes) {
				c.fail("want the size of factor %s", factorText(len(r.sizes)))
			}
			c.expect("=")
			n := c.number()
			if n < 0 {
				c.fail("want a size of at least 0")
			}
			r.sizes = append(r.sizes, n)
		})
	}
	for k, name := range specialFactors {
		if c.at(name) {
			c.expect("=")
			c.expect("{")
			c.list("}", func() {
				f := c.factors()
				if len(f) != 1 {
					c.fail("want a factor")
				}
				r.special[k] = append(r.special[k], f...)
			})
		}
	}
	if c.at(",") {
		c.expect("custom")
	}
	c.expect(">")
	if c.wrong != nil {
		return nil, ir.NewRule("rule-1", "%s: %s", ruleName, c.wrong.Msg)
	}
	return r, nil
}

// mappings reads ([i, j], [ik]): the factors of each dimension of each tensor. A
// star stands for a dimension that has none.
func (c *cursor) mappings() (out [][]dimFactors) {
	c.expect("(")
	c.list(")", func() {
		dims := []dimFactors{}
		c.expect("[")
		c.list("]", func() {
			if c.at("*") {
				dims = append(dims, dimFactors{free: true})
				return
			}
			dims = append(dims, dimFactors{factors: c.factors()})
		})
		out = append(out, dims)
	})
	return out
}

// factors reads factors that stand side by side, by number: i is 0, z is 17, z_1 is
// 18.
func (c *cursor) factors() (out []int) {
	c.skip()
	word := wordPattern.FindString(c.text)
	for rest := word; rest != ""; {
		name := factorPattern.FindString(rest)
		if name == "" {
			c.fail("want factors i to z, z_1, …")
			return nil
		}
		rest = rest[len(name):]
		n := int(name[0] - 'i')
		if len(name) > 1 {
			k, _ := strconv.Atoi(name[2:])
			n += k
		}
		out = append(out, n)
	}
	c.text = c.text[len(word):]
	return out
}

// factorText is the name of factor i.
func factorText(i int) string {
	if z := int('z' - 'i'); i > z {
		return "z_" + strconv.Itoa(i-z)
	}
	return string(rune('i' + i))
}

// fits checks r against the operands and results of op.
func (r *statedRule) fits(op *ir.Op) *ir.Rule {
	if len(r.operands)+len(r.results) == 0 {
		return ir.NewRule("rule-2", "%s maps no operand and no result", ruleName)
	}
	used := make(map[int]bool)
	for _, side := range []struct {
		what   string
		values []*ir.Value
		maps   [][]dimFactors
	}{{"operand", op.Operands, r.operands}, {"result", op.Results, r.results}} {
		if len(side.values) != len(side.maps) {
			return ir.NewRule("rule-2", "%s maps %s, the op has %d", ruleName, ir.Counted(len(side.maps), side.what), len(side.values))
		}
		for i, v := range side.values {
			if bad := r.mapping(v.Type, side.maps[i], used); bad != nil {
				return ir.NewRule(bad.Label, "%s, %s %d: %s", ruleName, side.what, i, bad.Msg)
			}
		}
	}
	for i, n := range r.sizes {
		if !used[i] {
			return ir.NewRule("rule-6", "%s: factor %s=%d is in no mapping", ruleName, factorText(i), n)
		}
	}
	return r.groups()
}

// mapping checks the factors of one tensor, which it adds to those used.
func (r *statedRule) mapping(t *ir.Type, dims []dimFactors, used map[int]bool) *ir.Rule {
	if !t.IsTensor() || !t.IsStatic() {
		return ir.NewRule("rule-3", "the type is %s, want a ranked tensor of known sizes", t)
	}
	if len(dims) != t.Rank() {
		return ir.NewRule("rule-3", "the mapping has %s, %s has %d", ir.Counted(len(dims), "dimension"), t, t.Rank())
	}
	mine := make(map[int]bool)
	for d, m := range dims {
		if len(m.factors) == 0 && !m.free {
			return ir.NewRule("rule-4", "dimension %d has no factor", d)
		}
		for _, f := range m.factors {
			switch {
			case f >= len(r.sizes):
				return ir.NewRule("rule-4", "dimension %d has factor %s, there are %s", d, factorText(f), ir.Counted(len(r.sizes), "factor"))
			case mine[f]:
				return ir.NewRule("rule-5", "factor %s occurs twice", factorText(f))
			case len(m.factors) > 1 && r.sizes[f] == 1:
				return ir.NewRule("rule-4", "dimension %d has factor %s of size 1 beside others", d, factorText(f))
			}
			mine[f], used[f] = true, true
		}
	}
	return nil
}

// groups checks the factors that are not passed through.
func (r *statedRule) groups() *ir.Rule {
	in := make(map[int]string)
	for k, factors := range r.special {
		for i, f := range factors {
			switch {
			case f >= len(r.sizes):
				return ir.NewRule("rule-7", "%s: %s has factor %s, there are %s", ruleName, specialFactors[k], factorText(f), ir.Counted(len(r.sizes), "factor"))
			case i > 0 && factors[i-1] >= f:
				return ir.NewRule("rule-7", "%s: factors of %s must be sorted, each once: %s stands before %s", ruleName, specialFactors[k], factorText(factors[i-1]), factorText(f))
			case k < len(specialFactors)-1 && in[f] != "":
				return ir.NewRule("rule-8", "%s: factor %s is in %s and in %s, want one of them", ruleName, factorText(f), in[f], specialFactors[k])
			}
			if k < len(specialFactors)-1 {
				in[f] = specialFactors[k]
			}
		}
	}
	return nil
}

const (
	edgesName = "sdy.propagation_edges"
	edgesOpen = "#sdy.propagation_edges<"
)

// stated checks what op says of its own sharding rule, and of how shardings were
// propagated.
func (v *verifier) stated(op *ir.Op) *ir.Rule {
	if a := op.Attrs.Get(ruleName); a != nil {
		r, bad := parseStatedRule(a)
		if bad == nil {
			bad = r.fits(op)
		}
		if bad != nil {
			return bad
		}
	}
	for _, name := range []string{"sdy.result_propagation_edges", "sdy.block_arg_propagation_edges"} {
		a := op.Attrs.Get(name)
		if a == nil {
			continue
		}
		list, ok := a.(ir.Array)
		for _, e := range list {
			ok = ok && isEdges(e)
		}
		if !ok {
			return ir.NewRule("edges-1", "%s is %s, want a list of #sdy.propagation_edges<…>", name, a)
		}
	}
	if a := op.Attrs.Get(edgesName); a != nil {
		return v.edges(op, a)
	}
	return nil
}

func isEdges(a ir.Attr) bool {
	text, ok := a.(ir.Verbatim)
	return ok && strings.HasPrefix(string(text), edgesOpen)
}

// edges checks the record of how the shardings of op were propagated: each step
// once, from one value to others, along an axis of one of the meshes.
func (v *verifier) edges(op *ir.Op, a ir.Attr) *ir.Rule {
	if !isEdges(a) {
		return ir.NewRule("edges-1", "%s is %s, want #sdy.propagation_edges<…>", edgesName, a)
	}
	c := &cursor{text: strings.TrimPrefix(a.String(), edgesOpen), label: "edges-1"}
	seen := make(map[int]bool)
	var bad *ir.Rule
	c.expect("[")
	c.list("]", func() {
		c.expect("{")
		c.expect("step-")
		step := c.number()
		switch {
		case seen[step]:
			bad = cmp.Or(bad, ir.NewRule("edges-2", "%s: step %d occurs twice", edgesName, step))
		case step < 0:
			bad = cmp.Or(bad, ir.NewRule("edges-2", "%s: step %d is negative", edgesName, step))
		}
		seen[step] = true
		c.expect("=")
		c.expect("[")
		c.list("]", func() {
			if r := v.edge(op, c); r != nil && bad == nil {
				bad = ir.NewRule(r.Label, "%s, step %d: %s", edgesName, step, r.Msg)
			}
		})
		c.expect("}")
	})
	c.expect(">")
	if c.wrong != nil {
		return ir.NewRule("edges-1", "%s: %s", edgesName, c.wrong.Msg)
	}
	return bad
}

// edge reads and checks one entry of a step, {"x" = operand-0 -> [result-0]}: along
// an axis, from a source to targets.
func (v *verifier) edge(op *ir.Op, c *cursor) *ir.Rule {
	c.expect("{")
	c.skip()
	axis := axisPattern.FindString(c.text)
	if axis == "" {
		c.fail("want an axis")
	}
	c.text = c.text[len(axis):]
	c.expect("=")
	source, bad := c.valueRef(op)
	c.expect("->")
	c.expect("[")
	seen := make(map[string]bool)
	c.list("]", func() {
		target, r := c.valueRef(op)
		switch {
		case target == source:
			r = ir.NewRule("edges-3", "%s is a target of itself", target)
		case seen[target]:
			r = ir.NewRule("edges-3", "%s is a target twice along axis %s", target, axis)
		}
		seen[target] = true
		bad = cmp.Or(bad, r)
	})
	c.expect("}")
	if bad == nil && c.wrong == nil {
		bad = v.edgeAxis(op, axis)
	}
	return bad
}

var axisPattern = regexp.MustCompile(`^"(?:[^"\\]|\\.)*"(?::\(\d+\)\d+)?`)

// valueRef reads operand-0 or result-0, and checks that op has that.
func (c *cursor) valueRef(op *ir.Op) (string, *ir.Rule) {
	kind, n := "operand", len(op.Operands)
	if !c.at("operand-") {
		c.expect("result-")
		kind, n = "result", len(op.Results)
	}
	k := c.number()
	ref := kind + "-" + strconv.Itoa(k)
	if (k < 0 || k >= n) && (kind == "result" || !isFlowEdge(op)) {
		return ref, ir.NewRule("edges-4", "there is no %s: the op has %s and %s", ref, ir.Counted(len(op.Operands), "operand"), ir.Counted(len(op.Results), "result"))
	}
	return ref, nil
}

// isFlowEdge reports whether op stands for the values that flow into its operand
// and out of its result: the former have more numbers than it has operands.
func isFlowEdge(op *ir.Op) bool {
	return op.Kind == ir.DataFlowEdge || op.Name() == "sdy.func_data_flow_edge"
}

// edgeAxis checks that axis, "x" or a part of it, is one of a mesh that the
// shardings at op are of.
func (v *verifier) edgeAxis(op *ir.Op, axis string) *ir.Rule {
	refs := ir.AxisRefsIn(axis)
	some := false
	for _, x := range slices.Concat(op.Results, op.Operands) {
		if x.Sharding == nil {
			continue
		}
		some = true
		if mesh := v.m.Mesh(x.Sharding.Mesh); mesh != nil && ir.SoundMesh(mesh) == nil && len(refs) == 1 && ir.DistinctAxes(mesh, refs) == nil {
			return nil
		}
	}
	if !some {
		return ir.NewRule("edges-5", "no operand and no result has a sharding")
	}
	return ir.NewRule("edges-6", "no mesh of the shardings here has axis %s", axis)
}
