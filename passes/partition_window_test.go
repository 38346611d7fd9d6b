package passes

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ppc/ir"
	"ppc/ir/facts"
)

// stridedSlice takes every other element or so of each dimension.
func (g *programMaker) stridedSlice() *ir.Value {
	x := g.pick()
	start, limit, strides := make(ir.Ints, x.Type.Rank()), make(ir.Ints, x.Type.Rank()), make(ir.Ints, x.Type.Rank())
	for d, n := range x.Type.Shape {
		start[d], strides[d] = g.r.IntN(min(n, 3)), 1+g.r.IntN(3)
		limit[d] = n - g.r.IntN(min(n-start[d], 3))
	}
	return g.b.Emit(ir.Slice, []*ir.Value{x}, ir.AttrsOf(facts.Named("start_indices", start), facts.Named("limit_indices", limit), facts.Named("strides", strides)), nil, nil).Result()
}

// interiorPad pads between the elements, too.
func (g *programMaker) interiorPad() *ir.Value {
	x := g.pick()
	n := x.Type.Rank()
	low, high, interior := make([]int, n), make([]int, n), make([]int, n)
	for d := range n {
		low[d], high[d], interior[d] = g.r.IntN(4)-1, g.r.IntN(4)-1, g.r.IntN(3)
		if x.Type.Shape[d] < 3 {
			low[d], high[d] = max(low[d], 0), max(high[d], 0)
		}
	}
	return g.b.Pad(x, g.b.Splat(ir.Tensor(ir.F64), float64(g.r.IntN(2))), low, high, interior)
}

// window is a random window along a dimension of size n that fits at least once.
// Often the result has the size of the operand, or a part of it.
func (g *programMaker) window(n int) ir.Window {
	for range 20 {
		if g.wide { // as a kernel is in the gradient of another
			n := n - g.r.IntN(min(n, 4))
			w := ir.Window{Size: n, Stride: 1 + g.r.IntN(2), Low: g.r.IntN(3), High: g.r.IntN(3), Base: 1 + g.r.IntN(4)/3, Dilation: 1}
			if g.r.IntN(3) == 0 {
				w.Size, w.Dilation = (n+1)/2, 2
			}
			return w
		}
		w := ir.Window{Size: 1 + g.r.IntN(4), Stride: 1 + g.r.IntN(3), Base: 1 + g.r.IntN(5)/3, Dilation: 1 + g.r.IntN(5)/3, Low: g.r.IntN(5) - 1, High: g.r.IntN(5) - 1}
		switch g.r.IntN(4) {
		case 0: // as large as the operand
			w.Stride, w.Base = 1, 1
			w.Low = g.r.IntN(w.Reach())
			w.High = w.Reach() - 1 - w.Low
		case 1: // side by side
			w = ir.Window{Size: w.Size, Stride: w.Size, Base: 1, Dilation: 1}
		}
		if k := w.Count(n); k > 0 && k <= 2*n+2 {
			return w
		}
	}
	return ir.Window{Size: 1, Stride: 1, Base: 1, Dilation: 1}
}

// windowAttrs are those of windows in every dimension of a shape; gaps only
// where the op may have them.
func (g *programMaker) windowAttrs(shape []int, gaps bool) (ir.Attrs, []ir.Window) {
	var size, strides, base, dilation ir.Ints
	var low, high []int
	var ws []ir.Window
	for _, n := range shape {
		w := g.window(n)
		for !gaps && (w.Base > 1 || w.Dilation > 1) {
			w = g.window(n)
		}
		if g.r.IntN(3) == 0 {
			w = ir.Window{Size: 1, Stride: 1, Base: 1, Dilation: 1}
		}
		size, strides, base, dilation = append(size, w.Size), append(strides, w.Stride), append(base, w.Base), append(dilation, w.Dilation)
		low, high, ws = append(low, w.Low), append(high, w.High), append(ws, w)
	}
	attrs := ir.AttrsOf(facts.Named("window_dimensions", size), facts.Named("window_strides", strides), facts.Named("padding", facts.PaddingAttr(low, high)))
	if gaps {
		attrs.Set("base_dilations", base)
		attrs.Set("window_dilations", dilation)
	}
	return attrs, ws
}

func (g *programMaker) reduceWindow() *ir.Value {
	x := g.pick()
	attrs, _ := g.windowAttrs(x.Type.Shape, true)
	k := []ir.Kind{ir.Add, ir.Maximum, ir.Minimum}[g.r.IntN(3)]
	init := g.b.Splat(ir.Tensor(ir.F64), float64(g.r.IntN(3)))
	return g.small(g.b.Emit(ir.ReduceWindow, []*ir.Value{x, init}, attrs, []*ir.Block{g.b.Combiner(k, ir.F64)}, nil).Result())
}

