package dialect

import (
	"fmt"
	"slices"

	"ppc/ir"
)

// The functions in this file check the references of an op to the rest of the
// module: that the functions and meshes it names exist and fit. They are the column
// InModule of the table, and must not read it.

// callFits: C1 the function exists; C2 it takes and returns as many values as the
// call; C3 of the same types.
func callFits(m *ir.Module, op *ir.Op) *ir.Rule {
	f := m.Func(op.Callee())
	if f == nil {
		return ir.Broken(1, "there is no function %s", ir.SymbolText(op.Callee()))
	}
	in, out, known := f.Signature()
	if !known {
		return nil
	}
	if len(in) != len(op.Operands) || len(out) != len(op.Results) {
		return ir.Broken(2, "%s takes %s and returns %d, not %d and %d", ir.SymbolText(f.Name), ir.Counted(len(in), "value"), len(out), len(op.Operands), len(op.Results))
	}
	if op.Kind == ir.Call { // a composite may know more of its types than its decomposition
		return sameSignature(f, op, in, out)
	}
	return signatureFits(3, f, ir.TypesOf(op.Operands), ir.TypesOf(op.Results))
}

// sameSignature checks constraint 3 of calls: the types are those that f says.
func sameSignature(f *ir.Func, op *ir.Op, in, out []*ir.Type) *ir.Rule {
	for i, v := range op.Operands {
		if !v.Type.Equal(in[i]) {
			return ir.Broken(3, "operand %d is %s, %s takes %s", i, v.Type, ir.SymbolText(f.Name), in[i])
		}
	}
	for i, v := range op.Results {
		if !v.Type.Equal(out[i]) {
			return ir.Broken(3, "result %d is %s, %s returns %s", i, v.Type, ir.SymbolText(f.Name), out[i])
		}
	}
	return nil
}

// signatureFits checks that f takes and returns as many values as given, of
// these types.
func signatureFits(n int, f *ir.Func, in, out []*ir.Type) *ir.Rule {
	name := ir.SymbolText(f.Name)
	takes, returns, _ := f.Signature()
	if len(takes) != len(in) || len(returns) != len(out) {
		return ir.Broken(n, "%s takes %s and returns %d, want %d and %d", name, ir.Counted(len(takes), "value"), len(returns), len(in), len(out))
	}
	for i, t := range takes {
		if !ir.Compatible(t, in[i]) {
			return ir.Broken(n, "operand %d is %s, %s takes %s", i, in[i], name, t)
		}
	}
	for i, t := range returns {
		if !ir.Compatible(t, out[i]) {
			return ir.Broken(n, "result %d is %s, %s returns %s", i, out[i], name, t)
		}
	}
	return nil
}

// stackFits, for pp.stack and pp.pipeline: C2 the layer exists and has a body;
// C3 it takes the activation, the side inputs and one layer's weights, and
// returns what the op returns.
func stackFits(m *ir.Module, op *ir.Op) *ir.Rule {
	f, r := layerOf(m, "layer", op.Sym("layer"))
	if r != nil {
		return r
	}
	return signatureFits(3, f, layerTypes(op), ir.TypesOf(op.Results))
}

func layerOf(m *ir.Module, what, name string) (*ir.Func, *ir.Rule) {
	f := m.Func(name)
	if f == nil || f.Body == nil {
		return nil, ir.Broken(2, "%s: there is no function %s with a body", what, ir.SymbolText(name))
	}
	return f, nil
}

// layerTypes are the operands' types, the weights without their leading
// dimension.
func layerTypes(op *ir.Op) []*ir.Type {
	ts := ir.TypesOf(op.Operands)
	for i, t := range ts {
		if i >= op.Activations()+op.Int("sides") {
			ts[i] = t.WithShape(t.Shape[1:]...)
		}
	}
	return ts
}

