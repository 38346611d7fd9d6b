package passes

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ppc/ir"
	"ppc/ir/facts"
)

// windowsAt says for a random tensor of indices at which windows of x they are.
type windowsAt struct {
	indices      *ir.Value
	vector       int   // index_vector_dim
	moved        []int // the dimensions that the components of an index move along
	sizes        []int
	dropped      []int // dimensions of size 1 that windows lack
	batch, along []int // dimensions of x, and of the indices, that go together
	slices       []int // the shape of all windows
	offset       []int // of slices: the dimensions of a window
}

// windowsOf makes indices into x, also ones that are outside, and windows of
// any size there.
func (g *programMaker) windowsOf(x *ir.Value) windowsAt {
	var w windowsAt
	shape := x.Type.Shape
	w.sizes = slices.Clone(shape)
	counts := []int{1 + g.r.IntN(4)} // of windows
	if g.r.IntN(2) == 0 {
		counts = append(counts, []int{2, 4, 8}[g.r.IntN(3)])
	}
	last := 0
	for _, d := range g.r.Perm(len(shape)) {
		switch {
		case len(w.batch) == 0 && len(shape) > 1 && g.r.IntN(3) == 0:
			w.batch, w.along, w.sizes[d] = []int{d}, []int{len(counts)}, 1
			counts = append(counts, shape[d])
		case len(w.moved) == 0 || g.r.IntN(2) == 0:
			w.moved, w.sizes[d] = append(w.moved, d), 1+g.r.IntN(shape[d])
			if g.clamped && len(w.moved) > 1 {
				w.sizes[d] = shape[d]
			}
			last = max(last, shape[d])
		case g.r.IntN(2) == 0:
			w.sizes[d] = 1 + g.r.IntN(shape[d])
		}
	}
	if len(w.moved) == 0 {
		d := (w.batch[0] + 1) % len(shape)
		w.moved, last = []int{d}, shape[d]
	}
	for d, n := range w.sizes {
		if n == 1 && !slices.Contains(w.batch, d) && g.r.IntN(2) == 0 {
			w.dropped = append(w.dropped, d)
		}
	}
	w.vector = g.r.IntN(len(counts) + 1)
	for i := range w.along {
		if w.along[i] >= w.vector {
			w.along[i]++
		}
	}
	t := ir.Tensor(ir.I32, slices.Insert(slices.Clone(counts), w.vector, len(w.moved))...)
	vs := make([]int, t.NumElements())
	for i := range vs {
		vs[i] = g.r.IntN(last+4) - 2
	}
	w.indices = g.b.Const(ir.Ints64(t, vs...))
	if g.clamped {
		last := make([]int, len(w.moved))
		for i, d := range w.moved {
			last[i] = shape[d] - w.sizes[d]
		}
		most := g.b.Broadcast(g.b.Const(ir.Ints64(ir.Tensor(ir.I32, len(last)), last...)), t.Shape, w.vector)
		w.indices = g.b.Emit(ir.Clamp, []*ir.Value{g.b.Const(ir.Ints64(ir.Tensor(ir.I32), 0)), w.indices, most}, nil, nil, nil).Result()
	}
	if g.r.IntN(2) == 0 {
		w.indices = g.b.Constrain(w.indices, g.sharding(t.Shape, false))
	}
	w.slices = counts
	for d, n := range w.sizes {
		if !slices.Contains(w.batch, d) && !slices.Contains(w.dropped, d) {
			at := g.r.IntN(len(w.slices) + 1)
			if k := len(w.offset); k > 0 {
				at = w.offset[k-1] + 1 + g.r.IntN(len(w.slices)-w.offset[k-1])
			}
			w.slices, w.offset = slices.Insert(w.slices, at, n), append(w.offset, at)
		}
	}
	return w
}

// takeWindows is a gather of windows.
func (g *programMaker) takeWindows() *ir.Value {
	x := g.pick()
	w := g.windowsOf(x)
	return g.b.Emit(ir.Gather, []*ir.Value{x, w.indices}, ir.AttrsOf(
		facts.Named("dimension_numbers", ir.GatherDims{OffsetDims: w.offset, CollapsedSliceDims: w.dropped, OperandBatchingDims: w.batch,
			StartIndicesBatchingDims: w.along, StartIndexMap: w.moved, IndexVectorDim: w.vector}),
		facts.Named("slice_sizes", ir.Ints(w.sizes))), nil, nil).Result()
}

