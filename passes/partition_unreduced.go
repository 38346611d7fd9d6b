package passes

import (
	"slices"

	"ppc/ir"
)

// A value with unreduced axes is what the devices along them have, combined.
// The partitioner takes them as a permission: where partial results come up
// along such axes they are left as they are until somebody needs the value.
// What flows in or out of the program, and what an explicit collective
// combines, is partial in fact.

func unreducedOf(s *ir.Sharding) []ir.AxisRef {
	if s == nil {
		return nil
	}
	return s.Unreduced
}

// combinerOf is the op by which what s leaves unreduced is combined.
func combinerOf(s *ir.Sharding) ir.Kind {
	if s == nil {
		return ir.Add
	}
	return map[string]ir.Kind{"": ir.Add, "max": ir.Maximum, "min": ir.Minimum}[s.ReducedBy]
}

// reducedAxes are, by ID, the axes along which explicit collectives combine
// the values of f.
func reducedAxes(f *ir.Func) [][]ir.AxisRef {
	axes := make([][]ir.AxisRef, f.NumIDs())
	f.Body.Walk(func(op *ir.Op) {
		if op.Kind == ir.SdyAllReduce || op.Kind == ir.SdyReduceScatter {
			id := op.Operands[0].ID
			axes[id] = append(axes[id], reductionAxes(op)...)
		}
	})
	return axes
}

func reductionAxes(op *ir.Op) []ir.AxisRef {
	return append(op.AxisRefs("reduction_axes"), op.AxisRefs("reduce_scatter_axes")...)
}

// reductionOf is the op by which an explicit collective combines.
func reductionOf(op *ir.Op) ir.Kind {
	return []ir.Kind{ir.Add, ir.Maximum, ir.Minimum}[op.Int("reduction_op")]
}

