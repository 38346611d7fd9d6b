package partition

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
)

// A combining is along which axes an explicit collective combines a value, and
// how.
type combining struct {
	axes []ir.AxisRef
	by   ir.Kind
}

// reductionsOf are, by ID, the explicit collectives that combine the values of f.
func reductionsOf(f *ir.Func) [][]combining {
	all := make([][]combining, f.NumIDs())
	f.Body.Walk(func(op *ir.Op) {
		if op.Kind == ir.SdyAllReduce || op.Kind == ir.SdyReduceScatter {
			id := op.Operands[0].ID
			all[id] = append(all[id], combining{layout.ReductionAxes(op), layout.ReductionOf(op)})
		}
	})
	return all
}

// kept tells those of axes along which v, whose parts k combines, may stay
// partial from the rest.
func (p *partitioner) kept(v *ir.Value, axes []ir.AxisRef, k ir.Kind) (left, rest []ir.AxisRef) {
	var may []ir.AxisRef
	if int(v.ID) < len(p.reduced) {
		for _, r := range p.reduced[v.ID] {
			if r.by == k {
				may = append(may, r.axes...)
			}
		}
	}
	if int(v.ID) < len(p.late) && k == ir.Add {
		may = slices.Concat(may, p.late[v.ID], p.merged[v.ID])
	}
	if layout.CombinerOf(v.Sharding) == k {
		may = append(may, layout.UnreducedOf(v.Sharding)...)
	}
	for _, r := range axes {
		if slices.ContainsFunc(may, func(m ir.AxisRef) bool { return p.mesh.Contains(m, r) }) {
			left = append(left, r)
		} else {
			rest = append(rest, r)
		}
	}
	return left, rest
}

// keepWish adds to the wishes for reduced factors those that the result of op
// is combined along by an explicit collective, and reports whether there are
// any: the op has to leave them.
func (p *partitioner) keepWish(op *ir.Op, rule *ir.Factors, terms [][]ir.AxisRef, stay []bool) bool {
	if len(op.Results) == 0 || int(op.Results[0].ID) >= len(p.reduced) || p.reduced[op.Results[0].ID] == nil {
		return false
	}
	must := false
	for i, v := range op.Operands {
		if !v.Type.IsTensor() {
			continue
		}
		for k, axes := range p.wish(p.layoutOf(v), rule.Operands[i], rule) {
			if _, rest := p.kept(op.Results[0], axes, ir.Add); rule.Types[k] == ir.Reduction && len(axes) > 0 && rest == nil {
				terms[k], stay[k], must = axes, true, true
			}
		}
	}
	return must
}

// onFirst is v on the first device along axes, and on the others what changes
// nothing when k combines it.
func (p *partitioner) onFirst(v *ir.Value, axes []ir.AxisRef, k ir.Kind) *ir.Value {
	if len(axes) == 0 {
		return v
	}
	b := &p.build
	first := b.Compare("EQ", p.coord(axes), b.I32(0))
	return b.Select(first, v, b.Broadcast(b.Const(facts.Neutral(k, v.Type.Elem)), v.Type.Shape))
}

// getUnreduced returns v lying as at says, partial along the unreduced axes of
// s.
func (p *partitioner) getUnreduced(v *ir.Value, at layout.Layout, s *ir.Sharding) *ir.Value {
	axes := layout.UnreducedOf(s)
	if len(axes) == 0 {
		return p.get(v, at)
	}
	for _, c := range p.copies[v.ID] {
		if slices.Equal(c.partial, axes) && c.by == layout.CombinerOf(s) {
			return p.reshard(c.v, v.Type, c.at, at, axes...)
		}
	}
	return p.onFirst(p.get(v, at), axes, layout.CombinerOf(s))
}

// raw returns v as the devices have it, as near to at as that can lie: partial,
// if by combines it along some of axes, and along parts that one grid has
// together with axes.
func (p *partitioner) raw(v *ir.Value, at layout.Layout, axes []ir.AxisRef, by ir.Kind) valueCopy {
	for _, c := range p.copies[v.ID] {
		parts, others := (&layout.PlanSearch{Mesh: p.mesh}).Atoms(layout.Layout{c.partial}, layout.Layout{axes})
		if c.by == by && slices.ContainsFunc(axes, func(r ir.AxisRef) bool { return layout.OverlapsAny(r, c.partial) }) && parts.SameGrid(others) {
			at = at.Without(c.partial)
			c.v, c.at = p.reshard(c.v, v.Type, c.at, at, c.partial...), at
			return c
		}
	}
	return valueCopy{at: at, v: p.get(v, at)}
}

