package propagate

import (
	"slices"

	"ppc/ir"
	"ppc/passes/layout"
)

// findRules finds, for every dimension of every tensor, the rule of the source by
// which it is sharded: its own, or that of the nearest tensor with a rule that is
// sharded along the same axes and related to it by factors, along which axes have
// propagated. One walk from all rules at once, in the order of the program, reaches
// each dimension once.
func (p *propagator) findRules() {
	type dim struct {
		*propTensor
		d int
	}
	var work, next []dim
	reach := func(x *propTensor, d int, rule *ir.Origin) {
		if x.rules[d] == nil && rule != nil && len(x.dims[d]) > 0 {
			x.rules[d] = rule
			next = append(next, dim{x, d})
		}
	}
	for _, x := range p.all {
		x.rules = p.ruleSlab.Slice(len(x.dims))
	}
	for _, x := range p.all {
		if x.seed == nil {
			continue
		}
		for d, s := range x.seed.Dims {
			if len(s.Axes) > 0 {
				reach(x, d, s.Rule)
			}
		}
	}
	for i := 0; len(next) > 0 || i < len(work); i++ {
		if i == len(work) { // the next that are as far from a rule
			work, next, i = next, work[:0], 0
		}
		from := work[i]
		axes, rule := from.dims[from.d], from.rules[from.d]
		for _, n := range from.nodes {
			for i, r := range n.refs {
				if r.propTensor != from.propTensor {
					continue
				}
				ks := n.dims(i)[from.d]
				if len(ks) == 0 {
					continue
				}
				for j, to := range n.refs {
					if to.propTensor == nil {
						continue
					}
					for e, theirs := range n.dims(j) {
						if len(to.dims[e]) == 0 || to.rules[e] != nil {
							continue
						}
						related := slices.ContainsFunc(theirs, func(k int) bool { return slices.Contains(ks, k) })
						if related && slices.ContainsFunc(to.dims[e], func(r ir.AxisRef) bool { return layout.OverlapsAny(r, axes) }) {
							reach(to.propTensor, e, rule)
						}
					}
				}
			}
		}
	}
}

// dims are the factors of the dimensions of the i-th of n's refs.
func (n *propNode) dims(i int) [][]int {
	if k := len(n.operands()); i >= k {
		return n.rule.Results[i-k]
	}
	return n.rule.Operands[i]
}

// RulesAlong says, as the end of a message, which rules of the source shard a value
// of sharding s along the given axes; it is empty where no rule is known.
func RulesAlong(mesh *ir.Mesh, s *ir.Sharding, axes []ir.AxisRef) string {
	return layout.RulesText(mesh, slices.DeleteFunc(layout.ShardedDims(s), func(c layout.ShardedDim) bool {
		return !slices.ContainsFunc(c.Axes, func(r ir.AxisRef) bool { return layout.OverlapsAny(r, axes) })
	})...)
}
