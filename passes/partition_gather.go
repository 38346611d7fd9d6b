package passes

import (
	"math"
	"slices"

	"ppc/ir"
)

// A cutIndex is a component of an index vector that runs along a dimension
// which is cut: whole is its size, part that of this device's, from offset on.
type cutIndex struct {
	component   int
	whole, part int
	offset      *ir.Value
}

// cutIndices finds the components of the indices that run along dimensions of
// which at most one element is taken and which are cut.
func (p *partitioner) cutIndices(startIndexMap []int, t *ir.Type, at layout, taken func(d int) bool) []cutIndex {
	var out []cutIndex
	for component, d := range startIndexMap {
		if len(at[d]) > 0 && taken(d) {
			part := t.Shape[d] / p.mesh.RefsSize(at[d])
			out = append(out, cutIndex{component, t.Shape[d], part, p.offset(at[d], part)})
		}
	}
	return out
}

// perComponent spreads one number for each component of the index vectors over
// the indices; vector is their index_vector_dim.
func (p *partitioner) perComponent(indices *ir.Value, vector, components int, v func(component int) *ir.Value) *ir.Value {
	b := &p.build
	if vector == indices.Type.Rank() {
		return b.Broadcast(v(0), indices.Type.Shape)
	}
	rows := make([]*ir.Value, components)
	for i := range rows {
		rows[i] = b.Reshape(v(i), 1)
	}
	return b.Broadcast(b.Concat(0, rows...), indices.Type.Shape, vector)
}

// localIndices subtracts from the indices where this device's part begins.
func (p *partitioner) localIndices(indices *ir.Value, vector, components int, cuts []cutIndex) *ir.Value {
	elem := indices.Type.Elem
	return p.build.Sub(indices, p.perComponent(indices, vector, components, func(i int) *ir.Value {
		for _, c := range cuts {
			if c.component == i {
				return p.build.Convert(c.offset, elem)
			}
		}
		return p.build.Splat(ir.Tensor(elem), 0)
	}))
}

// limits is for each component the number that of says for the cut ones.
func (p *partitioner) limits(indices *ir.Value, vector, components int, cuts []cutIndex, other float64, of func(cutIndex) int) *ir.Value {
	return p.perComponent(indices, vector, components, func(i int) *ir.Value {
		v := other
		for _, c := range cuts {
			if c.component == i {
				v = float64(of(c))
			}
		}
		return p.build.Splat(ir.Tensor(indices.Type.Elem), v)
	})
}

// emitGather: from a dimension that is cut where one element is taken, the
// device that has the element takes it and the others take zero; the sum is
// the element.
func (p *partitioner) emitGather(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	g := op.Attrs.Get("dimension_numbers").(ir.GatherDims)
	t := op.Operands[0].Type
	sizes := slices.Clone(op.Ints("slice_sizes"))
	cuts := p.cutIndices(g.StartIndexMap, t, a.operands[0], func(d int) bool { return sizes[d] == 1 })
	for d := range sizes {
		if sizes[d] == t.Shape[d] {
			sizes[d] = in[0].Type.Shape[d]
		}
	}
	attrs := with(op.Attrs, "slice_sizes", ir.Ints(sizes))
	if len(cuts) == 0 {
		return p.emitAs(op, a, in, attrs)
	}
	b := &p.build
	vector, n := g.IndexVectorDim, len(g.StartIndexMap)
	indices := b.Convert(in[1], signedIndex(in[1].Type.Elem))
	low, high := float64(math.MinInt32), float64(math.MaxInt32)
	indices = b.Emit(ir.Clamp, []*ir.Value{
		p.limits(indices, vector, n, cuts, low, func(cutIndex) int { return 0 }), indices,
		p.limits(indices, vector, n, cuts, high, func(c cutIndex) int { return c.whole - 1 })}, nil, nil, nil).Result()
	indices = p.localIndices(indices, vector, n, cuts)
	mine := b.Binary(ir.And,
		b.Compare("GE", indices, p.limits(indices, vector, n, cuts, low, func(cutIndex) int { return 0 })),
		b.Compare("LE", indices, p.limits(indices, vector, n, cuts, high, func(c cutIndex) int { return c.part - 1 })))
	if vector < indices.Type.Rank() {
		mine = b.Reduce(ir.And, mine, b.Const(ir.Ints64(ir.Tensor(ir.I1), 1)), vector)
	}
	part := p.emitAs(op, a, []*ir.Value{in[0], indices}, attrs)[0]
	var batch []int // dimensions of the result
	for d := range part.Type.Shape {
		if !slices.Contains(g.OffsetDims, d) {
			batch = append(batch, d)
		}
	}
	mine = b.Broadcast(mine, part.Type.Shape, batch...)
	v := b.Select(mine, part, b.Splat(part.Type, 0))
	v.Name = part.Name
	return []*ir.Value{v}
}

// emitScatter: along a dimension that is cut, an update whose index is outside
// of this device's part falls away, as any that is outside does. Where the
// updates are cut, each device scatters its own into neutral values, and the
// operand joins the combined result.
func (p *partitioner) emitScatter(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	n := len(op.Results)
	in = slices.Clone(in)
	in[n] = p.scatterIndices(op, a, in[n])
	axes := a.partial()
	if len(axes) == 0 {
		return p.emitAs(op, a, in, op.Attrs)
	}
	a.combined = true
	k, t := ir.CombinerOf(op.Regions[0]), op.Result().Type
	in[0] = p.build.Broadcast(p.build.Const(neutral(k, t.Elem)), in[0].Type.Shape)
	part := p.emitAs(op, a, in, op.Attrs)[0]
	left, rest := p.kept(op.Result(), axes, k)
	v, at := p.combine(k, part, t, a.results[0], p.layoutOf(op.Result()), rest)
	a.results[0], a.left, a.by = at, left, k
	v = p.build.Binary(k, p.onFirst(p.get(op.Operands[0], at), left, k), v)
	v.Name = part.Name
	return []*ir.Value{v}
}

// scatterIndices are the indices of a scatter as this device's part counts.
func (p *partitioner) scatterIndices(op *ir.Op, a *assignment, indices *ir.Value) *ir.Value {
	g := op.Attrs.Get("scatter_dimension_numbers").(ir.ScatterDims)
	cuts := p.cutIndices(g.ScatterDimsToOperandDims, op.Operands[0].Type, a.operands[0],
		func(d int) bool { return slices.Contains(g.InsertedWindowDims, d) })
	if len(cuts) == 0 {
		return indices
	}
	indices = p.build.Convert(indices, signedIndex(indices.Type.Elem))
	return p.localIndices(indices, g.IndexVectorDim, len(g.ScatterDimsToOperandDims), cuts)
}