// pipelineFits: C2 as for pp.stack; C3 the layer takes one microbatch of the
// activation and of the side inputs that it does not share, and one layer's
// weights; C4 the numbers of the configuration fit together; C5 the function for
// the layers outside of the pipeline takes the full batch.
func pipelineFits(m *ir.Module, op *ir.Op) *ir.Rule {
	config := ir.ConfigOf(op)
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
			return ir.Broken(4, "%s is %d, want at least 1", name, n)
		}
	}
	inside := number("pipelined", layers)
	turn := s * number("layers_per_stage", 1)
	if n := turn * number("repeats", 1); n < inside || n-inside >= turn || inside > layers { // the last repeat may lack layers
		return ir.Broken(4, "%d stages x %d repeats x %d layers per stage are %d layers, %d of %d are in the pipeline",
			s, number("repeats", 1), number("layers_per_stage", 1), n, inside, layers)
	}
	if r := microbatchFits(f, op, mb); r != nil {
		return r
	}
	if inside == layers {
		return nil
	}
	if !config.Has("outside") {
		return ir.Broken(5, "%s after the pipeline, and no function outside for them", ir.Counted(layers-inside, "layer"))
	}
	g, r := layerOf(m, "outside", config.Sym("outside"))
	if r != nil {
		return r
	}
	return signatureFits(5, g, layerTypes(op), ir.TypesOf(op.Results))
}

// microbatchFits checks f, the layer of op, with the batch split into n.
func microbatchFits(f *ir.Func, op *ir.Op, n int) *ir.Rule {
	in, out := layerTypes(op), ir.TypesOf(op.Results)
	acts := op.Activations()
	for i := range min(acts+op.Int("sides"), len(f.Params())) {
		global, micro := in[i], f.Params()[i].Type
		if i >= acts && ir.Compatible(global, micro) {
			continue // shared by all microbatches
		}
		if !global.IsTensor() || global.Rank() == 0 || global.Shape[0]%n != 0 {
			return ir.Broken(3, "operand %d is %s, which does not split into %d microbatches", i, global, n)
		}
		shape := append([]int{global.Shape[0] / n}, global.Shape[1:]...)
		in[i] = global.WithShape(shape...)
	}
	copy(out, in[:acts])
	return signatureFits(3, f, in, out)
}

// manualFits: C3 the shardings of operands and results are of one mesh and fit it;
// C4 the manual axes are axes of it, each named once; C5 in each dimension they
// precede the free axes, and divide it; C6 the region takes and returns the local
// types.
func manualFits(m *ir.Module, op *ir.Op) *ir.Rule {
	in, out := op.Attrs.Get("in_shardings").(ir.PerValue), op.Attrs.Get("out_shardings").(ir.PerValue)
	all := append(append(ir.PerValue{}, in...), out...)
	if len(all) == 0 {
		return nil
	}
	for _, s := range all {
		if s.Mesh != all[0].Mesh && meshIsFull(m, s.Mesh) && meshIsFull(m, all[0].Mesh) {
			return ir.Broken(3, "shardings of meshes %s and %s, want one mesh", ir.SymbolText(all[0].Mesh), ir.SymbolText(s.Mesh))
		}
	}
	region := op.Regions[0]
	for _, side := range []struct {
		what          string
		shardings     ir.PerValue
		global, local []*ir.Type
	}{{"operand", in, ir.TypesOf(op.Operands), ir.TypesOf(region.Args)}, {"result", out, ir.TypesOf(op.Results), returned(region)}} {
		for i, s := range side.shardings {
			if r := manualSide(m, op, fmt.Sprintf("%s %d", side.what, i), s, side.global[i], side.local[i]); r != nil {
				return r
			}
		}
	}
	return nil
}

// namedFits, for sdy.named_computation: C4 the shardings are such as the operands and
// results can have.
func namedFits(m *ir.Module, op *ir.Op) *ir.Rule {
	for _, side := range []struct {
		what, name string
		values     []*ir.Value
	}{{"operand", "in_shardings", op.Operands}, {"result", "out_shardings", op.Results}} {
		per, _ := op.Attrs.Get(side.name).(ir.PerValue)
		for i, s := range per {
			if r := ir.FitsMesh(m, s, side.values[i].Type); r != nil {
				return ir.Broken(4, "%s %d: %s", side.what, i, r.Msg)
			}
		}
	}
	return nil
}

// meshIsFull reports whether there is a mesh called name that has axes.
func meshIsFull(m *ir.Module, name string) bool {
	mesh := m.Mesh(name)
	return mesh == nil || len(mesh.Axes) > 0
}

