package partition

import (
	"slices"

	"ppc/ir"
)

// A shardRow is how an op is computed on shards otherwise than by emitting it on
// them.
type shardRow struct {
	// rule is the rule of an op that has none in propagation.
	rule func(op *ir.Op) *ir.Factors
	// more changes the op's rule to what is possible beyond what propagation
	// knows of. What it makes a [ir.Reduction] of is one where that moves fewer
	// bytes.
	more func(op *ir.Op, rule *ir.Factors)
	// may reports whether op can be computed with factor k sharded along axes;
	// nil where the factor's type says that.
	may func(p *program, op *ir.Op, rule *ir.Factors, k int, axes []ir.AxisRef) bool
	// place gives operands of which op needs more than a shard the layouts in
	// which the fewest bytes move for that.
	place func(p *chooser, op *ir.Op, a *assignment)
	// halos is what place has decided, of operands that have these layouts.
	halos func(p *program, op *ir.Op, a *assignment) []windowHalo
	// either reports whether dimension d of operand i may be unsharded where its
	// factor is sharded; nil where none may.
	either func(op *ir.Op, i, d int) bool
	// emit emits op on shards; nil where that is the op as it is.
	emit func(p *localizer, op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value
}

// shardRows has a row for every op that needs one.
var shardRows [ir.NumKinds]shardRow

func init() {
	windows := shardRow{place: (*chooser).placeWindows, halos: windowHalos, emit: (*localizer).emitWindows}
	convolution := windows
	convolution.more = kernelReduced
	shardRows = [ir.NumKinds]shardRow{
		ir.DynamicSlice:       {more: windowReduced, emit: (*localizer).emitDynamicSlice},
		ir.DynamicUpdateSlice: {emit: (*localizer).emitUpdate},
		ir.Gather:             {more: windowsReduced, emit: (*localizer).emitGather},
		ir.Scatter:            {more: windowsSharded, either: windowOfUpdates, emit: (*localizer).emitScatter},
		ir.RaggedDot:          {emit: (*localizer).emitRagged},
		ir.Reduce:             {emit: (*localizer).emitReduce},
		ir.SelectAndScatter:   {may: mayShardScatter, place: (*chooser).placeScatter, halos: scatterHalos, emit: (*localizer).emitSelectAndScatter},
		ir.Reverse:            {emit: (*localizer).emitReverse},
		ir.Convolution:        convolution,
		ir.ReduceWindow:       windows,
		ir.Slice:              windows,
		ir.Pad:                windows,
		ir.Sort:               {more: sortedAlone, may: mayShardSort, place: (*chooser).placeSort, emit: (*localizer).emitSort},
		ir.RngBitGenerator:    {rule: randomFactors, may: mayShardRandom, emit: (*localizer).emitRandom},
		ir.Constant:           {emit: (*localizer).emitConstant},
		ir.Iota:               {emit: (*localizer).emitIota},
	}
}

func shardRowOf(k ir.Kind) *shardRow { return &shardRows[k] }

// shardRule is the rule by which op is computed on shards; nil if it has none.
func (p *program) shardRule(op *ir.Op) *ir.Factors {
	row := shardRowOf(op.Kind)
	switch {
	case row.rule != nil:
		return row.rule(op)
	case row.more == nil:
		return p.shared.Rules.Of(op)
	}
	rule := ir.FactorsOf(op)
	if rule != nil {
		row.more(op, rule)
	}
	return rule
}

// windowReduced: the window of a dynamic_slice along a sharded dimension is the sum
// of what each device has of it, and zeros.
func windowReduced(op *ir.Op, rule *ir.Factors) {
	for d, ks := range rule.Operands[0] {
		if op.Operands[0].Type.Shape[d] != op.Result().Type.Shape[d] {
			rule.Types[ks[0]] = ir.Reduction
		}
	}
}

// emit emits op on shards, as a says, and returns the shards of its results.
// What is replicated is computed by the op as it is.
func (p *localizer) emit(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	if emit := shardRowOf(op.Kind).emit; emit != nil && a.rule != nil {
		return emit(p, op, a, in)
	}
	return p.emitSame(op, a, in)
}

// emitSame emits op as it is, on shards.
func (p *localizer) emitSame(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	attrs := op.Attrs
	if op.Kind.Has(ir.Collective) {
		attrs = with(attrs, "channel_handle", p.channel())
	}
	return p.emitAs(op, a, in, attrs)
}

// with is attrs with one more, or another one in place of that of the name.
func with(attrs ir.Attrs, name string, a ir.Attr) ir.Attrs {
	attrs.Set(name, a)
	return attrs
}

// emitAs emits op with other operands and attributes and the types of shards.
func (p *localizer) emitAs(op *ir.Op, a *assignment, in []*ir.Value, attrs ir.Attrs) []*ir.Value {
	return p.emitTyped(op, in, attrs, p.shardTypes(op, a))
}

// emitTyped is emitAs with results of other types.
func (p *localizer) emitTyped(op *ir.Op, in []*ir.Value, attrs ir.Attrs, types []*ir.Type) []*ir.Value {
	n := p.build.Emit(op.Kind, in, attrs, p.copyRegions(op), types)
	n.Spelling = op.Spelling
	for i, v := range op.Results {
		n.Results[i].Name = v.Name
	}
	return n.Results
}

// copyRegions copies regions that combine scalars, such as that of a reduction.
func (p *localizer) copyRegions(op *ir.Op) []*ir.Block {
	if len(op.Regions) == 0 {
		return nil
	}
	sub := make(map[*ir.Value]*ir.Value)
	for _, v := range op.Captures() {
		sub[v] = p.value(v)
	}
	var out []*ir.Block
	for _, r := range op.Regions {
		out = append(out, p.f.CopyBlock(r, sub))
	}
	return out
}

// emitDynamicSlice: in a sharded dimension, the device takes of the window what is
// in its shard, and zeros for the rest.
func (p *localizer) emitDynamicSlice(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	b := &p.build
	whole, window, x, in := op.Operands[0].Type.Shape, op.Result().Type.Shape, in[0], slices.Clone(in)
	sizes := slices.Clone(p.local(op.Result().Type, a.results[0]).Shape)
	places := make([]*ir.Value, len(sizes)) // of the window, counted from where this device's shard begins
	some := false
	for d, axes := range a.operands[0] {
		if len(axes) == 0 || window[d] == whole[d] {
			continue
		}
		part := x.Type.Shape[d]
		sizes[d] = min(window[d], part)
		places[d], some = p.placeIn(in[1+d], whole[d]-window[d], p.offset(axes, part)), true
		in[1+d] = b.Emit(ir.Clamp, []*ir.Value{b.I32(0), places[d], b.I32(part - sizes[d])}, nil, nil, nil).Result()
	}
	for d := range places {
		if some {
			in[1+d] = b.Convert(in[1+d], ir.I32)
		}
	}
	v := b.DynamicSlice(x, in[1:], sizes...)
	for d, place := range places {
		if place == nil {
			continue
		}
		// The elements that are taken are no further from the window than its size.
		size, taken := window[d], sizes[d]
		if size == 1 {
			mine := b.Compare("EQ", place, in[1+d])
			v = b.Select(b.Broadcast(mine, v.Type.Shape), v, b.Splat(v.Type, 0))
			continue
		}
		start := b.Add(b.Sub(place, in[1+d]), b.I32(size))
		v = p.sliceAt(p.padded(v, d, size, size, nil), d, b.Emit(ir.Clamp, []*ir.Value{b.I32(0), start, b.I32(size + taken)}, nil, nil, nil).Result(), size)
	}
	v.Name = op.Result().Name
	return []*ir.Value{v}
}

// placeIn is a start index that is moved to 0 to last, counted from offset.
func (p *localizer) placeIn(start *ir.Value, last int, offset *ir.Value) *ir.Value {
	b := &p.build
	t := start.Type
	inside := b.Emit(ir.Clamp, []*ir.Value{b.Splat(t, 0), start, b.Splat(t, float64(last))}, nil, nil, nil).Result()
	return b.Sub(b.Convert(inside, ir.I32), offset)
}

// emitUpdate: where the updated window moves along a sharded dimension, the device
// writes it into its shard, padded by one window on either side, and drops the
// padding.
func (p *localizer) emitUpdate(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	b := &p.build
	whole, update := op.Operands[0].Type.Shape, op.Operands[1].Type.Shape
	x, u, starts := in[0], in[1], slices.Clone(in[2:])
	low := make([]int, len(whole))
	part := x.Type.Shape
	for d, axes := range a.operands[0] {
		if len(axes) == 0 || update[d] == whole[d] {
			continue
		}
		t := starts[d].Type
		low[d] = update[d]
		place := p.placeIn(starts[d], whole[d]-update[d], p.offset(axes, part[d]))
		starts[d] = b.Convert(b.Add(place, b.I32(update[d])), signedIndex(t.Elem))
	}
	if slices.Max(append(low, 0)) == 0 {
		return p.emitAs(op, a, in, op.Attrs)
	}
	for d := range starts {
		starts[d] = b.Convert(starts[d], ir.I32)
	}
	zero := b.Splat(ir.Tensor(x.Type.Elem), 0)
	room := b.Pad(x, zero, low, low, make([]int, len(low)))
	room = b.DynamicUpdateSlice(room, u, starts)
	limit := slices.Clone(part)
	for d := range limit {
		limit[d] += low[d]
	}
	r := b.Slice(room, low, limit)
	r.Name = op.Result().Name
	return []*ir.Value{r}
}

// signedIndex is the type in which an index of type t may be negative.
func signedIndex(t ir.DType) ir.DType {
	if t == ir.I64 || t == ir.UI64 {
		return ir.I64
	}
	return ir.I32
}

// emitReverse: in a sharded dimension, the shards change places, too.
func (p *localizer) emitReverse(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	v := p.emitAs(op, a, in, op.Attrs)[0]
	for _, d := range op.Ints("dimensions") {
		if axes := a.results[0][d]; len(axes) > 0 {
			v = p.permute(v, ir.AxisShift{Mesh: p.mesh.Name, Axes: axes, Reverse: true})
		}
	}
	v.Name = op.Result().Name
	return []*ir.Value{v}
}

// emitReduce: partial results are left to the reshard that reduces them, but for
// those whose combiner no sharding can name.
func (p *localizer) emitReduce(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	if axes := a.partial(); len(axes) > 0 && ir.CombinerOf(op.Regions[0]) == ir.Invalid {
		return p.reduceGathered(op, a, in, axes)
	}
	return p.emitAs(op, a, in, op.Attrs)
}

// reduceGathered reduces shards by any region: the partial results of all devices
// are gathered along a new dimension and reduced once more.
func (p *localizer) reduceGathered(op *ir.Op, a *assignment, in []*ir.Value, axes []ir.AxisRef) []*ir.Value {
	n := p.mesh.RefsSize(axes)
	parts := p.emitAs(op, a, in, op.Attrs)
	again := slices.Clone(in)
	for i, v := range parts {
		row := p.build.Reshape(v, append([]int{1}, v.Type.Shape...)...)
		again[i] = p.collective(ir.AllGather, row, v.Type.WithShape(append([]int{n}, v.Type.Shape...)...), p.sortedAxes(axes), nil,
			ir.AttrsOf(ir.NamedAttr{Name: "all_gather_dim", Attr: ir.I64Attr(0)}))
	}
	return p.emitAs(op, a, again, with(op.Attrs, "dimensions", ir.Ints{0}))
}

// emitConstant: a device's shard of a splat is a smaller one. Other constants are
// replicated, and resharded.
func (p *localizer) emitConstant(op *ir.Op, a *assignment, _ []*ir.Value) []*ir.Value {
	l, t := op.Literal("value"), p.local(op.Result().Type, a.results[0])
	if l.IsSplat() && t.IsTensor() {
		l = &ir.Literal{Type: t, Data: l.Data}
	}
	return p.build.Emit(ir.Constant, nil, with(op.Attrs, "value", l), nil, []*ir.Type{t}).Results
}

// emitIota: along the dimension that counts, this device counts from where its
// shard begins.
func (p *localizer) emitIota(op *ir.Op, a *assignment, _ []*ir.Value) []*ir.Value {
	b, dim, t := &p.build, op.Int("iota_dimension"), p.local(op.Result().Type, a.results[0])
	shard := b.Emit(ir.Iota, nil, op.Attrs, nil, []*ir.Type{t}).Result()
	axes := a.results[0][dim]
	if len(axes) == 0 {
		return []*ir.Value{shard}
	}
	offset := b.Convert(p.offset(axes, t.Shape[dim]), t.Elem)
	return []*ir.Value{b.Add(shard, b.Broadcast(offset, t.Shape))}
}
