package propagate

import (
	"slices"

	"ppc/ir"
	"ppc/passes/layout"
)

// applyConstraints makes a closed sharding constraint the sharding of its operand
// too, where the program states no other. For a carry of a loop only the other uses
// take it, since every value that flows into the carry would be constrained as
// well.
func (p *propagator) applyConstraints() {
	flows := make(map[*propTensor]bool)
	said := make(map[*propTensor]*ir.Sharding) // by constraints
	clash := make(map[*propTensor]bool)
	var constraints []*propNode
	for _, n := range p.nodes {
		if n.op == nil {
			flows[n.results()[0].propTensor] = true
			continue
		}
		if n.op.Kind != ir.ShardingConstraint {
			continue
		}
		x, s := n.operands()[0].propTensor, n.op.Attrs.Get("sharding").(*ir.Sharding)
		if x == nil {
			continue
		}
		constraints = append(constraints, n)
		if said[x] != nil && !said[x].Equal(s) {
			clash[x] = true
		}
		said[x] = s
	}
	for _, n := range constraints {
		x, s := n.operands()[0].propTensor, n.op.Attrs.Get("sharding").(*ir.Sharding)
		closed := !slices.ContainsFunc(s.Dims, func(d ir.DimSharding) bool { return d.Open })
		if x.seed != nil && !saysNothing(x.seed) || clash[x] || !closed {
			continue
		}
		if flows[x] {
			p.redirect(n, x)
		} else {
			x.seed = p.withoutUnits(s)
		}
	}
}

// saysNothing reports whether s constrains nothing: all dimensions are open,
// without axes and of priority 0, and no axis is explicitly replicated or
// unreduced.
func saysNothing(s *ir.Sharding) bool {
	return len(s.Replicated) == 0 && len(s.Unreduced) == 0 && !slices.ContainsFunc(s.Dims, func(d ir.DimSharding) bool {
		return !d.Open || len(d.Axes) > 0 || d.Priority > 0
	})
}

// redirect makes the other ops that use x use the result of the constraint c.
func (p *propagator) redirect(c *propNode, x *propTensor) {
	to := c.results()[0].propTensor
	keep := x.nodes[:0]
	for _, n := range x.nodes {
		if n == c || slices.ContainsFunc(n.results(), func(r propRef) bool { return r.propTensor == x }) {
			keep = append(keep, n)
			continue
		}
		for i := range n.operands() {
			if n.operands()[i].propTensor == x {
				n.operands()[i].propTensor = to
			}
		}
		to.nodes = append(to.nodes, n)
	}
	x.nodes = keep
}

// run propagates shardings until nothing changes: for each user priority, for each
// round.
func (p *propagator) run() {
	for _, nodes := range [][]*propNode{p.nodes, p.results} {
		for _, n := range nodes {
			n.allow()
		}
	}
	priorities := p.plant()
	for i := 0; ; i++ {
		for r := range propRounds {
			p.round(r)
		}
		if i == len(priorities) {
			return
		}
		for _, x := range p.all {
			p.plantPriority(x, priorities[i])
		}
	}
}

// plant puts the stated shardings of priority 0 into the tensors, and returns the
// other priorities in ascending order. Axes of a later priority are kept free for
// it.
func (p *propagator) plant() []int {
	var later []int
	for _, x := range p.all {
		if x.seed == nil {
			continue
		}
		x.barred = slices.Concat(x.barred, x.seed.Replicated, x.seed.Unreduced)
		for d, s := range x.seed.Dims {
			if s.Priority == 0 || len(s.Axes) == 0 && !s.Open {
				x.dims[d], x.closed[d] = s.Axes, !s.Open
				continue
			}
			x.closed[d] = true
			x.barred = slices.Concat(x.barred, s.Axes)
			if !slices.Contains(later, s.Priority) {
				later = append(later, s.Priority)
			}
		}
	}
	slices.Sort(later)
	return later
}

func (p *propagator) plantPriority(x *propTensor, priority int) {
	if x.seed == nil {
		return
	}
	for d, s := range x.seed.Dims {
		if s.Priority != priority {
			continue
		}
		x.dims[d], x.closed[d] = s.Axes, !s.Open
		x.barred = slices.DeleteFunc(slices.Clone(x.barred), func(r ir.AxisRef) bool { return slices.Contains(s.Axes, r) })
		x.unsettle()
	}
}

// unsettle notes that x has changed.
func (x *propTensor) unsettle() {
	for _, n := range x.nodes {
		n.settled = 0
	}
}

// round propagates shardings through the nodes of the rounds up to last, last
// changed first, as MLIR's worklists do, so that conflicts end as in Shardy.
func (p *propagator) round(last int) {
	p.resultSteps()
	for _, n := range slices.Backward(p.nodes) {
		n.queued = true
		p.stack = append(p.stack, n)
	}
	for len(p.stack) > 0 {
		n := p.stack[len(p.stack)-1]
		p.stack = p.stack[:len(p.stack)-1]
		n.queued = false
		p.step(n, last)
	}
	p.resultSteps()
	p.stack = p.stack[:0]
	for _, n := range p.nodes {
		n.queued = false
	}
}

