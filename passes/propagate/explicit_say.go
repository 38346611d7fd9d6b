package propagate

import (
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
	"ppc/passes/pass"
)

// refusal is the error of c: which choice the op leaves, in the user's names, and
// the constraints that would settle it.
func (w *derivation) refusal(c *clash) *pass.Error {
	op := w.n.at
	what := "the result"
	if op != nil {
		_, what, _ = strings.Cut(op.Name(), ".")
	}
	msg := ""
	switch c.kind {
	case clashDiffer:
		msg = fmt.Sprintf("%s leaves open how %s is sharded: %s in %s, %s in %s", what, w.factorText(c.factor),
			w.along(w.axesOf(c.a, c.factor)), w.operandText(c.a), w.along(w.axesOf(c.b, c.factor)), w.operandText(c.b))
	case clashTwice:
		msg = fmt.Sprintf("%s leaves open what %s shards: %s in %s, %s in %s", what, layout.AxesText(w.p.mesh, c.axes),
			w.factorText(c.factor), w.operandText(c.a), w.factorText(c.other), w.operandText(c.b))
	case clashCarried:
		msg = fmt.Sprintf("%s begins with %s %s in %s and goes on with it %s in %s", what, w.factorText(c.factor),
			w.along(w.axesOf(c.a, c.factor)), w.operandText(c.a), w.along(w.axesOf(c.b, c.factor)), w.operandText(c.b))
	case clashReplicate:
		msg = fmt.Sprintf("%s needs %s unsharded, which is sharded along %s in %s", what, w.dimText(c.a, c.d), layout.AxesText(w.p.mesh, c.axes), w.operandText(c.a))
	case clashDivide:
		msg = fmt.Sprintf("%s needs %s sharded as in %s, which %s does not divide", what, w.dimText(c.a, c.d), w.operandText(c.a), layout.AxesText(w.p.mesh, c.axes))
	case clashPartial:
		msg = fmt.Sprintf("%s leaves open whether the sum over %s, which is sharded along %s in %s, is all-reduced or reduce-scattered", what, w.factorText(c.factor), layout.AxesText(w.p.mesh, c.axes), w.operandText(c.a))
	case clashLost:
		msg = fmt.Sprintf("%s makes a result that cannot be sharded along %s as %s is in %s", what, layout.AxesText(w.p.mesh, c.axes), w.factorText(c.factor), w.operandText(c.a))
	}
	return pass.ErrorOf(op, "%s%s; settle it with %s", msg, layout.RulesText(w.p.mesh, w.dimsOf(c)...), strings.Join(w.cures(c), " or "))
}

// dimsOf are the dimensions of operands that c is about.
func (w *derivation) dimsOf(c *clash) []layout.ShardedDim {
	w.p.findRules()
	var out []layout.ShardedDim
	see := func(i, d int) {
		if r := w.n.operands()[i]; d >= 0 && len(r.dims[d]) > 0 {
			out = append(out, layout.ShardedDim{D: d, Axes: r.dims[d], Rule: r.rules[d]})
		}
	}
	switch c.kind {
	case clashReplicate, clashDivide:
		see(c.a, c.d)
	case clashDiffer, clashCarried:
		see(c.a, w.dimOf(c.a, c.factor))
		see(c.b, w.dimOf(c.b, c.factor))
	case clashTwice:
		see(c.a, w.dimOf(c.a, c.factor))
		see(c.b, w.dimOf(c.b, c.other))
	case clashPartial, clashLost:
		see(c.a, w.dimOf(c.a, c.factor))
	}
	return out
}

// along is axes in words.
func (w *derivation) along(axes []ir.AxisRef) string {
	if len(axes) == 0 {
		return "unsharded"
	}
	return "along " + layout.AxesText(w.p.mesh, axes)
}

// axesOf are the axes of factor k in operand i.
func (w *derivation) axesOf(i, k int) []ir.AxisRef {
	return w.pr.tensors[i].factors[k].Axes
}

// cures is a list of constraints, as source text, each of which settles c.
func (w *derivation) cures(c *clash) []string {
	result := c.ofResult(w) && w.n.op != nil
	if result && w.n.op.Results[0].Name == "" && (c.kind == clashDiffer || c.kind == clashTwice) {
		result = false // in the middle of an expression: its operands may have names
	}
	switch c.kind {
	case clashDiffer:
		if result {
			return []string{w.resultCure(c.factor, w.axesOf(c.a, c.factor), -1), w.resultCure(c.factor, w.axesOf(c.b, c.factor), -1)}
		}
		return []string{w.operandCure(c.a, c.factor, w.axesOf(c.b, c.factor)), w.operandCure(c.b, c.factor, w.axesOf(c.a, c.factor))}
	case clashCarried:
		return []string{w.operandCure(c.a, c.factor, w.axesOf(c.b, c.factor))}
	case clashTwice:
		if result {
			return []string{w.resultCure(c.factor, w.axes[c.factor], c.other), w.resultCure(c.other, w.axes[c.other], c.factor)}
		}
		return []string{w.operandCure(c.a, c.factor, nil), w.operandCure(c.b, c.other, nil)}
	case clashPartial:
		cures := []string{w.resultCure(-1, nil, -1)}
		if k := w.scatterable(c); k >= 0 {
			cures = append(cures, w.resultCure(k, append(slices.Clone(w.axes[k]), c.axes...), -1))
		}
		return cures
	case clashLost:
		before := w.operandCure(c.a, c.factor, nil)
		if !result {
			return []string{before}
		}
		return []string{before, w.resultCure(c.factor, nil, -1)}
	}
	return []string{w.dimCure(c.a, c.d, nil)}
}

