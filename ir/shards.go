package ir

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

// Cut returns what device holds of l when l lies on m as s says; the sizes
// must divide. A nil s, or one that cuts nothing, is l itself.
func Cut(l *Literal, s *Sharding, m *Mesh, device int) *Literal {
	t := s.Local(l.Type, m)
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
// and of which device i holds parts[i]. Where devices hold the same part, it
// is the first one's.
func Join(m *Mesh, s *Sharding, t *Type, parts []*Literal) *Literal {
	if s.Local(t, m).Equal(t) {
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
	part := s.Local(t, m)
	rank := t.Rank()
	last := rank // dimensions from last on are whole: one run
	for last > 0 && part.Shape[last-1] == t.Shape[last-1] {
		last--
	}
	run := t.Elem.Size()
	for _, n := range part.Shape[max(last-1, 0):] {
		run *= n
	}
	local := 0
	var walk func(dim, global int)
	walk = func(dim, global int) {
		if dim < rank {
			global = global*t.Shape[dim] + s.Part(m, device, dim)*part.Shape[dim]
		}
		if dim >= last-1 {
			for _, n := range t.Shape[min(dim+1, rank):] {
				global *= n
			}
			visit(global*t.Elem.Size(), local, run)
			local += run
			return
		}
		for i := range part.Shape[dim] {
			walk(dim+1, global+i)
		}
	}
	if run > 0 && part.NumElements() > 0 {
		walk(0, 0)
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
