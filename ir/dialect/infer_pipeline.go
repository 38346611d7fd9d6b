package dialect

import (
	"cmp"
	"slices"

	"ppc/ir"
)

// Constraints and result types of the pp ops and of Shardy's.

// inferStack: C1 the first operands are the `activations`, one where the attribute is
// not there, then `sides` side inputs, then weights, each with a leading dimension of
// size layers; results are the activations and scalars. That they fit the layer function is checked by InModule.
func inferStack(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	sides, layers := op.Int("sides"), op.Int("layers")
	if layers < 1 {
		return nil, ir.Broken(1, "%d layers, want at least 1", layers)
	}
	acts := op.Activations()
	if op.Attrs.Has("activations") && op.Int("activations") < 1 || acts > len(op.Operands) || acts > len(op.Results) {
		return nil, ir.Broken(1, "%s, but %s and %s", ir.Counted(op.Int("activations"), "activation"), ir.Counted(len(op.Operands), "operand"), ir.Counted(len(op.Results), "result"))
	}
	if sides < 0 || sides > len(op.Operands)-acts {
		return nil, ir.Broken(1, "%s, but %s", ir.Counted(sides, "side input"), ir.Counted(len(op.Operands), "operand"))
	}
	for i, v := range op.Operands[acts+sides:] {
		if !v.Type.IsTensor() || v.Type.Rank() == 0 || v.Type.Shape[0] != layers {
			return nil, ir.Broken(1, "weight %d is %s, want a leading dimension of %d layers", i, v.Type, layers)
		}
	}
	ts := ir.TypesOf(op.Results)
	copy(ts, ir.TypesOf(op.Operands[:acts]))
	for i, t := range ts[acts:] {
		if !t.IsTensor() || t.Rank() != 0 {
			return nil, ir.Broken(1, "result %d is %s, want a scalar after the activation", acts+i, t)
		}
	}
	return ts, nil
}

// inferGathered: C1 the element type to round to, if there is one, is a float,
// and so is the operand's.
func inferGathered(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	t := op.Operands[0].Type
	if !op.Attrs.Has("dtype") {
		return []*ir.Type{t}, nil
	}
	elem := ir.DTypeByName(op.Attrs.Str("dtype"))
	if !elem.IsFloat() || !t.IsTensor() || !t.Elem.IsFloat() {
		return nil, ir.Broken(1, "%s is rounded to %s, want floats", t, op.Attrs.Str("dtype"))
	}
	return []*ir.Type{t.WithElem(elem)}, nil
}

// inferScan: C1 the region takes the iteration number (tensor<i32>), the
// carries and one slice of each per-iteration input, whose leading dimension
// is trip_count; C2 it yields the carries and per-iteration outputs, which are
// stacked on a leading dimension.
func inferScan(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	n, trips, b := op.Int("carries"), op.Int("trip_count"), op.Regions[0]
	if n < 0 || n > len(op.Operands) || trips < 0 {
		return nil, ir.Broken(1, "%d carries and %s, with %s", n, ir.Counted(trips, "iteration"), ir.Counted(len(op.Operands), "operand"))
	}
	want := append([]*ir.Type{ir.Tensor(ir.I32)}, ir.TypesOf(op.Operands[:n])...)
	for i, v := range op.Operands[n:] {
		t := v.Type
		if !t.IsTensor() || t.Rank() == 0 || t.Shape[0] != trips {
			return nil, ir.Broken(1, "per-iteration input %d is %s, want a leading dimension of %d", i, t, trips)
		}
		want = append(want, t.WithShape(t.Shape[1:]...))
	}
	if r := carried(1, "arguments of the region", ir.TypesOf(b.Args), want); r != nil {
		return nil, r
	}
	out := returned(b)
	if len(out) < n {
		return nil, ir.Broken(2, "the region yields %s, want %d carries first", ir.Counted(len(out), "value"), n)
	}
	if r := carried(2, "carries yielded by the region", out[:n], want[1:1+n]); r != nil {
		return nil, r
	}
	ts := slices.Clone(out)
	for i, t := range ts[n:] {
		ts[n+i] = t.WithShape(append([]int{trips}, t.Shape...)...)
	}
	return ts, nil
}

