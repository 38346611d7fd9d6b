package ir

import (
	"slices"
	"strconv"
	"strings"
)

// The functions in this file check Shardy's explicit collectives, which say
// both along which axes a value moves and how it lies then: one must follow
// from the other. A value without a sharding is whole.

// An explicitSide is an explicit collective with what it moves between.
type explicitSide struct {
	mesh    *Mesh
	in, out *Sharding
}

// explicitSides are the shardings that op goes from and to; nil where the
// sharding of the result is wrong by itself, which is reported elsewhere.
// needed says that the operand must have a sharding.
func explicitSides(m *Module, op *Op, needed bool) (*explicitSide, *Rule) {
	v, out := op.Operands[0], op.Attrs.Get("out_sharding").(*Sharding)
	mesh := m.Mesh(out.Mesh)
	if mesh == nil || soundMesh(mesh) != nil || fitsMesh(m, out, v.Type) != nil || !v.Type.IsTensor() {
		return nil, nil
	}
	in := saidSharding(v)
	if in == nil {
		if needed {
			return nil, broken(1, "the operand has no sharding")
		}
		in = Replicated(out.Mesh, v.Type.Rank())
	}
	if fitsMesh(m, in, v.Type) != nil || len(in.Dims) != len(out.Dims) {
		return nil, nil
	}
	return &explicitSide{mesh, in, out}, nil
}

// sameMesh checks that both sides are of one mesh.
func (s *explicitSide) sameMesh() *Rule {
	if s.in.Mesh != s.out.Mesh {
		return broken(2, "the result lies on mesh %s, the operand on %s", SymbolText(s.out.Mesh), SymbolText(s.in.Mesh))
	}
	return nil
}

// axes checks that rs, the axes that the op names, are of the mesh, once each,
// and spelled in one way.
func (s *explicitSide) axes(lists ...[]AxisRef) *Rule {
	if r := distinctAxes(s.mesh, slices.Concat(lists...)); r != nil {
		return broken(3, "%s", r.Msg)
	}
	for _, rs := range lists {
		if r := mergeable(rs); r != nil {
			return broken(3, "%s", r.Msg)
		}
	}
	return nil
}

// lists are the axes that the attribute called name says for each dimension.
func (s *explicitSide) lists(op *Op, name string) ([][]AxisRef, *Rule) {
	text, _ := op.Attrs.Get(name).(Verbatim)
	_, body, _ := strings.Cut(string(text), "[")
	var lists [][]AxisRef
	for _, part := range strings.SplitAfter(body, "}") {
		if strings.Contains(part, "{") {
			lists = append(lists, axisRefsIn(part))
		}
	}
	if len(lists) != len(s.out.Dims) {
		return nil, broken(4, "%s for a result of rank %d", Counted(len(lists), "list of axes"), len(s.out.Dims))
	}
	return lists, s.axes(lists...)
}

// becomes checks that dimension d of the result is cut along axes.
func (s *explicitSide) becomes(d int, axes []AxisRef) *Rule {
	if got := s.out.Axes(d); !slices.Equal(got, axes) {
		return broken(5, "dimension %d of the result lies along %v, want %v", d, got, axes)
	}
	return nil
}

// without takes axes from the minor end of dimension d of the operand.
func (s *explicitSide) without(d int, axes []AxisRef) ([]AxisRef, *Rule) {
	rest := s.in.Axes(d)
	for _, r := range slices.Backward(axes) {
		pre, size := s.mesh.Span(r)
		n := len(rest)
		if n == 0 || rest[n-1].Name != r.Name {
			return nil, broken(6, "dimension %d of the operand lies along %v: %s is not at the end of it", d, s.in.Axes(d), r)
		}
		hasPre, hasSize := s.mesh.Span(rest[n-1])
		switch {
		case rest[n-1] == r:
			rest = rest[:n-1]
		case hasPre*hasSize == pre*size && pre > hasPre && pre%hasPre == 0:
			rest = append(slices.Clone(rest[:n-1]), s.mesh.SubAxis(r.Name, hasPre, pre/hasPre))
		default:
			return nil, broken(6, "dimension %d of the operand lies along %v: %s is not at the end of it", d, s.in.Axes(d), r)
		}
	}
	return rest, nil
}

// taken checks that dimension d of the operand gives the axes up.
func (s *explicitSide) taken(d int, axes []AxisRef) *Rule {
	rest, r := s.without(d, axes)
	if r != nil {
		return r
	}
	return s.becomes(d, rest)
}

