package ir

import (
	"math"
	"slices"
)

// Shards of values with unreduced axes: the value is the reduction of its shards
// along them. ShardOf gives the value to the first device along the axes, and to
// the others the neutral element of the reduction.

// first is the place of the first device among those that differ from the one at
// a place only along the unreduced axes of s.
func (s *Sharding) first(m *Mesh, place int) int {
	if s == nil {
		return place
	}
	for _, r := range s.Unreduced {
		place -= place / m.Stride(r) % m.RefSize(r) * m.Stride(r)
	}
	return place
}

// neutralAt reports whether device holds zeros in place of its shard, since the
// value is a sum that is given to another device along the unreduced axes.
func (s *Sharding) neutralAt(m *Mesh, device int) bool {
	if s == nil || s.ReducedBy != "" {
		return false
	}
	place := m.Place(device)
	return s.first(m, place) != place
}

// combined is, by device, the reduction of the shards along the unreduced axes of
// s; only the first device along them has it.
func (s *Sharding) combined(m *Mesh, parts []*Literal) []*Literal {
	if s == nil || len(s.Unreduced) == 0 {
		return parts
	}
	out := slices.Clone(parts)
	for device, part := range parts {
		if at := m.Device(s.first(m, m.Place(device))); at != device {
			out[at] = combine(out[at], part, s.ReducedBy)
		}
	}
	return out
}

// combine is a and b added up, or the larger or smaller of each two elements.
func combine(a, b *Literal, by string) *Literal {
	out := &Literal{Type: a.Type, Data: slices.Clone(a.Expand())}
	t, size := a.Type.Elem.Part(), a.Type.Elem.Part().Size()
	other := b.Expand()
	for at := 0; at < len(out.Data); at += size {
		x, y := out.Data[at:], other[at:]
		if !t.IsFloat() {
			t.PutInt(x, combineInts(t, t.GetInt(x), t.GetInt(y), by))
			continue
		}
		switch v, w := t.GetFloat(x), t.GetFloat(y); by {
		case "max":
			t.PutFloat(x, math.Max(v, w))
		case "min":
			t.PutFloat(x, math.Min(v, w))
		default:
			t.PutFloat(x, v+w)
		}
	}
	return out
}

// combineInts adds or compares integers, signed and unsigned; the sum of booleans
// is their disjunction.
func combineInts(t DType, x, y int64, by string) int64 {
	less := x < y
	if t.Class() == Unsigned {
		less = uint64(x) < uint64(y)
	}
	switch {
	case by == "max" && less, by == "min" && !less:
		return y
	case by != "":
		return x
	case t == I1:
		return x | y
	}
	return x + y
}