// kept tells those of axes along which v, whose parts k combines, may stay
// partial from the rest.
func (p *partitioner) kept(v *ir.Value, axes []ir.AxisRef, k ir.Kind) (left, rest []ir.AxisRef) {
	var may []ir.AxisRef
	if int(v.ID) < len(p.reduced) {
		may = p.reduced[v.ID]
	}
	if int(v.ID) < len(p.late) && k == ir.Add {
		may = slices.Concat(may, p.late[v.ID], p.merged[v.ID])
	}
	if combinerOf(v.Sharding) == k {
		may = append(slices.Clip(may), unreducedOf(v.Sharding)...)
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
// is combined along by an explicit collective: the op has to leave them.
func (p *partitioner) keepWish(op *ir.Op, rule *ir.Factors, terms [][]ir.AxisRef, stay []bool) {
	if len(op.Results) == 0 || int(op.Results[0].ID) >= len(p.reduced) || p.reduced[op.Results[0].ID] == nil {
		return
	}
	for i, v := range op.Operands {
		if !v.Type.IsTensor() || p.free[v.ID] {
			continue
		}
		for k, axes := range p.wish(p.layoutOf(v), rule.Operands[i], rule) {
			if _, rest := p.kept(op.Results[0], axes, ir.Add); rule.Types[k] == ir.Reduction && len(axes) > 0 && rest == nil {
				terms[k], stay[k] = axes, true
			}
		}
	}
}

// onFirst is v on the first device along axes, and on the others what changes
// nothing when k combines it.
func (p *partitioner) onFirst(v *ir.Value, axes []ir.AxisRef, k ir.Kind) *ir.Value {
	if len(axes) == 0 {
		return v
	}
	b := &p.build
	first := b.Compare("EQ", p.coord(axes), b.I32(0))
	return b.Select(first, v, b.Broadcast(b.Const(neutral(k, v.Type.Elem)), v.Type.Shape))
}

// getUnreduced returns v lying as at says, partial along the unreduced axes of
// s.
func (p *partitioner) getUnreduced(v *ir.Value, at layout, s *ir.Sharding) *ir.Value {
	axes := unreducedOf(s)
	if len(axes) == 0 {
		return p.get(v, at)
	}
	for _, c := range p.copies[v.ID] {
		if slices.Equal(c.partial, axes) && c.by == combinerOf(s) {
			return p.reshard(c.v, v.Type, c.at, at)
		}
	}
	return p.onFirst(p.get(v, at), axes, combinerOf(s))
}

// raw returns v as the devices have it: partial, if it is so along some of
// axes.
func (p *partitioner) raw(v *ir.Value, at layout, axes []ir.AxisRef) valueCopy {
	for _, c := range p.copies[v.ID] {
		if slices.ContainsFunc(axes, func(r ir.AxisRef) bool { return overlapsAny(r, c.partial) }) {
			c.v, c.at = p.reshard(c.v, v.Type, c.at, at), at
			return c
		}
	}
	return valueCopy{at: at, v: p.get(v, at)}
}

// partitionAllReduce combines what the devices have. Where the operand is said
// to be unreduced but is not, because it came up whole, nothing is left to do.
func partitionAllReduce(p *partitioner, op *ir.Op) {
	x, r := op.Operands[0], op.Result()
	at := p.layoutOf(r)
	axes := reductionAxes(op)
	c := p.raw(x, at, axes)
	if len(c.partial) == 0 && len(axes) > 0 && containsAll(unreducedOf(x.Sharding), axes) {
		p.define(r, at, c.v)
		return
	}
	v := c.v
	if len(axes) > 0 {
		v, _ = p.combine(reductionOf(op), v, r.Type, at, at, axes)
	}
	p.definePartial(r, at, v, p.outside(c.partial, axes), c.by)
}

// outside is what of axes none of others covers.
func (p *partitioner) outside(axes, others []ir.AxisRef) []ir.AxisRef {
	var out []ir.AxisRef
	for _, r := range axes {
		if !overlapsAny(r, others) {
			out = append(out, r)
		}
	}
	return out
}

func partitionReduceScatter(p *partitioner, op *ir.Op) {
	x, r := op.Operands[0], op.Result()
	at, axes := p.layoutOf(r), reductionAxes(op)
	from := p.layoutOf(x)
	if len(axes) == 0 {
		p.define(r, at, p.get(x, at))
		return
	}
	c := p.raw(x, from, axes)
	v, next := p.combine(reductionOf(op), c.v, r.Type, from, at, axes)
	p.definePartial(r, at, p.reshard(v, r.Type, next, at), p.outside(c.partial, axes), c.by)
}

// partitionReplicated leaves the value on one device along the axes.
func partitionReplicated(p *partitioner, op *ir.Op) {
	x, r := op.Operands[0], op.Result()
	at, axes := p.layoutOf(r), op.AxisRefs("axes")
	c := p.raw(x, at, unreducedOf(x.Sharding))
	p.definePartial(r, at, p.onFirst(c.v, axes, ir.Add), p.sortedAxes(slices.Concat(c.partial, axes)), ir.Add)
}

// partitionSharded puts the part that each device has into zeros. Along an axis
// that does not divide the operand, which is whole there, one device has it.
func partitionSharded(p *partitioner, op *ir.Op) {
	x, r := op.Operands[0], op.Result()
	from, at, axes := p.layoutOf(x), p.layoutOf(r), op.AxisRefs("axes")
	has, wants := (&planSearch{mesh: p.mesh}).atoms(from, at)
	gone := make(layout, len(at))
	summed := func(r ir.AxisRef) bool {
		return slices.ContainsFunc(axes, func(a ir.AxisRef) bool { return p.mesh.Contains(a, r) })
	}
	for d := range at {
		n := len(wants[d])
		if samePrefix(has[d], wants[d]) < n || slices.ContainsFunc(has[d][n:], func(r ir.AxisRef) bool { return !summed(r) }) {
			from[d] = at[d]
			continue
		}
		gone[d] = has[d][n:]
	}
	c := p.raw(x, from, unreducedOf(x.Sharding))
	b := &p.build
	zeros := b.Splat(p.local(r.Type, at), 0)
	starts := make([]*ir.Value, len(at))
	for d := range starts {
		starts[d] = p.offset(gone[d], c.v.Type.Shape[d])
	}
	v := p.onFirst(b.DynamicUpdateSlice(zeros, c.v, starts), p.outside(axes, slices.Concat(gone...)), ir.Add)
	p.definePartial(r, at, v, p.sortedAxes(slices.Concat(c.partial, axes)), ir.Add)
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
