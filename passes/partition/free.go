package partition

import (
	"ppc/ir"
	"ppc/passes/layout"
)

// makeFree makes a part of a value that needs nothing of other devices.
func (p *partitioner) makeFree(v *ir.Value, at layout.Layout) *ir.Value {
	op := v.Def
	origin := p.build.Origin
	p.build.Origin = op.Origin
	defer func() { p.build.Origin = origin }()
	switch op.Kind {
	case ir.Constant, ir.SdyConstant:
		return p.makeConstant(v, at)
	case ir.Iota:
		return p.makeIota(v, at)
	case ir.ShardingConstraint:
		return p.get(op.Operands[0], at)
	}
	rule := ir.FactorsOf(op)
	factors := make([]layout.FactorAxes, len(rule.Sizes))
	for d, ks := range rule.Results[0] {
		layout.ProjectDim(p.mesh, at[d], ks, rule.Sizes, factors)
	}
	axes := make([][]ir.AxisRef, len(factors))
	for k, f := range factors {
		if p.mayCutAlong(op, rule, k, f.Axes) {
			axes[k] = f.Axes
		}
	}
	a := p.assign(op, rule, axes)
	in := make([]*ir.Value, len(op.Operands))
	for i, x := range op.Operands {
		in[i] = p.get(x, a.operands[i])
	}
	return p.reshard(p.emit(op, a, in)[0], v.Type, a.results[0], at)
}

func (p *partitioner) makeConstant(v *ir.Value, at layout.Layout) *ir.Value {
	op, l := v.Def, v.Def.Literal("value")
	t := p.local(v.Type, at)
	whole := p.wholeLayout(v)
	if !t.Equal(v.Type) && !l.IsSplat() {
		return p.reshard(p.get(v, whole), v.Type, whole, at)
	}
	if l.IsSplat() && v.Type.IsTensor() {
		l = &ir.Literal{Type: t, Data: l.Data}
	}
	return p.build.Emit(ir.Constant, nil, With(op.Attrs, "value", l), nil, []*ir.Type{t}).Result()
}

// makeIota: along the dimension that counts, this device counts from where its
// part begins.
func (p *partitioner) makeIota(v *ir.Value, at layout.Layout) *ir.Value {
	b, dim := &p.build, v.Def.Int("iota_dimension")
	part := b.Emit(ir.Iota, nil, v.Def.Attrs, nil, []*ir.Type{p.local(v.Type, at)}).Result()
	if len(at[dim]) == 0 {
		return part
	}
	offset := b.Convert(p.offset(at[dim], part.Type.Shape[dim]), v.Type.Elem)
	return b.Add(part, b.Broadcast(offset, part.Type.Shape))
}
