package ir

// The functions in this file compute with lists of axes and sub-axes. A full axis
// of n devices is the sub-axis (1)n of itself; lists are kept in the form in which
// no two neighbours can be merged.

// Span is r as a sub-axis: its pre-size, the product of the sizes major to it
// within its axis, and its size.
func (m *Mesh) Span(r AxisRef) (pre, size int) {
	if r.Size == 0 {
		return 1, m.AxisSize(r.Name)
	}
	return r.Pre, r.Size
}

// SubAxis is the sub-axis "name":(pre)size, or the full axis if it is all of it.
func (m *Mesh) SubAxis(name string, pre, size int) AxisRef {
	if pre == 1 && size == m.AxisSize(name) {
		return Ax(name)
	}
	return AxisRef{Name: name, Pre: pre, Size: size}
}

// JoinAxes is a followed by b, with the last of a and the first of b merged if they
// are consecutive sub-axes of one axis. It may reuse a's memory.
func (m *Mesh) JoinAxes(a, b []AxisRef) []AxisRef {
	for _, r := range b {
		if n := len(a); n > 0 && a[n-1].Name == r.Name {
			pre, size := m.Span(a[n-1])
			if nextPre, nextSize := m.Span(r); pre*size == nextPre {
				a[n-1] = m.SubAxis(r.Name, pre, size*nextSize)
				continue
			}
		}
		a = append(a, r)
	}
	return a
}

// IsPrefix reports whether r is s or a major sub-axis of it.
func (m *Mesh) IsPrefix(r, s AxisRef) bool {
	if r.Name != s.Name {
		return false
	}
	pre, size := m.Span(r)
	otherPre, otherSize := m.Span(s)
	return pre == otherPre && otherSize%size == 0
}

// Contains reports whether s is r or a sub-axis of it.
func (m *Mesh) Contains(r, s AxisRef) bool {
	if r.Name != s.Name {
		return false
	}
	pre, size := m.Span(r)
	otherPre, otherSize := m.Span(s)
	return pre <= otherPre && otherPre*otherSize <= pre*size
}

// PrefixOutside is the largest major sub-axis of r that overlaps none of others;
// false where there is none.
func (m *Mesh) PrefixOutside(r AxisRef, others []AxisRef) (AxisRef, bool) {
	for _, o := range others {
		if !r.Overlaps(o) {
			continue
		}
		pre, size := m.Span(r)
		otherPre, _ := m.Span(o)
		if otherPre <= pre || otherPre%pre != 0 || size%(otherPre/pre) != 0 {
			return AxisRef{}, false
		}
		r = m.SubAxis(r.Name, pre, otherPre/pre)
	}
	return r, true
}
