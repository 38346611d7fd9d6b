package partition

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
)

// A sum over a loop's iterations of values that are partial along mesh axes may
// stay unreduced itself: the devices reduce once, what they have added up, and
// not in every iteration. Unreduced axes of a constraint permit that for its
// operand. The permission propagates backward from there, through ops that are
// linear and through the carries of loops, to the contractions and reductions
// where unreduced results are computed, and forward to sums of what has it.
//
// Nothing depends on it but where values are reduced: who needs the value gets
// it reduced, and a term that is not partial counts on one device.

// deferredAxes are, by ID, the axes along which the values of f may stay unreduced.
func deferredAxes(f *ir.Func) map[ir.ID][]ir.AxisRef {
	l := &deferral{axes: make(map[ir.ID][]ir.AxisRef)}
	f.Body.Walk(func(op *ir.Op) {
		if op.Kind == ir.ShardingConstraint {
			l.allow(op.Result(), layout.UnreducedOf(op.Result().Sharding))
		}
	})
	if !l.changed {
		return l.axes
	}
	l.forward(f)
	for l.changed {
		l.changed = false
		l.block(f.Body)
	}
	return l.axes
}

// forward lets sums of values that may stay unreduced stay so too, where these
// are needed for nothing else: the sum is reduced once, and not its terms. It is
// no larger than these together.
func (l *deferral) forward(f *ir.Func) {
	users := make([][]*ir.Op, f.NumIDs())
	f.Body.Walk(func(op *ir.Op) {
		for _, v := range op.Operands {
			users[v.ID] = append(users[v.ID], op)
		}
	})
	barred := make(map[*ir.Op]bool)
	for {
		sums := l.sums(f, barred)
		n := len(barred)
		for op := range sums {
			for _, v := range termsOf(op) {
				if slices.ContainsFunc(users[v.ID], func(u *ir.Op) bool { return sums[u] == nil }) {
					barred[op] = true
				}
			}
		}
		if len(barred) == n {
			for op, axes := range sums {
				l.allow(op.Result(), axes)
			}
			return
		}
	}
}

// sums are the ops but those barred that add up values which all may stay
// unreduced, or are such sums, and the axes along which they may.
func (l *deferral) sums(f *ir.Func, barred map[*ir.Op]bool) map[*ir.Op][]ir.AxisRef {
	sums := make(map[*ir.Op][]ir.AxisRef)
	f.Body.Walk(func(op *ir.Op) {
		terms := termsOf(op)
		if len(terms) == 0 || barred[op] {
			return
		}
		var axes []ir.AxisRef
		bytes := 0
		for i, v := range terms {
			may := l.axes[v.ID]
			if v.Def != nil {
				may = slices.Concat(may, sums[v.Def])
			}
			if i == 0 {
				axes = slices.Clone(may)
			}
			axes = slices.DeleteFunc(axes, func(r ir.AxisRef) bool { return !slices.Contains(may, r) })
			bytes += facts.BytesOf(v.Type)
		}
		if len(axes) > 0 && facts.BytesOf(op.Result().Type) <= bytes {
			sums[op] = axes
		}
	})
	return sums
}

// termsOf are the operands in which the result of op is linear, but for zeros.
func termsOf(op *ir.Op) []*ir.Value {
	var terms []*ir.Value
	for _, i := range op.LinearIn() {
		if c := ir.ConstantOf(op.Operands[i]); c == nil || !c.IsAll(0) {
			terms = append(terms, op.Operands[i])
		}
	}
	return terms
}

// A deferral is the state of propagating permissions to stay unreduced.
type deferral struct {
	axes    map[ir.ID][]ir.AxisRef
	changed bool
}

// allow lets v stay unreduced along axes too.
func (l *deferral) allow(v *ir.Value, axes []ir.AxisRef) {
	if !v.Type.IsTensor() || !v.Type.Elem.IsFloat() {
		return
	}
	for _, r := range axes {
		if !slices.Contains(l.axes[v.ID], r) && !v.Sharding.Uses(r) {
			l.axes[v.ID], l.changed = append(l.axes[v.ID], r), true
		}
	}
}

// block propagates permissions in b, last op first.
func (l *deferral) block(b *ir.Block) {
	for _, op := range slices.Backward(b.Ops) {
		switch {
		case op.Kind == ir.While:
			l.loop(op)
		case op.Kind == ir.ShardingConstraint || op.Kind == ir.OptimizationBarrier:
			for i, v := range op.Results {
				l.allow(op.Operands[i], l.axes[v.ID])
			}
		default:
			for _, i := range op.LinearIn() {
				l.allow(op.Operands[i], l.axes[op.Result().ID])
			}
		}
	}
}

