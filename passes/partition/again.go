package partition

import (
	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
)

// Where a value has to lie otherwise than it does, it can be moved, or be
// computed again where it is needed: a mask of rows and columns from the few
// numbers of each, a cosine from a position. The second is for ops that compute
// element by element, and where fewer bytes move for it.

// maxAgain bounds the ops that are looked at, to compute one value again.
const maxAgain = 32

// again is how v is computed so that it lies as at says, and how many bytes
// move for that; nil unless these are fewer than limit.
func (p *partitioner) again(v *ir.Value, at layout.Layout, limit int) (*assignment, int) {
	left := maxAgain
	return p.againWithin(&left, v, at, limit)
}

func (p *partitioner) againWithin(left *int, v *ir.Value, at layout.Layout, limit int) (*assignment, int) {
	op := p.madeBy(v)
	if *left == 0 || op == nil || len(op.Results) != 1 || !facts.IsLocal(op) {
		return nil, 0
	}
	*left--
	rule := ir.FactorsOf(op)
	if rule == nil {
		return nil, 0
	}
	a := p.assign(op, rule, p.wish(at, rule.Results[0], rule))
	if !a.results[0].Equal(at) {
		return nil, 0
	}
	bytes := 0
	for i, x := range op.Operands {
		n, ok := p.reach(left, x, a.operands[i], limit-bytes)
		if bytes += n; !ok || bytes >= limit {
			return nil, 0
		}
	}
	return a, bytes
}

// madeBy is the op that makes v, behind constraints that say how it lies anyway;
// nil if there is none.
func (p *partitioner) madeBy(v *ir.Value) *ir.Op {
	for v.Def != nil && v.Def.Kind == ir.ShardingConstraint && p.layoutOf(v.Def.Operands[0]).Equal(p.layoutOf(v)) {
		v = v.Def.Operands[0]
	}
	return v.Def
}

// reach is how many bytes move for v to lie as at says, if these are fewer than
// limit.
func (p *partitioner) reach(left *int, v *ir.Value, at layout.Layout, limit int) (int, bool) {
	switch {
	case !v.Type.IsTensor() || p.free[v.ID]:
		return 0, true
	case len(p.copies[v.ID]) == 0:
		return 0, false
	}
	n := p.movedFrom(v, at)
	if n > 0 {
		if a, fewer := p.againWithin(left, v, at, min(n, limit)); a != nil {
			n = fewer
		}
	}
	return n, n < limit
}

// movedFrom is how many bytes move for v to lie as at says, from the nearest of
// its copies.
func (p *partitioner) movedFrom(v *ir.Value, at layout.Layout) int {
	c := p.nearest(v, at)
	from, n := c.at, 0
	if len(c.partial) > 0 {
		from, n = p.combineCost(v.Type, from, at, c.partial)
	}
	return n + p.resharder.Plan(v.Type, from, at).Bytes
}

// computeAgain makes v as again says.
func (p *partitioner) computeAgain(v *ir.Value, a *assignment) *ir.Value {
	op := p.madeBy(v)
	origin := p.build.Origin
	defer func() { p.build.Origin = origin }()
	in := make([]*ir.Value, len(op.Operands))
	for i, x := range op.Operands {
		in[i] = p.get(x, a.operands[i])
	}
	p.build.Origin = op.Origin
	return p.emit(op, a, in)[0]
}
