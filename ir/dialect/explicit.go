package dialect

import (
	"slices"

	"ppc/ir"
)

// The functions in this file check Shardy's explicit collectives, which state both
// the axes to communicate along and the sharding of the result: the latter must
// follow from the operand's sharding and the axes. A value without a sharding is
// replicated.

// An explicitSide is an explicit collective with the shardings of its operand and
// result.
type explicitSide struct {
	mesh    *ir.Mesh
	in, out *ir.Sharding
}

// shardedSides is explicitSides of an op whose operand must have a sharding.
func shardedSides(m *ir.Module, op *ir.Op) (*explicitSide, *ir.Rule) {
	s, r := explicitSides(m, op)
	if s != nil && saidSharding(op.Operands[0]) == nil {
		return nil, ir.Broken(1, "the operand has no sharding")
	}
	return s, r
}

// explicitSides is the shardings of op's operand and result; nil where that of the
// result is wrong by itself, which is reported elsewhere.
func explicitSides(m *ir.Module, op *ir.Op) (*explicitSide, *ir.Rule) {
	v, out := op.Operands[0], op.Attrs.Get("out_sharding").(*ir.Sharding)
	mesh := m.Mesh(out.Mesh)
	if mesh == nil || ir.SoundMesh(mesh) != nil || ir.FitsMesh(m, out, v.Type) != nil || !v.Type.IsTensor() {
		return nil, nil
	}
	in := saidSharding(v)
	if in == nil {
		in = ir.Replicated(out.Mesh, v.Type.Rank())
	}
	if ir.FitsMesh(m, in, v.Type) != nil || len(in.Dims) != len(out.Dims) {
		return nil, nil
	}
	return &explicitSide{mesh, in, out}, nil
}

// sameMesh checks that both sides are of one mesh.
func (s *explicitSide) sameMesh() *ir.Rule {
	if s.in.Mesh != s.out.Mesh {
		return ir.Broken(2, "the result is sharded over mesh %s, the operand over %s", ir.SymbolText(s.out.Mesh), ir.SymbolText(s.in.Mesh))
	}
	return nil
}

// axes checks that rs, the axes that the op names, are of the mesh, once each,
// and spelled in one way.
func (s *explicitSide) axes(lists ...[]ir.AxisRef) *ir.Rule {
	if r := ir.DistinctAxes(s.mesh, slices.Concat(lists...)); r != nil {
		return ir.Broken(3, "%s", r.Msg)
	}
	for _, rs := range lists {
		if r := ir.Mergeable(rs); r != nil {
			return ir.Broken(3, "%s", r.Msg)
		}
	}
	return nil
}

// lists are the axes that the attribute called name has for each dimension.
func (s *explicitSide) lists(op *ir.Op, name string) ([][]ir.AxisRef, *ir.Rule) {
	lists := op.AxisLists(name)
	if len(lists) != len(s.out.Dims) {
		return nil, ir.Broken(4, "%s for a result of rank %d", ir.Counted(len(lists), "list of axes"), len(s.out.Dims))
	}
	return lists, s.axes(lists...)
}

// becomes checks that dimension d of the result is sharded along axes.
func (s *explicitSide) becomes(d int, axes []ir.AxisRef) *ir.Rule {
	if got := s.out.Axes(d); !slices.Equal(got, axes) {
		return ir.Broken(5, "dimension %d of the result is sharded along %v, want %v", d, got, axes)
	}
	return nil
}

// without takes axes from the minor end of dimension d of the operand.
func (s *explicitSide) without(d int, axes []ir.AxisRef) ([]ir.AxisRef, *ir.Rule) {
	rest := s.in.Axes(d)
	for _, r := range slices.Backward(axes) {
		pre, size := s.mesh.Span(r)
		n := len(rest)
		if n == 0 || rest[n-1].Name != r.Name {
			return nil, ir.Broken(6, "dimension %d of the operand is sharded along %v: %s is not at the end of it", d, s.in.Axes(d), r)
		}
		hasPre, hasSize := s.mesh.Span(rest[n-1])
		switch {
		case rest[n-1] == r:
			rest = rest[:n-1]
		case hasPre*hasSize == pre*size && pre > hasPre && pre%hasPre == 0:
			rest = append(slices.Clone(rest[:n-1]), s.mesh.SubAxis(r.Name, hasPre, pre/hasPre))
		default:
			return nil, ir.Broken(6, "dimension %d of the operand is sharded along %v: %s is not at the end of it", d, s.in.Axes(d), r)
		}
	}
	return rest, nil
}

// taken checks that dimension d of the operand gives the axes up.
func (s *explicitSide) taken(d int, axes []ir.AxisRef) *ir.Rule {
	rest, r := s.without(d, axes)
	if r != nil {
		return r
	}
	return s.becomes(d, rest)
}

// given checks that dimension d gets the axes.
func (s *explicitSide) given(d int, axes []ir.AxisRef) *ir.Rule {
	return s.becomes(d, s.mesh.JoinAxes(slices.Clone(s.in.Axes(d)), axes))
}