// ScatterWindows is a scatter of windows.
func (g *programMaker) scatterWindows() *ir.Value {
	x := g.pick()
	w := g.windowsOf(x)
	updates := g.b.Const(g.literal(ir.Tensor(ir.F64, w.slices...)))
	if g.r.IntN(2) == 0 {
		updates = g.b.Constrain(updates, g.sharding(w.slices, false))
	}
	k := []ir.Kind{ir.Add, ir.Maximum}[g.r.IntN(2)]
	return g.small(g.b.Emit(ir.Scatter, []*ir.Value{x, w.indices, updates}, ir.AttrsOf(
		facts.Named("scatter_dimension_numbers", ir.ScatterDims{UpdateWindowDims: w.offset, InsertedWindowDims: w.dropped, InputBatchingDims: w.batch,
			ScatterIndicesBatchingDims: w.along, ScatterDimsToOperandDims: w.moved, IndexVectorDim: w.vector})),
		[]*ir.Block{g.b.Combiner(k, ir.F64)}, nil).Result())
}

// scatterInside is a scatter of windows whose indices are clamped, as JAX
// clamps them: along some dimensions they cannot move.
func (g *programMaker) scatterInside() *ir.Value {
	g.clamped = true
	defer func() { g.clamped = false }()
	return g.scatterWindows()
}

// cumulative is a running sum, maximum, minimum or product, from either end, or
// a running maximum with its place.
func (g *programMaker) cumulative() *ir.Value {
	x := g.pick()
	rank := x.Type.Rank()
	d := g.r.IntN(rank)
	n := x.Type.Shape[d]
	size, low, high := make(ir.Ints, rank), make([]int, rank), make([]int, rank)
	for e := range size {
		size[e] = 1
		if e != d && g.r.IntN(4) == 0 && x.Type.Shape[e] > 1 {
			size[e], low[e] = 2, g.r.IntN(2)
		}
	}
	size[d], low[d] = n, n-1
	if g.r.IntN(2) == 0 {
		low[d], high[d] = 0, n-1
	}
	attrs := ir.AttrsOf(facts.Named("window_dimensions", size), facts.Named("padding", facts.PaddingAttr(low, high)))
	if g.r.IntN(4) == 0 {
		return g.foldPlaces(ir.ReduceWindow, x, d, attrs)
	}
	k := []ir.Kind{ir.Add, ir.Maximum, ir.Minimum, ir.Multiply}[g.r.IntN(4)]
	init := g.b.Const(facts.Neutral(k, ir.F64))
	return g.small(g.b.Emit(ir.ReduceWindow, []*ir.Value{x, init}, attrs, []*ir.Block{g.b.Combiner(k, ir.F64)}, nil).Result())
}

// kernelGradient is a convolution with a kernel about as large as its input.
func (g *programMaker) kernelGradient() *ir.Value {
	g.wide = true
	defer func() { g.wide = false }()
	return g.convolution()
}

// Ops that read or write a part of a sharded dimension compute on shards what they
// compute on the global tensor, and mostly move no operand for it.
func TestPartitionParts(t *testing.T) {
	for _, c := range []struct {
		name  string
		make  func(*programMaker) *ir.Value
		parts int // so many programs keep what they work on in parts
	}{
		{"update", (*programMaker).update, 80},
		{"gather", (*programMaker).takeWindows, 85},
		{"scatter", (*programMaker).scatterWindows, 120},
		{"scatter inside", (*programMaker).scatterInside, 130},
		{"cumulative", (*programMaker).cumulative, 80},
		{"select and scatter", (*programMaker).selectAndScatter, 85},
		{"kernel gradient", (*programMaker).kernelGradient, 85},
	} {
		t.Run(c.name, func(t *testing.T) {
			meshes, parts := randomMeshes(), 0
			for seed := range uint64(280) {
				mesh := meshes[seed%uint64(len(meshes))]
				f := ir.NewFunc("main")
				g := &programMaker{r: rand.New(rand.NewPCG(seed, 9)), mesh: mesh, b: ir.NewBuilder(f), odd: seed%8 == 7}
				shape := []int{[]int{4, 6, 12}[g.r.IntN(3)], []int{1, 4, 6, 24}[g.r.IntN(4)], []int{1, 2, 8}[g.r.IntN(3)]}
				x := f.NewArg(f.Body, ir.Tensor(ir.F64, shape...), "x")
				x.Sharding = g.sharding(shape, false)
				g.pool = []*ir.Value{x}
				v := c.make(g)
				g.b.Return(v)
				f.Results[0].Sharding = g.sharding(v.Type.Shape, true)
				m := &ir.Module{Name: "parts", Meshes: []*ir.Mesh{mesh}, Funcs: []*ir.Func{f}, Form: ir.Expanded}
				args := []*ir.Literal{g.literal(x.Type)}
				local, err := partitionedProgram(m, args)
				if err != nil {
					failing{m, args}.report(t, seed, err, partitionedEqual)
					continue
				}
				if text := fmt.Sprint(x.Sharding); text != fmt.Sprint(ir.Replicated(mesh.Name, len(shape))) && !slices.Contains(kindsOf(local), ir.AllGather) {
					parts++
				}
			}
			t.Logf("%d programs gather nothing", parts)
			if parts < c.parts {
				t.Errorf("%d programs gather nothing, want %d", parts, c.parts)
			}
		})
	}
}
