package ir

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Shardy lets a program say the sharding rule of an op, and keeps a record of how
// shardings were propagated. Both are carried through as text; the functions in
// this file check them as Shardy does.

// A statedRule is #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4} …>.
type statedRule struct {
	operands, results [][]dimFactors
	sizes             []int
	special           [][]int // the groups of specialFactors
	custom            bool
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

var (
	rulePattern   = regexp.MustCompile(`^\((.*)\) ?-> ?\((.*?)\)(?: ?\{([^{}]*)\}(.*))?$`)
	listPattern   = regexp.MustCompile(`\[([^\[\]]*)\]`)
	factorPattern = regexp.MustCompile(`^(?:[i-z](?:_[0-9]+)?)`)
	groupPattern  = regexp.MustCompile(`(\w+) ?= ?\{([^{}]*)\}`)
)

// parseStatedRule reads a rule, or says what is wrong with its text.
func parseStatedRule(a Attr) (*statedRule, *Rule) {
	text, ok := a.(Verbatim)
	body, open := strings.CutPrefix(string(text), ruleOpen)
	body, end := strings.CutSuffix(body, ">")
	m := rulePattern.FindStringSubmatch(strings.TrimSpace(body))
	if !ok || !open || !end || m == nil {
		return nil, NewRule("rule-1", "%s is %s, want %s([i, j])->([i, j]) {i=2, j=4}>", ruleName, a, ruleOpen)
	}
	r := &statedRule{special: make([][]int, len(specialFactors)), custom: strings.HasSuffix(strings.TrimSpace(m[4]), ", custom")}
	if strings.TrimSpace(m[3]) != "" {
		for i, s := range strings.Split(m[3], ",") {
			name, size, _ := strings.Cut(s, "=")
			n, err := strconv.Atoi(strings.TrimSpace(size))
			if f, ok := factorsIn(strings.TrimSpace(name)); !ok || len(f) != 1 || f[0] != i || err != nil || n < 0 {
				return nil, NewRule("rule-1", "%s: found %q, want the size of factor %s", ruleName, strings.TrimSpace(s), factorText(i))
			}
			r.sizes = append(r.sizes, n)
		}
	}
	if r.operands, ok = mappingsIn(m[1]); ok {
		r.results, ok = mappingsIn(m[2])
	}
	for _, g := range groupPattern.FindAllStringSubmatch(m[4], -1) {
		k := slices.Index(specialFactors, g[1])
		f, read := factorsIn(strings.ReplaceAll(strings.ReplaceAll(g[2], ",", ""), " ", ""))
		if ok = ok && read && k >= 0; ok {
			r.special[k] = f
		}
	}
	if !ok {
		return nil, NewRule("rule-1", "%s %s has something else than factors i to z, z_1, …", ruleName, a)
	}
	return r, nil
}

// mappingsIn reads [i, j], [ik]: the factors of each dimension of each tensor.
func mappingsIn(text string) (out [][]dimFactors, ok bool) {
	for _, m := range listPattern.FindAllStringSubmatch(text, -1) {
		dims := []dimFactors{}
		if strings.TrimSpace(m[1]) != "" {
			for _, s := range strings.Split(m[1], ",") {
				s = strings.TrimSpace(s)
				if s == "*" {
					dims = append(dims, dimFactors{free: true})
					continue
				}
				f, ok := factorsIn(s)
				if !ok {
					return nil, false
				}
				dims = append(dims, dimFactors{factors: f})
			}
		}
		out = append(out, dims)
	}
	return out, true
}

// factorsIn reads factors that stand side by side, by number: i is 0, z is 17,
// z_1 is 18.
func factorsIn(text string) (out []int, ok bool) {
	for text != "" {
		name := factorPattern.FindString(text)
		if name == "" {
			return nil, false
		}
		text = text[len(name):]
		n := int(name[0] - 'i')
		if _, more, ok := strings.Cut(name, "_"); ok {
			k, err := strconv.Atoi(more)
			if err != nil || name[0] != 'z' || k > MaxList {
				return nil, false
			}
			n += k
		}
		out = append(out, n)
	}
	return out, true
}

// factorText is the name of factor i.
func factorText(i int) string {
	if z := int('z' - 'i'); i > z {
		return "z_" + strconv.Itoa(i-z)
	}
	return string(rune('i' + i))
}

// fits checks r against the operands and results of op.
func (r *statedRule) fits(op *Op) *Rule {
	if len(r.operands)+len(r.results) == 0 {
		return NewRule("rule-2", "%s maps no operand and no result", ruleName)
	}
	used := make(map[int]bool)
	for _, side := range []struct {
		what   string
		values []*Value
		maps   [][]dimFactors
	}{{"operand", op.Operands, r.operands}, {"result", op.Results, r.results}} {
		if len(side.values) != len(side.maps) {
			return NewRule("rule-2", "%s maps %s, the op has %d", ruleName, Counted(len(side.maps), side.what), len(side.values))
		}
		for i, v := range side.values {
			if bad := r.mapping(v.Type, side.maps[i], used); bad != nil {
				return NewRule(bad.Label, "%s, %s %d: %s", ruleName, side.what, i, bad.Msg)
			}
		}
	}
	for i, n := range r.sizes {
		if !used[i] {
			return NewRule("rule-6", "%s: factor %s=%d is in no mapping", ruleName, factorText(i), n)
		}
	}
	return r.groups()
}

// mapping checks the factors of one tensor, which it adds to those used.
func (r *statedRule) mapping(t *Type, dims []dimFactors, used map[int]bool) *Rule {
	if !t.IsTensor() || !t.IsStatic() {
		return NewRule("rule-3", "the type is %s, want a ranked tensor of known sizes", t)
	}
	if len(dims) != t.Rank() {
		return NewRule("rule-3", "the mapping has %s, %s has %d", Counted(len(dims), "dimension"), t, t.Rank())
	}
	mine := make(map[int]bool)
	for d, m := range dims {
		if len(m.factors) == 0 && !m.free {
			return NewRule("rule-4", "dimension %d has no factor", d)
		}
		for _, f := range m.factors {
			switch {
			case f >= len(r.sizes):
				return NewRule("rule-4", "dimension %d has factor %s, there are %s", d, factorText(f), Counted(len(r.sizes), "factor"))
			case mine[f]:
				return NewRule("rule-5", "factor %s stands twice", factorText(f))
			case len(m.factors) > 1 && r.sizes[f] == 1:
				return NewRule("rule-4", "dimension %d has factor %s of size 1 beside others", d, factorText(f))
			}
			mine[f], used[f] = true, true
		}
	}
	return nil
}

// groups checks the factors that are not passed through.
func (r *statedRule) groups() *Rule {
	in := make(map[int]string)
	for k, factors := range r.special {
		for i, f := range factors {
			switch {
			case f >= len(r.sizes):
				return NewRule("rule-7", "%s: %s has factor %s, there are %s", ruleName, specialFactors[k], factorText(f), Counted(len(r.sizes), "factor"))
			case i > 0 && factors[i-1] >= f:
				return NewRule("rule-7", "%s: factors of %s must be sorted, each once: %s stands before %s", ruleName, specialFactors[k], factorText(factors[i-1]), factorText(f))
			case k < len(specialFactors)-1 && in[f] != "":
				return NewRule("rule-8", "%s: factor %s is in %s and in %s, want one of them", ruleName, factorText(f), in[f], specialFactors[k])
			}
			if k < len(specialFactors)-1 {
				in[f] = specialFactors[k]
			}
		}
	}
	return nil
}

const edgesName = "sdy.propagation_edges"

var (
	stepPattern  = regexp.MustCompile(`step-(-?[0-9]+) ?= ?\[`)
	entryPattern = regexp.MustCompile(`("(?:[^"\\]|\\.)*"(?::\(\d+\)\d+)?) ?= ?((?:operand|result)-\d+) ?-> ?\[([^\]]*)\]`)
)

// stated checks what op says of its own sharding rule, and of how shardings were
// propagated.
func (v *verifier) stated(op *Op) *Rule {
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
		list, ok := a.(Array)
		for _, e := range list {
			ok = ok && isEdges(e)
		}
		if !ok {
			return NewRule("edges-1", "%s is %s, want a list of #sdy.propagation_edges<…>", name, a)
		}
	}
	if a := op.Attrs.Get(edgesName); a != nil {
		return v.edges(op, a)
	}
	return nil
}

