package partition

import (
	"slices"

	"ppc/ir"
	"ppc/passes/layout"
)

// reshard emits what turns v, a part of a tensor of type t that lies as from
// says and is partial along some axes, into the part that lies as to says.
func (p *partitioner) reshard(v *ir.Value, t *ir.Type, from, to layout.Layout, partial ...ir.AxisRef) *ir.Value {
	name, at := v.Name, from
	moves := p.resharder.Plan(t, from, to, partial...).Moves
	for len(moves) > 0 {
		m := moves[0]
		switch m.Kind {
		case layout.CutMove:
			n := 1
			for n < len(moves) && moves[n].Kind == layout.CutMove {
				n++
			}
			v = p.cut(v, moves[:n])
			m, moves = moves[n-1], moves[n-1:]
		case layout.ExchangeMove:
			v = p.collective(ir.AllToAll, v, p.local(t, m.Next), m.Axes, nil, ir.AttrsOf(
				ir.NamedAttr{Name: "split_dimension", Attr: ir.I64Attr(m.To)},
				ir.NamedAttr{Name: "concat_dimension", Attr: ir.I64Attr(m.Dim)},
				ir.NamedAttr{Name: "split_count", Attr: ir.I64Attr(p.mesh.RefsSize(m.Axes))}))
		case layout.JoinMove:
			v = p.collective(ir.AllGather, v, p.local(t, m.Next), m.Axes, nil, ir.AttrsOf(
				ir.NamedAttr{Name: "all_gather_dim", Attr: ir.I64Attr(m.Dim)}))
		case layout.PlaceMove:
			v = p.permute(v, p.placePairs(at, m.Next))
		}
		at, moves = m.Next, moves[1:]
		v.Name = name
	}
	return v
}

// cut takes this device's part of v by one dynamic_slice.
func (p *partitioner) cut(v *ir.Value, moves []layout.Move) *ir.Value {
	axes := make([][]ir.AxisRef, v.Type.Rank())
	for _, m := range moves {
		axes[m.Dim] = append(axes[m.Dim], m.Axes...)
	}
	sizes, starts := slices.Clone(v.Type.Shape), make([]*ir.Value, v.Type.Rank())
	for d := range axes {
		sizes[d] /= p.mesh.RefsSize(axes[d])
		starts[d] = p.offset(axes[d], sizes[d])
	}
	return p.build.DynamicSlice(v, starts, sizes...)
}

// offset is where this device's part begins in a dimension that is cut along
// axes into parts of the given size.
func (p *partitioner) offset(axes []ir.AxisRef, size int) *ir.Value {
	c := p.coord(axes)
	if size == 1 || len(axes) == 0 {
		return c
	}
	return p.build.Mul(c, p.build.I32(size))
}

// A coordCopy is a coordinate that has been computed.
type coordCopy struct {
	key string
	v   *ir.Value
}

// coord is this device's coordinate along axes, major first, as a tensor<i32>.
func (p *partitioner) coord(axes []ir.AxisRef) *ir.Value {
	key := layout.Layout{axes}.String()
	for _, c := range p.coords {
		if c.key == key {
			return c.v
		}
	}
	v := p.makeCoord(axes)
	p.coords = append(p.coords, coordCopy{key, v})
	return v
}

func (p *partitioner) makeCoord(axes []ir.AxisRef) *ir.Value {
	b := &p.build
	if len(axes) == 0 {
		return b.I32(0)
	}
	if parts := p.digits(axes); len(parts) > len(axes) {
		return p.coord(parts)
	}
	if len(axes) > 1 && !p.neighbours(axes[0], axes[1]) {
		major, minor := p.coord(axes[:1]), p.coord(axes[1:])
		return b.Add(b.Mul(major, b.I32(p.mesh.RefsSize(axes[1:]))), minor)
	}
	n := 1 // so many axes make one run of numbers
	for n < len(axes) && p.neighbours(axes[n-1], axes[n]) {
		n++
	}
	if n < len(axes) {
		major, minor := p.coord(axes[:n]), p.coord(axes[n:])
		return b.Add(b.Mul(major, b.I32(p.mesh.RefsSize(axes[n:]))), minor)
	}
	v, all, stride, size := p.rank, p.mesh.Size(), p.stride(axes[n-1]), p.mesh.RefsSize(axes)
	if stride == 0 { // it is no digit, but the whole axis is made of such
		pre, size := p.mesh.Span(axes[0])
		axis := ir.Ax(axes[0].Name)
		v, all = func() *ir.Value { return p.coord([]ir.AxisRef{axis}) }, p.mesh.RefSize(axis)
		stride = all / (pre * size)
	}
	c := v()
	if stride > 1 {
		c = b.Div(c, b.I32(stride))
	}
	if stride*size < all {
		c = b.Binary(ir.Remainder, c, b.I32(size))
	}
	return c
}