// perDimension checks a collective with a list of axes for each dimension, whose
// shardings are what sides says.
func perDimension(name string, sides func(*ir.Module, *ir.Op) (*explicitSide, *ir.Rule), check func(s *explicitSide, d int, axes []ir.AxisRef) *ir.Rule, more func(s *explicitSide, op *ir.Op, axes []ir.AxisRef) *ir.Rule) func(*ir.Module, *ir.Op) *ir.Rule {
	return func(m *ir.Module, op *ir.Op) *ir.Rule {
		s, r := sides(m, op)
		if s == nil {
			return r
		}
		if r := s.sameMesh(); r != nil {
			return r
		}
		lists, r := s.lists(op, name)
		for d := 0; r == nil && d < len(lists); d++ {
			r = check(s, d, lists[d])
		}
		if r == nil && more != nil {
			r = more(s, op, slices.Concat(lists...))
		}
		return r
	}
}

// reduces checks that op reduces unreduced axes by the reduction of the sharding,
// and adds no new ones.
func (s *explicitSide) reduces(op *ir.Op) *ir.Rule {
	how := []string{"", "max", "min"}[max(min(op.Int("reduction_op"), 2), 0)]
	if len(s.in.Unreduced) > 0 && s.in.ReducedBy != how {
		return ir.Broken(7, "the operand is unreduced by %s, the op combines by %s", combination(s.in), combination(&ir.Sharding{ReducedBy: how}))
	}
	for _, r := range s.out.Unreduced {
		if !slices.ContainsFunc(s.in.Unreduced, func(has ir.AxisRef) bool { return s.mesh.Contains(has, r) }) {
			return ir.Broken(8, "axis %s of the operand is not unreduced, but of the result", r)
		}
	}
	return nil
}

func reduceScatterReduces(s *explicitSide, op *ir.Op, _ []ir.AxisRef) *ir.Rule { return s.reduces(op) }

func allReduceAxesFit(m *ir.Module, op *ir.Op) *ir.Rule {
	s, r := explicitSides(m, op)
	if s == nil {
		return r
	}
	axes := op.AxisRefs("reduction_axes")
	if r := first(s.sameMesh(), s.axes(axes), s.inOrder(axes), s.sameDims(), s.reduces(op)); r != nil {
		return r
	}
	for _, r := range axes {
		switch {
		case s.in.Uses(r) || overlap(s.in.Replicated, r):
			return ir.Broken(9, "axis %s shards the operand or replicates it", r)
		case overlap(s.out.Unreduced, r):
			return ir.Broken(9, "axis %s of the result is unreduced", r)
		}
	}
	return nil
}

func overlap(axes []ir.AxisRef, r ir.AxisRef) bool { return slices.ContainsFunc(axes, r.Overlaps) }

func (s *explicitSide) inOrder(axes []ir.AxisRef) *ir.Rule {
	if !slices.IsSortedFunc(axes, s.mesh.CompareRefs) {
		return ir.Broken(3, "%v are not in the order of the mesh", axes)
	}
	return nil
}

func (s *explicitSide) sameDims() *ir.Rule {
	for d := range s.out.Dims {
		if r := s.becomes(d, s.in.Axes(d)); r != nil {
			return r
		}
	}
	return nil
}

// unreduces checks that the axes, and no other ones, become unreduced.
func (s *explicitSide) unreduces(_ *ir.Op, axes []ir.AxisRef) *ir.Rule {
	if s.out.ReducedBy != "" {
		return ir.Broken(7, "the result is unreduced by %s, want by sum", s.out.ReducedBy)
	}
	all := slices.Concat(s.in.Unreduced, axes)
	slices.SortFunc(all, s.mesh.CompareRefs)
	if all = s.mesh.JoinAxes(nil, all); !slices.Equal(all, s.out.Unreduced) {
		return ir.Broken(8, "the result is unreduced along %v, want %v", s.out.Unreduced, all)
	}
	return nil
}

func replicatedFits(m *ir.Module, op *ir.Op) *ir.Rule {
	s, r := shardedSides(m, op)
	if s == nil {
		return r
	}
	axes := op.AxisRefs("axes")
	if len(axes) == 0 {
		return ir.Broken(3, "there are no axes")
	}
	for _, a := range axes {
		if s.in.Uses(a) || overlap(s.in.Unreduced, a) {
			return ir.Broken(9, "axis %s shards the operand, or the operand is unreduced along it", a)
		}
	}
	return first(s.sameMesh(), s.axes(axes), s.inOrder(axes), s.sameDims(), s.unreduces(op, axes))
}