func isEdges(a Attr) bool {
	text, ok := a.(Verbatim)
	return ok && strings.HasPrefix(string(text), "#sdy.propagation_edges<")
}

// edges checks the record of how the shardings of op were propagated: each step
// once, from one value to others, along an axis of one of the meshes.
func (v *verifier) edges(op *Op, a Attr) *Rule {
	if !isEdges(a) {
		return NewRule("edges-1", "%s is %s, want #sdy.propagation_edges<…>", edgesName, a)
	}
	text := a.String()
	steps := stepPattern.FindAllStringSubmatchIndex(text, -1)
	seen := make(map[string]bool)
	for i, at := range steps {
		step := text[at[2]:at[3]]
		end := len(text)
		if i+1 < len(steps) {
			end = steps[i+1][0]
		}
		switch {
		case seen[step]:
			return NewRule("edges-2", "%s: step %s stands twice", edgesName, step)
		case strings.HasPrefix(step, "-"):
			return NewRule("edges-2", "%s: step %s is negative", edgesName, step)
		}
		seen[step] = true
		for _, m := range entryPattern.FindAllStringSubmatch(text[at[1]:end], -1) {
			if r := v.edge(op, m[1], m[2], m[3]); r != nil {
				return NewRule(r.Label, "%s, step %s: %s", edgesName, step, r.Msg)
			}
		}
	}
	return nil
}

