package partition

import (
	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
)

// A value that is needed in another layout than its own can be resharded, or
// be recomputed where it is needed: a mask of rows and columns from the few
// numbers of each, a cosine from a position. The second is for ops that compute
// element by element, and where fewer bytes move for it.

// maxRecomputed bounds the ops that are looked at, to recompute one value.
const maxRecomputed = 32

// recomputation is how v is recomputed in a layout, and how many bytes move for
// that; nil unless these are fewer than limit.
func (p *chooser) recomputation(v *ir.Value, at layout.Layout, limit int) (*assignment, int) {
	if p.asking != nil {
		p.asking.deep = true
	}
	left := maxRecomputed
	return p.recomputationWithin(&left, v, at, limit)
}

func (p *chooser) recomputationWithin(left *int, v *ir.Value, at layout.Layout, limit int) (*assignment, int) {
	op := p.computedBy(v)
	if *left == 0 || op == nil || len(op.Results) != 1 || !facts.IsLocal(op) {
		return nil, 0
	}
	*left--
	rule := p.factorsOf(op)
	if rule == nil {
		return nil, 0
	}
	a := p.assign(op, rule, p.project(at, rule.Results[0], rule))
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

// computedBy is the op that computes v, behind constraints that state the layout
// that it has anyway; nil if there is none.
func (p *chooser) computedBy(v *ir.Value) *ir.Op {
	for v.Def != nil && v.Def.Kind == ir.ShardingConstraint && p.layoutOf(v.Def.Operands[0]).Equal(p.layoutOf(v)) {
		v = v.Def.Operands[0]
	}
	return v.Def
}

// reach is how many bytes move for v to get a layout, if these are fewer than
// limit.
func (p *chooser) reach(left *int, v *ir.Value, at layout.Layout, limit int) (int, bool) {
	switch {
	case !v.Type.IsTensor() || p.free[v.ID]:
		return 0, true
	case len(p.atHand(v)) == 0:
		return 0, false
	}
	n := p.bytesFrom(v, at)
	if n > 0 {
		if a, fewer := p.recomputationWithin(left, v, at, min(n, limit)); a != nil {
			n = fewer
		}
	}
	return n, n < limit
}

// recompute emits the op of v as a says.
func (p *chooser) recompute(v *ir.Value, a *assignment) *ir.Value {
	op := p.computedBy(v)
	origin := p.build.Origin
	defer func() { p.build.Origin = origin }()
	in := make([]*ir.Value, len(op.Operands))
	for i, x := range op.Operands {
		in[i] = p.get(x, a.operands[i])
	}
	p.build.Origin = op.Origin
	return p.emit(op, a, in)[0].v
}

// makeFree computes a value that needs nothing of other devices.
func (p *chooser) makeFree(v *ir.Value, at layout.Layout) *ir.Value {
	op := v.Def
	origin := p.build.Origin
	p.build.Origin = op.Origin
	defer func() { p.build.Origin = origin }()
	switch op.Kind {
	case ir.Constant, ir.SdyConstant:
		if whole := p.replicated(v); !at.IsReplicated() && !op.Literal("value").IsSplat() {
			return p.reshard(valueCopy{at: whole, v: p.get(v, whole)}, at, nil)
		}
		n := p.build.Emit(ir.Constant, nil, op.Attrs, nil, []*ir.Type{v.Type}).Result()
		n.Sharding = p.sharding(at, nil, ir.Add)
		return n
	case ir.Iota:
		n := p.build.Emit(ir.Iota, nil, op.Attrs, nil, []*ir.Type{v.Type}).Result()
		n.Sharding = p.sharding(at, nil, ir.Add)
		return n
	case ir.ShardingConstraint:
		return p.get(op.Operands[0], at)
	}
	rule := p.factorsOf(op)
	factors := p.project(at, rule.Results[0], rule)
	for k, axes := range factors {
		if !p.mayShard(op, rule, k, axes) {
			factors[k] = nil
		}
	}
	a := p.assign(op, rule, factors)
	in := make([]*ir.Value, len(op.Operands))
	for i, x := range op.Operands {
		in[i] = p.get(x, a.operands[i])
	}
	return p.reshard(p.emit(op, a, in)[0], at, nil)
}