// permuteFits, for sdy.collective_permute: operand and result have shards of the
// same size; the meshes may order the devices differently.
func permuteFits(m *ir.Module, op *ir.Op) *ir.Rule {
	s, r := shardedSides(m, op)
	if s == nil {
		return r
	}
	if s.in.Mesh != s.out.Mesh {
		from := m.Mesh(s.in.Mesh)
		switch {
		case from == nil || !slices.Equal(from.Axes, s.mesh.Axes):
			return ir.Broken(2, "mesh %s of the result has other axes than mesh %s of the operand", ir.SymbolText(s.out.Mesh), ir.SymbolText(s.in.Mesh))
		case from.SameDevices(s.mesh):
			return ir.Broken(2, "meshes %s and %s are the same, write one of them", ir.SymbolText(s.out.Mesh), ir.SymbolText(s.in.Mesh))
		}
	}
	for d := range s.out.Dims {
		if a, b := s.mesh.RefsSize(s.in.Axes(d)), s.mesh.RefsSize(s.out.Axes(d)); a != b {
			return ir.Broken(5, "dimension %d has %d shards before and %d after", d, a, b)
		}
	}
	return nil
}

func exchangeFits(m *ir.Module, op *ir.Op) *ir.Rule {
	list := op.Exchanges()
	if len(list) == 0 {
		return ir.Broken(3, "nothing is exchanged")
	}
	s, r := shardedSides(m, op)
	if s == nil {
		return r
	}
	if r := s.sameMesh(); r != nil {
		return r
	}
	want := make([][]ir.AxisRef, len(s.out.Dims))
	for d := range want {
		want[d] = slices.Clone(s.in.Axes(d))
	}
	var seen []int
	var axes [][]ir.AxisRef
	for i, x := range list {
		switch {
		case x.From < 0 || x.From >= len(want) || x.To < 0 || x.To >= len(want):
			return ir.Broken(10, "%d->%d are not dimensions of %s", x.From, x.To, op.Operands[0].Type)
		case x.From == x.To || slices.Contains(seen, x.From) || slices.Contains(seen, x.To):
			return ir.Broken(10, "dimension %d or %d is used twice", x.From, x.To)
		case i > 0 && x.From < list[i-1].From:
			return ir.Broken(10, "dimension %d is after %d", x.From, list[i-1].From)
		}
		seen = append(seen, x.From, x.To)
		axes = append(axes, x.Axes)
		if r := s.axes(x.Axes); r != nil {
			return r
		}
		rest, r := s.without(x.From, x.Axes)
		if r != nil {
			return r
		}
		want[x.From], want[x.To] = rest, s.mesh.JoinAxes(want[x.To], x.Axes)
	}
	if r := s.axes(axes...); r != nil {
		return r
	}
	for d, axes := range want {
		if r := s.becomes(d, axes); r != nil {
			return r
		}
	}
	return nil
}

// edgeFits, for sdy.data_flow_edge: C1 sizes are known; C2 the operand has no other
// use; C3 it is no result of a Shardy op.
func edgeFits(m *ir.Module, op *ir.Op) *ir.Rule {
	v := op.Operands[0]
	if !v.Type.IsTensor() || !v.Type.IsStatic() {
		return ir.Broken(1, "the operand is %s, want a tensor of known sizes", v.Type)
	}
	if v.Def != nil && ir.ShardingConstraint <= v.Def.Kind && v.Def.Kind <= ir.ShardedToUnreduced && len(v.Def.Regions) == 0 {
		return ir.Broken(3, "the operand is the result of an op of Shardy's")
	}
	uses, seen := 0, make(map[*ir.Block]bool)
	for _, f := range m.Funcs {
		uses += f.Body.UsesOf(v, seen)
	}
	if uses > 1 {
		return ir.Broken(2, "the operand has %s", ir.Counted(uses, "use"))
	}
	return nil
}

// funcEdgeFits, for sdy.func_data_flow_edge: C1 the sizes are known; C2 the operand
// has no other use; C3 it is a parameter of a function, or C4 a result of a call.
func funcEdgeFits(m *ir.Module, op *ir.Op) *ir.Rule {
	v := op.Operands[0]
	if !v.Type.IsTensor() || !v.Type.IsStatic() {
		return ir.Broken(1, "the operand is %s, want a tensor of known sizes", v.Type)
	}
	uses, seen, parameter := 0, make(map[*ir.Block]bool), false
	for _, f := range m.Funcs {
		uses += f.Body.UsesOf(v, seen)
		parameter = parameter || v.Block != nil && f.Body == v.Block
	}
	switch {
	case uses > 1:
		return ir.Broken(2, "the operand has %s", ir.Counted(uses, "use"))
	case v.Block != nil && !parameter:
		return ir.Broken(3, "the operand is an argument of a region, want one of a function")
	case v.Def != nil && v.Def.Kind != ir.Call:
		return ir.Broken(4, "the operand is the result of %s, want that of a call", v.Def.Name())
	}
	return nil
}

// saidSharding is the sharding of v, or the one in an attribute of its op.
func saidSharding(v *ir.Value) *ir.Sharding {
	if v.Sharding != nil || v.Def == nil {
		return v.Sharding
	}
	for _, name := range []string{"out_sharding", "sharding"} {
		if s, ok := v.Def.Attrs.Get(name).(*ir.Sharding); ok {
			return s
		}
	}
	if per, ok := v.Def.Attrs.Get("out_shardings").(ir.PerValue); ok && v.Index < len(per) {
		return per[v.Index]
	}
	return nil
}
