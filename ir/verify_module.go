package ir

import (
	"fmt"
	"slices"
)

// The functions in this file check what an op says of the rest of the module:
// that the functions and meshes it names exist and fit. They are the column
// inModule of the table, and must not read it.

// callFits: C1 the function exists; C2 it takes and returns as many values; C3
// of the same types.
func callFits(m *Module, op *Op) *Rule {
	f := m.Func(op.Callee())
	if f == nil {
		return broken(1, "there is no function %s", SymbolText(op.Callee()))
	}
	in, out, known := f.signature()
	if !known {
		return nil
	}
	if len(in) != len(op.Operands) || len(out) != len(op.Results) {
		return broken(2, "%s takes %s and returns %d, not %d and %d", SymbolText(f.Name), Counted(len(in), "value"), len(out), len(op.Operands), len(op.Results))
	}
	return signatureFits(3, f, typesOf(op.Operands), typesOf(op.Results))
}

// signature is what f takes and returns. A declaration has it in an attribute,
// or leaves it unknown.
func (f *Func) signature() (in, out []*Type, known bool) {
	if f.Body == nil {
		a, _ := f.Attrs.Get("function_type").(TypeAttr)
		if t := a.Type; t != nil && t.Kind == FuncType {
			return t.Elems[:t.NumIn], t.Elems[t.NumIn:], true
		}
		return nil, nil, false
	}
	for _, r := range f.Results {
		out = append(out, r.Type)
	}
	return typesOf(f.Params()), out, true
}

// signatureFits checks that f takes and returns as many values as given, of
// these types.
func signatureFits(n int, f *Func, in, out []*Type) *Rule {
	name := SymbolText(f.Name)
	takes, returns, _ := f.signature()
	if len(takes) != len(in) || len(returns) != len(out) {
		return broken(n, "%s takes %s and returns %d, want %d and %d", name, Counted(len(takes), "value"), len(returns), len(in), len(out))
	}
	for i, t := range takes {
		if !compatible(t, in[i]) {
			return broken(n, "operand %d is %s, %s takes %s", i, in[i], name, t)
		}
	}
	for i, t := range returns {
		if !compatible(t, out[i]) {
			return broken(n, "result %d is %s, %s returns %s", i, out[i], name, t)
		}
	}
	return nil
}

// callees are the functions that op runs.
func callees(op *Op) []string {
	var names []string
	for _, a := range []Attr{Sym(op.Callee()), op.Attrs.Get("layer"), configOf(op).Get("outside")} {
		if s, ok := a.(Sym); ok && s != "" {
			names = append(names, string(s))
		}
	}
	return names
}

// Callee is the function that a call, or a composite, calls; "" for other ops.
func (op *Op) Callee() string {
	switch op.Kind {
	case Call:
		return op.Sym("callee")
	case CompositeCall:
		return op.Sym("decomposition")
	}
	return ""
}

func configOf(op *Op) Attrs {
	d, _ := op.Attrs.Get("config").(Dict)
	return Attrs(d)
}

// verifyCalls checks that no function comes to call itself: programs are
// evaluated by inlining.
func verifyCalls(m *Module, errs *Errors) {
	c := callGraph{m: m, errs: errs, state: make(map[*Func]int)}
	for _, f := range m.Funcs {
		c.visit(f)
	}
	errs.fn = nil
}

type callGraph struct {
	m     *Module
	errs  *Errors
	state map[*Func]int // 0 not seen, 1 on the way, 2 done
}

func (c *callGraph) visit(f *Func) {
	if f == nil || f.Body == nil || c.state[f] != 0 {
		return
	}
	c.state[f] = 1
	var ops []*Op
	c.errs.calls(f, func(op *Op) { ops = append(ops, op) })
	for _, op := range ops {
		for _, name := range callees(op) {
			g := c.m.Func(name)
			if g != nil && c.state[g] == 1 {
				c.errs.fn = f
				c.errs.add(op, rule("structure-10", "%s calls itself, by way of %s", SymbolText(g.Name), SymbolText(f.Name)))
				continue
			}
			c.visit(g)
		}
	}
	c.state[f] = 2
}

// calls visits the ops of f, unless an error has been found in it: its blocks
// may then be nil, or stand inside themselves.
func (e *Errors) calls(f *Func, visit func(*Op)) {
	for _, err := range e.List {
		if err.Func == f {
			return
		}
	}
	f.Body.Walk(visit)
}

// stackFits, for pp.stack and pp.pipeline: C2 the layer exists and has a body;
// C3 it takes the activation, the side inputs and one layer's weights, and
// returns what the op returns.
func stackFits(m *Module, op *Op) *Rule {
	f, r := layerOf(m, "layer", op.Sym("layer"))
	if r != nil {
		return r
	}
	return signatureFits(3, f, layerTypes(op), typesOf(op.Results))
}