func (g *programMaker) selectAndScatter() *ir.Value {
	x := g.pick()
	attrs, ws := g.windowAttrs(x.Type.Shape, false)
	shape := make([]int, len(ws))
	for d, w := range ws {
		shape[d] = w.Count(x.Type.Shape[d])
	}
	source := g.b.Const(g.literal(ir.Tensor(ir.F64, shape...)))
	if g.r.IntN(2) == 0 {
		source = g.b.Constrain(source, g.sharding(shape, false))
	}
	first := new(ir.Block)
	in := g.b.In(first)
	l, r := g.b.Func.NewArg(first, ir.Tensor(ir.F64), ""), g.b.Func.NewArg(first, ir.Tensor(ir.F64), "")
	in.Emit(ir.Return, []*ir.Value{in.Compare([]string{"GE", "LT"}[g.r.IntN(2)], l, r)}, nil, nil, nil)
	init := g.b.Splat(ir.Tensor(ir.F64), float64(g.r.IntN(2)))
	return g.small(g.b.Emit(ir.SelectAndScatter, []*ir.Value{x, source, init}, attrs, []*ir.Block{first, g.b.Combiner(ir.Add, ir.F64)}, nil).Result())
}

// convolution is one of a value with a constant or another value of its rank.
func (g *programMaker) convolution() *ir.Value {
	x := g.pick()
	rank := x.Type.Rank()
	if rank < 2 {
		return nil
	}
	side := func() ir.ConvSide {
		perm := g.r.Perm(rank)
		return ir.ConvSide{First: perm[0], Second: perm[1], Spatial: perm[2:]}
	}
	d := ir.ConvDims{Input: side(), Kernel: side(), Output: side()}
	features, batches := 1, 1
	for _, k := range []int{2, 4} {
		switch {
		case g.r.IntN(3) == 0 && x.Type.Shape[d.Input.Second]%k == 0 && batches == 1:
			features = k
		case g.r.IntN(4) == 0 && x.Type.Shape[d.Input.First]%k == 0 && features == 1:
			batches = k
		}
	}
	shape := make([]int, rank)
	shape[d.Kernel.First] = x.Type.Shape[d.Input.Second] / features
	shape[d.Kernel.Second] = features * batches * (1 + g.r.IntN(3))
	var strides, base, dilation ir.Ints
	var low, high []int
	var reversed ir.Bools
	for i, k := range d.Input.Spatial {
		w := g.window(x.Type.Shape[k])
		shape[d.Kernel.Spatial[i]] = w.Size
		strides, base, dilation = append(strides, w.Stride), append(base, w.Base), append(dilation, w.Dilation)
		low, high, reversed = append(low, w.Low), append(high, w.High), append(reversed, g.r.IntN(3) == 0)
	}
	kernel := g.b.Const(g.literal(ir.Tensor(ir.F64, shape...)))
	if g.r.IntN(2) == 0 {
		kernel = g.b.Constrain(kernel, g.sharding(shape, true))
	}
	return g.small(g.b.Emit(ir.Convolution, []*ir.Value{x, kernel}, ir.AttrsOf(facts.Named("dimension_numbers", d), facts.Named("feature_group_count", ir.I64Attr(features)),
		facts.Named("batch_group_count", ir.I64Attr(batches)), facts.Named("window_strides", strides), facts.Named("lhs_dilation", base), facts.Named("rhs_dilation", dilation),
		facts.Named("padding", facts.PaddingAttr(low, high)), facts.Named("window_reversal", reversed)), nil, nil).Result())
}

// Ops that move windows compute on shards what they compute on the global
// tensor, for
// random windows on random shardings.
func TestPartitionWindows(t *testing.T) {
	meshes := []*ir.Mesh{
		{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 2}, {Name: "y", Size: 2}}},
		{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 4}, {Name: "y", Size: 2}}},
	}
	makers := []func(*programMaker) *ir.Value{(*programMaker).stridedSlice, (*programMaker).interiorPad, (*programMaker).reduceWindow, (*programMaker).selectAndScatter, (*programMaker).convolution}
	permutes, n := 0, 0
	for seed := range uint64(1200) {
		mesh := meshes[seed%2]
		f := ir.NewFunc("main")
		g := &programMaker{r: rand.New(rand.NewPCG(seed, 7)), mesh: mesh, b: ir.NewBuilder(f), odd: seed%8 == 7}
		shape := []int{[]int{4, 8, 16}[g.r.IntN(3)], []int{4, 6, 8}[g.r.IntN(3)], []int{1, 2, 4, 8, 16}[g.r.IntN(5)]}
		x := f.NewArg(f.Body, ir.Tensor(ir.F64, shape...), "x")
		x.Sharding = g.sharding(shape, false)
		g.pool = []*ir.Value{x}
		v := makers[seed%uint64(len(makers))](g)
		g.b.Return(v)
		f.Results[0].Sharding = g.sharding(v.Type.Shape, true)
		m := &ir.Module{Name: "windows", Meshes: []*ir.Mesh{mesh}, Funcs: []*ir.Func{f}, Form: ir.Expanded}
		args := []*ir.Literal{g.literal(x.Type)}
		local, err := partitionedProgram(m, args)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		n++
		text := fmt.Sprint(kindsOf(local))
		if strings.Contains(text, ir.CollectivePermute.String()) && !strings.Contains(text, ir.AllGather.String()) {
			permutes++
		}
	}
	t.Logf("%d of %d programs exchange halos and gather nothing", permutes, n)
	if permutes < 100 {
		t.Errorf("%d programs exchange halos and gather nothing, want 100", permutes)
	}
}

func kindsOf(m *ir.Module) []ir.Kind {
	var ks []ir.Kind
	m.Main().Body.Walk(func(op *ir.Op) { ks = append(ks, op.Kind) })
	slices.Sort(ks)
	return slices.Compact(ks)
}