func manualSide(m *ir.Module, op *ir.Op, what string, s *ir.Sharding, global, local *ir.Type) *ir.Rule {
	if r := ir.FitsMesh(m, s, global); r != nil {
		return ir.Broken(3, "%s: %s", what, r.Msg)
	}
	mesh, manual := m.Mesh(s.Mesh), ir.ManualAxes(op)
	if mesh == nil || ir.SoundMesh(mesh) != nil {
		return nil
	}
	if r := ir.DistinctAxes(mesh, manual); r != nil {
		return ir.Broken(4, "manual axes: %s", r.Msg)
	}
	want := global
	if global.IsTensor() {
		shape := append([]int{}, global.Shape...)
		for d := range shape {
			n, r := manualSize(mesh, manual, s.Dims[d].Axes)
			if r != nil {
				return ir.Broken(5, "%s, dimension %d: %s", what, d, r.Msg)
			}
			if shape[d] == ir.Dynamic {
				continue
			}
			if shape[d]%n != 0 {
				return ir.Broken(5, "%s, dimension %d: size %d is not divisible by %d, the size of the manual axes", what, d, shape[d], n)
			}
			shape[d] /= n
		}
		want = global.WithShape(shape...)
	}
	if !want.Equal(local) {
		return ir.Broken(6, "%s is %s, which is %s on a device, but the region has %s", what, global, want, local)
	}
	return nil
}

// manualSize is the product of the sizes of the manual axes among axes.
func manualSize(mesh *ir.Mesh, manual, axes []ir.AxisRef) (int, *ir.Rule) {
	n := 1
	var free *ir.AxisRef
	for i, a := range axes {
		bound := false
		for _, r := range manual {
			bound = bound || r.Overlaps(a)
		}
		switch {
		case !bound:
			free = &axes[i]
		case free != nil:
			return 0, ir.Broken(0, "manual axis %s is after the free axis %s", a, *free)
		default:
			n *= mesh.RefSize(a)
		}
	}
	return n, nil
}

// groupsFit, for collectives whose groups are axes of a mesh: the mesh exists and
// has the axes, each named once. A shift along an axis is not zero.
func groupsFit(m *ir.Module, op *ir.Op) *ir.Rule {
	for _, a := range op.Attrs {
		var name string
		var axes []ir.AxisRef
		switch a := a.Attr.(type) {
		case ir.MeshAxes:
			name, axes = a.Mesh, a.Axes
		case ir.AxisShift:
			name, axes = a.Mesh, a.Axes
			if len(axes) == 0 {
				return ir.NewRule("groups-3", "source_target_pairs shift along no axis")
			}
			if a.Shift == 0 && !a.Reverse {
				return ir.NewRule("groups-3", "source_target_pairs shift by 0")
			}
		case ir.AxisMove:
			name, axes = a.Mesh, a.From
			if !sameRefs(a.From, a.To) {
				return ir.NewRule("groups-4", "source_target_pairs move from %v to %v, which are not the same sub-axes", a.From, a.To)
			}
		default:
			continue
		}
		mesh := m.Mesh(name)
		if mesh == nil {
			return ir.NewRule("groups-1", "attribute %s: there is no mesh %s", a.Name, ir.SymbolText(name))
		}
		if r := ir.DistinctAxes(mesh, axes); r != nil {
			return ir.NewRule("groups-2", "attribute %s: %s", a.Name, r.Msg)
		}
	}
	return nil
}

// sameRefs reports whether b is a in another order.
func sameRefs(a, b []ir.AxisRef) bool {
	for _, r := range a {
		if !slices.Contains(b, r) {
			return false
		}
	}
	return len(a) == len(b)
}

func allGatherFits(m *ir.Module, op *ir.Op) *ir.Rule {
	if r := groupsFit(m, op); r != nil {
		return r
	}
	for i, v := range op.Operands {
		if r := scaled(6, v.Type, op.Results[i].Type, op.Int("all_gather_dim"), ir.GroupSizeOf(m, op)); r != nil {
			return r
		}
	}
	return nil
}

func reduceScatterFits(m *ir.Module, op *ir.Op) *ir.Rule {
	if r := groupsFit(m, op); r != nil {
		return r
	}
	t, out := op.Operands[0].Type, op.Results[0].Type
	return scaled(8, t.WithShape(out.Shape...), t, op.Int("scatter_dimension"), ir.GroupSizeOf(m, op))
}

func allToAllFits(m *ir.Module, op *ir.Op) *ir.Rule {
	if r := groupsFit(m, op); r != nil {
		return r
	}
	if n, g := op.Int("split_count"), ir.GroupSizeOf(m, op); g > 0 && g != n {
		return ir.Broken(8, "split_count is %d, the groups have size %d", n, g)
	}
	return nil
}
