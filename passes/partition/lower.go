package partition

import (
	"slices"

	"ppc/ir"
	"ppc/passes/layout"
)

// The functions in this file make of Shardy's explicit collectives, which say
// between which layouts a value moves, those of StableHLO on x, this device's
// shard of the operand.

func (p *localizer) allGather(op *ir.Op, x *ir.Value) *ir.Value {
	for d, axes := range op.AxisLists("gathering_axes") {
		if len(axes) > 0 {
			x = p.collective(ir.AllGather, x, resized(x.Type, d, p.mesh.RefsSize(axes), 1), axes, nil, ir.AttrsOf(
				ir.NamedAttr{Name: "all_gather_dim", Attr: ir.I64Attr(d)})).Named(x.Name)
		}
	}
	return x
}

// allSlice takes this device's slice of x.
func (p *localizer) allSlice(op *ir.Op, x *ir.Value) *ir.Value {
	sizes, starts := slices.Clone(x.Type.Shape), make([]*ir.Value, x.Type.Rank())
	for d, axes := range op.AxisLists("slicing_axes") {
		sizes[d] /= p.mesh.RefsSize(axes)
		starts[d] = p.offset(axes, sizes[d])
	}
	return p.build.DynamicSlice(x, starts, sizes...)
}

func (p *localizer) allToAll(op *ir.Op, x *ir.Value) *ir.Value {
	for _, e := range op.Exchanges() {
		n := p.mesh.RefsSize(e.Axes)
		x = p.collective(ir.AllToAll, x, resized(resized(x.Type, e.From, n, 1), e.To, 1, n), e.Axes, nil, ir.AttrsOf(
			ir.NamedAttr{Name: "split_dimension", Attr: ir.I64Attr(e.To)},
			ir.NamedAttr{Name: "concat_dimension", Attr: ir.I64Attr(e.From)},
			ir.NamedAttr{Name: "split_count", Attr: ir.I64Attr(n)})).Named(x.Name)
	}
	return x
}

func (p *localizer) collectivePermute(op *ir.Op, x *ir.Value) *ir.Value {
	pairs := layout.PermutePairs(p.mesh, p.layoutOf(op.Operands[0]), p.layoutOf(op.Result()))
	if len(pairs.From) == 0 {
		return x
	}
	return p.permute(x, pairs)
}

func (p *localizer) allReduce(op *ir.Op, x *ir.Value) *ir.Value {
	return p.reduceAlong(x, layout.ReductionAxes(op), layout.ReductionOf(op))
}

func (p *localizer) reduceScatter(op *ir.Op, x *ir.Value) *ir.Value {
	for d, axes := range op.AxisLists("reduce_scatter_axes") {
		if len(axes) > 0 {
			x = p.scatterAlong(x, resized(x.Type, d, 1, p.mesh.RefsSize(axes)), d, axes, layout.ReductionOf(op)).Named(x.Name)
		}
	}
	return x
}

// replicatedToUnreduced leaves x on the first device along the axes.
func (p *localizer) replicatedToUnreduced(op *ir.Op, x *ir.Value) *ir.Value {
	b := &p.build
	first := b.Compare("EQ", p.coord(op.AxisRefs("axes")), b.I32(0))
	return b.Select(first, x, b.Broadcast(b.Const(ir.Add.Neutral(x.Type.Elem)), x.Type.Shape))
}

// shardedToUnreduced puts x into zeros.
func (p *localizer) shardedToUnreduced(op *ir.Op, x *ir.Value) *ir.Value {
	b := &p.build
	zeros := b.Splat(p.local(op.Result().Type, p.layoutOf(op.Result())), 0)
	starts := make([]*ir.Value, x.Type.Rank())
	for d, axes := range op.AxisLists("axes") {
		starts[d] = p.offset(axes, x.Type.Shape[d])
	}
	return b.DynamicUpdateSlice(zeros, x, starts)
}

