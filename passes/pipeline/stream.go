package pipeline

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

// stream is the batch x as the input and output buffer, [S, m, b, …], which stage 0
// takes microbatch after microbatch from. Behind the last microbatch, where M is no
// multiple of S, it has zeros that are never read.
func (l *loop) stream(x, micro *ir.Value) *ir.Value {
	inner, m := micro.Type.Shape, l.Held()
	if more := l.S*m - l.M; more > 0 {
		none := l.b.Splat(ir.Tensor(x.Type.Elem), 0)
		none.Def.Attrs.Set(ir.KeyDontCare, ir.Unit{})
		edge := make([]int, x.Type.Rank())
		high := slices.Clone(edge)
		high[0] = more * inner[0]
		rows := x.Stated()
		local := l.across(x.Type, rows)
		x = l.b.Constrain(l.b.Pad(l.b.Constrain(x, local), none, edge, high, edge), local)
		if local != nil {
			x = l.b.Constrain(x, rows)
		}
	}
	return l.alongStages(l.b.Reshape(x, append([]int{l.S, m}, inner...)...), micro.Sharding, 1)
}

// across is s, of a batch of type t, with the mesh axes of its rows on later
// dimensions instead: rows are then added or dropped locally, at the cost of one
// all-to-all before and one after. It is nil where the rows are not sharded, or their
// axes do not divide the sizes of other dimensions; in explicit mode, which has no
// rule for dropping rows that are sharded, rows are then gathered along those axes.
func (l *loop) across(t *ir.Type, s *ir.Sharding) *ir.Sharding {
	if s == nil || len(s.Dims[0].Axes) == 0 {
		return nil
	}
	out := s.Clone()
	out.Dims[0] = ir.DimSharding{}
	if l.moved(t, out, s.Dims[0].Axes) {
		return out
	}
	whole := true
	for _, axis := range s.Dims[0].Axes {
		whole = l.moved(t, out, []ir.AxisRef{axis}) && whole
	}
	if !whole && !facts.ExplicitMode(l.m) {
		return nil
	}
	return out
}

// moved adds axes to the first dimension behind the rows whose size they divide, and
// reports whether there is one.
func (l *loop) moved(t *ir.Type, s *ir.Sharding, axes []ir.AxisRef) bool {
	for d := 1; d < t.Rank(); d++ {
		all := slices.Concat(s.Dims[d].Axes, axes)
		if t.Shape[d]%l.m.Meshes[0].RefsSize(all) == 0 {
			s.Dims[d] = ir.DimSharding{Axes: all}
			return true
		}
	}
	return false
}

// realign undoes the rotation of the output: iteration t puts the output of the
// last stage in slot t mod m, and the last S*m iterations fill the buffer. Those of
// the microbatches are the last M of them.
func (l *loop) realign(io, x *ir.Value) *ir.Value {
	m, t := l.Held(), x.Type
	more := l.S*m - l.M
	k := (l.Before() - more%m + m) % m
	if k > 0 {
		io = l.b.Concat(1, l.b.SliceDim(io, 1, k, m), l.b.SliceDim(io, 1, 0, k))
	}
	if more > 0 {
		b, rest := io.Type.Shape[2], io.Type.Shape[3:]
		rows := x.Stated()
		local := l.across(t, rows)
		io = l.b.Reshape(io, append([]int{l.S * m * b}, rest...)...)
		if local != nil {
			io = l.b.Constrain(io, rows)
		}
		return l.b.Constrain(l.b.SliceDim(l.b.Constrain(io, local), 0, more*b, l.S*m*b), local)
	}
	return l.b.Reshape(io, t.Shape...)
}
