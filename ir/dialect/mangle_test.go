package dialect

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ppc/ir"
	"ppc/ir/verify"
)

// A mangler breaks modules at random, in the ways in which a wrong pass or a
// wrong reader could.
type mangler struct {
	*rand.Rand
	m      *ir.Module
	ops    []*ir.Op
	values []*ir.Value
	blocks []*ir.Block
}

func newMangler(r *rand.Rand, m *ir.Module) *mangler {
	g := &mangler{Rand: r, m: m}
	var walk func(b *ir.Block)
	walk = func(b *ir.Block) {
		g.blocks = append(g.blocks, b)
		g.values = append(g.values, b.Args...)
		for _, op := range b.Ops {
			g.ops = append(g.ops, op)
			g.values = append(g.values, op.Results...)
			for _, r := range op.Regions {
				walk(r)
			}
		}
	}
	for _, f := range m.Funcs {
		walk(f.Body)
	}
	return g
}

func pick[T any](g *mangler, xs []T) (x T) {
	if len(xs) > 0 {
		x = xs[g.IntN(len(xs))]
	}
	return x
}

// shorten returns xs without its last or without any elements.
func shorten[T any](g *mangler, xs []T) []T {
	if len(xs) == 0 || g.IntN(2) == 0 {
		return nil
	}
	return slices.Clone(xs[:len(xs)-1])
}

var oddInts = []int{-1 << 62, -3, -1, 0, 1, 2, 7, 1000, 1 << 40, 1<<63 - 1}

func (g *mangler) ints() []int {
	xs := make([]int, g.IntN(4))
	for i := range xs {
		xs[i] = pick(g, oddInts)
	}
	return xs
}

func (g *mangler) typ() *ir.Type {
	return pick(g, []*ir.Type{
		nil, {}, {Kind: 99}, ir.Tensor(ir.F32), ir.Tensor(ir.I1, 2), ir.Tensor(ir.F32, 4, 8), ir.Tensor(ir.F32, ir.Dynamic, 8), ir.Tensor(ir.F32, -7), ir.Tensor(200, 3), ir.Tensor(ir.F32, 1<<40, 1<<40),
		ir.Tensor(ir.InvalidDType, 3), ir.Token(), ir.Tuple(), ir.Tuple(nil), ir.Tuple(ir.Tensor(ir.F32)), ir.Scalar(ir.F32), ir.Scalar(0), {Kind: ir.FuncType, NumIn: 3}, {Kind: ir.FutureType, Elems: []*ir.Type{ir.Scalar(ir.I8)}},
		{Kind: ir.OpaqueType, Text: "!odd"}, {Kind: ir.TensorType, Elem: ir.F32, Shape: g.ints()},
	})
}

func (g *mangler) refs() []ir.AxisRef {
	rs := make([]ir.AxisRef, g.IntN(3))
	for i := range rs {
		rs[i] = ir.AxisRef{Name: pick(g, []string{"x", "y", "none"}), Pre: pick(g, oddInts), Size: pick(g, oddInts)}
		if g.IntN(2) == 0 {
			rs[i] = ir.Ax("x")
		}
	}
	return rs
}

func (g *mangler) sharding() *ir.Sharding {
	s := &ir.Sharding{Mesh: pick(g, []string{"mesh", "none", ""}), Replicated: g.refs(), Unreduced: g.refs()}
	for range g.IntN(4) {
		s.Dims = append(s.Dims, ir.DimSharding{Axes: g.refs(), Open: g.IntN(2) == 0, Priority: g.IntN(3) - 1})
	}
	return s
}

func (g *mangler) side() ir.ConvSide {
	return ir.ConvSide{First: pick(g, oddInts), Second: pick(g, oddInts), Spatial: g.ints()}
}