// scatterable is a factor of the result that can be sharded along the axes of an
// unreduced sum, so that a reduce-scatter completes it; -1 if there is none.
func (w *derivation) scatterable(c *clash) int {
	x := w.n.results()[0]
	for d, ks := range w.n.rule.Results[0] {
		if len(ks) == 1 && x.shape[d]%(w.p.mesh.RefsSize(w.axes[ks[0]])*w.p.mesh.RefsSize(c.axes)) == 0 && w.nameOf(w.n.op.Results[0], d, 0) != "" {
			return ks[0]
		}
	}
	return -1
}

// resultCure constrains the result to the sharding that follows from its operands,
// but for factor k, which is sharded along axes, and factor without, which is not
// sharded.
func (w *derivation) resultCure(k int, axes []ir.AxisRef, without int) string {
	f := w.factors()
	for other := range f.factors {
		if other == without || slices.ContainsFunc(f.factors[other].Axes, func(r ir.AxisRef) bool { return layout.OverlapsAny(r, axes) }) {
			f.factors[other].Axes = nil
		}
	}
	if k >= 0 {
		f.factors[k].Axes = axes
	}
	v := w.n.op.Results[0]
	dims := make([][]ir.AxisRef, len(w.n.rule.Results[0]))
	for d, ks := range w.n.rule.Results[0] {
		dims[d] = w.pr.dimAxes(f, ks)
	}
	return w.constrainText(v, dims)
}

// operandCure constrains operand i to be sharded along axes in its dimension with
// factor k.
func (w *derivation) operandCure(i, k int, axes []ir.AxisRef) string {
	d := w.dimOf(i, k)
	if ks := w.n.rule.Operands[i][d]; len(ks) > 1 && len(axes) > 0 {
		f := w.factors()
		f.factors[k].Axes = axes
		axes = w.pr.dimAxes(f, ks)
	}
	return w.dimCure(i, d, axes)
}

// dimCure constrains the named value that dimension d of operand i comes from to be
// sharded along axes in that dimension.
func (w *derivation) dimCure(i, d int, axes []ir.AxisRef) string {
	v, at := w.source(i, d)
	dims := slices.Clone(w.n.operands()[i].dims)
	if v != w.value(i) {
		dims = slices.Clone(w.p.tensors[v.ID].dims)
	}
	for e := range dims {
		if slices.ContainsFunc(dims[e], func(r ir.AxisRef) bool { return layout.OverlapsAny(r, axes) }) {
			dims[e] = nil
		}
	}
	dims[at] = axes
	return w.constrainText(v, dims)
}

// source is the nearest named value that dimension d of operand i comes from, and
// the number of that dimension there. It is the operand itself if that has a name
// or no such value exists.
func (w *derivation) source(i, d int) (*ir.Value, int) {
	v, at := w.value(i), d
	for v != nil && v.Name == "" && v.Def != nil && v.Def.Kind != ir.ShardingConstraint {
		if v, at = onlySource(v.Def, at); v != nil && w.p.tensors[v.ID] == nil {
			v = nil
		}
	}
	if v == nil || v.Name == "" {
		return w.value(i), d
	}
	return v, at
}

// value is operand i of the node, nil where that is none of an op.
func (w *derivation) value(i int) *ir.Value {
	switch op := w.n.at; {
	case w.n.op != nil:
		return w.n.op.Operands[i]
	case op == nil:
		return nil
	case op.Kind.Has(ir.Loop):
		for k, v := range op.Results {
			if w.p.tensors[v.ID] == w.n.results()[0].propTensor && i == 1 {
				r := op.Regions[len(op.Regions)-1]
				return r.Terminator().Operands[k]
			} else if w.p.tensors[v.ID] == w.n.results()[0].propTensor && k < len(op.Operands) {
				return op.Operands[k]
			}
		}
	case op.Kind.Has(ir.Branches):
		for k, v := range op.Results {
			if w.p.tensors[v.ID] == w.n.results()[0].propTensor {
				return op.Regions[i].Terminator().Operands[k]
			}
		}
	}
	return nil
}

