package partition

import (
	"slices"

	"ppc/ir"
	"ppc/passes/layout"
)

// mergedAxes are, by ID, the axes along which values of f stay unreduced until
// they are added to others that are unreduced alike: the devices reduce the sum
// once, and not each of its terms. A value whose one use leads to such an
// addition is needed nowhere else, so that nothing is reduced twice for it.
func (p *given) mergedAxes(f *ir.Func) map[ir.ID][]ir.AxisRef {
	uses := make([]int, f.NumIDs())
	var ops []*ir.Op
	f.Body.Walk(func(op *ir.Op) {
		for _, v := range op.Operands {
			uses[v.ID]++
		}
		if len(op.Results) == 1 && op.Result().Type.IsTensor() && op.Result().Type.Elem.IsFloat() {
			ops = append(ops, op)
		}
	})
	merged, unreduced := make(map[ir.ID][]ir.AxisRef), make(map[ir.ID][]ir.AxisRef)
	for _, op := range ops {
		var axes []ir.AxisRef
		switch {
		case op.Kind == ir.DotGeneral:
			axes = p.sumAxes(op)
		case op.Kind == ir.Scatter && ir.CombinerOf(op.Regions[0]) == ir.Add:
			axes = p.sumAxes(op)
			if x := op.Operands[0].ID; slices.Equal(unreduced[x], axes) && uses[x] == 1 {
				merged[x] = axes
			}
		case passesOn(op):
			if x := op.Operands[0].ID; uses[x] == 1 {
				axes = unreduced[x]
			}
		case op.Kind == ir.Add || op.Kind == ir.Subtract:
			x, y := op.Operands[0].ID, op.Operands[1].ID
			if len(unreduced[x]) > 0 && slices.Equal(unreduced[x], unreduced[y]) && uses[x] == 1 && uses[y] == 1 {
				axes, merged[x], merged[y] = unreduced[x], unreduced[x], unreduced[x]
			}
		}
		if len(axes) > 0 {
			unreduced[op.Result().ID] = axes
		}
	}
	for _, op := range slices.Backward(ops) {
		if passesOn(op) && len(merged[op.Result().ID]) > 0 {
			merged[op.Operands[0].ID] = append(merged[op.Operands[0].ID], merged[op.Result().ID]...)
		}
	}
	return merged
}

// passesOn reports whether op may be between an unreduced value and its
// addition to another: its result is unreduced as its operand is.
func passesOn(op *ir.Op) bool {
	return len(op.Operands) == 1 && len(op.LinearIn()) == 1 && (op.Kind.Has(ir.Elementwise) || op.Kind == ir.Transpose)
}

// sumAxes are the axes along which the result of op is partial if it is computed
// in the layouts of its operands.
func (p *given) sumAxes(op *ir.Op) []ir.AxisRef {
	rule := p.factorsOf(op)
	if rule == nil {
		return nil
	}
	contracted, fixed := p.contracted(op, rule, p.projected(op, rule))
	unfixUpdates(op, []layout.Layout{p.layoutOf(op.Result())}, contracted, fixed)
	var axes []ir.AxisRef
	for k, t := range contracted {
		if fixed[k] {
			axes = append(axes, t...)
		}
	}
	return p.sortedAxes(axes)
}

// opMerged computes an addition of values that are unreduced alike, or an op
// between such a value and its addition; it reports whether op is one.
func (p *chooser) opMerged(op *ir.Op) bool {
	if passesOn(op) {
		return p.isMerged(op.Result()) && p.passOn(op)
	}
	if op.Kind == ir.Scatter && len(op.Results) == 1 {
		return p.scatterMerged(op)
	}
	if len(op.Operands) == 0 || !p.isMerged(op.Operands[0]) {
		return false
	}
	first := p.unreducedCopy(op.Operands[0])
	second := p.unreducedCopy(op.Operands[1])
	if first == nil || second == nil || !first.at.Equal(second.at) || !slices.Equal(first.unreduced, second.unreduced) {
		return false
	}
	p.build.Origin = op.Origin
	p.defineMerged(op, p.emitUnreduced(op, []*ir.Value{first.v, second.v}, *first))
	return true
}

// emitUnreduced emits op with a result as c is.
func (p *chooser) emitUnreduced(op *ir.Op, in []*ir.Value, c valueCopy) valueCopy {
	v := p.build.Emit(op.Kind, in, op.Attrs, p.copyRegions(op), []*ir.Type{op.Result().Type}).Result()
	v.Name, v.Sharding = op.Result().Name, p.sharding(c.at, c.unreduced, ir.Add)
	return valueCopy{c.at, v, c.unreduced, ir.Add}
}

// defineMerged notes that c is op's result, reduced unless it is to be added to
// other unreduced values again.
func (p *chooser) defineMerged(op *ir.Op, c valueCopy) {
	r := op.Result()
	_, rest := p.kept(r, c.unreduced, ir.Add)
	p.defineUnreduced(r, p.reduce(c, p.layoutOf(r), rest))
	p.settle(op)
}

// scatterMerged scatters each device's updates into its partial sum.
func (p *chooser) scatterMerged(op *ir.Op) bool {
	c := p.unreducedCopy(op.Operands[0])
	if c == nil || ir.CombinerOf(op.Regions[0]) != ir.Add {
		return false
	}
	a := p.choose(op, []layout.Layout{p.layoutOf(op.Result())})
	if !c.at.Equal(a.operands[0]) || !slices.Equal(c.unreduced, p.sortedAxes(a.partial())) {
		return false
	}
	indices, updates := p.get(op.Operands[1], a.operands[1]), p.get(op.Operands[2], a.operands[2])
	p.build.Origin = op.Origin
	p.defineMerged(op, p.emitUnreduced(op, []*ir.Value{c.v, indices, updates}, valueCopy{at: a.results[0], unreduced: c.unreduced}))
	return true
}

// isMerged reports whether v stays unreduced until it is added.
func (p *chooser) isMerged(v *ir.Value) bool { return len(p.merged[v.ID]) > 0 }

// passOn computes op's result from an unreduced copy of its operand, if there is
// one.
func (p *chooser) passOn(op *ir.Op) bool {
	c := p.unreducedCopy(op.Operands[0])
	if c == nil {
		return false
	}
	at := c.at
	if op.Kind == ir.Transpose {
		at = make(layout.Layout, len(c.at))
		for d, from := range op.Ints("permutation") {
			at[d] = c.at[from]
		}
	}
	p.build.Origin = op.Origin
	p.defineUnreduced(op.Result(), p.emitUnreduced(op, []*ir.Value{c.v}, valueCopy{at: at, unreduced: c.unreduced}))
	return true
}

// unreducedCopy is the copy of v that is to be added up, nil if there is none.
func (p *chooser) unreducedCopy(v *ir.Value) *valueCopy {
	i := slices.IndexFunc(p.copies[v.ID], func(c valueCopy) bool { return c.by == ir.Add && len(c.unreduced) > 0 })
	if i < 0 {
		return nil
	}
	return &p.copies[v.ID][i]
}
