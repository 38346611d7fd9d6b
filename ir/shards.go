package ir

import (
	"slices"
)

// Coordinate is where device stands along the axis or sub-axis r of m.
func (m *Mesh) Coordinate(device int, r AxisRef) int {
	return m.Place(device) / m.Stride(r) % m.RefSize(r)
}

// Part is the number of the part that device holds of dimension dim of a
// tensor that lies as s says: 0 for the front of it.
func (s *Sharding) Part(m *Mesh, device, dim int) int {
	n := 0
	for _, r := range s.Axes(dim) {
		n = n*m.RefSize(r) + m.Coordinate(device, r)
	}
	return n
}

// partType is the type of one device's part of a tensor of type t that lies as
// s says. Where axes do not divide a size, parts are as long as the first; see
// [Cut].
func (s *Sharding) partType(t *Type, m *Mesh) *Type {
	shape := slices.Clone(t.Shape)
	for d := range shape {
		n := m.RefsSize(s.Axes(d))
		shape[d] = (shape[d] + n - 1) / n
	}
	return t.WithShape(shape...)
}

// Cut returns what device holds of l when l lies on m as s says. Where axes do
// not divide a size, the elements that the last parts lack are zeros. Of a value
// that is a sum along unreduced axes the first device along them holds all, and
// the others zeros. A nil s, or one that says nothing, is l itself.
func Cut(l *Literal, s *Sharding, m *Mesh, device int) *Literal {
	t := s.partType(l.Type, m)
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

// Join is the inverse of Cut: the tensor of type t that lies on m as s says
// and of which device i holds parts[i], combined along unreduced axes. Where
// devices hold the same part, it is the first one's.
func Join(m *Mesh, s *Sharding, t *Type, parts []*Literal) *Literal {
	parts = s.combined(m, parts)
	if s.partType(t, m).Equal(t) {
		return &Literal{Type: t, Data: parts[0].Data}
	}
	whole := &Literal{Type: t, Data: make([]byte, t.Bytes())}
	for device := len(parts) - 1; device >= 0; device-- {
		part := parts[device].Expand()
		s.eachRow(t, m, device, func(global, local, n int) {
			copy(whole.Data[global:global+n], part[local:])
		})
	}
	return whole
}

// eachRow visits the part of device in a tensor of type t as runs of n bytes
// that are contiguous in the whole, from byte global on, and in the part, from
// byte local on.
func (s *Sharding) eachRow(t *Type, m *Mesh, device int, visit func(global, local, n int)) {
	part := s.partType(t, m)
	rank := t.Rank()
	last := rank - 1 // dimensions after last are whole: one run
	inner := t.Elem.Size()
	for last > 0 && part.Shape[last] == t.Shape[last] {
		inner *= t.Shape[last]
		last--
	}
	var walk func(dim, global, local int)
	walk = func(dim, global, local int) {
		from := s.Part(m, device, dim) * part.Shape[dim]
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

// Expand returns the elements of l one by one, also where it is a splat.
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
