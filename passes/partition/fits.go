package partition

import (
	"slices"

	"ppc/ir"
	"ppc/passes/layout"
	"ppc/passes/pass"
)

// fits is an error where op cannot be computed shard by shard with the layouts
// that its operands and results state. The program that Choose makes always can.
func (p *localizer) fits(op *ir.Op, a *assignment) error {
	for i, v := range op.Operands {
		if at := p.computed(op, a, i); !p.layoutOf(v).Equal(at) {
			return pass.Errorf(op, "%s has operand %d as %s, and is computed with it as %s; reshard it, with sdy.reshard before collectives",
				op.Name(), i, p.layoutText(p.layoutOf(v)), p.layoutText(at))
		}
	}
	for i, v := range op.Results {
		at := p.replicated(v)
		if a.rule != nil {
			at = p.layoutBy(a.factors, a.rule.Results[i])
		}
		if !a.results[i].Equal(at) || a.rule == nil && !p.layoutOf(v).Equal(at) {
			return pass.Errorf(op, "%s has result %d as %s, and computes it as %s; state that as its sharding, and reshard it",
				op.Name(), i, p.layoutText(p.layoutOf(v)), p.layoutText(at))
		}
	}
	return p.fitsReduction(op, a)
}

// fitsReduction is an error where op leaves partial results, and its result is not
// unreduced along their axes.
func (p *localizer) fitsReduction(op *ir.Op, a *assignment) error {
	if a.rule == nil || combinesByRegion(op) || len(op.Results) == 0 {
		return nil
	}
	if axes := p.outside(a.partial(), layout.UnreducedOf(op.Result().Sharding)); len(axes) > 0 {
		return pass.Errorf(op, "%s has partial results along %s; state that its result is unreduced along them, and reshard it", op.Name(), layout.AxesText(p.mesh, axes))
	}
	return nil
}

// ruleOperand are the factors of the dimensions of operand i; nil where the rule
// says nothing of it.
func (a *assignment) ruleOperand(i int) [][]int {
	if a.rule == nil || i >= len(a.rule.Operands) {
		return nil
	}
	return a.rule.Operands[i]
}

// computed is the layout in which operand i of op is computed with: that of its
// factors, and in dimensions that are read sharded or not the one that it has.
func (p *localizer) computed(op *ir.Op, a *assignment, i int) layout.Layout {
	v, dims := op.Operands[i], a.ruleOperand(i)
	if dims == nil {
		return p.replicated(v)
	}
	at, either, stated := p.layoutBy(a.factors, dims), shardRowOf(op.Kind).either, p.layoutOf(v)
	for d := range at {
		halo := slices.ContainsFunc(a.halos, func(h windowHalo) bool { return h.operand == i && h.dim == d })
		if has := stated[d]; halo || either != nil && either(op, i, d) && len(has) == 0 {
			at[d] = has
		}
	}
	return at
}

// layoutText is the sharding of a layout.
func (p *localizer) layoutText(at layout.Layout) string {
	return ir.NewSharding(p.mesh.Name, at...).String()
}
