package partition

import (
	"slices"

	"ppc/ir"
	"ppc/passes/layout"
)

// mergedAxes are, by ID, the axes along which values of f stay partial until
// they are added to others that are partial alike: the devices combine the sum
// once, and not each of its terms. A value whose one use leads to such an
// addition is needed nowhere else, so that nothing is combined twice for it.
func (p *partitioner) mergedAxes(f *ir.Func) [][]ir.AxisRef {
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
	merged, comesUp := make([][]ir.AxisRef, f.NumIDs()), make([][]ir.AxisRef, f.NumIDs())
	for _, op := range ops {
		axes := &comesUp[op.Result().ID]
		switch {
		case op.Kind == ir.DotGeneral:
			*axes = p.sumAxes(op)
		case op.Kind == ir.Scatter && ir.CombinerOf(op.Regions[0]) == ir.Add:
			*axes = p.sumAxes(op)
			if x := op.Operands[0].ID; slices.Equal(comesUp[x], *axes) && uses[x] == 1 {
				merged[x] = *axes
			}
		case handsOn(op):
			if x := op.Operands[0].ID; uses[x] == 1 {
				*axes = comesUp[x]
			}
		case op.Kind == ir.Add || op.Kind == ir.Subtract:
			x, y := op.Operands[0].ID, op.Operands[1].ID
			if slices.Equal(comesUp[x], comesUp[y]) && uses[x] == 1 && uses[y] == 1 {
				*axes, merged[x], merged[y] = comesUp[x], comesUp[x], comesUp[x]
			}
		}
	}
	for _, op := range slices.Backward(ops) {
		if handsOn(op) {
			merged[op.Operands[0].ID] = append(merged[op.Operands[0].ID], merged[op.Result().ID]...)
		}
	}
	return merged
}

// handsOn reports whether op is between a partial value and its addition to
// another, element by element.
func handsOn(op *ir.Op) bool {
	return op.Kind == ir.Transpose || op.Kind == ir.Negate || op.Kind == ir.Convert && op.Operands[0].Type.Elem.IsFloat()
}

// sumAxes are the axes along which op, computed as its operands lie, leaves a
// part of every sum to each device.
func (p *partitioner) sumAxes(op *ir.Op) []ir.AxisRef {
	rule := ir.FactorsOf(op)
	if rule == nil {
		return nil
	}
	terms, stay := p.termWish(op, rule)
	p.freeUpdates(op, []layout.Layout{p.layoutOf(op.Result())}, terms, stay)
	var axes []ir.AxisRef
	for k, t := range terms {
		if stay[k] {
			axes = append(axes, t...)
		}
	}
	return p.sortedAxes(axes)
}

// opMerged partitions an addition of values that are partial alike, or what
// stands before it; it reports whether op is such.
func (p *partitioner) opMerged(op *ir.Op) bool {
	if handsOn(op) {
		return p.isMerged(op.Result()) && p.handOn(op)
	}
	if op.Kind == ir.Scatter && len(op.Results) == 1 {
		return p.scatterMerged(op)
	}
	if len(op.Operands) == 0 || !p.isMerged(op.Operands[0]) {
		return false
	}
	first := p.partialCopy(op.Operands[0])
	second := p.partialCopy(op.Operands[1])
	if first == nil || second == nil || !first.at.Equal(second.at) || !slices.Equal(first.partial, second.partial) {
		return false
	}
	p.build.Origin = op.Origin
	v := p.build.Emit(op.Kind, []*ir.Value{first.v, second.v}, op.Attrs, nil, []*ir.Type{first.v.Type}).Result()
	p.defineMerged(op, valueCopy{at: first.at, v: v, partial: first.partial})
	return true
}

// defineMerged notes the parts c of op's result, and combines them unless they
// are to be added to others again.
func (p *partitioner) defineMerged(op *ir.Op, c valueCopy) {
	r := op.Result()
	left, rest := p.kept(r, c.partial, ir.Add)
	if len(rest) > 0 {
		c.v, c.at = p.combine(ir.Add, c.v, r.Type, c.at, p.layoutOf(r), rest)
	}
	p.definePartial(r, c.at, c.v, left, ir.Add)
	p.settle(op)
}

// scatterMerged adds each device's updates to its part of a sum.
func (p *partitioner) scatterMerged(op *ir.Op) bool {
	c := p.partialCopy(op.Operands[0])
	if c == nil || ir.CombinerOf(op.Regions[0]) != ir.Add {
		return false
	}
	a := p.choose(op, []layout.Layout{p.layoutOf(op.Result())})
	if !c.at.Equal(a.operands[0]) || !slices.Equal(c.partial, p.sortedAxes(a.partial())) {
		return false
	}
	indices, updates := p.get(op.Operands[1], a.operands[1]), p.get(op.Operands[2], a.operands[2])
	p.build.Origin = op.Origin
	v := p.scatterParts(op, a, []*ir.Value{c.v, indices, updates})[0]
	p.defineMerged(op, valueCopy{at: a.results[0], v: v, partial: c.partial})
	return true
}

// isMerged reports whether v stays partial; what the partitioner makes itself
// does not.
func (p *partitioner) isMerged(v *ir.Value) bool {
	return int(v.ID) < len(p.merged) && len(p.merged[v.ID]) > 0
}

// handOn computes the parts of op's result from those of its operand, if that
// is partial.
func (p *partitioner) handOn(op *ir.Op) bool {
	c := p.partialCopy(op.Operands[0])
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
	r := op.Result()
	p.build.Origin = op.Origin
	v := p.build.Emit(op.Kind, []*ir.Value{c.v}, op.Attrs, nil, []*ir.Type{p.local(r.Type, at)}).Result()
	p.definePartial(r, at, v, c.partial, ir.Add)
	return true
}

// partialCopy is the copy of v that is to be added up, nil if there is none.
func (p *partitioner) partialCopy(v *ir.Value) *valueCopy {
	i := slices.IndexFunc(p.copies[v.ID], func(c valueCopy) bool { return c.by == ir.Add && len(c.partial) > 0 })
	if i < 0 {
		return nil
	}
	return &p.copies[v.ID][i]
}