// given checks that dimension d gets the axes.
func (s *explicitSide) given(d int, axes []AxisRef) *Rule {
	return s.becomes(d, s.mesh.JoinAxes(slices.Clone(s.in.Axes(d)), axes))
}

// perDimension checks a collective with a list of axes for each dimension.
func perDimension(name string, needed bool, check func(s *explicitSide, d int, axes []AxisRef) *Rule, more func(s *explicitSide, op *Op, axes []AxisRef) *Rule) func(*Module, *Op) *Rule {
	return func(m *Module, op *Op) *Rule {
		s, r := explicitSides(m, op, needed)
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

// reduces checks that op combines unreduced axes as they are to be combined,
// and makes no new ones.
func (s *explicitSide) reduces(op *Op) *Rule {
	how := []string{"", "max", "min"}[max(min(op.Int("reduction_op"), 2), 0)]
	if len(s.in.Unreduced) > 0 && s.in.ReducedBy != how {
		return broken(7, "the operand is unreduced by %s, the op combines by %s", combination(s.in), combination(&Sharding{ReducedBy: how}))
	}
	for _, r := range s.out.Unreduced {
		if !slices.ContainsFunc(s.in.Unreduced, func(has AxisRef) bool { return s.mesh.Contains(has, r) }) {
			return broken(8, "axis %s of the operand is not unreduced, but of the result", r)
		}
	}
	return nil
}

func reduceScatterReduces(s *explicitSide, op *Op, _ []AxisRef) *Rule { return s.reduces(op) }

func allReduceLies(m *Module, op *Op) *Rule {
	s, r := explicitSides(m, op, false)
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
			return broken(9, "axis %s cuts the operand or replicates it", r)
		case overlap(s.out.Unreduced, r):
			return broken(9, "axis %s of the result is unreduced", r)
		}
	}
	return nil
}

func overlap(axes []AxisRef, r AxisRef) bool { return slices.ContainsFunc(axes, r.Overlaps) }

func (s *explicitSide) inOrder(axes []AxisRef) *Rule {
	if !slices.IsSortedFunc(axes, s.mesh.compareRefs) {
		return broken(3, "%v do not stand in the order of the mesh", axes)
	}
	return nil
}

func (s *explicitSide) sameDims() *Rule {
	for d := range s.out.Dims {
		if r := s.becomes(d, s.in.Axes(d)); r != nil {
			return r
		}
	}
	return nil
}

// unreduces checks that the axes, and no other ones, become unreduced.
func (s *explicitSide) unreduces(_ *Op, axes []AxisRef) *Rule {
	if s.out.ReducedBy != "" {
		return broken(7, "the result is unreduced by %s, want by sum", s.out.ReducedBy)
	}
	all := slices.Concat(s.in.Unreduced, axes)
	slices.SortFunc(all, s.mesh.compareRefs)
	if all = s.mesh.JoinAxes(nil, all); !slices.Equal(all, s.out.Unreduced) {
		return broken(8, "the result is unreduced along %v, want %v", s.out.Unreduced, all)
	}
	return nil
}

func replicatedLies(m *Module, op *Op) *Rule {
	s, r := explicitSides(m, op, true)
	if s == nil {
		return r
	}
	axes := op.AxisRefs("axes")
	if len(axes) == 0 {
		return broken(3, "there are no axes")
	}
	for _, a := range axes {
		if s.in.Uses(a) || overlap(s.in.Unreduced, a) {
			return broken(9, "axis %s cuts the operand, or the operand is unreduced along it", a)
		}
	}
	return first(s.sameMesh(), s.axes(axes), s.inOrder(axes), s.sameDims(), s.unreduces(op, axes))
}

// permuteLies: parts have the same sizes; the mesh may have other devices.
func permuteLies(m *Module, op *Op) *Rule {
	s, r := explicitSides(m, op, true)
	if s == nil {
		return r
	}
	if s.in.Mesh != s.out.Mesh {
		from := m.Mesh(s.in.Mesh)
		switch {
		case from == nil || !slices.Equal(from.Axes, s.mesh.Axes):
			return broken(2, "mesh %s of the result has other axes than mesh %s of the operand", SymbolText(s.out.Mesh), SymbolText(s.in.Mesh))
		case from.SameDevices(s.mesh):
			return broken(2, "meshes %s and %s are the same, write one of them", SymbolText(s.out.Mesh), SymbolText(s.in.Mesh))
		}
	}
	for d := range s.out.Dims {
		if a, b := s.mesh.RefsSize(s.in.Axes(d)), s.mesh.RefsSize(s.out.Axes(d)); a != b {
			return broken(5, "dimension %d has %d parts before and %d after", d, a, b)
		}
	}
	return nil
}

