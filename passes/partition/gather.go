package partition

import (
	"math"
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
)

// A cutIndex is a component of an index vector that runs along a dimension
// which is cut: whole is its size, part that of this device's, and window the
// elements that are taken at an index. A window of several may reach over the
// ends of the part, which gets room for one on either side; base is where the
// part with its rooms begins.
type cutIndex struct {
	component, dim      int
	whole, part, window int
	base                *ir.Value
}

// room is what the part gets on either side.
func (c cutIndex) room() int {
	if c.window == 1 {
		return 0
	}
	return c.window
}

// cutIndices finds the components of the indices that run along dimensions
// which are cut; window says how many elements are taken there.
func (p *partitioner) cutIndices(startIndexMap []int, t *ir.Type, at layout.Layout, window func(d int) int) []cutIndex {
	var out []cutIndex
	for component, d := range startIndexMap {
		if len(at[d]) == 0 {
			continue
		}
		c := cutIndex{component: component, dim: d, whole: t.Shape[d], part: t.Shape[d] / p.mesh.RefsSize(at[d]), window: window(d)}
		c.base = addInt(&p.build, p.offset(at[d], c.part), -c.room())
		out = append(out, c)
	}
	return out
}

// roomy is x, a part, with the rooms of cuts.
func (p *partitioner) roomy(x *ir.Value, cuts []cutIndex) *ir.Value {
	for _, c := range cuts {
		x = p.padded(x, c.dim, c.room(), c.room(), nil)
	}
	return x
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

// localIndices subtracts from the indices where this device's part begins, with
// its room.
func (p *partitioner) localIndices(indices *ir.Value, vector, components int, cuts []cutIndex) *ir.Value {
	elem := indices.Type.Elem
	return p.build.Sub(indices, p.perComponent(indices, vector, components, func(i int) *ir.Value {
		for _, c := range cuts {
			if c.component == i {
				return p.build.Convert(c.base, elem)
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

// windowsSummed: a window of several elements along a cut dimension is the sum
// of what each device has of it, and zeros.
func windowsSummed(op *ir.Op, rule *ir.Factors) {
	g, sizes := op.Attrs.Get("dimension_numbers").(ir.GatherDims), op.Ints("slice_sizes")
	for _, d := range g.StartIndexMap {
		if 1 < sizes[d] && sizes[d] < op.Operands[0].Type.Shape[d] {
			rule.Types[rule.Operands[0][d][0]] = ir.Reduction
		}
	}
}

// emitGather: from a dimension that is cut where one element is taken, the
// device that has the element takes it and the others take zero; the sum is
// the element. Where a window is taken, that is so for each of its elements:
// what is outside of the part is zero, and a window that is outside altogether
// is moved into the room.
func (p *partitioner) emitGather(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	g := op.Attrs.Get("dimension_numbers").(ir.GatherDims)
	t := op.Operands[0].Type
	sizes := slices.Clone(op.Ints("slice_sizes"))
	for d := range sizes {
		if sizes[d] == t.Shape[d] {
			sizes[d] = in[0].Type.Shape[d]
		}
	}
	partly := a.operands[0].Clone()
	for d := range partly {
		if op.Ints("slice_sizes")[d] == t.Shape[d] {
			partly[d] = nil
		}
	}
	cuts := p.cutIndices(g.StartIndexMap, t, partly, func(d int) int { return sizes[d] })
	attrs := With(op.Attrs, "slice_sizes", ir.Ints(sizes))
	if len(cuts) == 0 {
		return p.emitAs(op, a, in, attrs)
	}
	b := &p.build
	vector, n := g.IndexVectorDim, len(g.StartIndexMap)
	indices := b.Convert(in[1], signedIndex(in[1].Type.Elem))
	indices = b.Emit(ir.Clamp, []*ir.Value{
		p.limits(indices, vector, n, cuts, math.MinInt32, func(cutIndex) int { return 0 }), indices,
		p.limits(indices, vector, n, cuts, math.MaxInt32, func(c cutIndex) int { return c.whole - c.window })}, nil, nil, nil).Result()
	indices = p.localIndices(indices, vector, n, cuts)
	mine := p.onParts(indices, vector, n, cuts)
	v := p.emitAs(op, a, []*ir.Value{p.roomy(in[0], cuts), indices}, attrs)[0]
	if mine == nil {
		return []*ir.Value{v}
	}
	var batch []int // dimensions of the result
	for d := range v.Type.Shape {
		if !slices.Contains(g.OffsetDims, d) {
			batch = append(batch, d)
		}
	}
	r := b.Select(b.Broadcast(mine, v.Type.Shape, batch...), v, b.Splat(v.Type, 0))
	return []*ir.Value{r.Named(op.Result().Name)}
}

// onParts tells the indices at which this device has the one element that is
// taken along cut dimensions; nil where none is taken alone.
func (p *partitioner) onParts(indices *ir.Value, vector, components int, cuts []cutIndex) *ir.Value {
	b := &p.build
	single := slices.DeleteFunc(slices.Clone(cuts), func(c cutIndex) bool { return c.window > 1 })
	if len(single) == 0 {
		return nil
	}
	limit := func(other float64, of func(cutIndex) int) *ir.Value {
		return p.limits(indices, vector, components, single, other, of)
	}
	mine := b.Binary(ir.And,
		b.Compare("GE", indices, limit(math.MinInt32, func(cutIndex) int { return 0 })),
		b.Compare("LE", indices, limit(math.MaxInt32, func(c cutIndex) int { return c.part - 1 })))
	if vector < indices.Type.Rank() {
		mine = b.Reduce(ir.And, mine, b.Const(ir.Ints64(ir.Tensor(ir.I1), 1)), vector)
	}
	return mine
}

// windowsCut: along a dimension in which a scatter has windows of several
// elements, each device takes what falls into its part.
func windowsCut(op *ir.Op, rule *ir.Factors) {
	g := op.Attrs.Get("scatter_dimension_numbers").(ir.ScatterDims)
	for _, d := range g.ScatterDimsToOperandDims {
		if !slices.Contains(g.InsertedWindowDims, d) {
			rule.Types[rule.Operands[0][d][0]] = ir.PassThrough
		}
	}
}

// emitScatter: where the updates are cut, each device scatters its own into
// neutral values, and the operand joins the combined result, unless it is
// neutral itself.
func (p *partitioner) emitScatter(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	axes := a.partial()
	if len(axes) == 0 {
		return p.scatterParts(op, a, in)
	}
	a.combined = true
	k, t := ir.CombinerOf(op.Regions[0]), op.Result().Type
	in = slices.Clone(in)
	in[0] = p.build.Broadcast(p.build.Const(facts.Neutral(k, t.Elem)), in[0].Type.Shape)
	part := p.scatterParts(op, a, in)[0]
	left, rest := p.kept(op.Result(), axes, k)
	v, at := p.combine(k, part, t, a.results[0], p.layoutOf(op.Result()), rest)
	a.results[0], a.left, a.by = at, left, k
	if x := op.Operands[0]; !facts.IsNeutral(k, x) {
		v = p.build.Binary(k, p.onFirst(p.get(x, at), left, k), v)
	}
	v.Name = part.Name
	return []*ir.Value{v}
}

// scatterParts scatters the updates into parts. Along a dimension that is cut,
// what is outside of this device's part falls away, as anything that is
// outside does; a window that reaches over its end has room there. A window that
// is cut with what it is scattered into does not move along that dimension.
func (p *partitioner) scatterParts(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	g, n := op.Attrs.Get("scatter_dimension_numbers").(ir.ScatterDims), len(op.Results)
	window := scatterWindow(op)
	moved := a.operands[0].Clone()
	for d, ks := range a.rule.Operands[0] {
		if slices.ContainsFunc(a.rule.Operands[n+1], func(theirs []int) bool { return slices.Equal(theirs, ks) }) {
			moved[d] = nil
		}
	}
	cuts := p.cutIndices(g.ScatterDimsToOperandDims, op.Operands[0].Type, moved, func(d int) int { return window[d] })
	if len(cuts) == 0 {
		return p.emitAs(op, a, in, op.Attrs)
	}
	in = slices.Clone(in)
	indices := p.build.Convert(in[n], signedIndex(in[n].Type.Elem))
	in[n] = p.localIndices(indices, g.IndexVectorDim, len(g.ScatterDimsToOperandDims), cuts)
	types := p.partTypes(op, a)
	for i, t := range types {
		in[i] = p.roomy(in[i], cuts)
		types[i] = t.WithShape(in[i].Type.Shape...)
	}
	out := slices.Clone(p.emitTyped(op, in, op.Attrs, types))
	for i, v := range out {
		for _, c := range cuts {
			if c.room() > 0 {
				out[i] = p.build.SliceDim(out[i], c.dim, c.room(), c.room()+c.part)
			}
		}
		out[i].Name = v.Name
	}
	return out
}

// scatterWindow is the size of the windows of op in each dimension of what it
// scatters into.
func scatterWindow(op *ir.Op) []int {
	g := op.Attrs.Get("scatter_dimension_numbers").(ir.ScatterDims)
	updates := op.Operands[len(op.Results)+1].Type
	sizes, next := make([]int, op.Results[0].Type.Rank()), 0
	for d := range sizes {
		if sizes[d] = 1; !slices.Contains(g.InsertedWindowDims, d) && !slices.Contains(g.InputBatchingDims, d) {
			sizes[d] = updates.Shape[g.UpdateWindowDims[next]]
			next++
		}
	}
	return sizes
}