// edge checks one entry of a step: along axis, from source to targets.
func (v *verifier) edge(op *Op, axis, source, targets string) *Rule {
	seen := make(map[string]bool)
	for i, ref := range append([]string{source}, strings.Split(targets, ",")...) {
		ref = strings.TrimSpace(ref)
		switch {
		case i > 0 && ref == source:
			return NewRule("edges-3", "%s is a target of itself", ref)
		case i > 0 && seen[ref]:
			return NewRule("edges-3", "%s is a target twice along axis %s", ref, axis)
		}
		seen[ref] = true
		kind, number, _ := strings.Cut(ref, "-")
		k, err := strconv.Atoi(number)
		n := len(op.Operands)
		if kind == "result" {
			n = len(op.Results)
		}
		if err != nil || kind != "operand" && kind != "result" || k >= n && !isFlowEdge(op) {
			return NewRule("edges-4", "there is no %s: the op has %s and %s", ref, Counted(len(op.Operands), "operand"), Counted(len(op.Results), "result"))
		}
	}
	return v.edgeAxis(op, axis)
}

// isFlowEdge reports whether op stands for the values that flow into its operand
// and out of its result, which have more numbers than it has operands.
func isFlowEdge(op *Op) bool { return op.Kind == DataFlowEdge || op.Name() == "sdy.func_data_flow_edge" }

// edgeAxis checks that axis, "x" or a part of it, is one of a mesh that the
// shardings at op are of.
func (v *verifier) edgeAxis(op *Op, axis string) *Rule {
	refs := AxisRefsIn(axis)
	some := false
	for _, x := range slices.Concat(op.Results, op.Operands) {
		if x.Sharding == nil {
			continue
		}
		some = true
		if mesh := v.m.Mesh(x.Sharding.Mesh); mesh != nil && SoundMesh(mesh) == nil && len(refs) == 1 && DistinctAxes(mesh, refs) == nil {
			return nil
		}
	}
	if !some {
		return NewRule("edges-5", "no operand and no result has a sharding")
	}
	return NewRule("edges-6", "no mesh of the shardings here has axis %s", axis)
}