// An exchange is one part of an all_to_all: axes that go from one dimension to
// another.
type exchange struct {
	axes     []AxisRef
	from, to int
}

// exchanges reads #sdy<all_to_all_param_list[{"x"}: 0->1]>.
func exchanges(op *Op) []exchange {
	text, _ := op.Attrs.Get("params").(Verbatim)
	_, body, _ := strings.Cut(string(text), "[")
	var out []exchange
	for part := range strings.SplitSeq(body, "{") {
		list, dims, ok := strings.Cut(part, "}")
		from, to, arrow := strings.Cut(strings.TrimLeft(dims, " :"), "->")
		if !ok || !arrow {
			continue
		}
		x := exchange{axes: axisRefsIn("{" + list + "}")}
		x.from, _ = strconv.Atoi(strings.TrimSpace(from))
		x.to, _ = strconv.Atoi(strings.TrimRight(strings.TrimSpace(to), ", ]>"))
		out = append(out, x)
	}
	return out
}

func exchangeLies(m *Module, op *Op) *Rule {
	list := exchanges(op)
	if len(list) == 0 {
		return broken(3, "nothing is exchanged")
	}
	s, r := explicitSides(m, op, true)
	if s == nil {
		return r
	}
	if r := s.sameMesh(); r != nil {
		return r
	}
	want := make([][]AxisRef, len(s.out.Dims))
	for d := range want {
		want[d] = slices.Clone(s.in.Axes(d))
	}
	var seen []int
	var axes [][]AxisRef
	for i, x := range list {
		switch {
		case x.from < 0 || x.from >= len(want) || x.to < 0 || x.to >= len(want):
			return broken(10, "%d->%d are not dimensions of %s", x.from, x.to, op.Operands[0].Type)
		case x.from == x.to || slices.Contains(seen, x.from) || slices.Contains(seen, x.to):
			return broken(10, "dimension %d or %d is used twice", x.from, x.to)
		case i > 0 && x.from < list[i-1].from:
			return broken(10, "dimension %d stands after %d", x.from, list[i-1].from)
		}
		seen = append(seen, x.from, x.to)
		axes = append(axes, x.axes)
		if r := s.axes(x.axes); r != nil {
			return r
		}
		rest, r := s.without(x.from, x.axes)
		if r != nil {
			return r
		}
		want[x.from], want[x.to] = rest, s.mesh.JoinAxes(want[x.to], x.axes)
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

// edgeFits, for sdy.data_flow_edge: C1 sizes are known; C2 nobody else uses the
// operand; C3 no op of Shardy's makes it.
func edgeFits(m *Module, op *Op) *Rule {
	v := op.Operands[0]
	if v.Type.IsTensor() && !v.Type.IsStatic() {
		return broken(1, "sizes of %s are not known", v.Type)
	}
	if v.Def != nil && ShardingConstraint <= v.Def.Kind && v.Def.Kind <= ShardedToUnreduced && len(v.Def.Regions) == 0 {
		return broken(3, "the operand is the result of an op of Shardy's")
	}
	uses, seen := 0, make(map[*Block]bool)
	for _, f := range m.Funcs {
		uses += f.Body.usesOf(v, seen)
	}
	if uses > 1 {
		return broken(2, "the operand has %s", Counted(uses, "use"))
	}
	return nil
}

// usesOf counts the uses of v in b, which need not be sound, but for those in
// blocks that have been seen.
func (b *Block) usesOf(v *Value, seen map[*Block]bool) int {
	if b == nil || seen[b] {
		return 0
	}
	seen[b] = true
	n := 0
	for _, op := range b.Ops {
		if op == nil {
			continue
		}
		for _, x := range op.Operands {
			if x == v {
				n++
			}
		}
		for _, r := range op.Regions {
			n += r.usesOf(v, seen)
		}
	}
	return n
}

// saidSharding is the sharding of v, or what its op says of it in an
// attribute.
func saidSharding(v *Value) *Sharding {
	if v.Sharding != nil || v.Def == nil {
		return v.Sharding
	}
	for _, name := range []string{"out_sharding", "sharding"} {
		if s, ok := v.Def.Attrs.Get(name).(*Sharding); ok {
			return s
		}
	}
	if per, ok := v.Def.Attrs.Get("out_shardings").(PerValue); ok && v.Index < len(per) {
		return per[v.Index]
	}
	return nil
}
