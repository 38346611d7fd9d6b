package partition

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

// emitRagged: a device's rows of a sharded ragged dimension are in groups of other
// sizes: what of each group is in its shard. Where groups are sharded, the rows of the
// device's own groups are brought to the front, and what is computed of them back to
// where they were; the rows of other groups are zeros.
func (p *localizer) emitRagged(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	d := op.Attrs.Get("ragged_dot_dimension_numbers").(ir.RaggedDims)
	axes, own := a.operands[0][d.Ragged()], []ir.AxisRef(nil)
	switch d.Mode() {
	case ir.RaggedFree:
		own = a.operands[1][d.RhsGroup[0]]
	case ir.RaggedContract:
		own = a.results[0][0]
	}
	if len(axes) == 0 && len(own) == 0 {
		return p.emitAs(op, a, in, op.Attrs)
	}
	b, x, y, outer := &p.build, in[0], in[1], d.Outer()
	g := p.groupsOf(in[2], op.Operands[0].Type.Shape[d.Ragged()], axes, x.Type.Shape[d.Ragged()])
	if len(own) == 0 {
		return p.emitAs(op, a, []*ir.Value{x, y, b.Sub(g.ends, g.starts)}, op.Attrs)
	}
	part := g.groups() / p.mesh.RefsSize(own)
	first := p.offset(own, part)
	g.starts, g.ends = p.sliceAt(g.starts, g.last(), first, part), p.sliceAt(g.ends, g.last(), first, part)
	if g.last() == 0 {
		outer = nil
	}
	x = g.toFront(b, x, outer, d.Ragged())
	if d.Mode() == ir.RaggedContract {
		right := make([]int, len(outer))
		for i, k := range outer {
			right[i] = d.Right(k)
		}
		y = g.toFront(b, y, right, d.Right(d.Ragged()))
	}
	v := p.emitAs(op, a, []*ir.Value{x, y, b.Sub(g.ends, g.starts)}, op.Attrs)[0]
	if d.Mode() == ir.RaggedFree {
		dims := slices.Concat(d.LhsBatch, d.FreeL(x.Type.Rank()))
		at := make([]int, len(outer))
		for i, k := range outer {
			at[i] = slices.Index(dims, k)
		}
		name := v.Name
		v = g.back(b, v, at, slices.Index(dims, d.Ragged())).Named(name)
	}
	return []*ir.Value{v}
}

// A groupRange is where groups start and end in a device's shard of the ragged
// dimension, for each index of the outer dimensions if sizes have these.
type groupRange struct {
	starts, ends *ir.Value
	shard        int // the size of the shard
}

// last is the dimension of the groups.
func (g *groupRange) last() int { return g.starts.Type.Rank() - 1 }

func (g *groupRange) groups() int { return g.starts.Type.Shape[g.last()] }

// groupsOf are the ranges of groups of a dimension of the given length that is sharded
// along axes.
func (p *localizer) groupsOf(sizes *ir.Value, length int, axes []ir.AxisRef, shard int) *groupRange {
	b := &p.build
	here := func(v *ir.Value) *ir.Value {
		if len(axes) == 0 {
			return v
		}
		v = b.Sub(v, b.Broadcast(p.offset(axes, shard), v.Type.Shape))
		return b.Emit(ir.Clamp, []*ir.Value{b.I32(0), v, b.I32(shard)}, nil, nil, nil).Result()
	}
	starts, ends := facts.GroupRanges(b, sizes, length)
	return &groupRange{here(starts), here(ends), shard}
}

// toFront moves the rows of x along dim so that the first of the groups begins at 0.
// The outer dimensions of x are given in the order in which starts has them.
func (g *groupRange) toFront(b *ir.Builder, x *ir.Value, outer []int, dim int) *ir.Value {
	return g.moved(b, x, outer, dim, ir.Add)
}

// back undoes [groupRange.toFront], with zeros for the rows of no group.
func (g *groupRange) back(b *ir.Builder, v *ir.Value, outer []int, dim int) *ir.Value {
	i, front := g.rowNumbers(b), g.along(b, b.SliceDim(g.starts, g.last(), 0, 1))
	end := g.along(b, b.SliceDim(g.ends, g.last(), g.groups()-1, g.groups()))
	mine := b.Binary(ir.And, b.Compare("GE", i, front), b.Compare("LT", i, end))
	mine = b.Broadcast(mine, v.Type.Shape, append(slices.Clone(outer), dim)...)
	return b.Select(mine, g.moved(b, v, outer, dim, ir.Subtract), b.Splat(v.Type, 0))
}

// rowNumbers counts the rows of the shard, for each index of the outer dimensions.
func (g *groupRange) rowNumbers(b *ir.Builder) *ir.Value {
	shape := slices.Clone(g.starts.Type.Shape)
	shape[g.last()] = g.shard
	return b.Iota(ir.Tensor(ir.I32, shape...), g.last())
}

// along repeats v, which has one row, for all rows of the shard.
func (g *groupRange) along(b *ir.Builder, v *ir.Value) *ir.Value {
	shape := slices.Clone(v.Type.Shape)
	shape[g.last()] = g.shard
	return b.Broadcast(v, shape, facts.UpTo(len(shape))...)
}

// moved takes for row i of x that with the number i + front or i - front, where the
// first of the groups begins at front; of numbers that are none, the nearest.
func (g *groupRange) moved(b *ir.Builder, x *ir.Value, outer []int, dim int, k ir.Kind) *ir.Value {
	at := b.Binary(k, g.rowNumbers(b), g.along(b, b.SliceDim(g.starts, g.last(), 0, 1)))
	at = b.Emit(ir.Clamp, []*ir.Value{b.I32(0), at, b.I32(max(g.shard-1, 0))}, nil, nil, nil).Result()
	n, rank := len(outer), x.Type.Rank()
	perm := append(slices.Clone(outer), dim)
	perm = append(perm, facts.Others(rank, perm)...)
	x = b.Transpose(x, perm...)
	sizes := slices.Clone(x.Type.Shape)
	for i := range n + 1 {
		sizes[i] = 1
	}
	dims := ir.GatherDims{OffsetDims: facts.UpTo(rank)[n+1:], CollapsedSliceDims: []int{n}, OperandBatchingDims: facts.UpTo(n), StartIndicesBatchingDims: facts.UpTo(n), StartIndexMap: []int{n}, IndexVectorDim: n + 1}
	rows := b.Emit(ir.Gather, []*ir.Value{x, at}, ir.AttrsOf(facts.Named("dimension_numbers", dims), facts.Named("slice_sizes", ir.Ints(sizes))), nil, nil).Result()
	undo := make([]int, rank)
	for i, k := range perm {
		undo[k] = i
	}
	return b.Transpose(rows, undo...)
}
