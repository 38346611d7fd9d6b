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
func (p *chooser) replicates(op *ir.Op, r *pass.Replication) {
	rules := layout.RulesText(p.mesh, slices.Concat(layout.ShardedDims(r.From), layout.ShardedDims(r.To))...)
	text := fmt.Sprintf("%s is gathered: %s needs dimension %d unsharded, which is sharded along %s; its sharding is %s, the result's %s%s",
		facts.Describe(r.Value), r.By, r.Dim, layout.AxesText(p.mesh, r.Along), r.From, r.To, rules)
	if r.By == "" {
		text = fmt.Sprintf("%s is gathered on its way from %s to %s: no exchange leads from one to the other%s",
			facts.Describe(r.Value), r.From, r.To, rules)
	}
	p.warn(&pass.Error{Op: op, Msg: text, Replication: r})
}

// shardingByRules is the sharding of the layout at, by the rules by which the
// values vs are sharded along the same axes.
func (p *chooser) shardingByRules(at layout.Layout, vs ...*ir.Value) *ir.Sharding {
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

// warnReplicated warns of operand i of op where it is sharded, a result is to be
// sharded, and the op must have the operand replicated: not because other axes
// serve better, but because it cannot be computed sharded.
func (p *chooser) warnReplicated(op *ir.Op, a *assignment, i int) {
	v := op.Operands[i]
	if p.warn == nil || !v.Type.IsTensor() || p.free[v.ID] || !a.operands[i].IsReplicated() {
		return
	}
	from := p.layoutOf(v)
	if from.IsReplicated() || !slices.ContainsFunc(op.Results, func(r *ir.Value) bool { return r.Type.IsTensor() && !p.layoutOf(r).IsReplicated() }) {
		return
	}
	for d, axes := range from {
		if len(axes) == 0 || a.rule != nil && !a.gathers(i, d) && slices.ContainsFunc(a.rule.Operands[i][d], func(k int) bool { return p.mayShard(op, a.rule, k, axes) }) {
			continue
		}
		p.replicates(op, &pass.Replication{Value: v, By: op.Name(), Dim: d, Along: axes, From: p.shardingByRules(from, v), To: p.shardingByRules(p.layoutOf(op.Results[0]), op.Results[0])})
		return
	}
}

// gathers reports whether the windows along a dimension of an operand reach over
// so many shards that it is gathered.
func (a *assignment) gathers(operand, dim int) bool {
	return slices.ContainsFunc(a.halos, func(h windowHalo) bool { return h.operand == operand && h.dim == dim && h.halo == nil && !h.scan })
}

// warnThroughReplicated warns where v is replicated on its way from one sharded
// layout to another.
func (p *chooser) warnThroughReplicated(v *ir.Value, from, to layout.Layout) {
	if p.warn == nil || from.IsReplicated() || to.IsReplicated() {
		return
	}
	for _, m := range p.resharder.Plan(v.Type, from, to).Moves {
		if m.Next.IsReplicated() {
			p.replicates(v.Def, &pass.Replication{Value: v, From: p.shardingByRules(from, v), To: p.shardingByRules(to, append([]*ir.Value{v}, p.user.Results...)...)})
			return
		}
	}
}
