package partition

import (
	"math"
	"slices"

	"ppc/ir"
	"ppc/passes/layout"
)

// A shardedIndex is a component of an index vector that runs along a sharded
// dimension: size is that of the dimension, shard that of this device's, and
// window the elements that are taken at an index. A window of several may reach
// over the ends of the shard, which is padded by one window on either side; base
// is where the padded shard begins.
type shardedIndex struct {
	component, dim      int
	size, shard, window int
	base                *ir.Value
}

// padding is what the shard gets on either side.
func (c shardedIndex) padding() int {
	if c.window == 1 {
		return 0
	}
	return c.window
}

// shardedIndices finds the components of the indices that run along sharded
// dimensions; window says how many elements are taken there.
func (p *localizer) shardedIndices(startIndexMap []int, t *ir.Type, at layout.Layout, window func(d int) int) []shardedIndex {
	var out []shardedIndex
	for component, d := range startIndexMap {
		if len(at[d]) == 0 {
			continue
		}
		c := shardedIndex{component: component, dim: d, size: t.Shape[d], shard: t.Shape[d] / p.mesh.RefsSize(at[d]), window: window(d)}
		c.base = addInt(&p.build, p.offset(at[d], c.shard), -c.padding())
		out = append(out, c)
	}
	return out
}

// roomFor is x, a shard, with the padding of each of sharded.
func (p *localizer) roomFor(x *ir.Value, sharded []shardedIndex) *ir.Value {
	for _, c := range sharded {
		x = p.padded(x, c.dim, c.padding(), c.padding(), nil)
	}
	return x
}

