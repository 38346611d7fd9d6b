package partition

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

// A partRow is how an op is computed on parts otherwise than by emitting it on
// them.
type partRow struct {
	// rule is the rule of an op that has none in propagation.
	rule func(op *ir.Op) *ir.Factors
	// more changes the op's rule to what is possible beyond what propagation
	// knows of. What it makes a [ir.Reduction] of is one where that moves less.
	more func(op *ir.Op, rule *ir.Factors)
	// may reports whether op can be computed on parts of factor k, cut along
	// axes; nil where the factor's type says that.
	may func(p *partitioner, op *ir.Op, rule *ir.Factors, k int, axes []ir.AxisRef) bool
	// place lets operands lie as is best to get at what op needs of them, where
	// that is not just a part.
	place func(p *partitioner, op *ir.Op, a *assignment)
	emit  func(p *partitioner, op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value
}

func partRowOf(k ir.Kind) partRow {
	switch k {
	case ir.DynamicSlice:
		return partRow{more: windowSummed, emit: (*partitioner).emitDynamicSlice}
	case ir.DynamicUpdateSlice:
		return partRow{emit: (*partitioner).emitUpdate}
	case ir.Gather:
		return partRow{more: windowsSummed, emit: (*partitioner).emitGather}
	case ir.Scatter:
		return partRow{more: windowsCut, emit: (*partitioner).emitScatter}
	case ir.Reduce:
		return partRow{emit: (*partitioner).emitReduce}
	case ir.SelectAndScatter:
		return partRow{may: mayCutScatter, place: (*partitioner).placeScatter, emit: (*partitioner).emitScatters}
	case ir.Reverse:
		return partRow{emit: (*partitioner).emitReverse}
	case ir.Convolution:
		return partRow{more: placesSummed, place: (*partitioner).placeWindows, emit: (*partitioner).emitWindows}
	case ir.ReduceWindow, ir.Slice, ir.Pad:
		return partRow{place: (*partitioner).placeWindows, emit: (*partitioner).emitWindows}
	case ir.Sort:
		return partRow{more: sortedAlone, may: mayCutSort, place: (*partitioner).placeSort, emit: (*partitioner).emitSort}
	case ir.RngBitGenerator:
		return partRow{rule: randomFactors, may: mayCutRandom, emit: (*partitioner).emitRandom}
	}
	return partRow{emit: (*partitioner).emitSame}
}

// partsRule is the rule by which op is computed on parts; nil if it has none.
func partsRule(op *ir.Op) *ir.Factors {
	row, rule := partRowOf(op.Kind), ir.FactorsOf(op)
	switch {
	case row.rule != nil:
		return row.rule(op)
	case row.more != nil && rule != nil:
		row.more(op, rule)
	}
	return rule
}

// windowSummed: the window of a dynamic_slice along a cut dimension is the sum
// of what each device has of it, and zeros.
func windowSummed(op *ir.Op, rule *ir.Factors) {
	for d, ks := range rule.Operands[0] {
		if op.Operands[0].Type.Shape[d] != op.Result().Type.Shape[d] {
			rule.Types[ks[0]] = ir.Reduction
		}
	}
}

// emit emits op on parts, as a says, and returns the parts of its results. What
// is not cut at all is the op as it is.
func (p *partitioner) emit(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	if a.rule == nil {
		return p.emitSame(op, a, in)
	}
	return partRowOf(op.Kind).emit(p, op, a, in)
}

// emitSame emits op as it is, on parts.
func (p *partitioner) emitSame(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	attrs := op.Attrs
	if op.Kind.Has(ir.Collective) {
		attrs = With(attrs, "channel_handle", p.channel())
	}
	return p.emitAs(op, a, in, attrs)
}

func With(attrs ir.Attrs, name string, a ir.Attr) ir.Attrs {
	attrs.Set(name, a)
	return attrs
}

// emitAs emits op with other operands and attributes and the types of parts.
func (p *partitioner) emitAs(op *ir.Op, a *assignment, in []*ir.Value, attrs ir.Attrs) []*ir.Value {
	return p.emitTyped(op, in, attrs, p.partTypes(op, a))
}

// partTypes are the types of the parts of op's results.
func (p *partitioner) partTypes(op *ir.Op, a *assignment) []*ir.Type {
	types := make([]*ir.Type, len(op.Results))
	for i, v := range op.Results {
		types[i] = p.local(v.Type, a.results[i])
	}
	return types
}

// emitTyped is emitAs with results of other types.
func (p *partitioner) emitTyped(op *ir.Op, in []*ir.Value, attrs ir.Attrs, types []*ir.Type) []*ir.Value {
	n := p.build.Emit(op.Kind, in, attrs, p.copyRegions(op), types)
	n.Spelling = op.Spelling
	for i, v := range op.Results {
		n.Results[i].Name = v.Name
	}
	return n.Results
}

// copyRegions copies regions that work on numbers, such as the combiner of a
// reduction.
func (p *partitioner) copyRegions(op *ir.Op) []*ir.Block {
	if len(op.Regions) == 0 {
		return nil
	}
	sub := make(map[*ir.Value]*ir.Value)
	for _, v := range op.Captures() {
		sub[v] = p.get(v, p.wholeLayout(v))
	}
	var out []*ir.Block
	for _, r := range op.Regions {
		out = append(out, p.f.CopyBlock(r, sub))
	}
	return out
}

// emitDynamicSlice: in a dimension that is cut, the device takes of the window
// what stands in its part, and zeros for the rest.
func (p *partitioner) emitDynamicSlice(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	b := &p.build
	whole, window, x, in := op.Operands[0].Type.Shape, op.Result().Type.Shape, in[0], slices.Clone(in)
	sizes := slices.Clone(p.local(op.Result().Type, a.results[0]).Shape)
	places := make([]*ir.Value, len(sizes)) // of the window, counted from this device's part
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
		// The taken elements stand at most as far from the window as it is long.
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
func (p *partitioner) placeIn(start *ir.Value, last int, offset *ir.Value) *ir.Value {
	b := &p.build
	t := start.Type
	inside := b.Emit(ir.Clamp, []*ir.Value{b.Splat(t, 0), start, b.Splat(t, float64(last))}, nil, nil, nil).Result()
	return b.Sub(b.Convert(inside, ir.I32), offset)
}

// emitUpdate: where the updated window lies in a dimension that is cut, the
// device writes the window into its part with room for one more on either
// side, and drops the rooms.
func (p *partitioner) emitUpdate(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
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

// emitReverse: in a dimension that is cut, the parts change places, too.
func (p *partitioner) emitReverse(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	v := p.emitAs(op, a, in, op.Attrs)[0]
	for _, d := range op.Ints("dimensions") {
		if axes := a.results[0][d]; len(axes) > 0 {
			v = p.permute(v, ir.AxisShift{Mesh: p.mesh.Name, Axes: axes, Reverse: true})
		}
	}
	v.Name = op.Result().Name
	return []*ir.Value{v}
}

// emitReduce: the initial value must come in once, not once per device.
func (p *partitioner) emitReduce(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	axes := a.partial()
	if len(axes) == 0 {
		return p.emitAs(op, a, in, op.Attrs)
	}
	k := ir.CombinerOf(op.Regions[0])
	a.combined = true
	if k == ir.Invalid {
		return p.reduceGathered(op, a, in, axes)
	}
	t := op.Result().Type
	init, once := in[1], facts.IsNeutral(k, op.Operands[1]) || isIdempotent(k)
	if !once {
		in = []*ir.Value{in[0], p.build.Const(facts.Neutral(k, t.Elem))}
	}
	part := p.emitAs(op, a, in, op.Attrs)[0]
	left, rest := p.kept(op.Result(), axes, k)
	v, at := p.combine(k, part, t, a.results[0], p.layoutOf(op.Result()), rest)
	a.results[0], a.left, a.by = at, left, k
	if !once {
		v = p.build.Binary(k, p.onFirst(p.build.Broadcast(init, v.Type.Shape), left, k), v)
		v.Name = part.Name
	}
	return []*ir.Value{v}
}

// reduceGathered reduces parts by any region: the partial results of all
// devices are put side by side and reduced once more.
func (p *partitioner) reduceGathered(op *ir.Op, a *assignment, in []*ir.Value, axes []ir.AxisRef) []*ir.Value {
	n := p.mesh.RefsSize(axes)
	parts := p.emitAs(op, a, in, op.Attrs)
	again := slices.Clone(in)
	for i, v := range parts {
		row := p.build.Reshape(v, append([]int{1}, v.Type.Shape...)...)
		again[i] = p.collective(ir.AllGather, row, v.Type.WithShape(append([]int{n}, v.Type.Shape...)...), p.sortedAxes(axes), nil,
			ir.AttrsOf(ir.NamedAttr{Name: "all_gather_dim", Attr: ir.I64Attr(0)}))
	}
	return p.emitAs(op, a, again, With(op.Attrs, "dimensions", ir.Ints{0}))
}

// isIdempotent reports whether combining a value with itself by k gives it back.
func isIdempotent(k ir.Kind) bool {
	return k == ir.Maximum || k == ir.Minimum || k == ir.And || k == ir.Or
}
