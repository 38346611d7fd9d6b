package passes

import (
	"fmt"
	"slices"

	"ppc/ir"
)

// warnWhole warns of operand i of op where it lies in parts, a result is to lie
// in parts, and the op must have it whole: not because other axes serve better,
// but because it cannot be computed on parts.
func (p *partitioner) warnWhole(op *ir.Op, a *assignment, i int) {
	v := op.Operands[i]
	if p.warn == nil || !v.Type.IsTensor() || p.free[v.ID] || !a.operands[i].whole() {
		return
	}
	from := p.layoutOf(v)
	if from.whole() || !slices.ContainsFunc(op.Results, func(r *ir.Value) bool { return r.Type.IsTensor() && !p.layoutOf(r).whole() }) {
		return
	}
	for d, axes := range from {
		if len(axes) == 0 || a.rule != nil && !a.gathers(i, d) && slices.ContainsFunc(a.rule.Operands[i][d], func(k int) bool { return p.mayCutAlong(op, a.rule, k, axes) }) {
			continue
		}
		p.warn(&Error{Op: op, Msg: fmt.Sprintf("%s is gathered: %s needs dimension %d whole, which lies along %s; the result lies as %s",
			describe(v), op.Name(), d, axesText(p.mesh, axes), op.Results[0].Sharding)})
		return
	}
}

// gathers reports whether windows along a dimension of an operand reach over so
// many parts that it is taken whole.
func (a *assignment) gathers(operand, dim int) bool {
	return slices.ContainsFunc(a.halos, func(h windowHalo) bool { return h.operand == operand && h.dim == dim && h.halo == nil })
}

// warnThroughWhole warns where the way of v from one layout in parts to another
// goes through all of it on each device.
func (p *partitioner) warnThroughWhole(v *ir.Value, from, to layout) {
	if p.warn == nil || from.whole() || to.whole() {
		return
	}
	for _, m := range p.resharder.plan(v.Type, from, to).moves {
		if m.next.whole() {
			p.warn(&Error{Op: v.Def, Msg: fmt.Sprintf("%s is gathered on its way from %s to %s: no exchange leads from one to the other", describe(v), from, to)})
			return
		}
	}
}