func (g *mangler) attr(depth int) ir.Attr {
	if depth > 0 && g.IntN(4) == 0 {
		switch g.IntN(3) {
		case 0:
			return ir.Array{g.attr(depth - 1), g.attr(depth - 1)}
		case 1:
			return ir.Dict{{Name: "a", Attr: g.attr(depth - 1)}, {Name: "outside", Attr: g.attr(depth - 1)}}
		}
		return ir.PerValue{g.sharding(), nil}
	}
	return pick(g, []ir.Attr{
		nil, ir.Int{Value: pick(g, oddInts), Type: ir.I64}, ir.Int{Value: 1, Type: 99}, ir.Float{Value: 1, Type: ir.F32}, ir.Float{Value: 1, Type: 0}, ir.Bool(true), ir.Unit{}, ir.Str("x"), ir.Sym("layer"), ir.Sym("main"), ir.Ints(g.ints()), ir.Bools{true},
		ir.TypeAttr{Type: g.typ()}, ir.Enum{Dialect: "stablehlo", Set: "odd", Value: "EQ"}, ir.Dot{LhsBatch: g.ints(), RhsBatch: g.ints(), LhsContract: g.ints(), RhsContract: g.ints()},
		ir.GatherDims{OffsetDims: g.ints(), CollapsedSliceDims: g.ints(), OperandBatchingDims: g.ints(), StartIndicesBatchingDims: g.ints(), StartIndexMap: g.ints(), IndexVectorDim: pick(g, oddInts)}, ir.ScatterDims{UpdateWindowDims: g.ints(), InsertedWindowDims: g.ints(), InputBatchingDims: g.ints(), ScatterIndicesBatchingDims: g.ints(), ScatterDimsToOperandDims: g.ints(), IndexVectorDim: pick(g, oddInts)},
		ir.ConvDims{Input: g.side(), Kernel: g.side(), Output: g.side()}, ir.ConvDims{Input: ir.ConvSide{First: 0, Second: 2, Spatial: []int{1}}, Kernel: ir.ConvSide{First: 1, Second: 2, Spatial: []int{0}}, Output: ir.ConvSide{First: 0, Second: 2, Spatial: []int{1}}}, ir.Bools{true, false},
		ir.Channel{Handle: pick(g, oddInts), Type: 1}, ir.MeshAxes{Mesh: "mesh", Axes: g.refs()}, ir.MeshAxes{Mesh: "none", Axes: nil}, ir.AxisShift{Mesh: "mesh", Axes: ir.Axs("x"), Shift: pick(g, oddInts), Wrap: true, Reverse: false}, ir.AxisShift{Mesh: "mesh", Axes: []ir.AxisRef{{Name: "y", Pre: 3, Size: 0}}, Shift: 1, Wrap: false, Reverse: true}, ir.AxisShift{Mesh: "mesh", Axes: g.refs(), Shift: 0, Wrap: false, Reverse: true},
		ir.PerValue{g.sharding()}, g.sharding(), (*ir.Sharding)(nil), (*ir.Literal)(nil), ir.Verbatim("#odd"),
		&ir.Literal{Type: g.typ(), Data: make([]byte, g.IntN(40))}, ir.Ints64(ir.Tensor(ir.I64, 2, 2), 0, 1, 2, 3), ir.Ints64(ir.Tensor(ir.I64, 1<<20, 1<<20), 7), ir.Ints64(ir.Tensor(ir.I64, 1<<40), 7), ir.Ints64(ir.Tensor(ir.I64, 1<<20, 2), -1),
	})
}

// mangle breaks one thing.
func (g *mangler) mangle() {
	op, v, b := pick(g, g.ops), pick(g, g.values), pick(g, g.blocks)
	switch g.IntN(22) {
	case 0:
		if len(op.Operands) > 0 {
			op.Operands[g.IntN(len(op.Operands))] = pick(g, append(g.values, nil))
		}
	case 1:
		op.Operands = shorten(g, op.Operands)
	case 2:
		op.Operands = append(op.Operands, pick(g, g.values))
	case 3:
		op.Results = shorten(g, op.Results)
	case 4:
		op.Regions = shorten(g, op.Regions)
	case 5:
		op.Regions = append(op.Regions, pick(g, append(g.blocks, nil)))
	case 6:
		v.Type = g.typ()
	case 7:
		if v.Type.IsTensor() && v.Type.Rank() > 0 {
			t := v.Type.WithShape(v.Type.Shape...)
			t.Shape[g.IntN(t.Rank())] = pick(g, oddInts)
			v.Type = t
		}
	case 8:
		v.Sharding = g.sharding()
	case 9, 10, 11:
		if len(op.Attrs) > 0 {
			op.Attrs.Set(op.Attrs[g.IntN(len(op.Attrs))].Name, g.attr(2))
		}
	case 12:
		if len(op.Attrs) > 0 {
			op.Attrs.Delete(op.Attrs[g.IntN(len(op.Attrs))].Name)
		}
	case 13:
		op.Kind = ir.Kind(g.IntN(int(ir.NumKinds) + 3))
	case 14:
		b.Ops = shorten(g, b.Ops)
	case 15:
		b.Args = shorten(g, b.Args)
	case 16:
		b.Ops = slices.Insert(b.Ops, g.IntN(len(b.Ops)+1), pick(g, append(g.ops, nil)))
	case 17:
		v.ID, v.Index = ir.ID(pick(g, oddInts)), pick(g, oddInts)
	case 18:
		g.mesh()
	case 19:
		g.function()
	case 20:
		op.Attrs = append(ir.Attrs{{Name: "sdy.sharding", Attr: g.attr(2)}}, op.Attrs...)
	case 21:
		b.Args = append(b.Args, pick(g, append(g.values, nil)))
	}
}

