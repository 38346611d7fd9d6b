package ir

import "slices"

// Constraints and result types of the pp ops and of Shardy's.

// inferStack: C1 operand 0 is the activation, then `sides` side inputs, then
// weights, each with a leading dimension of size layers; results are the
// activation and scalars. That they fit the layer function is checked where
// the module is at hand.
func inferStack(op *Op) ([]*Type, *Rule) {
	sides, layers := op.Int("sides"), op.Int("layers")
	if layers < 1 {
		return nil, broken(1, "%d layers, want at least 1", layers)
	}
	if sides < 0 || sides >= len(op.Operands) {
		return nil, broken(1, "%d side inputs, but %d operands", sides, len(op.Operands))
	}
	for i, v := range op.Operands[1+sides:] {
		if !v.Type.IsTensor() || v.Type.Rank() == 0 || v.Type.Shape[0] != layers {
			return nil, broken(1, "weight %d is %s, want a leading dimension of %d layers", i, v.Type, layers)
		}
	}
	ts := typesOf(op.Results)
	ts[0] = op.Operands[0].Type
	for i, t := range ts[1:] {
		if !t.IsTensor() || t.Rank() != 0 {
			return nil, broken(1, "result %d is %s, want a scalar after the activation", i+1, t)
		}
	}
	return ts, nil
}

// inferScan: C1 the region takes the iteration number (tensor<i32>), the
// carries and one slice of each per-iteration input, whose leading dimension
// is trip_count; C2 it yields the carries and per-iteration outputs, which are
// stacked on a leading dimension.
func inferScan(op *Op) ([]*Type, *Rule) {
	n, trips, b := op.Int("carries"), op.Int("trip_count"), op.Regions[0]
	if n < 0 || n > len(op.Operands) || trips < 0 {
		return nil, broken(1, "%d carries and %d iterations, with %d operands", n, trips, len(op.Operands))
	}
	want := append([]*Type{Tensor(I32)}, typesOf(op.Operands[:n])...)
	for i, v := range op.Operands[n:] {
		t := v.Type
		if !t.IsTensor() || t.Rank() == 0 || t.Shape[0] != trips {
			return nil, broken(1, "per-iteration input %d is %s, want a leading dimension of %d", i, t, trips)
		}
		want = append(want, t.WithShape(t.Shape[1:]...))
	}
	if r := carried(1, "arguments of the region", typesOf(b.Args), want); r != nil {
		return nil, r
	}
	out := returned(b)
	if len(out) < n {
		return nil, broken(2, "the region yields %d values, want %d carries first", len(out), n)
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
func inferRotate(op *Op) ([]*Type, *Rule) {
	t := op.Operands[0].Type
	if !t.IsTensor() || t.Rank() == 0 {
		return nil, broken(1, "the operand is %s, want a leading stage dimension", t)
	}
	if fill := op.Word("edge") == "fill"; fill != (len(op.Operands) == 2) || fill && !op.Operands[1].Type.Equal(t) {
		return nil, broken(1, "an edge of %q with %d operands: fill takes a second one of type %s", op.Word("edge"), len(op.Operands), t)
	}
	if s := op.Int("shift"); s != 1 && s != -1 {
		return nil, broken(2, "shift is %d, want 1 or -1", s)
	}
	return []*Type{t}, nil
}

// inferCheckpoint: C1 the region takes the operands; its results are the op's.
func inferCheckpoint(op *Op) ([]*Type, *Rule) {
	if r := carried(1, "arguments of the region", typesOf(op.Regions[0].Args), typesOf(op.Operands)); r != nil {
		return nil, r
	}
	return returned(op.Regions[0]), nil
}

// inferManual, for sdy.manual_computation: C1 there is a sharding for each
// operand and result; C2 the region takes and returns as many values. What
// they say of a mesh is checked where the module is at hand.
func inferManual(op *Op) ([]*Type, *Rule) {
	in, out := op.Attrs.Get("in_shardings").(PerValue), op.Attrs.Get("out_shardings").(PerValue)
	region := op.Regions[0]
	switch {
	case len(in) != len(op.Operands):
		return nil, broken(1, "%d in_shardings for %d operands", len(in), len(op.Operands))
	case len(out) != len(op.Results):
		return nil, broken(1, "%d out_shardings for %d results", len(out), len(op.Results))
	case len(region.Args) != len(op.Operands):
		return nil, broken(2, "the region takes %d values, the op %d", len(region.Args), len(op.Operands))
	case len(returned(region)) != len(op.Results):
		return nil, broken(2, "the region returns %d values, the op %d", len(returned(region)), len(op.Results))
	}
	for _, a := range op.Attrs.Get("manual_axes").(Array) {
		if _, ok := a.(Str); !ok {
			return nil, broken(4, "manual axis %s is not a name", a)
		}
	}
	return typesOf(op.Results), nil
}