// perComponent broadcasts one number for each component of the index vectors to
// the shape of the indices; vector is their index_vector_dim.
func (p *localizer) perComponent(indices *ir.Value, vector, components int, v func(component int) *ir.Value) *ir.Value {
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

// localIndices subtracts from the indices where this device's padded shard
// begins.
func (p *localizer) localIndices(indices *ir.Value, vector, components int, sharded []shardedIndex) *ir.Value {
	elem := indices.Type.Elem
	return p.build.Sub(indices, p.perComponent(indices, vector, components, func(i int) *ir.Value {
		for _, c := range sharded {
			if c.component == i {
				return p.build.Convert(c.base, elem)
			}
		}
		return p.build.Splat(ir.Tensor(elem), 0)
	}))
}

// limits is for each component the number that of says for the sharded ones, and
// other for the rest.
func (p *localizer) limits(indices *ir.Value, vector, components int, sharded []shardedIndex, other float64, of func(shardedIndex) int) *ir.Value {
	return p.perComponent(indices, vector, components, func(i int) *ir.Value {
		v := other
		for _, c := range sharded {
			if c.component == i {
				v = float64(of(c))
			}
		}
		return p.build.Splat(ir.Tensor(indices.Type.Elem), v)
	})
}

// windowsReduced: a window of several elements along a sharded dimension is the
// sum of what each device has of it, and zeros.
func windowsReduced(op *ir.Op, rule *ir.Factors) {
	g, sizes := op.Attrs.Get("dimension_numbers").(ir.GatherDims), op.Ints("slice_sizes")
	for _, d := range g.StartIndexMap {
		if 1 < sizes[d] && sizes[d] < op.Operands[0].Type.Shape[d] {
			rule.Types[rule.Operands[0][d][0]] = ir.Reduction
		}
	}
}

// emitGather: from a sharded dimension where one element is taken, the device that
// has the element takes it and the others take zero; the sum is the element.
// Where a window is taken, that is so for each of its elements: what is outside
// of the shard is zero, and a window that is outside altogether is moved into the
// padding.
func (p *localizer) emitGather(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
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
	sharded := p.shardedIndices(g.StartIndexMap, t, partly, func(d int) int { return sizes[d] })
	attrs := with(op.Attrs, "slice_sizes", ir.Ints(sizes))
	if len(sharded) == 0 {
		return p.emitAs(op, a, in, attrs)
	}
	b := &p.build
	vector, n := g.IndexVectorDim, len(g.StartIndexMap)
	indices := b.Convert(in[1], signedIndex(in[1].Type.Elem))
	indices = b.Emit(ir.Clamp, []*ir.Value{
		p.limits(indices, vector, n, sharded, math.MinInt32, func(shardedIndex) int { return 0 }), indices,
		p.limits(indices, vector, n, sharded, math.MaxInt32, func(c shardedIndex) int { return c.size - c.window })}, nil, nil, nil).Result()
	indices = p.localIndices(indices, vector, n, sharded)
	mine := p.onShard(indices, vector, n, sharded)
	v := p.emitAs(op, a, []*ir.Value{p.roomFor(in[0], sharded), indices}, attrs)[0]
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

// onShard tells the indices at which this device has the one element that is
// taken along sharded dimensions; nil where none is taken alone.
func (p *localizer) onShard(indices *ir.Value, vector, components int, sharded []shardedIndex) *ir.Value {
	b := &p.build
	single := slices.DeleteFunc(slices.Clone(sharded), func(c shardedIndex) bool { return c.window > 1 })
	if len(single) == 0 {
		return nil
	}
	limit := func(other float64, of func(shardedIndex) int) *ir.Value {
		return p.limits(indices, vector, components, single, other, of)
	}
	mine := b.Binary(ir.And,
		b.Compare("GE", indices, limit(math.MinInt32, func(shardedIndex) int { return 0 })),
		b.Compare("LE", indices, limit(math.MaxInt32, func(c shardedIndex) int { return c.shard - 1 })))
	if vector < indices.Type.Rank() {
		mine = b.Reduce(ir.And, mine, b.Const(ir.Ints64(ir.Tensor(ir.I1), 1)), vector)
	}
	return mine
}

// windowsSharded: along a dimension in which a scatter has windows of several
// elements, each device takes what falls into its shard.
func windowsSharded(op *ir.Op, rule *ir.Factors) {
	g := op.Attrs.Get("scatter_dimension_numbers").(ir.ScatterDims)
	for _, d := range g.ScatterDimsToOperandDims {
		if !slices.Contains(g.InsertedWindowDims, d) {
			rule.Types[rule.Operands[0][d][0]] = ir.PassThrough
		}
	}
}

// emitScatter scatters the updates into shards. Along a sharded dimension, what is
// outside of this device's shard is dropped, as anything is that is outside; a
// window that reaches over its end has padding there. A window that is sharded as
// what it is scattered into does not move along that dimension.
func (p *localizer) emitScatter(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	g, n := op.Attrs.Get("scatter_dimension_numbers").(ir.ScatterDims), len(op.Results)
	window, dims := scatterWindow(op)
	moved := a.operands[0].Clone()
	for d := range moved {
		if dims[d] >= 0 && len(a.operands[n+1][dims[d]]) > 0 || slices.Contains(g.InputBatchingDims, d) {
			moved[d] = nil
		}
	}
	sharded := p.shardedIndices(g.ScatterDimsToOperandDims, op.Operands[0].Type, moved, func(d int) int { return window[d] })
	if len(sharded) == 0 {
		return p.emitAs(op, a, in, op.Attrs)
	}
	in = slices.Clone(in)
	indices := p.build.Convert(in[n], signedIndex(in[n].Type.Elem))
	in[n] = p.localIndices(indices, g.IndexVectorDim, len(g.ScatterDimsToOperandDims), sharded)
	types := p.shardTypes(op, a)
	for i, t := range types {
		in[i] = p.roomFor(in[i], sharded)
		types[i] = t.WithShape(in[i].Type.Shape...)
	}
	out := slices.Clone(p.emitTyped(op, in, op.Attrs, types))
	for i, v := range out {
		for _, c := range sharded {
			if c.padding() > 0 {
				out[i] = p.build.SliceDim(out[i], c.dim, c.padding(), c.padding()+c.shard)
			}
		}
		out[i].Name = v.Name
	}
	return out
}

// windowOfUpdates reports whether dimension d of operand i of a scatter is one of
// its windows: where these are unsharded, each device takes what falls into its
// shard, also of a window that does not move.
func windowOfUpdates(op *ir.Op, i, d int) bool {
	_, dims := scatterWindow(op)
	return i == len(op.Results)+1 && slices.Contains(dims, d)
}

// scatterWindow is the size of the windows of op in each dimension of what it
// scatters into, and which dimension of the updates that is; -1 where there is
// none.
func scatterWindow(op *ir.Op) (sizes, dims []int) {
	g := op.Attrs.Get("scatter_dimension_numbers").(ir.ScatterDims)
	updates := op.Operands[len(op.Results)+1].Type
	next := 0
	for d := range op.Results[0].Type.Rank() {
		if slices.Contains(g.InsertedWindowDims, d) || slices.Contains(g.InputBatchingDims, d) {
			sizes, dims = append(sizes, 1), append(dims, -1)
			continue
		}
		dim := g.UpdateWindowDims[next]
		sizes, dims = append(sizes, updates.Shape[dim]), append(dims, dim)
		next++
	}
	return sizes, dims
}