// reduceAlong reduces x along axes by k.
func (p *localizer) reduceAlong(x *ir.Value, axes []ir.AxisRef, k ir.Kind) *ir.Value {
	return p.collective(ir.AllReduce, x, x.Type, axes, p.combiner(k, x.Type.Elem), nil)
}

// scatterAlong reduces x along axes by k, of which each device gets a shard of
// dimension d, of type t.
func (p *localizer) scatterAlong(x *ir.Value, t *ir.Type, d int, axes []ir.AxisRef, k ir.Kind) *ir.Value {
	return p.collective(ir.ReduceScatter, x, t, axes, p.combiner(k, t.Elem), ir.AttrsOf(
		ir.NamedAttr{Name: "scatter_dimension", Attr: ir.I64Attr(d)}))
}

// combiner is the region by which k combines; a sum of booleans is true where one
// is.
func (p *localizer) combiner(k ir.Kind, elem ir.DType) *ir.Block {
	if k == ir.Add && elem == ir.I1 {
		k = ir.Or
	}
	return p.build.Combiner(k, elem)
}

// resized is t with times the size of dimension d, divided by parts.
func resized(t *ir.Type, d, times, parts int) *ir.Type {
	shape := slices.Clone(t.Shape)
	shape[d] = shape[d] * times / parts
	return t.WithShape(shape...)
}

// collective emits a collective over the devices that differ along axes.
func (p *localizer) collective(k ir.Kind, v *ir.Value, t *ir.Type, axes []ir.AxisRef, region *ir.Block, attrs ir.Attrs) *ir.Value {
	if !p.replicas {
		attrs.Set("channel_handle", p.channel())
	}
	attrs.Set("replica_groups", ir.MeshAxes{Mesh: p.mesh.Name, Axes: p.mesh.JoinAxes(nil, axes)})
	if k != ir.AllToAll && !p.replicas {
		attrs.Set("use_global_device_ids", ir.Unit{})
	}
	var regions []*ir.Block
	if region != nil {
		regions = []*ir.Block{region}
	}
	return p.build.Emit(k, []*ir.Value{v}, attrs, regions, []*ir.Type{t}).Result()
}

// channel returns a channel that no other collective has.
func (p *localizer) channel() ir.Channel {
	p.channels++
	return ir.Channel{Handle: p.channels, Type: 1}
}

// permute emits a permute; pairs is an AxisShift or an AxisMove.
func (p *localizer) permute(v *ir.Value, pairs ir.Attr) *ir.Value {
	attrs := ir.AttrsOf(ir.NamedAttr{Name: "source_target_pairs", Attr: pairs})
	if !p.replicas {
		attrs.Set("channel_handle", p.channel())
	}
	return p.build.Emit(ir.CollectivePermute, []*ir.Value{v}, attrs, nil, []*ir.Type{v.Type}).Result()
}

// broadcastFrom is v as one device has it: that sends it to the first device of
// the mesh, if it is another, from where all get it.
func (p *localizer) broadcastFrom(v *ir.Value, device int) *ir.Value {
	if p.mesh.Size() == 1 {
		return v
	}
	var axes []ir.AxisRef
	for _, a := range p.mesh.Axes {
		axes = append(axes, ir.Ax(a.Name))
	}
	if place := p.mesh.Place(device); place > 0 {
		v = p.permute(v, ir.AxisShift{Mesh: p.mesh.Name, Axes: axes, Shift: -place, Wrap: true})
	}
	attrs := ir.AttrsOf(ir.NamedAttr{Name: "replica_groups", Attr: ir.MeshAxes{Mesh: p.mesh.Name, Axes: axes}})
	if !p.replicas {
		attrs.Set("channel_handle", p.channel())
	}
	return p.build.Emit(ir.CollectiveBroadcast, []*ir.Value{v}, attrs, nil, []*ir.Type{v.Type}).Result()
}