// resultSteps propagates axes to and from the results of the function.
func (p *propagator) resultSteps() {
	for _, n := range p.results {
		p.step(n, lastRound)
	}
}

// step propagates axes through n, in the directions that the rounds up to last
// allow, and queues the neighbours of the tensors that changed. Where an op has a
// tensor as two operands that want different axes, the later one has its way, as in
// Shardy.
func (p *propagator) step(n *propNode, last int) {
	may := n.rounds[last]
	if may == (allowed{}) || n.settled > 0 && n.rounds[n.settled-1] == may || !slices.ContainsFunc(n.refs, propRef.sharded) {
		return
	}
	pr := p.project(n)
	n.settled = last + 1
	if !pr.along(n, may) {
		return
	}
	before := make([][][]ir.AxisRef, len(n.refs)) // of a tensor that occurs later in refs once more
	for i, r := range n.refs {
		if r.propTensor == nil {
			continue
		}
		now := r.dims
		if first := refIndex(n.refs, r); first < i {
			r.dims = slices.Clone(before[first])
		} else if refIndex(n.refs[i+1:], r) >= 0 {
			before[i] = slices.Clone(r.dims)
		}
		if p.extend(r, pr, &pr.tensors[i], n.dims(i)) {
			r.unsettle()
			p.wake(r.propTensor, n)
		} else {
			r.dims = now
		}
	}
}

// refIndex is where refs first have the tensor of r; -1 where they do not.
func refIndex(refs []propRef, r propRef) int {
	return slices.IndexFunc(refs, func(o propRef) bool { return o.propTensor == r.propTensor })
}

// sharded reports whether some axis shards r.
func (r propRef) sharded() bool {
	if r.propTensor == nil {
		return false
	}
	for d := range r.dims {
		if len(r.dims[d]) > 0 || len(r.manualAxes(d)) > 0 {
			return true
		}
	}
	return false
}

// extend gives r the axes of t in pr and reports whether these are more than it
// had.
func (p *propagator) extend(r propRef, pr *projection, t *projected, dims [][]int) bool {
	changed := false
	for d, ks := range dims {
		if len(ks) == 0 {
			continue
		}
		axes := pr.dimAxes(t, ks)
		axes, ok := p.withoutPrefix(axes, r.manualAxes(d))
		if ok && pr.strictPrefix(r.dims[d], axes) {
			r.dims[d] = slices.Clone(axes)
			changed = true
		}
	}
	return changed
}

// withoutPrefix is axes without prefix at its front.
func (p *propagator) withoutPrefix(axes, prefix []ir.AxisRef) ([]ir.AxisRef, bool) {
	if len(prefix) > len(axes) || !slices.Equal(axes[:len(prefix)], prefix) {
		return nil, false
	}
	return axes[len(prefix):], true
}

// wake queues the nodes of x, but for the one that changed it.
func (p *propagator) wake(x *propTensor, by *propNode) {
	for _, late := range []bool{true, false} { // barriers come last
		for _, n := range slices.Backward(x.nodes) {
			if n != by && !n.queued && late == (n.barred != 0) {
				n.queued = true
				p.stack = append(p.stack, n)
			}
		}
	}
}

// assign writes the shardings found into the module.
func (p *propagator) assign() {
	p.findRules()
	for _, x := range p.all {
		x.found = p.closedSharding(x)
	}
	set := func(v *ir.Value) {
		switch x := p.tensors[v.ID]; {
		case !v.Type.IsTensor():
			v.Sharding = nil
		case x != nil:
			v.Sharding = x.found
		case p.inUse[v.ID] != nil:
			if v.Sharding = p.inUse[v.ID].found; v.Sharding == nil {
				v.Sharding = p.closedSharding(p.inUse[v.ID])
			}
		default:
			v.Sharding = ir.Replicated(p.mesh.Name, v.Type.Rank())
		}
	}
	p.setBlock(p.f.Body, set)
	for i, v := range p.f.Return().Operands {
		if v.Type.IsTensor() {
			p.f.Results[i].Sharding = ir.Replicated(p.mesh.Name, v.Type.Rank())
		}
	}
	k := 0
	for i, v := range p.f.Return().Operands {
		if v.Type.IsTensor() && v.Type.Rank() > 0 {
			p.f.Results[i].Sharding = p.results[k].results()[0].found
			k++
		}
	}
}