// partitionReduction combines the parts that devices have of the operand. A
// result that is to lie along axes that are summed, as one of a group may, lies
// so afterwards.
func partitionReduction(p *partitioner, op *ir.Op) {
	x, r, axes, by := op.Operands[0], op.Result(), layout.ReductionAxes(op), layout.ReductionOf(op)
	c := p.raw(x, p.layoutOf(x).Without(axes), axes, by)
	left := p.outside(c.partial, axes)
	whole := p.outside(axes, c.partial)
	if by != ir.Add {
		whole = p.outside(layout.UnreducedOf(x.Sharding), c.partial)
	}
	v, next, at := c.v, c.at, p.layoutOf(r).Without(left)
	if combined := p.outside(axes, whole); len(combined) > 0 {
		v, next = p.combine(by, v, r.Type, next, at, combined)
	}
	p.definePartial(r, at, p.reshard(v, r.Type, next, at, left...), left, c.by)
	p.settle(op)
}

// partialAxes are the axes along which a value is partial that was so along some,
// and becomes it along others.
func (p *partitioner) partialAxes(some, others []ir.AxisRef) []ir.AxisRef {
	return p.mesh.JoinAxes(nil, p.sortedAxes(slices.Concat(some, others)))
}

// outside is what of axes none of others covers.
func (p *partitioner) outside(axes, others []ir.AxisRef) []ir.AxisRef {
	parts, _ := (&layout.PlanSearch{Mesh: p.mesh}).Atoms(layout.Layout{axes}, layout.Layout{others})
	return p.mesh.JoinAxes(nil, slices.DeleteFunc(parts[0], func(r ir.AxisRef) bool { return layout.OverlapsAny(r, others) }))
}

// partitionReplicated leaves the value on one device along the axes.
func partitionReplicated(p *partitioner, op *ir.Op) {
	x, r, axes := op.Operands[0], op.Result(), op.AxisRefs("axes")
	c := p.raw(x, p.layoutOf(r).Without(axes), layout.UnreducedOf(x.Sharding), ir.Add)
	p.definePartial(r, c.at, p.onFirst(c.v, axes, ir.Add), p.partialAxes(c.partial, axes), ir.Add)
}

// partitionSharded puts the part that each device has into zeros. Along an axis
// that does not divide the operand, which is whole there, one device has it.
func partitionSharded(p *partitioner, op *ir.Op) {
	x, r, axes := op.Operands[0], op.Result(), op.AxisRefs("axes")
	c := p.raw(x, p.layoutOf(x), layout.UnreducedOf(x.Sharding), ir.Add)
	at := p.layoutOf(r).Without(slices.Concat(axes, c.partial))
	from := c.at.Clone()
	has, wants := (&layout.PlanSearch{Mesh: p.mesh}).Atoms(from, at)
	gone := make(layout.Layout, len(at))
	summed := func(r ir.AxisRef) bool {
		return slices.ContainsFunc(axes, func(a ir.AxisRef) bool { return p.mesh.Contains(a, r) })
	}
	for d := range at {
		n := len(wants[d])
		if layout.SamePrefix(has[d], wants[d]) < n || slices.ContainsFunc(has[d][n:], func(r ir.AxisRef) bool { return !summed(r) }) {
			from[d] = at[d]
			continue
		}
		gone[d] = has[d][n:]
	}
	part := p.reshard(c.v, x.Type, c.at, from, c.partial...)
	b := &p.build
	zeros := b.Splat(p.local(r.Type, at), 0)
	starts := make([]*ir.Value, len(at))
	for d := range starts {
		starts[d] = p.offset(gone[d], part.Type.Shape[d])
	}
	v := p.onFirst(b.DynamicUpdateSlice(zeros, part, starts), p.outside(axes, slices.Concat(gone...)), ir.Add)
	p.definePartial(r, at, v, p.partialAxes(c.partial, axes), ir.Add)
}

// broadcastFrom is v as one device has it: that sends it to the first device of
// the mesh, if it is another, from where all get it.
func (p *partitioner) broadcastFrom(v *ir.Value, device int) *ir.Value {
	if p.mesh.Size() == 1 {
		return v
	}
	var axes []ir.AxisRef
	for _, a := range p.mesh.Axes {
		axes = append(axes, ir.Ax(a.Name))
	}
	if place := p.mesh.Place(device); place > 0 {
		v = p.permute(v, ir.AxisShift{Mesh: p.mesh.Name, Axes: axes, Shift: -place, Wrap: true})
	}
	attrs := ir.AttrsOf(ir.NamedAttr{Name: "replica_groups", Attr: ir.MeshAxes{Mesh: p.mesh.Name, Axes: axes}})
	if !p.replicas {
		attrs.Set("channel_handle", p.channel())
	}
	return p.build.Emit(ir.CollectiveBroadcast, []*ir.Value{v}, attrs, nil, []*ir.Type{v.Type}).Result()
}