func (g *mangler) mesh() {
	switch g.IntN(3) {
	case 0:
		g.m.Meshes = append(g.m.Meshes, nil)
	case 1:
		g.m.Meshes = []*ir.Mesh{{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: pick(g, oddInts)}, {Name: "x", Size: 2}, {Name: "y", Size: pick(g, oddInts)}}, DeviceIDs: g.ints()}}
	case 2:
		g.m.Meshes = shorten(g, g.m.Meshes)
	}
}

func (g *mangler) function() {
	f := pick(g, g.m.Funcs)
	if f == nil {
		return
	}
	switch g.IntN(5) {
	case 0:
		g.m.Funcs = append(g.m.Funcs, f, nil)
	case 1:
		f.Body = pick(g, append(g.blocks, nil))
	case 2:
		f.Results = shorten(g, f.Results)
	case 3:
		f.Results = append(f.Results, ir.Result{Type: g.typ(), Sharding: g.sharding()})
	case 4:
		f.Name = pick(g, []string{"", "main", "layer", "full_batch"})
	}
}

// seedModule has ops of most shapes: regions, captures, calls, shardings,
// collectives.
func seedModule() *ir.Module {
	layer := ir.NewFunc("layer")
	x, w := layer.NewArg(layer.Body, ir.Tensor(ir.F32, 4, 8), "x"), layer.NewArg(layer.Body, ir.Tensor(ir.F32, 8, 8), "w")
	b := ir.NewBuilder(layer)
	b.Return(b.Dot(x, w, ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}}))

	main := ir.NewFunc("main")
	a, s := main.NewArg(main.Body, ir.Tensor(ir.F32, 4, 8), "a"), main.NewArg(main.Body, ir.Tensor(ir.F32, 2, 8, 8), "s")
	a.Sharding = ir.NewSharding("mesh", ir.Axs("x"), nil)
	b = ir.NewBuilder(main)
	stack := b.Emit(ir.PPStack, []*ir.Value{a, s}, ir.AttrsOf(ir.NamedAttr{Name: "layer", Attr: ir.Sym("layer")}, ir.NamedAttr{Name: "layers", Attr: ir.I64Attr(2)}, ir.NamedAttr{Name: "sides", Attr: ir.I64Attr(0)}, ir.NamedAttr{Name: "config", Attr: ir.Dict{}}), nil, []*ir.Type{a.Type}).Result()
	scan := new(ir.Block)
	i, c, row := main.NewArg(scan, ir.Tensor(ir.I32), ""), main.NewArg(scan, a.Type, ""), main.NewArg(scan, ir.Tensor(ir.F32, 8, 8), "")
	in := b.In(scan)
	moved := in.DynamicSlice(stack, []*ir.Value{i, in.I32(0)}, 4, 8)
	in.Emit(ir.PPYield, []*ir.Value{in.Add(in.Dot(c, row, ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}}), moved)}, nil, nil, nil)
	y := b.Emit(ir.PPScan, []*ir.Value{stack, s}, ir.AttrsOf(ir.NamedAttr{Name: "carries", Attr: ir.I64Attr(1)}, ir.NamedAttr{Name: "trip_count", Attr: ir.I64Attr(2)}), []*ir.Block{scan}, nil).Result()
	y = b.Constrain(y, ir.NewSharding("mesh", nil, ir.Axs("y")))
	y = b.Reshape(b.Transpose(b.Pad(y, b.Splat(ir.Tensor(ir.F32), 0), []int{0, 1}, []int{0, 0}, []int{0, 0}), 1, 0), 6, 6)
	r := b.Emit(ir.AllReduce, []*ir.Value{y}, ir.AttrsOf(ir.NamedAttr{Name: "replica_groups", Attr: ir.MeshAxes{Mesh: "mesh", Axes: ir.Axs("x")}}), []*ir.Block{b.Combiner(ir.Add, ir.F32)}, nil).Result()
	p := b.Emit(ir.CollectivePermute, []*ir.Value{r}, ir.AttrsOf(ir.NamedAttr{Name: "source_target_pairs", Attr: ir.AxisShift{Mesh: "mesh", Axes: ir.Axs("y"), Shift: 1, Wrap: true, Reverse: false}}), nil, nil).Result()
	g := b.Emit(ir.Gather, []*ir.Value{p, b.Const(ir.Ints64(ir.Tensor(ir.I32, 2, 1), 1, 2))}, ir.AttrsOf(
		ir.NamedAttr{Name: "dimension_numbers", Attr: ir.GatherDims{OffsetDims: []int{1}, CollapsedSliceDims: []int{0}, StartIndexMap: []int{0}, IndexVectorDim: 1}},
		ir.NamedAttr{Name: "slice_sizes", Attr: ir.Ints{1, 6}}), nil, nil).Result()
	b.Return(b.Reduce(ir.Add, g, b.Splat(ir.Tensor(ir.F32), 0), 0, 1), b.Compare("LT", p, r))
	return &ir.Module{Name: "m", Funcs: []*ir.Func{layer, main}, Meshes: []*ir.Mesh{{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 2}, {Name: "y", Size: 4}}}}}
}

