package partition

import (
	"ppc/ir"
	"ppc/passes/layout"
)

// offset is where this device's shard begins in a dimension that is sharded along
// axes into shards of the given size.
func (p *localizer) offset(axes []ir.AxisRef, size int) *ir.Value {
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
func (p *localizer) coord(axes []ir.AxisRef) *ir.Value {
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

func (p *localizer) makeCoord(axes []ir.AxisRef) *ir.Value {
	b := &p.build
	if len(axes) == 0 {
		return b.I32(0)
	}
	if parts := layout.Digits(p.mesh, axes); len(parts) > len(axes) {
		return p.coord(parts)
	}
	if len(axes) > 1 && !layout.Adjacent(p.mesh, axes[0], axes[1]) {
		major, minor := p.coord(axes[:1]), p.coord(axes[1:])
		return b.Add(b.Mul(major, b.I32(p.mesh.RefsSize(axes[1:]))), minor)
	}
	n := 1 // so many axes count as one
	for n < len(axes) && layout.Adjacent(p.mesh, axes[n-1], axes[n]) {
		n++
	}
	if n < len(axes) {
		major, minor := p.coord(axes[:n]), p.coord(axes[n:])
		return b.Add(b.Mul(major, b.I32(p.mesh.RefsSize(axes[n:]))), minor)
	}
	v, all, stride, size := p.rank, p.mesh.Size(), layout.Stride(p.mesh, axes[n-1]), p.mesh.RefsSize(axes)
	if stride == 0 { // it is no digit, but the axis that it is of is made of such
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

// rank is the number of this device, or its place in the grid if the
// mesh lists its devices.
func (p *localizer) rank() *ir.Value {
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