func layerOf(m *Module, what, name string) (*Func, *Rule) {
	f := m.Func(name)
	if f == nil || f.Body == nil {
		return nil, broken(2, "%s: there is no function %s with a body", what, SymbolText(name))
	}
	return f, nil
}

// layerTypes are the operands' types, the weights without their leading
// dimension.
func layerTypes(op *Op) []*Type {
	ts := typesOf(op.Operands)
	for i, t := range ts {
		if i > op.Int("sides") {
			ts[i] = t.WithShape(t.Shape[1:]...)
		}
	}
	return ts
}

// pipelineFits: C2 as for pp.stack; C3 the layer takes one microbatch of the
// activation and of the side inputs that it does not share, and one layer's
// weights; C4 the numbers of the configuration fit together; C5 the function
// for the layers outside of the pipeline takes the whole batch.
func pipelineFits(m *Module, op *Op) *Rule {
	config := configOf(op)
	f, r := layerOf(m, "layer", op.Sym("layer"))
	if r != nil {
		return r
	}
	number := func(name string, absent int) int {
		if config.Has(name) {
			return config.Int(name)
		}
		return absent
	}
	layers := op.Int("layers")
	s, mb := number("stages", 1), number("microbatches", 1)
	for _, name := range []string{"stages", "microbatches", "repeats", "layers_per_stage", "delay"} {
		if n := number(name, 1); n < 1 {
			return broken(4, "%s is %d, want at least 1", name, n)
		}
	}
	inside := number("pipelined", layers)
	if n := s * number("repeats", 1) * number("layers_per_stage", 1); n != inside || inside > layers {
		return broken(4, "%d stages x %d repeats x %d layers per stage are %d layers, %d of %d are in the pipeline",
			s, number("repeats", 1), number("layers_per_stage", 1), n, inside, layers)
	}
	if r := microbatchFits(f, op, mb); r != nil {
		return r
	}
	if inside == layers {
		return nil
	}
	if !config.Has("outside") {
		return broken(5, "%s after the pipeline, and no function outside for them", Counted(layers-inside, "layer"))
	}
	g, r := layerOf(m, "outside", config.Sym("outside"))
	if r != nil {
		return r
	}
	return signatureFits(5, g, layerTypes(op), typesOf(op.Results))
}

// microbatchFits checks f, the layer of op, with the batch cut into n.
func microbatchFits(f *Func, op *Op, n int) *Rule {
	in, out := layerTypes(op), typesOf(op.Results)
	for i := range min(1+op.Int("sides"), len(f.Params())) {
		whole, part := in[i], f.Params()[i].Type
		if i > 0 && compatible(whole, part) {
			continue // shared by all microbatches
		}
		if !whole.IsTensor() || whole.Rank() == 0 || whole.Shape[0]%n != 0 {
			return broken(3, "operand %d is %s, which does not split into %d microbatches", i, whole, n)
		}
		shape := append([]int{whole.Shape[0] / n}, whole.Shape[1:]...)
		in[i] = whole.WithShape(shape...)
	}
	out[0] = in[0]
	return signatureFits(3, f, in, out)
}

// manualFits: C3 the shardings of operands and results are of one mesh and fit
// it; C4 the manual axes are axes of it, each named once; C5 in each dimension
// they stand before the free axes, and divide it; C6 the region takes and
// returns what is left.
func manualFits(m *Module, op *Op) *Rule {
	in, out := op.Attrs.Get("in_shardings").(PerValue), op.Attrs.Get("out_shardings").(PerValue)
	all := append(append(PerValue{}, in...), out...)
	if len(all) == 0 {
		return nil
	}
	for _, s := range all {
		if s.Mesh != all[0].Mesh && meshIsFull(m, s.Mesh) && meshIsFull(m, all[0].Mesh) {
			return broken(3, "shardings of meshes %s and %s, want one mesh", SymbolText(all[0].Mesh), SymbolText(s.Mesh))
		}
	}
	region := op.Regions[0]
	for _, side := range []struct {
		what          string
		shardings     PerValue
		global, local []*Type
	}{{"operand", in, typesOf(op.Operands), typesOf(region.Args)}, {"result", out, typesOf(op.Results), returned(region)}} {
		for i, s := range side.shardings {
			if r := manualSide(m, op, fmt.Sprintf("%s %d", side.what, i), s, side.global[i], side.local[i]); r != nil {
				return r
			}
		}
	}
	return nil
}

// meshIsFull reports whether there is a mesh called name that has axes.
func meshIsFull(m *Module, name string) bool {
	mesh := m.Mesh(name)
	return mesh == nil || len(mesh.Axes) > 0
}