// Mangle breaks some things in m.
func Mangle(r *rand.Rand, m *ir.Module) {
	g := newMangler(r, m)
	for range 1 + r.IntN(4) {
		g.mangle()
	}
	if r.IntN(4) == 0 {
		m.Form = ir.Form(r.IntN(1 << len(ir.FormTable)))
	}
}

// CheckMangled verifies m, whatever is wrong with it, and reports whether
// nothing is. What is right can be copied, and has sharding rules.
func CheckMangled(t *testing.T, m *ir.Module) bool {
	t.Helper()
	if err := verify.Verify(m); err != nil {
		_ = err.Error()
		return false
	}
	for _, f := range m.Funcs {
		if f.Body != nil {
			f.Body.Walk(func(op *ir.Op) { ir.FactorsOf(op) })
		}
	}
	if err := verify.Verify(m.Clone()); err != nil {
		t.Fatalf("a clone is wrong: %v", err)
	}
	return true
}

// CheckAgain holds what a checker says of m that has passed before, a module with the same
// types and attributes, against what it says of m at first sight.
func CheckAgain(t *testing.T, before, m *ir.Module) {
	t.Helper()
	var checker verify.Checker
	if err := checker.Verify(before); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(checker.Verify(m)), fmt.Sprint(verify.Verify(m)); got != want {
		t.Fatalf("after the module as it was: %s\nat first sight: %s", got, want)
	}
}

// Verify says something of every module.
func TestVerifyNeverPanics(t *testing.T) {
	if err := verify.Verify(seedModule()); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	good, seed := 0, seedModule()
	for range 5000 {
		m := seed.Clone()
		Mangle(r, m)
		CheckAgain(t, seed, m)
		if CheckMangled(t, m) {
			good++
		}
	}
	if good == 0 {
		t.Error("every mangled module was wrong")
	}
}

// References are the rows of the ops that have no Kind.
func References() []ir.OpInfo { return references }

// Of errors without end the first are said, and how many more there are.
func TestManyErrors(t *testing.T) {
	m := new(ir.Module)
	for range 1500 {
		m.Funcs = append(m.Funcs, ir.NewFunc("f"))
	}
	err := verify.Verify(m)
	lines := strings.Split(err.Error(), "\n")
	if want := "and 1999 more"; len(lines) != 1001 || lines[1000] != want {
		t.Errorf("%d lines, the last of them %q, want 1001 and %q", len(lines), lines[len(lines)-1], want)
	}
}
