package passes

import (
	"slices"

	"ppc/ir"
)

// What a sum over axes means. Of the program of all devices, sdy.all_reduce and
// sdy.reduce_scatter are the identity, as ir/eval has it: their operand is a
// value, and what the devices have is parts of it that add up to it, or all of
// it. They add up parts, where an op or a sharding has made parts, and leave
// alone what every device has whole: copies are never added up. What a parameter
// holds is not known here, so one that is summed along axes is a sum along them
// (see [summedParams]). The largest or smallest of copies is the copy.
//
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
			all[id] = append(all[id], combining{reductionAxes(op), reductionOf(op)})
		}
	})
	return all
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
		for _, r := range p.reduced[v.ID] {
			if r.by == k {
				may = append(may, r.axes...)
			}
		}
	}
	if int(v.ID) < len(p.late) && k == ir.Add {
		may = slices.Concat(may, p.late[v.ID], p.merged[v.ID])
	}
	if combinerOf(v.Sharding) == k {
		may = append(may, unreducedOf(v.Sharding)...)
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
			return p.reshard(c.v, v.Type, c.at, at, axes...)
		}
	}
	return p.onFirst(p.get(v, at), axes, combinerOf(s))
}

// raw returns v as the devices have it, as near to at as that can lie: partial,
// if by combines it along some of axes, and along parts that one grid has
// together with axes.
func (p *partitioner) raw(v *ir.Value, at layout, axes []ir.AxisRef, by ir.Kind) valueCopy {
	for _, c := range p.copies[v.ID] {
		parts, others := (&planSearch{mesh: p.mesh}).atoms(layout{c.partial}, layout{axes})
		if c.by == by && slices.ContainsFunc(axes, func(r ir.AxisRef) bool { return overlapsAny(r, c.partial) }) && parts.sameGrid(others) {
			at = at.without(c.partial)
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
	x, r, axes, by := op.Operands[0], op.Result(), reductionAxes(op), reductionOf(op)
	c := p.raw(x, p.layoutOf(x).without(axes), axes, by)
	left := p.outside(c.partial, axes)
	whole := p.outside(axes, c.partial)
	if by != ir.Add {
		whole = p.outside(unreducedOf(x.Sharding), c.partial)
	}
	v, next, at := c.v, c.at, p.layoutOf(r).without(left)
	if combined := p.outside(axes, whole); len(combined) > 0 {
		v, next = p.combine(by, v, r.Type, next, at, combined)
	}
	p.definePartial(r, at, p.reshard(v, r.Type, next, at, left...), left, c.by)
	p.settle(op)
}

// summedParams makes the parameters of f that explicit collectives add up, one
// after the other, unreduced along their axes.
func summedParams(mesh *ir.Mesh, f *ir.Func) {
	addsUp := func(op *ir.Op) bool {
		return op != nil && (op.Kind == ir.SdyAllReduce || op.Kind == ir.SdyReduceScatter) && reductionOf(op) == ir.Add
	}
	f.Body.Walk(func(op *ir.Op) {
		if !addsUp(op) {
			return
		}
		v := op.Operands[0]
		for addsUp(v.Def) {
			v = v.Def.Operands[0]
		}
		if v.Block != f.Body || v.Sharding != nil && v.Sharding.ReducedBy != "" {
			return
		}
		s := v.Sharding.Clone()
		if s == nil {
			s = ir.Replicated(mesh.Name, v.Type.Rank())
		}
		for _, r := range reductionAxes(op) {
			if mesh.RefSize(r) > 1 && !s.Uses(r) && !overlapsAny(r, s.Unreduced) {
				s.Unreduced = append(s.Unreduced, r)
			}
		}
		s.Unreduced = sortedAxes(mesh, s.Unreduced)
		v.Sharding = s
	})
}

// partialAxes are the axes along which a value is partial that was so along some,
// and becomes it along others.
func (p *partitioner) partialAxes(some, others []ir.AxisRef) []ir.AxisRef {
	return p.mesh.JoinAxes(nil, p.sortedAxes(slices.Concat(some, others)))
}

// outside is what of axes none of others covers.
func (p *partitioner) outside(axes, others []ir.AxisRef) []ir.AxisRef {
	parts, _ := (&planSearch{mesh: p.mesh}).atoms(layout{axes}, layout{others})
	return p.mesh.JoinAxes(nil, slices.DeleteFunc(parts[0], func(r ir.AxisRef) bool { return overlapsAny(r, others) }))
}

// partitionReplicated leaves the value on one device along the axes.
func partitionReplicated(p *partitioner, op *ir.Op) {
	x, r, axes := op.Operands[0], op.Result(), op.AxisRefs("axes")
	c := p.raw(x, p.layoutOf(r).without(axes), unreducedOf(x.Sharding), ir.Add)
	p.definePartial(r, c.at, p.onFirst(c.v, axes, ir.Add), p.partialAxes(c.partial, axes), ir.Add)
}

// partitionSharded puts the part that each device has into zeros. Along an axis
// that does not divide the operand, which is whole there, one device has it.
func partitionSharded(p *partitioner, op *ir.Op) {
	x, r, axes := op.Operands[0], op.Result(), op.AxisRefs("axes")
	c := p.raw(x, p.layoutOf(x), unreducedOf(x.Sharding), ir.Add)
	at := p.layoutOf(r).without(slices.Concat(axes, c.partial))
	from := c.at.clone()
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