// digits is axes in the parts that are digits of what rank counts.
func (p *partitioner) digits(axes []ir.AxisRef) []ir.AxisRef {
	var out []ir.AxisRef
	for _, r := range axes {
		if ds := p.mesh.Digits(r); len(ds) > 1 {
			out = append(out, ds...)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// stride is how far rank counts from one device along r to the next; 0 where r
// is no digit.
func (p *partitioner) stride(r ir.AxisRef) int {
	switch {
	case p.mesh.DeviceIDs != nil:
		return p.mesh.Stride(r)
	case p.mesh.Digits(r) == nil:
		return 0
	}
	return p.mesh.DeviceStride(r)
}

// neighbours reports whether rank counts r after s.
func (p *partitioner) neighbours(r, s ir.AxisRef) bool {
	n := p.stride(s)
	return n > 0 && p.stride(r) == n*p.mesh.RefSize(s)
}

// rank is the number of this device, or where it stands in the grid if the
// mesh lists its devices.
func (p *partitioner) rank() *ir.Value {
	const key = "rank"
	for _, c := range p.coords {
		if c.key == key {
			return c.v
		}
	}
	b := &p.build
	id := ir.PartitionID
	if p.replicas {
		id = ir.ReplicaID
	}
	v := b.Convert(b.Emit(id, nil, nil, nil, nil).Result(), ir.I32)
	if ids := p.mesh.DeviceIDs; ids != nil {
		place := make([]int, len(ids))
		for i, id := range ids {
			place[id] = i
		}
		table := b.Const(ir.Ints64(ir.Tensor(ir.I32, len(ids)), place...))
		v = b.Reshape(b.DynamicSlice(table, []*ir.Value{v}, 1))
	}
	p.coords = append(p.coords, coordCopy{key, v})
	return v
}

// collective emits a collective over the devices that differ along axes.
func (p *partitioner) collective(k ir.Kind, v *ir.Value, t *ir.Type, axes []ir.AxisRef, region *ir.Block, attrs ir.Attrs) *ir.Value {
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
func (p *partitioner) channel() ir.Channel {
	p.channels++
	return ir.Channel{Handle: p.channels, Type: 1}
}

// permute emits a permute; pairs is an AxisShift or an AxisMove.
func (p *partitioner) permute(v *ir.Value, pairs ir.Attr) *ir.Value {
	attrs := ir.AttrsOf(ir.NamedAttr{Name: "source_target_pairs", Attr: pairs})
	if !p.replicas {
		attrs.Set("channel_handle", p.channel())
	}
	return p.build.Emit(ir.CollectivePermute, []*ir.Value{v}, attrs, nil, []*ir.Type{v.Type}).Result()
}

// placePairs are the pairs that bring each block of a tensor from where it
// lies by one layout to where it lies by another of the same part sizes. Along
// axes that neither uses, nothing moves.
func (p *partitioner) placePairs(from, to layout.Layout) ir.AxisMove {
	s := layout.PlanSearch{Mesh: p.mesh}
	from, to = s.Atoms(from, to)
	a := ir.AxisMove{Mesh: p.mesh.Name, From: slices.Concat(from...), To: slices.Concat(to...)}
	for _, r := range p.meshParts(from, to) { // blocks that several devices have
		if !from.Uses(r) && to.Uses(r) {
			a.From = append(a.From, r)
		}
		if from.Uses(r) && !to.Uses(r) {
			a.To = append(a.To, r)
		}
	}
	for len(a.From) > 0 && a.From[0] == a.To[0] {
		a.From, a.To = a.From[1:], a.To[1:]
	}
	for n := len(a.From) - 1; n >= 0 && a.From[n] == a.To[n]; n-- {
		a.From, a.To = a.From[:n], a.To[:n]
	}
	return a
}

// meshParts is every axis of the mesh, cut where an axis of the layouts begins
// or ends.
func (p *partitioner) meshParts(ls ...layout.Layout) []ir.AxisRef {
	var out []ir.AxisRef
	for _, a := range p.mesh.Axes {
		bounds := []int{a.Size}
		for _, l := range ls {
			for _, r := range slices.Concat(l...) {
				if r.Name == a.Name {
					pre, size := p.mesh.Span(r)
					bounds = append(bounds, pre, pre*size)
				}
			}
		}
		slices.Sort(bounds)
		pre := 1
		for _, b := range slices.Compact(bounds) {
			if b > pre {
				out = append(out, p.mesh.SubAxis(a.Name, pre, b/pre))
				pre = b
			}
		}
	}
	return out
}

// SortedAxes is axes in the order of the mesh.
func (p *partitioner) sortedAxes(axes []ir.AxisRef) []ir.AxisRef {
	return layout.SortedAxes(p.mesh, axes)
}