// onlySource is the only operand of op that has the factor of dimension d of its
// result, and the number of that dimension there; nil if there is none.
func onlySource(op *ir.Op, d int) (*ir.Value, int) {
	rule := ir.FactorsOf(op)
	if rule == nil || len(op.Results) != 1 || len(rule.Results[0][d]) == 0 {
		return nil, 0
	}
	k := rule.Results[0][d][0]
	var found *ir.Value
	at := 0
	for i, v := range op.Operands {
		e := slices.IndexFunc(rule.Operands[i], func(ks []int) bool { return slices.Contains(ks, k) })
		if e < 0 {
			continue
		}
		if found != nil {
			return nil, 0
		}
		found, at = v, e
	}
	return found, at
}

// constrainText is the constraint that shards v along dims: in the syntax of the
// language where its dimensions have names there, else in Shardy's. A value without
// a name is the expression at the error's place.
func (w *derivation) constrainText(v *ir.Value, dims [][]ir.AxisRef) string {
	name := "…"
	if v != nil && v.Name != "" {
		name = v.Name
	}
	var rules []string
	known, first := v != nil, ""
	for d, axes := range dims {
		axis := ""
		if v != nil {
			axis = w.nameOf(v, d, 0)
		}
		if first == "" {
			first = axis
		}
		var mesh []string
		for _, r := range axes {
			known = known && r.Size == 0
			if r.Name != facts.StageAxis {
				mesh = append(mesh, r.Name)
			}
		}
		known = known && (axis != "" || len(mesh) == 0)
		if len(mesh) > 0 {
			rules = append(rules, axis+" -> "+strings.Join(mesh, ", "))
		}
	}
	if !known || first == "" {
		return fmt.Sprintf("sdy.sharding_constraint %%%s %s", name, ir.NewSharding(w.p.mesh.Name, dims...))
	}
	if len(rules) == 0 {
		rules = []string{first + " -> none"}
	}
	return fmt.Sprintf("constrain(%s, {%s})", name, strings.Join(rules, "; "))
}

// dropAxes removes the attributes that name dimensions, which only messages of this
// package read.
func dropAxes(f *ir.Func) {
	f.Body.Walk(func(op *ir.Op) { op.Attrs.Delete(ir.KeyAxes) })
}

// nameOf is what the language calls dimension d of v, "" where it has no name.
func (w *derivation) nameOf(v *ir.Value, d, depth int) string {
	attrs := v.Attrs
	if v.Def != nil {
		attrs = v.Def.Attrs
	}
	for _, attr := range []string{ir.KeyAxes, ir.KeyLogical} {
		if names, ok := attrs.Get(attr).(ir.Array); ok {
			if i := d - (v.Type.Rank() - len(names)); i >= 0 && i < len(names) {
				name, _ := names[i].(ir.Str)
				return string(name)
			}
			return ""
		}
	}
	if v.Def == nil || depth > 32 || len(v.Def.Results) != 1 {
		return ""
	}
	rule := ir.FactorsOf(v.Def)
	if rule == nil || len(rule.Results[0][d]) != 1 {
		return ""
	}
	for i, x := range v.Def.Operands {
		for e, ks := range rule.Operands[i] {
			if slices.Equal(ks, rule.Results[0][d]) {
				if name := w.nameOf(x, e, depth+1); name != "" {
					return name
				}
			}
		}
	}
	return ""
}

// factorText is factor k in words: seq (16).
func (w *derivation) factorText(k int) string {
	if w.n.op != nil {
		for d, ks := range w.n.rule.Results[0] {
			if slices.Equal(ks, []int{k}) {
				if name := w.nameOf(w.n.op.Results[0], d, 0); name != "" {
					return fmt.Sprintf("%s (%d)", name, w.n.rule.Sizes[k])
				}
			}
		}
	}
	text := ""
	for i := range w.n.operands() {
		d := w.dimOf(i, k)
		if d < 0 {
			continue
		}
		if v := w.value(i); v != nil && w.nameOf(v, d, 0) != "" || text == "" {
			text = w.dimText(i, d)
		}
	}
	return text
}

// dimText is dimension d of operand i in words: seq (16), or dimension 1 (16).
func (w *derivation) dimText(i, d int) string {
	size := w.n.operands()[i].shape[d]
	if v := w.value(i); v != nil {
		if name := w.nameOf(v, d, 0); name != "" {
			return fmt.Sprintf("%s (%d)", name, size)
		}
	}
	return fmt.Sprintf("dimension %d (%d)", d, size)
}

// operandText names operand i: what the user calls it or what it is made of, or
// else its place.
func (w *derivation) operandText(i int) string {
	for d := range w.n.operands()[i].shape {
		if v, _ := w.source(i, d); v != nil && v.Name != "" {
			return v.Name
		}
	}
	return fmt.Sprintf("operand %d", i)
}
