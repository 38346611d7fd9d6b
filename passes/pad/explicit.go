package pad

import (
	"slices"

	"ppc/ir"
	"ppc/passes/layout"
)

// Pad leaves explicit collectives on values as they are, of which some are
// sharded along fewer axes than before: those that do not divide are gone. What
// the collective says has to follow from its sides again.

// explicit makes op, an explicit collective, one between its operand and a result
// of the sharding s.
func (d *padder) explicit(op *ir.Op, s *ir.Sharding) {
	in := op.Operands[0].Sharding
	switch op.Kind {
	case ir.SdyAllReduce, ir.ReplicatedToUnreduced: // both sides have lost the same axes
		op.Attrs.Set("out_sharding", s)
	case ir.SdyReduceScatter:
		d.explicitScatter(op, in, s)
	case ir.ShardedToUnreduced:
		d.explicitUnreduced(op, in, s)
	default: // a move: it leads where its result is
		op.Kind, op.Attrs = ir.ShardingConstraint, ir.AttrsOf(ir.NamedAttr{Name: "sharding", Attr: s})
	}
}

// explicitScatter: a dimension that cannot be scattered is reduced, and the others
// are sharded afterwards.
func (d *padder) explicitScatter(op *ir.Op, in, s *ir.Sharding) {
	same := true
	lists := op.AxisLists("reduce_scatter_axes")
	for e, axes := range lists {
		same = same && slices.Equal(d.mesh.JoinAxes(slices.Clone(in.Axes(e)), axes), s.Axes(e))
	}
	if same {
		op.Attrs.Set("out_sharding", s)
		return
	}
	reduced := s.Clone()
	for e := range reduced.Dims {
		reduced.Dims[e].Axes = slices.Clone(in.Axes(e))
	}
	axes := d.mesh.JoinAxes(nil, layout.SortedAxes(d.mesh, slices.Concat(lists...)))
	attrs := ir.AttrsOf(ir.NamedAttr{Name: "reduction_axes", Attr: layout.AxesAttr(axes)},
		ir.NamedAttr{Name: "reduction_op", Attr: op.Attrs.Get("reduction_op")},
		ir.NamedAttr{Name: "out_sharding", Attr: reduced})
	d.splitExplicit(op, ir.SdyAllReduce, attrs, reduced,
		ir.ShardingConstraint, ir.AttrsOf(ir.NamedAttr{Name: "sharding", Attr: s}), s)
}

// explicitUnreduced: along an axis that does not divide the operand it is replicated,
// and the value of one device is the term that counts.
func (d *padder) explicitUnreduced(op *ir.Op, in, s *ir.Sharding) {
	lists := op.AxisLists("axes")
	var lost []ir.AxisRef
	for e, axes := range lists {
		kept, gone := d.keptAxes(s.Axes(e), axes, in.Axes(e))
		lost, lists[e] = append(lost, gone...), kept
	}
	lost = d.mesh.JoinAxes(nil, layout.SortedAxes(d.mesh, lost))
	replicated := ir.AttrsOf(ir.NamedAttr{Name: "axes", Attr: layout.AxesAttr(lost)}, ir.NamedAttr{Name: "out_sharding", Attr: s})
	switch sharded := slices.Concat(lists...); {
	case len(lost) == 0:
		op.Attrs.Set("out_sharding", s)
	case len(sharded) == 0:
		op.Kind, op.Attrs = ir.ReplicatedToUnreduced, replicated
	default:
		first := s.Clone()
		first.Unreduced = d.mesh.JoinAxes(nil, layout.SortedAxes(d.mesh, slices.Concat(layout.UnreducedOf(in), sharded)))
		attrs := ir.AttrsOf(ir.NamedAttr{Name: "axes", Attr: layout.ListsAttr(lists)}, ir.NamedAttr{Name: "out_sharding", Attr: first})
		d.splitExplicit(op, ir.ShardedToUnreduced, attrs, first, ir.ReplicatedToUnreduced, replicated, s)
	}
}

// keptAxes splits axes, which sharded a dimension after those of major, into the ones
// that still do where the dimension is sharded along has, and the rest.
func (d *padder) keptAxes(major, axes, has []ir.AxisRef) (kept, gone []ir.AxisRef) {
	left := max(1, d.mesh.RefsSize(has)/d.mesh.RefsSize(major))
	for _, a := range axes {
		pre, size := d.mesh.Span(a)
		n := min(left, size)
		if n > 1 {
			kept = append(kept, d.mesh.SubAxis(a.Name, pre, n))
		}
		if n < size {
			gone = append(gone, d.mesh.SubAxis(a.Name, pre*n, size/n))
		}
		left /= n
	}
	if !slices.Equal(d.mesh.JoinAxes(slices.Clone(major), kept), has) {
		return nil, axes
	}
	return kept, gone
}

// splitExplicit makes op one of another kind, and emits a second one after it,
// which has its result.
func (d *padder) splitExplicit(op *ir.Op, kind ir.Kind, attrs ir.Attrs, s *ir.Sharding, next ir.Kind, nextAttrs ir.Attrs, nextSharding *ir.Sharding) {
	r := op.Result()
	op.Kind, op.Attrs, r.Sharding = kind, attrs, s
	v := d.build.Emit(next, []*ir.Value{r}, nextAttrs, nil, []*ir.Type{r.Type}).Result()
	v.Name, v.Sharding = r.Name, nextSharding
	d.sub[r.ID] = v
}
