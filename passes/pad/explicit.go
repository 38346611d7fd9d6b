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
		d.inSteps(op, constrained(s))
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
		ir.NamedAttr{Name: "reduction_op", Attr: op.Attrs.Get("reduction_op")})
	d.inSteps(op, explicitStep{ir.SdyAllReduce, attrs, reduced}, constrained(s))
}

// explicitUnreduced: along an axis that does not divide the operand it is replicated,
// and the value of one device is the term that counts. Where an axis that does not
// divide begins in those that the result keeps, the operand has lost these as well.
func (d *padder) explicitUnreduced(op *ir.Op, in, s *ir.Sharding) {
	lists := op.AxisLists("axes")
	var lost []ir.AxisRef
	var steps []explicitStep
	from := in.Clone()
	for e, axes := range lists {
		kept, gone := d.keptAxes(s.Axes(e), axes, in.Axes(e))
		lost, lists[e] = append(lost, gone...), kept
		from.Dims[e] = ir.DimSharding{Axes: d.mesh.JoinAxes(slices.Clone(s.Axes(e)), kept)}
		if steps == nil && !slices.Equal(from.Axes(e), in.Axes(e)) {
			steps = append(steps, constrained(from))
		}
	}
	lost = d.mesh.JoinAxes(nil, layout.SortedAxes(d.mesh, lost))
	if sharded := slices.Concat(lists...); len(sharded) > 0 {
		first := s
		if len(lost) > 0 {
			first = s.Clone()
			first.Unreduced = d.mesh.JoinAxes(nil, layout.SortedAxes(d.mesh, slices.Concat(layout.UnreducedOf(in), sharded)))
		}
		steps = append(steps, explicitStep{op.Kind, ir.AttrsOf(ir.NamedAttr{Name: "axes", Attr: layout.ListsAttr(lists)}), first})
	}
	if len(lost) > 0 {
		steps = append(steps, explicitStep{ir.ReplicatedToUnreduced, ir.AttrsOf(ir.NamedAttr{Name: "axes", Attr: layout.AxesAttr(lost)}), s})
	}
	d.inSteps(op, steps...)
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

// An explicitStep is one of the ops that an explicit collective becomes, without the
// sharding of its result among its attributes.
type explicitStep struct {
	kind  ir.Kind
	attrs ir.Attrs
	s     *ir.Sharding // of the result
}

func constrained(s *ir.Sharding) explicitStep { return explicitStep{ir.ShardingConstraint, nil, s} }

// inSteps makes op the first of steps, and emits the others after it, of which the
// last one has its result.
func (d *padder) inSteps(op *ir.Op, steps ...explicitStep) {
	v := op.Result()
	name := v.Name
	for i, step := range steps {
		key := "out_sharding"
		if step.kind == ir.ShardingConstraint {
			key = "sharding"
		}
		step.attrs.Set(key, step.s)
		if i == 0 {
			op.Kind, op.Attrs = step.kind, step.attrs
		} else {
			v = d.build.Emit(step.kind, []*ir.Value{v}, step.attrs, nil, []*ir.Type{v.Type}).Result()
			d.sub[op.Result().ID] = v
		}
		v.Name, v.Sharding = name, step.s
	}
}
