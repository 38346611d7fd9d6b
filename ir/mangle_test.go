package ir

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A mangler breaks modules at random, in the ways in which a wrong pass or a
// wrong reader could.
type mangler struct {
	*rand.Rand
	m      *Module
	ops    []*Op
	values []*Value
	blocks []*Block
}

func newMangler(r *rand.Rand, m *Module) *mangler {
	g := &mangler{Rand: r, m: m}
	var walk func(b *Block)
	walk = func(b *Block) {
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

func (g *mangler) typ() *Type {
	return pick(g, []*Type{
		nil, {}, {Kind: 99}, Tensor(F32), Tensor(I1, 2), Tensor(F32, 4, 8), Tensor(F32, Dynamic, 8), Tensor(F32, -7), Tensor(200, 3), Tensor(F32, 1<<40, 1<<40),
		Tensor(InvalidDType, 3), Token(), Tuple(), Tuple(nil), Tuple(Tensor(F32)), Scalar(F32), Scalar(0), {Kind: FuncType, NumIn: 3}, {Kind: FutureType, Elems: []*Type{Scalar(I8)}},
		{Kind: OpaqueType, Text: "!odd"}, {Kind: TensorType, Elem: F32, Shape: g.ints()},
	})
}

func (g *mangler) refs() []AxisRef {
	rs := make([]AxisRef, g.IntN(3))
	for i := range rs {
		rs[i] = AxisRef{Name: pick(g, []string{"x", "y", "none"}), Pre: pick(g, oddInts), Size: pick(g, oddInts)}
		if g.IntN(2) == 0 {
			rs[i] = Ax("x")
		}
	}
	return rs
}

func (g *mangler) sharding() *Sharding {
	s := &Sharding{Mesh: pick(g, []string{"mesh", "none", ""}), Replicated: g.refs(), Unreduced: g.refs()}
	for range g.IntN(4) {
		s.Dims = append(s.Dims, DimSharding{Axes: g.refs(), Open: g.IntN(2) == 0, Priority: g.IntN(3) - 1})
	}
	return s
}

func (g *mangler) side() ConvSide { return ConvSide{pick(g, oddInts), pick(g, oddInts), g.ints()} }

func (g *mangler) attr(depth int) Attr {
	if depth > 0 && g.IntN(4) == 0 {
		switch g.IntN(3) {
		case 0:
			return Array{g.attr(depth - 1), g.attr(depth - 1)}
		case 1:
			return Dict{{"a", g.attr(depth - 1)}, {"outside", g.attr(depth - 1)}}
		}
		return PerValue{g.sharding(), nil}
	}
	return pick(g, []Attr{
		nil, Int{pick(g, oddInts), I64}, Int{1, 99}, Float{1, F32}, Float{1, 0}, Bool(true), Unit{}, Str("x"), Sym("layer"), Sym("main"), Ints(g.ints()), Bools{true},
		TypeAttr{g.typ()}, Enum{"stablehlo", "odd", "EQ"}, Dot{g.ints(), g.ints(), g.ints(), g.ints()},
		GatherDims{g.ints(), g.ints(), g.ints(), g.ints(), g.ints(), pick(g, oddInts)}, ScatterDims{g.ints(), g.ints(), g.ints(), g.ints(), g.ints(), pick(g, oddInts)},
		ConvDims{g.side(), g.side(), g.side()}, ConvDims{ConvSide{0, 2, []int{1}}, ConvSide{1, 2, []int{0}}, ConvSide{0, 2, []int{1}}}, Bools{true, false},
		Channel{pick(g, oddInts), 1}, MeshAxes{"mesh", g.refs()}, MeshAxes{"none", nil}, AxisShift{"mesh", Axs("x"), pick(g, oddInts), true, false}, AxisShift{"mesh", []AxisRef{{"y", 3, 0}}, 1, false, true}, AxisShift{"mesh", g.refs(), 0, false, true},
		PerValue{g.sharding()}, g.sharding(), (*Sharding)(nil), (*Literal)(nil), Verbatim("#odd"),
		&Literal{Type: g.typ(), Data: make([]byte, g.IntN(40))}, Ints64(Tensor(I64, 2, 2), 0, 1, 2, 3), Ints64(Tensor(I64, 1<<20, 1<<20), 7), Ints64(Tensor(I64, 1<<40), 7), Ints64(Tensor(I64, 1<<20, 2), -1),
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
		op.Kind = Kind(g.IntN(int(numKinds) + 3))
	case 14:
		b.Ops = shorten(g, b.Ops)
	case 15:
		b.Args = shorten(g, b.Args)
	case 16:
		b.Ops = slices.Insert(b.Ops, g.IntN(len(b.Ops)+1), pick(g, append(g.ops, nil)))
	case 17:
		v.ID, v.Index = ID(pick(g, oddInts)), pick(g, oddInts)
	case 18:
		g.mesh()
	case 19:
		g.function()
	case 20:
		op.Attrs = append(Attrs{{"sdy.sharding", g.attr(2)}}, op.Attrs...)
	case 21:
		b.Args = append(b.Args, pick(g, append(g.values, nil)))
	}
}

func (g *mangler) mesh() {
	switch g.IntN(3) {
	case 0:
		g.m.Meshes = append(g.m.Meshes, nil)
	case 1:
		g.m.Meshes = []*Mesh{{Name: "mesh", Axes: []MeshAxis{{"x", pick(g, oddInts)}, {"x", 2}, {"y", pick(g, oddInts)}}, DeviceIDs: g.ints()}}
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
		f.Results = append(f.Results, Result{Type: g.typ(), Sharding: g.sharding()})
	case 4:
		f.Name = pick(g, []string{"", "main", "layer", "whole"})
	}
}

// seedModule has ops of most shapes: regions, captures, calls, shardings,
// collectives.
func seedModule() *Module {
	layer := NewFunc("layer")
	x, w := layer.NewArg(layer.Body, Tensor(F32, 4, 8), "x"), layer.NewArg(layer.Body, Tensor(F32, 8, 8), "w")
	b := NewBuilder(layer)
	b.Return(b.Dot(x, w, Dot{LhsContract: []int{1}, RhsContract: []int{0}}))

	main := NewFunc("main")
	a, s := main.NewArg(main.Body, Tensor(F32, 4, 8), "a"), main.NewArg(main.Body, Tensor(F32, 2, 8, 8), "s")
	a.Sharding = NewSharding("mesh", Axs("x"), nil)
	b = NewBuilder(main)
	stack := b.Emit(PPStack, []*Value{a, s}, AttrsOf(NamedAttr{"layer", Sym("layer")}, NamedAttr{"layers", I64Attr(2)}, NamedAttr{"sides", I64Attr(0)}, NamedAttr{"config", Dict{}}), nil, []*Type{a.Type}).Result()
	scan := new(Block)
	i, c, row := main.NewArg(scan, Tensor(I32), ""), main.NewArg(scan, a.Type, ""), main.NewArg(scan, Tensor(F32, 8, 8), "")
	in := b.In(scan)
	moved := in.DynamicSlice(stack, []*Value{i, in.I32(0)}, 4, 8)
	in.Emit(PPYield, []*Value{in.Add(in.Dot(c, row, Dot{LhsContract: []int{1}, RhsContract: []int{0}}), moved)}, nil, nil, nil)
	y := b.Emit(PPScan, []*Value{stack, s}, AttrsOf(NamedAttr{"carries", I64Attr(1)}, NamedAttr{"trip_count", I64Attr(2)}), []*Block{scan}, nil).Result()
	y = b.Constrain(y, NewSharding("mesh", nil, Axs("y")))
	y = b.Reshape(b.Transpose(b.Pad(y, b.Splat(Tensor(F32), 0), []int{0, 1}, []int{0, 0}, []int{0, 0}), 1, 0), 6, 6)
	r := b.Emit(AllReduce, []*Value{y}, AttrsOf(NamedAttr{"replica_groups", MeshAxes{"mesh", Axs("x")}}), []*Block{b.Combiner(Add, F32)}, nil).Result()
	p := b.Emit(CollectivePermute, []*Value{r}, AttrsOf(NamedAttr{"source_target_pairs", AxisShift{"mesh", Axs("y"), 1, true, false}}), nil, nil).Result()
	g := b.Emit(Gather, []*Value{p, b.Const(Ints64(Tensor(I32, 2, 1), 1, 2))}, AttrsOf(
		NamedAttr{"dimension_numbers", GatherDims{OffsetDims: []int{1}, CollapsedSliceDims: []int{0}, StartIndexMap: []int{0}, IndexVectorDim: 1}},
		NamedAttr{"slice_sizes", Ints{1, 6}}), nil, nil).Result()
	b.Return(b.Reduce(Add, g, b.Splat(Tensor(F32), 0), 0, 1), b.Compare("LT", p, r))
	return &Module{Name: "m", Funcs: []*Func{layer, main}, Meshes: []*Mesh{{Name: "mesh", Axes: []MeshAxis{{"x", 2}, {"y", 4}}}}}
}

// Mangle breaks some things in m.
func Mangle(r *rand.Rand, m *Module) {
	g := newMangler(r, m)
	for range 1 + r.IntN(4) {
		g.mangle()
	}
	if r.IntN(4) == 0 {
		m.Form = Form(r.IntN(1 << len(formTable)))
	}
}

// CheckMangled verifies m, whatever is wrong with it, and reports whether
// nothing is. What is right can be copied, and has sharding rules.
func CheckMangled(t *testing.T, m *Module) bool {
	t.Helper()
	if err := Verify(m); err != nil {
		_ = err.Error()
		return false
	}
	for _, f := range m.Funcs {
		if f.Body != nil {
			f.Body.Walk(func(op *Op) { FactorsOf(op) })
		}
	}
	if err := Verify(m.Clone()); err != nil {
		t.Fatalf("a clone is wrong: %v", err)
	}
	return true
}

// Verify says something of every module.
func TestVerifyNeverPanics(t *testing.T) {
	if err := Verify(seedModule()); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	good := 0
	for range 5000 {
		m := seedModule()
		Mangle(r, m)
		if CheckMangled(t, m) {
			good++
		}
	}
	if good == 0 {
		t.Error("every mangled module was wrong")
	}
}