// inferRotate: C1 a fill has the operand's type; C2 the shift is 1 or -1.
func inferRotate(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	t := op.Operands[0].Type
	if !t.IsTensor() || t.Rank() == 0 {
		return nil, ir.Broken(1, "the operand is %s, want a leading stage dimension", t)
	}
	if fill := op.Word("edge") == "fill"; fill != (len(op.Operands) == 2) || fill && !op.Operands[1].Type.Equal(t) {
		return nil, ir.Broken(1, "an edge of %q with %s: fill takes a second one of type %s", op.Word("edge"), ir.Counted(len(op.Operands), "operand"), t)
	}
	if s := op.Int("shift"); s != 1 && s != -1 {
		return nil, ir.Broken(2, "shift is %d, want 1 or -1", s)
	}
	return []*ir.Type{t}, nil
}

// inferCheckpoint: C1 the region takes the operands; its results are the op's.
func inferCheckpoint(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := carried(1, "arguments of the region", ir.TypesOf(op.Regions[0].Args), ir.TypesOf(op.Operands)); r != nil {
		return nil, r
	}
	return returned(op.Regions[0]), nil
}

// inferReshard, for sdy.reshard: C1 unreduced axes that stay so are combined as
// before; C2 those that become so are summed: a value cannot become the maximum of
// terms that do not exist yet.
func inferReshard(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	v, s := op.Operands[0], op.Attrs.Get("sharding").(*ir.Sharding)
	var had ir.Sharding
	if v.Sharding != nil {
		had = *v.Sharding
	}
	for _, r := range s.Unreduced {
		if kept := slices.ContainsFunc(had.Unreduced, r.Overlaps); kept && s.ReducedBy != had.ReducedBy {
			return nil, ir.Broken(1, "axis %s is combined by %s, not by %s as before", r, combination(s), combination(&had))
		} else if !kept && s.ReducedBy != "" {
			return nil, ir.Broken(2, "axis %s becomes unreduced by %s, want by sum", r, s.ReducedBy)
		}
	}
	return []*ir.Type{v.Type}, nil
}

// combination is how the unreduced axes of s are combined.
func combination(s *ir.Sharding) string { return cmp.Or(s.ReducedBy, "sum") }

// inferManual, for sdy.manual_computation: C1 there is a sharding for each operand
// and result; C2 the region takes and returns as many values. That they fit the
// mesh is checked by InModule.
func inferManual(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	in, out := op.Attrs.Get("in_shardings").(ir.PerValue), op.Attrs.Get("out_shardings").(ir.PerValue)
	region := op.Regions[0]
	switch {
	case len(in) != len(op.Operands):
		return nil, ir.Broken(1, "%d in_shardings for %s", len(in), ir.Counted(len(op.Operands), "operand"))
	case len(out) != len(op.Results):
		return nil, ir.Broken(1, "%d out_shardings for %s", len(out), ir.Counted(len(op.Results), "result"))
	case len(region.Args) != len(op.Operands):
		return nil, ir.Broken(2, "the region takes %s, the op %d", ir.Counted(len(region.Args), "value"), len(op.Operands))
	case len(returned(region)) != len(op.Results):
		return nil, ir.Broken(2, "the region returns %s, the op %d", ir.Counted(len(returned(region)), "value"), len(op.Results))
	}
	for _, a := range op.Attrs.Get("manual_axes").(ir.Array) {
		if _, ok := a.(ir.Str); !ok {
			return nil, ir.Broken(4, "manual axis %s is not a name", a)
		}
	}
	return ir.TypesOf(op.Results), nil
}

// inferNamed, for sdy.named_computation: C1 the region takes the operands; C2
// its results are the op's; C3 where shardings are given, there is one for
// each operand or result; C4 in namedFits.
func inferNamed(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	region := op.Regions[0]
	if r := carried(1, "arguments of the region", ir.TypesOf(region.Args), ir.TypesOf(op.Operands)); r != nil {
		return nil, r
	}
	for _, part := range []struct {
		name string
		n    int
	}{{"in_shardings", len(op.Operands)}, {"out_shardings", len(op.Results)}} {
		if per, ok := op.Attrs.Get(part.name).(ir.PerValue); ok && len(per) != part.n {
			return nil, ir.Broken(3, "%d %s, want %d", len(per), part.name, part.n)
		}
	}
	return returned(region), nil
}

// inferBarrier, for sdy.propagation_barrier: C1 the direction is NONE, FORWARD or
// BACKWARD, by number: one that lets both through is no barrier.
func inferBarrier(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := anyTensors(op); r != nil {
		return nil, r
	}
	if n := op.Int("allowed_direction"); n < 0 || n > 2 {
		return nil, ir.Broken(1, "allowed_direction is %d, want 0, 1 or 2: NONE, FORWARD or BACKWARD", n)
	}
	return ir.TypesOf(op.Operands), nil
}