// loop gives the four values of each carry, before, in and after the loop, the
// permissions of those that are read.
func (l *deferral) loop(op *ir.Op) {
	body := op.Regions[1]
	for i, v := range op.Results {
		all := []*ir.Value{v, body.Args[i], body.Terminator().Operands[i], op.Operands[i]}
		for _, x := range all {
			for _, y := range all[:2] {
				l.allow(x, l.axes[y.ID])
			}
		}
	}
	l.block(body)
}

// deferrable are the axes along which v may stay unreduced in a layout.
func (p *chooser) deferrable(v *ir.Value, at layout.Layout) []ir.AxisRef {
	var axes []ir.AxisRef
	for _, r := range p.deferred[v.ID] {
		if p.mesh.RefSize(r) > 1 && !at.Uses(r) {
			axes = append(axes, r)
		}
	}
	return p.sortedAxes(axes)
}

// unreducedAlong are the axes, of those given, along which a copy of v is
// unreduced; none where all copies are reduced.
func (p *chooser) unreducedAlong(v *ir.Value, axes []ir.AxisRef) []ir.AxisRef {
	for _, c := range p.copies[v.ID] {
		if c.by == ir.Add && len(c.unreduced) > 0 && layout.ContainsAll(axes, c.unreduced) {
			return c.unreduced
		}
	}
	return nil
}

// reducedPartly is v in a layout, where a copy is unreduced along some of axes,
// and stays so, and along others, and is reduced along these; false where no copy
// is.
func (p *chooser) reducedPartly(v *ir.Value, at layout.Layout, axes []ir.AxisRef) (valueCopy, bool) {
	for _, c := range p.copies[v.ID] {
		rest := p.outside(c.unreduced, axes)
		left := p.outside(c.unreduced, rest)
		if c.by != ir.Add || len(left) == 0 || len(rest) == 0 {
			continue
		}
		return valueCopy{at, p.reshard(c, at, left), left, ir.Add}, true
	}
	return valueCopy{}, false
}

// getDeferred returns v in a layout, unreduced along axes.
func (p *chooser) getDeferred(v *ir.Value, at layout.Layout, axes []ir.AxisRef) *ir.Value {
	if len(axes) == 0 {
		return p.get(v, at)
	}
	for _, c := range p.copies[v.ID] {
		if c.by == ir.Add && len(c.unreduced) > 0 && layout.ContainsAll(axes, c.unreduced) {
			return p.onFirst(p.reshard(c, at, c.unreduced), at, p.outside(axes, c.unreduced), ir.Add)
		}
	}
	if l := ir.ConstantOf(v); l != nil && l.IsAll(0) { // a sum of zeros
		return p.get(v, at)
	}
	return p.onFirst(p.get(v, at), at, axes, ir.Add)
}

// opDeferred computes op unreduced if it is linear in a value that is unreduced
// and its result may be so; it reports whether that is the case.
func (p *chooser) opDeferred(op *ir.Op) bool {
	linear := op.LinearIn()
	if !slices.ContainsFunc(linear, func(i int) bool { return p.unreducedCopy(op.Operands[i]) != nil }) {
		return false
	}
	r := op.Result()
	if len(p.deferrable(r, nil)) == 0 {
		return false
	}
	a := p.choose(op, []layout.Layout{p.layoutOf(r)})
	may := p.deferrable(r, slices.Concat(append(slices.Clone(a.operands), a.results...)...))
	own := a.partial()
	if _, rest := p.kept(r, own, ir.Add); len(may) == 0 || len(rest) > 0 {
		return false
	}
	var axes []ir.AxisRef
	for _, i := range linear {
		axes = append(axes, p.outside(p.unreducedAlong(op.Operands[i], may), axes)...)
	}
	if len(axes) == 0 {
		return false
	}
	axes = p.sortedAxes(axes)
	all := p.sortedAxes(slices.Concat(axes, own))
	operands := make([]*ir.Value, len(op.Operands))
	for i, v := range op.Operands {
		switch {
		case op.Kind == ir.Scatter && i == 0: // each device scatters into its partial sum
			operands[i] = p.getDeferred(v, a.operands[i], all)
		case slices.Contains(linear, i):
			operands[i] = p.getDeferred(v, a.operands[i], axes)
		default:
			operands[i] = p.get(v, a.operands[i])
		}
	}
	p.build.Origin = op.Origin
	c := p.emitDeferred(op, a, operands)
	c.unreduced, c.by = all, ir.Add
	c.v.Sharding = p.sharding(c.at, c.unreduced, ir.Add)
	p.defineUnreduced(r, c)
	return true
}

func (p *chooser) emitDeferred(op *ir.Op, a *assignment, in []*ir.Value) valueCopy {
	if op.Kind == ir.Scatter {
		return p.emitOp(op, a, in, ir.Add)[0]
	}
	return p.emit(op, a, in)[0]
}