// setBlock gives the values of b, and of the regions that hold tensors, their
// shardings. It walks backward, so that a free value which only free values
// use can take after the first of these.
func (p *propagator) setBlock(b *ir.Block, set func(*ir.Value)) {
	for _, op := range slices.Backward(b.Ops) {
		for _, v := range op.Results {
			set(v)
		}
		if op.Kind.Has(ir.TensorRegions) {
			for _, r := range op.Regions {
				p.setBlock(r, set)
			}
		}
		if op.Kind == ir.ShardingConstraint {
			if op.Result().Type.Rank() == 0 { // nothing to find: unreduced axes are all that it can say
				op.Result().Sharding = p.withoutUnits(op.Attrs.Get("sharding").(*ir.Sharding))
			}
			op.Attrs.Set("sharding", op.Result().Sharding)
		}
		if op.Kind == ir.ManualComputation {
			p.setManual(op)
		}
		if len(op.Results) == 1 && p.free[op.Result().ID] {
			p.wish(op)
		}
	}
	for _, v := range b.Args {
		set(v)
	}
}

// wish gives the operands of a free op, which are free themselves, the sharding
// that its result needs, if no other use has given them one.
func (p *propagator) wish(op *ir.Op) {
	rule := p.layouts.Rules.Of(op)
	s := op.Result().Sharding
	if rule == nil || s.IsReplicated() {
		return
	}
	factors := make([]layout.FactorAxes, len(rule.Sizes))
	for d, ks := range rule.Results[0] {
		layout.ProjectDim(p.mesh, s.Axes(d), ks, rule.Sizes, factors)
	}
	pr := &projection{mesh: p.mesh, sizes: rule.Sizes}
	for i, v := range op.Operands {
		if !p.free[v.ID] || p.inUse[v.ID] != nil {
			continue
		}
		x := &propTensor{shape: v.Type.Shape, dims: make([][]ir.AxisRef, v.Type.Rank())}
		t := &projected{factors: factors}
		for d, ks := range rule.Operands[i] {
			x.dims[d] = pr.dimAxes(t, ks)
		}
		p.inUse[v.ID] = x
	}
}

// setManual writes the shardings of a manual computation's operands and results
// into its attributes.
func (p *propagator) setManual(op *ir.Op) {
	refs := p.wanted[op]
	for _, part := range []struct {
		attr string
		refs []propRef
	}{{"in_shardings", refs[:len(op.Operands)]}, {"out_shardings", refs[len(op.Operands):]}} {
		given := op.Attrs.Get(part.attr).(ir.PerValue)
		found := make(ir.PerValue, len(given))
		for i, r := range part.refs {
			found[i] = given[i].Clone()
			if r.propTensor == nil {
				continue
			}
			inner := p.closedSharding(r.propTensor)
			for d := range found[i].Dims {
				found[i].Dims[d] = ir.DimSharding{Axes: p.mesh.JoinAxes(slices.Clone(r.manualAxes(d)), inner.Dims[d].Axes)}
			}
		}
		op.Attrs.Set(part.attr, found)
	}
}

// closedSharding is the final sharding of x: axes that do not divide a ghost
// dimension are dropped. It is what the program states, or what another tensor has,
// where that is the same.
func (p *propagator) closedSharding(x *propTensor) *ir.Sharding {
	if x.single != nil {
		return x.single.Clone()
	}
	s := &p.sharding
	*s = ir.Sharding{Mesh: p.mesh.Name, Dims: s.Dims[:0]}
	if x.seed != nil {
		s.Unreduced, s.ReducedBy = x.seed.Unreduced, x.seed.ReducedBy
	}
	at := p.scratch[:0]
	for d, axes := range x.dims {
		n := 1
		for i, r := range axes {
			n *= p.mesh.RefSize(r)
			said := x.seed != nil && i < len(x.seed.Axes(d))
			if x.ghost != nil && x.ghost[d] && x.shape[d]%n != 0 && !said {
				axes = axes[:i]
				break
			}
		}
		dim := ir.DimSharding{Axes: axes}
		if x.rules != nil && len(axes) > 0 {
			dim.Rule = x.rules[d]
		}
		s.Dims, at = append(s.Dims, dim), append(at, axes)
	}
	p.scratch = at
	if x.seed != nil && sameByRules(x.seed, s) {
		return x.seed
	}
	at = p.layouts.Of(at)
	if last := p.found[at.First()]; last != nil && sameByRules(last, s) {
		return last
	}
	c := &ir.Sharding{Mesh: s.Mesh, Dims: slices.Clone(s.Dims), Unreduced: s.Unreduced, ReducedBy: s.ReducedBy}
	for d := range c.Dims {
		c.Dims[d].Axes = at[d]
	}
	p.found[at.First()] = c
	return c
}

// sameByRules reports whether s and t are the same sharding, by the same rules of the
// source, for the dimensions that are sharded.
func sameByRules(s, t *ir.Sharding) bool {
	return s.Equal(t) && slices.EqualFunc(s.Dims, t.Dims, func(a, b ir.DimSharding) bool { return a.Rule == b.Rule || len(a.Axes) == 0 })
}
