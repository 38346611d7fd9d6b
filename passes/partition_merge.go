package passes

import (
	"slices"

	"ppc/ir"
)

// mergedAxes are, by ID, the axes along which values of f stay partial until
// they are added to others that are partial alike: the devices combine the sum
// once, and not each of its terms. A value whose one use is such an addition is
// needed nowhere else, so that nothing is combined twice for it.
func (p *partitioner) mergedAxes(f *ir.Func) [][]ir.AxisRef {
	merged, uses := make([][]ir.AxisRef, f.NumIDs()), make([]int, f.NumIDs())
	f.Body.Walk(func(op *ir.Op) {
		for _, v := range op.Operands {
			uses[v.ID]++
		}
	})
	comesUp := make([][]ir.AxisRef, f.NumIDs())
	f.Body.Walk(func(op *ir.Op) {
		if len(op.Results) != 1 || !op.Result().Type.IsTensor() || !op.Result().Type.Elem.IsFloat() {
			return
		}
		r := op.Result().ID
		if op.Kind == ir.DotGeneral {
			comesUp[r] = p.sumAxes(op)
			return
		}
		if op.Kind != ir.Add && op.Kind != ir.Subtract {
			return
		}
		x, y := op.Operands[0].ID, op.Operands[1].ID
		if axes := comesUp[x]; len(axes) > 0 && slices.Equal(axes, comesUp[y]) && uses[x] == 1 && uses[y] == 1 {
			merged[x], merged[y], comesUp[r] = axes, axes, axes
		}
	})
	return merged
}

// sumAxes are the axes along which op, computed as its operands lie, leaves a
// part of every sum to each device.
func (p *partitioner) sumAxes(op *ir.Op) []ir.AxisRef {
	rule := ir.FactorsOf(op)
	if rule == nil {
		return nil
	}
	terms, _ := p.termWish(op, rule)
	return p.sortedAxes(slices.Concat(terms...))
}

// opMerged partitions an addition of values that are partial alike; it reports
// whether op is one.
func (p *partitioner) opMerged(op *ir.Op) bool {
	if op.Kind != ir.Add && op.Kind != ir.Subtract || len(p.merged[op.Operands[0].ID]) == 0 {
		return false
	}
	first := p.partialCopy(op.Operands[0])
	second := p.partialCopy(op.Operands[1])
	if first == nil || second == nil || !first.at.equal(second.at) || !slices.Equal(first.partial, second.partial) {
		return false
	}
	r := op.Result()
	p.build.Origin = op.Origin
	v := p.build.Emit(op.Kind, []*ir.Value{first.v, second.v}, op.Attrs, nil, []*ir.Type{first.v.Type}).Result()
	left, rest := p.kept(r, first.partial, ir.Add)
	at := first.at
	if len(rest) > 0 {
		v, at = p.combine(ir.Add, v, r.Type, at, p.layoutOf(r), rest)
	}
	p.definePartial(r, at, v, left, ir.Add)
	p.settle(op)
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
