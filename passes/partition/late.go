package partition

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
)

// A sum over a loop's iterations of values that are partial along mesh axes may
// stay partial itself: the devices combine once, what they have added up, and
// not in every iteration. Unreduced axes of a constraint allow that for its
// operand. The permission spreads backward from there, through ops that are
// linear and through the carries of loops, to the contractions and reductions
// where partial results come up, and forward to sums of what has it.
//
// Nothing depends on it but where the combining is done: who needs the value
// gets it combined, and a value that is not partial where its place in a sum is
// counts on one device.

// lateAxes are, by ID, the axes along which the values of f may stay partial.
func lateAxes(f *ir.Func) [][]ir.AxisRef {
	l := &lateness{axes: make([][]ir.AxisRef, f.NumIDs())}
	f.Body.Walk(func(op *ir.Op) {
		if op.Kind == ir.ShardingConstraint {
			l.allow(op.Result(), layout.UnreducedOf(op.Result().Sharding))
		}
	})
	l.forward(f)
	for l.changed {
		l.changed = false
		l.block(f.Body)
	}
	return l.axes
}

// forward lets what is added up of values that may stay partial stay so too,
// where they are needed for nothing else: the sum is combined once, and not its
// terms. It is no larger than these together.
func (l *lateness) forward(f *ir.Func) {
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
// partial, or are such sums, and the axes along which they may.
func (l *lateness) sums(f *ir.Func, barred map[*ir.Op]bool) map[*ir.Op][]ir.AxisRef {
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
	for _, i := range facts.LinearIn(op) {
		if c := facts.Constant(op.Operands[i]); c == nil || !c.IsAll(0) {
			terms = append(terms, op.Operands[i])
		}
	}
	return terms
}

type lateness struct {
	axes    [][]ir.AxisRef
	changed bool
}

// allow lets v stay partial along axes too.
func (l *lateness) allow(v *ir.Value, axes []ir.AxisRef) {
	if !v.Type.IsTensor() || !v.Type.Elem.IsFloat() {
		return
	}
	for _, r := range axes {
		if !slices.Contains(l.axes[v.ID], r) && !v.Sharding.Uses(r) {
			l.axes[v.ID], l.changed = append(l.axes[v.ID], r), true
		}
	}
}

// block spreads permissions in b, last op first.
func (l *lateness) block(b *ir.Block) {
	for _, op := range slices.Backward(b.Ops) {
		switch {
		case op.Kind == ir.While:
			l.loop(op)
		case op.Kind == ir.ShardingConstraint || op.Kind == ir.OptimizationBarrier:
			for i, v := range op.Results {
				l.allow(op.Operands[i], l.axes[v.ID])
			}
		default:
			for _, i := range facts.LinearIn(op) {
				l.allow(op.Operands[i], l.axes[op.Result().ID])
			}
		}
	}
}

// loop gives everything that a carry is at one time or another the permission
// of any of it that is read.
func (l *lateness) loop(op *ir.Op) {
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

// lateOf are the axes along which v may stay partial where it lies as at says.
func (p *partitioner) lateOf(v *ir.Value, at layout.Layout) []ir.AxisRef {
	if int(v.ID) >= len(p.late) {
		return nil
	}
	var axes []ir.AxisRef
	for _, r := range p.late[v.ID] {
		if p.mesh.RefSize(r) > 1 && !at.Uses(r) {
			axes = append(axes, r)
		}
	}
	return p.sortedAxes(axes)
}

// summedAxes are those along which v is partial as the result of a loop.
func (p *partitioner) summedAxes(v *ir.Value) []ir.AxisRef {
	if int(v.ID) < len(p.summed) {
		return p.summed[v.ID]
	}
	return nil
}

// partialAlong are the axes, of those given, along which the devices have parts
// of v that are to be added up; none where v is at hand otherwise only.
func (p *partitioner) partialAlong(v *ir.Value, axes []ir.AxisRef) []ir.AxisRef {
	for _, c := range p.copies[v.ID] {
		if c.by == ir.Add && len(c.partial) > 0 && layout.ContainsAll(axes, c.partial) {
			return c.partial
		}
	}
	return nil
}

// combinedPartly returns v lying as at says, where it is partial along some axes
// of late, which are left, and along others, which are combined; else nil.
func (p *partitioner) combinedPartly(v *ir.Value, at layout.Layout, late []ir.AxisRef) (local *ir.Value, left []ir.AxisRef) {
	for _, c := range p.copies[v.ID] {
		rest := p.outside(c.partial, late)
		left := p.outside(c.partial, rest)
		if c.by != ir.Add || len(left) == 0 || len(rest) == 0 {
			continue
		}
		sum, next := p.combine(ir.Add, c.v, v.Type, c.at, at, rest)
		return p.reshard(sum, v.Type, next, at, left...), left
	}
	return nil, nil
}

// getLate returns v lying as at says, to be combined by adding along axes.
func (p *partitioner) getLate(v *ir.Value, at layout.Layout, axes []ir.AxisRef) *ir.Value {
	if len(axes) == 0 {
		return p.get(v, at)
	}
	for _, c := range p.copies[v.ID] {
		if c.by == ir.Add && len(c.partial) > 0 && layout.ContainsAll(axes, c.partial) {
			return p.onFirst(p.reshard(c.v, v.Type, c.at, at, c.partial...), p.outside(axes, c.partial), ir.Add)
		}
	}
	if l := facts.Constant(v); l != nil && l.IsAll(0) {
		return p.get(v, at)
	}
	return p.onFirst(p.get(v, at), axes, ir.Add)
}

// opLate partitions op if it is linear in a value that is partial and its
// result may be so; it reports whether that is the case.
func (p *partitioner) opLate(op *ir.Op) bool {
	linear := facts.LinearIn(op)
	if !slices.ContainsFunc(linear, func(i int) bool { return p.partialCopy(op.Operands[i]) != nil }) {
		return false
	}
	r := op.Result()
	if len(p.lateOf(r, nil)) == 0 {
		return false
	}
	a := p.choose(op, []layout.Layout{p.layoutOf(r)})
	late := p.lateOf(r, slices.Concat(append(slices.Clone(a.operands), a.results...)...))
	own := a.partial()
	if _, rest := p.kept(r, own, ir.Add); len(late) == 0 || len(rest) > 0 {
		return false
	}
	var axes []ir.AxisRef
	for _, i := range linear {
		axes = append(axes, p.outside(p.partialAlong(op.Operands[i], late), axes)...)
	}
	if len(axes) == 0 {
		return false
	}
	axes = p.sortedAxes(axes)
	operands := make([]*ir.Value, len(op.Operands))
	for i, v := range op.Operands {
		if slices.Contains(linear, i) {
			operands[i] = p.getLate(v, a.operands[i], axes)
		} else {
			operands[i] = p.get(v, a.operands[i])
		}
	}
	p.build.Origin = op.Origin
	p.definePartial(r, a.results[0], p.emit(op, a, operands)[0], p.sortedAxes(slices.Concat(axes, own)), ir.Add)
	return true
}
