package partition

import (
	"slices"

	"ppc/ir"
	"ppc/passes/layout"
)

// kept tells those of axes along which v, which k combines, may stay unreduced
// from the rest.
func (p *chooser) kept(v *ir.Value, axes []ir.AxisRef, k ir.Kind) (left, rest []ir.AxisRef) {
	if len(axes) == 0 {
		return nil, nil
	}
	var may []ir.AxisRef
	for _, r := range p.combined[v.ID] {
		if r.By == k {
			may = append(may, r.Axes...)
		}
	}
	if k == ir.Add {
		may = slices.Concat(may, p.deferred[v.ID], p.merged[v.ID])
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

// combinedFactors adds to the axes of contracted factors those that an explicit
// collective combines the result of op along, and reports whether there are
// any: the op has to leave them unreduced.
func (p *chooser) combinedFactors(op *ir.Op, rule *ir.Factors, contracted [][]ir.AxisRef, fixed []bool) bool {
	if len(op.Results) == 0 || p.combined[op.Results[0].ID] == nil {
		return false
	}
	must := false
	for i, v := range op.Operands {
		if !v.Type.IsTensor() {
			continue
		}
		for k, axes := range p.project(p.layoutOf(v), rule.Operands[i], rule) {
			if _, rest := p.kept(op.Results[0], axes, ir.Add); rule.Types[k] == ir.Reduction && len(axes) > 0 && rest == nil {
				contracted[k], fixed[k], must = axes, true, true
			}
		}
	}
	return must
}

// onFirst is v, of a layout and unreduced or not, made unreduced along axes: the
// first device along them has it, and the others zero. The maximum and the
// minimum of copies are the copy, which all may have.
func (p *chooser) onFirst(v *ir.Value, at layout.Layout, axes []ir.AxisRef, k ir.Kind) *ir.Value {
	if len(axes) == 0 || k != ir.Add {
		return v
	}
	axes = p.mesh.JoinAxes(nil, p.sortedAxes(axes))
	s := p.sharding(at, slices.Concat(layout.UnreducedOf(v.Sharding), axes), k)
	n := p.build.Emit(ir.ReplicatedToUnreduced, []*ir.Value{v}, ir.AttrsOf(
		ir.NamedAttr{Name: "axes", Attr: layout.AxesAttr(axes)},
		ir.NamedAttr{Name: "out_sharding", Attr: s}), nil, []*ir.Type{v.Type}).Result()
	n.Name, n.Sharding = v.Name, s
	return n
}

// getUnreduced returns v in a layout, unreduced along the axes that s leaves so.
func (p *chooser) getUnreduced(v *ir.Value, at layout.Layout, s *ir.Sharding) *ir.Value {
	axes, k := layout.UnreducedOf(s), layout.CombinerOf(s)
	if len(axes) == 0 {
		return p.get(v, at)
	}
	for _, c := range p.copies[v.ID] {
		if slices.Equal(c.unreduced, axes) && c.by == k {
			return p.reshard(c, at, axes)
		}
	}
	return p.onFirst(p.get(v, at), at, axes, k)
}

// raw returns a copy of v in the layout at, less the axes that it is unreduced
// along: one that by combines along some of axes, if there is one whose axes
// are of one grid with them.
func (p *chooser) raw(v *ir.Value, at layout.Layout, axes []ir.AxisRef, by ir.Kind) valueCopy {
	for _, c := range p.copies[v.ID] {
		parts, others := layout.Atoms(p.mesh, layout.Layout{c.unreduced}, layout.Layout{axes})
		if c.by == by && slices.ContainsFunc(axes, func(r ir.AxisRef) bool { return layout.OverlapsAny(r, c.unreduced) }) && parts.SameGrid(others) {
			at = at.Without(c.unreduced)
			return valueCopy{at, p.reshard(c, at, c.unreduced), c.unreduced, c.by}
		}
	}
	return valueCopy{at: at, v: p.get(v, at)}
}

// reduceExplicitly does an explicit reduction. A result that is to be sharded
// along axes that are reduced, as one of a group may, is so afterwards.
func reduceExplicitly(p *chooser, op *ir.Op) {
	x, r, axes, by := op.Operands[0], op.Result(), layout.ReductionAxes(op), layout.ReductionOf(op)
	c := p.raw(x, p.layoutOf(x).Without(axes), axes, by)
	left := p.outside(c.unreduced, axes)
	all := p.outside(axes, c.unreduced) // along which every device has the value
	if by != ir.Add {
		all = p.outside(layout.UnreducedOf(x.Sharding), c.unreduced)
	}
	at := p.layoutOf(r).Without(left)
	c = p.reduceCopies(c, at, p.outside(axes, all), by)
	p.defineUnreduced(r, valueCopy{at, p.reshard(c, at, left), left, c.by})
	p.settle(op)
}

// reduceCopies is reduce for what k combines along axes that c may not be
// unreduced along: the maximum or minimum of what the devices have, which may
// differ where the program says nothing.
func (p *chooser) reduceCopies(c valueCopy, want layout.Layout, axes []ir.AxisRef, k ir.Kind) valueCopy {
	if len(p.outside(axes, c.unreduced)) == 0 {
		return p.reduce(c, want, axes)
	}
	left := p.outside(c.unreduced, axes)
	v, at := p.reduceByCollectives(&p.build, c.v, c.at, want, axes, left, k)
	return valueCopy{at, v, left, c.by}
}

// unreduceReplicated leaves the value on one device along the axes.
func unreduceReplicated(p *chooser, op *ir.Op) {
	x, r, axes := op.Operands[0], op.Result(), op.AxisRefs("axes")
	c := p.raw(x, p.layoutOf(r).Without(axes), layout.UnreducedOf(x.Sharding), ir.Add)
	p.defineUnreduced(r, valueCopy{c.at, p.onFirst(c.v, c.at, axes, ir.Add), p.unreducedAxes(c.unreduced, axes), ir.Add})
}

// unreducedAxes are the axes along which a value is unreduced that was so along
// some, and becomes it along others.
func (p *program) unreducedAxes(some, others []ir.AxisRef) []ir.AxisRef {
	return p.mesh.JoinAxes(nil, p.sortedAxes(slices.Concat(some, others)))
}

// unreduceSharded gets the operand of an sdy.sharded_to_unreduced in the layout
// from which each device can put its shard into zeros: that of the result, with
// the axes after those of the result that it becomes unreduced along. Along an
// axis that does not divide the operand, which is not sharded along it, one
// device has it.
func unreduceSharded(p *chooser, op *ir.Op) {
	x, r, axes := op.Operands[0], op.Result(), op.AxisRefs("axes")
	c := p.raw(x, p.layoutOf(x), layout.UnreducedOf(x.Sharding), ir.Add)
	at := p.layoutOf(r).Without(slices.Concat(axes, c.unreduced))
	from := c.at.Clone()
	has, wants := layout.Atoms(p.mesh, from, at)
	gone := make(layout.Layout, len(at))
	becomes := func(r ir.AxisRef) bool {
		return slices.ContainsFunc(axes, func(a ir.AxisRef) bool { return p.mesh.Contains(a, r) })
	}
	for d := range at {
		n := len(wants[d])
		if layout.SamePrefix(has[d], wants[d]) < n || slices.ContainsFunc(has[d][n:], func(r ir.AxisRef) bool { return !becomes(r) }) {
			from[d] = at[d]
			continue
		}
		gone[d] = p.mesh.JoinAxes(nil, has[d][n:])
	}
	v := p.reshard(c, from, c.unreduced)
	unreduced := p.unreducedAxes(c.unreduced, slices.Concat(gone...))
	if all := slices.Concat(gone...); len(all) > 0 {
		s := p.sharding(at, unreduced, ir.Add)
		n := p.build.Emit(ir.ShardedToUnreduced, []*ir.Value{v}, ir.AttrsOf(
			ir.NamedAttr{Name: "axes", Attr: layout.ListsAttr(gone)},
			ir.NamedAttr{Name: "out_sharding", Attr: s}), nil, []*ir.Type{r.Type}).Result()
		n.Name, n.Sharding = v.Name, s
		v = n
	}
	v = p.onFirst(v, at, p.outside(axes, slices.Concat(gone...)), ir.Add)
	p.defineUnreduced(r, valueCopy{at, v, p.unreducedAxes(c.unreduced, axes), ir.Add})
}
