package ir

import (
	"slices"
)

// Coordinate is the coordinate of device along the axis or sub-axis r of m.
func (m *Mesh) Coordinate(device int, r AxisRef) int {
	return m.Place(device) / m.Stride(r) % m.RefSize(r)
}

// ShardIndex is the index, from 0, of the shard that device holds along dimension
// dim of a tensor with the sharding s.
func (s *Sharding) ShardIndex(m *Mesh, device, dim int) int {
	n := 0
	for _, r := range s.Axes(dim) {
		n = n*m.RefSize(r) + m.Coordinate(device, r)
	}
	return n
}

// shardType is the type of one device's shard of a tensor of type t with the
// sharding s. Where axes do not divide a size, all shards are padded to the size of
// the first; see [ShardOf].
func (s *Sharding) shardType(t *Type, m *Mesh) *Type {
	shape := slices.Clone(t.Shape)
	for d := range shape {
		n := m.RefsSize(s.Axes(d))
		shape[d] = (shape[d] + n - 1) / n
	}
	return t.WithShape(shape...)
}

// ShardOf returns the shard of l, with the sharding s on m, that device holds.
// Where axes do not divide a size, the last shards are padded with zeros. Along
// unreduced axes the first device holds the value, and the others zeros (or copies,
// for a maximum or minimum). For a nil s, or a replicated one, it is l itself.
func ShardOf(l *Literal, s *Sharding, m *Mesh, device int) *Literal {
	t := s.shardType(l.Type, m)
	if s.neutralAt(m, device) {
		return SplatOf(t, 0)
	}
	if l.IsSplat() || t.Equal(l.Type) {
		return &Literal{Type: t, Data: l.Data}
	}
	part := &Literal{Type: t, Data: make([]byte, t.Bytes())}
	s.eachRow(l.Type, m, device, func(global, local, n int) {
		copy(part.Data[local:local+n], l.Data[global:])
	})
	return part
}

// FromShards is the inverse of ShardOf: the global tensor of type t with the
// sharding s on m whose shard on device i is shards[i], reduced along unreduced
// axes. Of replicated shards the first device's is taken.
func FromShards(m *Mesh, s *Sharding, t *Type, parts []*Literal) *Literal {
	parts = s.combined(m, parts)
	if s.shardType(t, m).Equal(t) {
		return &Literal{Type: t, Data: parts[0].Data}
	}
	full := &Literal{Type: t, Data: make([]byte, t.Bytes())}
	for device := len(parts) - 1; device >= 0; device-- {
		part := parts[device].Expand()
		s.eachRow(t, m, device, func(global, local, n int) {
			copy(full.Data[global:global+n], part[local:])
		})
	}
	return full
}

// eachRow visits the shard of device in a tensor of type t as runs of n bytes that
// are contiguous in both: from byte global on in the tensor, and from byte local on
// in the shard.
func (s *Sharding) eachRow(t *Type, m *Mesh, device int, visit func(global, local, n int)) {
	part := s.shardType(t, m)
	rank := t.Rank()
	last := rank - 1 // dimensions after last are not sharded: one run
	inner := t.Elem.Size()
	for last > 0 && part.Shape[last] == t.Shape[last] {
		inner *= t.Shape[last]
		last--
	}
	var walk func(dim, global, local int)
	walk = func(dim, global, local int) {
		from := s.ShardIndex(m, device, dim) * part.Shape[dim]
		n := min(part.Shape[dim], t.Shape[dim]-from)
		global, local = global*t.Shape[dim]+from, local*part.Shape[dim]
		switch {
		case n <= 0:
		case dim == last:
			visit(global*inner, local*inner, n*inner)
		default:
			for i := range n {
				walk(dim+1, global+i, local+i)
			}
		}
	}
	switch {
	case part.NumElements() == 0:
	case rank == 0:
		visit(0, 0, inner)
	default:
		walk(0, 0, 0)
	}
}

// Expand returns the bytes of all elements of l, also if it is a splat.
func (l *Literal) Expand() []byte {
	if !l.IsSplat() {
		return l.Data
	}
	data := make([]byte, 0, l.Type.Bytes())
	for range l.Type.NumElements() {
		data = append(data, l.Data...)
	}
	return data
}
