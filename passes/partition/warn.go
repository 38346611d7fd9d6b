package partition

import (
	"fmt"
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
	"ppc/passes/pass"
)

// replicates warns of r, which happens at op.
func (p *partitioner) replicates(op *ir.Op, r *pass.Replication) {
	rules := layout.RulesText(p.mesh, slices.Concat(layout.ShardedDims(r.From), layout.ShardedDims(r.To))...)
	text := fmt.Sprintf("%s is gathered: %s needs dimension %d unsharded, which is sharded along %s; its sharding is %s, the result's %s%s",
		facts.Describe(r.Value), r.By, r.Dim, layout.AxesText(p.mesh, r.Along), r.From, r.To, rules)
	if r.By == "" {
		text = fmt.Sprintf("%s is gathered on its way from %s to %s: no exchange leads from one to the other%s",
			facts.Describe(r.Value), r.From, r.To, rules)
	}
	p.warn(&pass.Error{Op: op, Msg: text, Replication: r})
}

// shardingOf is the sharding of what lies as at says, by the rules by which the
// values vs are cut along the same axes.
func (p *partitioner) shardingOf(at layout.Layout, vs ...*ir.Value) *ir.Sharding {
	s := ir.NewSharding(p.mesh.Name, at...)
	for d, axes := range at {
		for _, v := range vs {
			for _, c := range layout.ShardedDims(v.Sharding) {
				if s.Dims[d].Rule == nil && slices.Equal(c.Axes, axes) {
					s.Dims[d].Rule = c.Rule
				}
			}
		}
	}
	return s
}

// warnWhole warns of operand i of op where it lies in parts, a result is to lie
// in parts, and the op must have it whole: not because other axes serve better,
// but because it cannot be computed on parts.
func (p *partitioner) warnWhole(op *ir.Op, a *assignment, i int) {
	v := op.Operands[i]
	if p.warn == nil || !v.Type.IsTensor() || p.free[v.ID] || !a.operands[i].Whole() {
		return
	}
	from := p.layoutOf(v)
	if from.Whole() || !slices.ContainsFunc(op.Results, func(r *ir.Value) bool { return r.Type.IsTensor() && !p.layoutOf(r).Whole() }) {
		return
	}
	for d, axes := range from {
		if len(axes) == 0 || a.rule != nil && !a.gathers(i, d) && slices.ContainsFunc(a.rule.Operands[i][d], func(k int) bool { return p.mayCutAlong(op, a.rule, k, axes) }) {
			continue
		}
		p.replicates(op, &pass.Replication{Value: v, By: op.Name(), Dim: d, Along: axes, From: p.shardingOf(from, v), To: p.shardingOf(p.layoutOf(op.Results[0]), op.Results[0])})
		return
	}
}

// gathers reports whether windows along a dimension of an operand reach over so
// many parts that it is taken whole.
func (a *assignment) gathers(operand, dim int) bool {
	return slices.ContainsFunc(a.halos, func(h windowHalo) bool { return h.operand == operand && h.dim == dim && h.halo == nil && !h.scan })
}

// warnThroughWhole warns where the way of v from one layout in parts to another
// goes through all of it on each device.
func (p *partitioner) warnThroughWhole(v *ir.Value, from, to layout.Layout) {
	if p.warn == nil || from.Whole() || to.Whole() {
		return
	}
	for _, m := range p.resharder.Plan(v.Type, from, to).Moves {
		if m.Next.Whole() {
			p.replicates(v.Def, &pass.Replication{Value: v, From: p.shardingOf(from, v), To: p.shardingOf(to, append([]*ir.Value{v}, p.taker.Results...)...)})
			return
		}
	}
}