func manualSide(m *Module, op *Op, what string, s *Sharding, global, local *Type) *Rule {
	if r := fitsMesh(m, s, global); r != nil {
		return broken(3, "%s: %s", what, r.Msg)
	}
	mesh, manual := m.Mesh(s.Mesh), manualAxes(op)
	if mesh == nil || soundMesh(mesh) != nil {
		return nil
	}
	if r := distinctAxes(mesh, manual); r != nil {
		return broken(4, "manual axes: %s", r.Msg)
	}
	want := global
	if global.IsTensor() {
		shape := append([]int{}, global.Shape...)
		for d := range shape {
			n, r := manualSize(mesh, manual, s.Dims[d].Axes)
			if r != nil {
				return broken(5, "%s, dimension %d: %s", what, d, r.Msg)
			}
			if shape[d] == Dynamic {
				continue
			}
			if shape[d]%n != 0 {
				return broken(5, "%s, dimension %d: size %d is not divisible by %d, the size of the manual axes", what, d, shape[d], n)
			}
			shape[d] /= n
		}
		want = global.WithShape(shape...)
	}
	if !want.Equal(local) {
		return broken(6, "%s is %s, which is %s on a device, but the region has %s", what, global, want, local)
	}
	return nil
}

// manualSize is the product of the sizes of the manual axes among axes.
func manualSize(mesh *Mesh, manual, axes []AxisRef) (int, *Rule) {
	n := 1
	var free *AxisRef
	for i, a := range axes {
		bound := false
		for _, r := range manual {
			bound = bound || r.Overlaps(a)
		}
		switch {
		case !bound:
			free = &axes[i]
		case free != nil:
			return 0, broken(0, "manual axis %s stands after the free axis %s", a, *free)
		default:
			n *= mesh.RefSize(a)
		}
	}
	return n, nil
}

// groupsFit, for collectives whose groups are axes of a mesh: the mesh exists
// and has the axes, each named once. A permute along an axis moves.
func groupsFit(m *Module, op *Op) *Rule {
	for _, a := range op.Attrs {
		var name string
		var axes []AxisRef
		switch a := a.Attr.(type) {
		case MeshAxes:
			name, axes = a.Mesh, a.Axes
		case AxisShift:
			name, axes = a.Mesh, a.Axes
			if len(axes) == 0 {
				return rule("groups-3", "source_target_pairs shift along no axis")
			}
			if a.Shift == 0 && !a.Reverse {
				return rule("groups-3", "source_target_pairs shift by 0")
			}
		case AxisMove:
			name, axes = a.Mesh, a.From
			if !sameParts(a.From, a.To) {
				return rule("groups-4", "source_target_pairs move from %v to %v, which are not the same parts of axes", a.From, a.To)
			}
		default:
			continue
		}
		mesh := m.Mesh(name)
		if mesh == nil {
			return rule("groups-1", "attribute %s: there is no mesh %s", a.Name, SymbolText(name))
		}
		if r := distinctAxes(mesh, axes); r != nil {
			return rule("groups-2", "attribute %s: %s", a.Name, r.Msg)
		}
	}
	return nil
}

// sameParts reports whether b is a in another order.
func sameParts(a, b []AxisRef) bool {
	for _, r := range a {
		if !slices.Contains(b, r) {
			return false
		}
	}
	return len(a) == len(b)
}

// groupSizeOf is the size of op's groups, also where they are axes of a mesh;
// 0 where there is one group of every device.
func groupSizeOf(m *Module, op *Op) int {
	if a, ok := op.Attrs.Get("replica_groups").(MeshAxes); ok {
		return m.Mesh(a.Mesh).RefsSize(a.Axes)
	}
	return groupSize(op)
}

func allGatherFits(m *Module, op *Op) *Rule {
	if r := groupsFit(m, op); r != nil {
		return r
	}
	for i, v := range op.Operands {
		if r := scaled(6, v.Type, op.Results[i].Type, op.Int("all_gather_dim"), groupSizeOf(m, op)); r != nil {
			return r
		}
	}
	return nil
}

func reduceScatterFits(m *Module, op *Op) *Rule {
	if r := groupsFit(m, op); r != nil {
		return r
	}
	t, out := op.Operands[0].Type, op.Results[0].Type
	return scaled(8, out.WithElem(t.Elem), t, op.Int("scatter_dimension"), groupSizeOf(m, op))
}

func allToAllFits(m *Module, op *Op) *Rule {
	if r := groupsFit(m, op); r != nil {
		return r
	}
	if n, g := op.Int("split_count"), groupSizeOf(m, op); g > 0 && g != n {
		return broken(8, "split_count is %d, the groups have size %d", n, g)
	}
	return nil
}
