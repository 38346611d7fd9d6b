package passes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"testing"

	"ppc/internal/optest"
	"ppc/internal/shared"
	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/facts"
	"ppc/ir/mlir"
	"ppc/ir/verify"
	"ppc/passes/layout"
	"ppc/passes/pass"
)

// A programMaker makes random programs: DAGs over the op table with random
// shardings.
type programMaker struct {
	r        *rand.Rand
	mesh     *ir.Mesh
	odd      bool // sizes need not divide
	wild     bool // shardings are whatever a program may say
	wide     bool // windows are about as large as what they are windows of
	clamped  bool // the indices of windows are clamped, so that some do not move along a dimension
	groups   int  // given out
	channels int  // given out
	b        *ir.Builder
	pool     []*ir.Value // float tensors that later ops may use
	counts   []*ir.Value // integers that they may start at
	depth    int         // of loops and branches around
	manual   []string    // axes along which the program is one device's already
	makers   []func(g *programMaker) *ir.Value
	devices  []*ir.Mesh // of one device each
	callees  []*ir.Func
}

// randomProgram makes a program of about n ops on the given mesh, and
// arguments for it.
func randomProgram(seed uint64, mesh *ir.Mesh, n int) (*ir.Module, []*ir.Literal) {
	return randomProgramOf(randomOps(), seed, mesh, n)
}

// randomProgramOf is randomProgram of given ops.
func randomProgramOf(ops []func(g *programMaker) *ir.Value, seed uint64, mesh *ir.Mesh, n int) (*ir.Module, []*ir.Literal) {
	g := &programMaker{r: rand.New(rand.NewPCG(seed, 1)), mesh: mesh, odd: seed%4 == 3, makers: ops}
	return g.program(n)
}

// program makes a program of about n ops, and arguments for it.
func (g *programMaker) program(n int) (*ir.Module, []*ir.Literal) {
	f := ir.NewFunc("main")
	g.b = ir.NewBuilder(f)
	var args []*ir.Literal
	for i := range 2 + g.r.IntN(3) {
		v := f.NewArg(f.Body, g.shape(), fmt.Sprint("p", i))
		if g.r.IntN(4) > 0 {
			v.Sharding = g.stating(v.Type.Shape)
		}
		g.pool = append(g.pool, v)
		args = append(args, g.literal(v.Type))
	}
	g.ops(n)
	last := 3
	if g.wild {
		last = 8
	}
	results := g.pool[max(0, len(g.pool)-last):]
	g.b.Return(results...)
	for i, v := range results {
		if g.r.IntN(2) == 0 {
			f.Results[i].Sharding = g.stating(v.Type.Shape)
		}
	}
	return &ir.Module{Name: "random", Meshes: append([]*ir.Mesh{g.mesh}, g.devices...), Funcs: append([]*ir.Func{f}, g.callees...), Form: ir.Expanded}, args
}

// shape is a random tensor type whose elements are few.
func (g *programMaker) shape() *ir.Type {
	sizes := []int{1, 2, 3, 4, 6, 8, 8, 12}
	shape := make([]int, 1+g.r.IntN(3))
	for d := range shape {
		shape[d] = sizes[g.r.IntN(len(sizes))]
	}
	return ir.Tensor(ir.F64, shape...)
}

// literal has small integers for elements: sums of them are exact in any order.
func (g *programMaker) literal(t *ir.Type) *ir.Literal {
	vs := make([]float64, t.NumElements())
	for i := range vs {
		vs[i] = float64(g.r.IntN(9) - 4)
	}
	return ir.Floats64(t, vs...)
}

// sharding is a random sharding that divides shape; open dimensions only where
// open says so.
func (g *programMaker) sharding(shape []int, open bool) *ir.Sharding {
	if g.wild {
		return g.wildSharding(shape, open)
	}
	s := ir.Replicated(g.mesh.Name, len(shape))
	for _, i := range g.r.Perm(len(g.mesh.Axes)) {
		a := g.mesh.Axes[i]
		d := g.r.IntN(len(shape) + 1)
		if slices.Contains(g.manual, a.Name) || d == len(shape) || shape[d]%(g.mesh.RefsSize(s.Axes(d))*a.Size) != 0 && !g.odd {
			continue
		}
		r := ir.Ax(a.Name)
		if a.Size == 4 && g.r.IntN(3) == 0 {
			r = ir.AxisRef{Name: a.Name, Pre: 1 + g.r.IntN(2), Size: 2}
		}
		s.Dims[d].Axes = append(s.Dims[d].Axes, r)
	}
	return g.opened(s, open)
}

// opened gives dimensions of s priorities, and opens some where open says so.
func (g *programMaker) opened(s *ir.Sharding, open bool) *ir.Sharding {
	for d := range s.Dims {
		s.Dims[d].Open = open && g.r.IntN(2) == 0
		if len(s.Dims[d].Axes) > 0 {
			s.Dims[d].Priority = g.r.IntN(8) / 6
		}
	}
	return s
}

func (g *programMaker) pick() *ir.Value { return g.pool[g.r.IntN(len(g.pool))] }

// pickLike is a value of the type of v: another one where there is one.
func (g *programMaker) pickLike(v *ir.Value) *ir.Value {
	for range 8 {
		if w := g.pick(); w.Type.Equal(v.Type) {
			return w
		}
	}
	return v
}

func (g *programMaker) ops(n int) {
	for range n {
		v := g.makers[g.r.IntN(len(g.makers))](g)
		if v != nil && v.Type.NumElements() <= 4096 && v.Type.Rank() > 0 {
			if g.wild && g.r.IntN(8) == 0 {
				g.say(v)
			}
			g.pool = append(g.pool, v)
		}
	}
}

// randomOps make one op or a few each; nil where they cannot.
func randomOps() []func(g *programMaker) *ir.Value {
	return append(frontEndOps(), (*programMaker).reshard, (*programMaker).underName, (*programMaker).edge, (*programMaker).literals,
		(*programMaker).annotated, (*programMaker).tuple, (*programMaker).explicitMove, (*programMaker).unreduced, (*programMaker).algebra,
		(*programMaker).ragged) // of which Shardy has no rule
}

// frontEndOps are those of randomOps that are in a program before any tool has
// worked on its shardings.
func frontEndOps() []func(g *programMaker) *ir.Value {
	return []func(g *programMaker) *ir.Value{
		(*programMaker).unary, (*programMaker).binary, (*programMaker).binary, (*programMaker).dot, (*programMaker).dot,
		(*programMaker).reduce, (*programMaker).transpose, (*programMaker).reshape, (*programMaker).broadcast,
		(*programMaker).constrain, (*programMaker).iota, (*programMaker).slice, (*programMaker).pad, (*programMaker).concat,
		(*programMaker).rotate, (*programMaker).reverse, (*programMaker).dynamicSlice, (*programMaker).update,
		(*programMaker).take, (*programMaker).scatter, (*programMaker).sort, (*programMaker).loop, (*programMaker).branch,
		(*programMaker).manually, (*programMaker).argmax, (*programMaker).barrier, (*programMaker).group,
		(*programMaker).stridedSlice, (*programMaker).interiorPad, (*programMaker).reduceWindow, (*programMaker).selectAndScatter, (*programMaker).convolution,
		(*programMaker).takeWindows, (*programMaker).scatterWindows, (*programMaker).cumulative,
		(*programMaker).elementwise, (*programMaker).elementwise, (*programMaker).bits, (*programMaker).random, (*programMaker).reduceOther,
		(*programMaker).sortPairs, (*programMaker).optimizationBarrier,
	}
}

func (g *programMaker) unary() *ir.Value {
	ks := []ir.Kind{ir.Negate, ir.Abs, ir.Sign}
	return g.b.Unary(ks[g.r.IntN(len(ks))], g.pick())
}

func (g *programMaker) binary() *ir.Value {
	ks := []ir.Kind{ir.Add, ir.Subtract, ir.Maximum, ir.Minimum}
	x := g.pick()
	return g.b.Binary(ks[g.r.IntN(len(ks))], x, g.pickLike(x))
}

// small keeps numbers small, so that they stay exact.
func (g *programMaker) small(v *ir.Value) *ir.Value {
	return g.b.Binary(ir.Remainder, v, g.b.Splat(v.Type, 17))
}

func (g *programMaker) dot() *ir.Value {
	x := g.pick()
	for range 8 {
		y := g.pick()
		i, j := g.r.IntN(x.Type.Rank()), g.r.IntN(y.Type.Rank())
		if x.Type.Shape[i] != y.Type.Shape[j] {
			continue
		}
		d := ir.Dot{LhsContract: []int{i}, RhsContract: []int{j}}
		if k, l := g.r.IntN(x.Type.Rank()), g.r.IntN(y.Type.Rank()); k != i && l != j && x.Type.Shape[k] == y.Type.Shape[l] {
			d.LhsBatch, d.RhsBatch = []int{k}, []int{l}
		}
		if x.Type.Rank()+y.Type.Rank() > 6 {
			continue
		}
		return g.small(g.b.Dot(x, y, d))
	}
	return nil
}

// ragged is a dot by groups of two values with a size in common, or of one and new
// matrices, one for each group.
func (g *programMaker) ragged() *ir.Value {
	x := g.pick()
	ragged, groups := g.r.IntN(x.Type.Rank()), 1+g.r.IntN(4)
	for range 8 {
		y := g.pick()
		i, j := g.r.IntN(x.Type.Rank()), g.r.IntN(y.Type.Rank())
		if x.Type.Shape[i] != y.Type.Shape[j] || x.Type.Rank()+y.Type.Rank() > 6 {
			continue
		}
		dot := ir.Dot{LhsContract: []int{i}, RhsContract: []int{j}}
		if k, l := g.r.IntN(x.Type.Rank()), g.r.IntN(y.Type.Rank()); k != i && l != j && x.Type.Shape[k] == y.Type.Shape[l] {
			dot.LhsBatch, dot.RhsBatch = []int{k}, []int{l}
		}
		at := g.r.IntN(y.Type.Rank() + 1)
		d, shape := optest.Ragged(dot, ragged, groups, at, y.Type.Shape)
		if d.Mode() == ir.RaggedFree {
			dims := slices.Delete(facts.UpTo(len(shape)), at, at+1)
			y = g.b.Add(g.b.Broadcast(y, shape, dims...), g.b.Iota(y.Type.WithShape(shape...), at))
		}
		var outer []int
		if g.r.IntN(2) == 0 {
			for _, k := range d.Outer() {
				outer = append(outer, x.Type.Shape[k])
			}
		}
		sizes := g.b.Const(optest.GroupSizes(g.r.IntN, x.Type.Shape[ragged], append(outer, groups)...))
		return g.small(g.b.Emit(ir.RaggedDot, []*ir.Value{x, y, sizes}, ir.AttrsOf(ir.NamedAttr{Name: "ragged_dot_dimension_numbers", Attr: d}), nil, nil).Result())
	}
	return nil
}

func (g *programMaker) reduce() *ir.Value {
	x := g.pick()
	if x.Type.Rank() < 2 {
		return nil
	}
	ks := []ir.Kind{ir.Add, ir.Maximum, ir.Minimum}
	init := g.b.Splat(ir.Tensor(ir.F64), float64(g.r.IntN(3)))
	return g.b.Reduce(ks[g.r.IntN(len(ks))], x, init, g.r.Perm(x.Type.Rank())[:1+g.r.IntN(x.Type.Rank()-1)]...)
}

func (g *programMaker) transpose() *ir.Value {
	x := g.pick()
	return g.b.Transpose(x, g.r.Perm(x.Type.Rank())...)
}

// reshape merges two dimensions or splits one.
func (g *programMaker) reshape() *ir.Value {
	x := g.pick()
	shape := append([]int(nil), x.Type.Shape...)
	d := g.r.IntN(len(shape))
	if g.r.IntN(2) == 0 && d+1 < len(shape) {
		shape[d] *= shape[d+1]
		return g.b.Reshape(x, append(shape[:d+1], shape[d+2:]...)...)
	}
	for _, k := range []int{2, 4, 3} {
		if shape[d]%k == 0 && len(shape) < 4 {
			rest := append([]int{k, shape[d] / k}, shape[d+1:]...)
			return g.b.Reshape(x, append(shape[:d], rest...)...)
		}
	}
	return nil
}

func (g *programMaker) broadcast() *ir.Value {
	x := g.pick()
	if x.Type.Rank() > 3 {
		return nil
	}
	d := g.r.IntN(x.Type.Rank() + 1)
	shape, dims := append([]int(nil), x.Type.Shape...), []int{}
	for i := range shape {
		if i >= d {
			i++
		}
		dims = append(dims, i)
	}
	shape = append(shape[:d], append([]int{4}, shape[d:]...)...)
	return g.b.Broadcast(x, shape, dims...)
}

func (g *programMaker) iota() *ir.Value {
	t := g.pick().Type
	v := g.b.Iota(t, g.r.IntN(t.Rank()))
	if g.r.IntN(2) == 0 {
		v = g.b.Add(v, g.b.Const(g.literal(t)))
	}
	return v
}

func (g *programMaker) slice() *ir.Value {
	x := g.pick()
	start, limit := make([]int, x.Type.Rank()), append([]int(nil), x.Type.Shape...)
	d := g.r.IntN(x.Type.Rank())
	start[d] = g.r.IntN(limit[d])
	limit[d] -= g.r.IntN(limit[d] - start[d])
	return g.b.Slice(x, start, limit)
}

func (g *programMaker) pad() *ir.Value {
	x := g.pick()
	n := x.Type.Rank()
	low, high, interior := make([]int, n), make([]int, n), make([]int, n)
	d := g.r.IntN(n)
	low[d], high[d] = g.r.IntN(5)-1, g.r.IntN(5)-1
	if g.r.IntN(8) == 0 {
		interior[d] = 1
	}
	if x.Type.Shape[d]+low[d]+high[d] < 1 {
		return nil
	}
	return g.b.Pad(x, g.b.Splat(ir.Tensor(ir.F64), float64(g.r.IntN(2))), low, high, interior)
}

func (g *programMaker) concat() *ir.Value {
	x := g.pick()
	return g.b.Concat(g.r.IntN(x.Type.Rank()), x, g.pickLike(x))
}

// Rotate moves a dimension by slices, pads and concatenations.
func (g *programMaker) rotate() *ir.Value {
	x := g.pick()
	d := g.r.IntN(x.Type.Rank())
	n := x.Type.Shape[d]
	if n < 2 {
		return nil
	}
	k := 1 + g.r.IntN(n-1)
	edge := make([]int, x.Type.Rank())
	zero := g.b.Splat(ir.Tensor(ir.F64), float64(g.r.IntN(2)))
	switch none := make([]int, x.Type.Rank()); g.r.IntN(3) {
	case 0:
		return g.b.Concat(d, g.b.SliceDim(x, d, n-k, n), g.b.SliceDim(x, d, 0, n-k))
	case 1:
		edge[d] = k
		return g.b.SliceDim(g.b.Pad(x, zero, edge, none, none), d, 0, n)
	default:
		edge[d] = k
		return g.b.SliceDim(g.b.Pad(x, zero, none, edge, none), d, k, n+k)
	}
}

func (g *programMaker) reverse() *ir.Value {
	x := g.pick()
	return g.b.Emit(ir.Reverse, []*ir.Value{x}, ir.Attrs{{Name: "dimensions", Attr: ir.Ints{g.r.IntN(x.Type.Rank())}}}, nil, nil).Result()
}

// starts are start indices that may be out of range, and window sizes.
func (g *programMaker) starts(x *ir.Value) ([]*ir.Value, []int) {
	var starts []*ir.Value
	sizes := append([]int(nil), x.Type.Shape...)
	for d := range sizes {
		if g.r.IntN(2) == 0 {
			sizes[d] = 1 + g.r.IntN(sizes[d])
		}
		if n := len(g.counts); n > 0 && g.r.IntN(2) == 0 {
			starts = append(starts, g.counts[n-1])
			continue
		}
		starts = append(starts, g.b.I32(g.r.IntN(x.Type.Shape[d]+4)-2))
	}
	return starts, sizes
}

func (g *programMaker) dynamicSlice() *ir.Value {
	x := g.pick()
	starts, sizes := g.starts(x)
	return g.b.DynamicSlice(x, starts, sizes...)
}

// update writes a window at places that are known, or not.
func (g *programMaker) update() *ir.Value {
	x := g.pick()
	starts, sizes := g.starts(x)
	if g.r.IntN(2) == 0 { // in one dimension
		only := g.r.IntN(len(sizes))
		for d := range sizes {
			if d != only {
				sizes[d] = x.Type.Shape[d]
			}
		}
	}
	u := g.b.Slice(x, make([]int, len(sizes)), sizes)
	if g.r.IntN(2) == 0 {
		u = g.b.Constrain(u, g.sharding(sizes, true))
	}
	if g.r.IntN(2) == 0 {
		starts = g.b.Emit(ir.OptimizationBarrier, starts, nil, nil, nil).Results
	}
	return g.b.DynamicUpdateSlice(x, u, starts)
}

// indices are some rows of a table of n, also ones that are not there.
func (g *programMaker) indices(n int) *ir.Value {
	shape := []int{8}
	if g.r.IntN(2) == 0 {
		shape = []int{4, 2}
	}
	t := ir.Tensor(ir.I32, shape...)
	vs := make([]int, t.NumElements())
	for i := range vs {
		vs[i] = g.r.IntN(n+4) - 2
	}
	v := g.b.Const(ir.Ints64(t, vs...))
	if g.r.IntN(2) == 0 {
		v = g.b.Constrain(v, g.sharding(shape, false))
	}
	return v
}

func (g *programMaker) take() *ir.Value {
	x := g.pick()
	return g.rows(x, g.r.IntN(x.Type.Rank()))
}

// rows are some of x along d.
func (g *programMaker) rows(x *ir.Value, d int) *ir.Value {
	idx := g.indices(x.Type.Shape[d])
	dims := ir.GatherDims{CollapsedSliceDims: []int{d}, StartIndexMap: []int{d}, IndexVectorDim: idx.Type.Rank()}
	sizes := append([]int(nil), x.Type.Shape...)
	sizes[d] = 1
	for i := range x.Type.Rank() - 1 {
		dims.OffsetDims = append(dims.OffsetDims, idx.Type.Rank()+i)
	}
	return g.b.Emit(ir.Gather, []*ir.Value{x, idx}, ir.AttrsOf(
		ir.NamedAttr{Name: "dimension_numbers", Attr: dims}, ir.NamedAttr{Name: "slice_sizes", Attr: ir.Ints(sizes)}), nil, nil).Result()
}

func (g *programMaker) scatter() *ir.Value {
	x := g.pick()
	d := g.r.IntN(x.Type.Rank())
	idx := g.indices(x.Type.Shape[d])
	dims := ir.ScatterDims{InsertedWindowDims: []int{d}, ScatterDimsToOperandDims: []int{d}, IndexVectorDim: idx.Type.Rank()}
	shape := append([]int(nil), idx.Type.Shape...)
	for i, n := range x.Type.Shape {
		if i != d {
			dims.UpdateWindowDims = append(dims.UpdateWindowDims, len(shape))
			shape = append(shape, n)
		}
	}
	updates := g.b.Const(g.literal(ir.Tensor(ir.F64, shape...)))
	if g.r.IntN(2) == 0 {
		updates = g.b.Constrain(updates, g.sharding(shape, false))
	}
	return g.b.Emit(ir.Scatter, []*ir.Value{x, idx, updates}, ir.AttrsOf(
		ir.NamedAttr{Name: "scatter_dimension_numbers", Attr: dims}), []*ir.Block{g.b.Combiner(ir.Add, ir.F64)}, nil).Result()
}

func (g *programMaker) sort() *ir.Value {
	x := g.pick()
	r := new(ir.Block)
	a, b := g.b.Func.NewArg(r, ir.Tensor(ir.F64), ""), g.b.Func.NewArg(r, ir.Tensor(ir.F64), "")
	in := g.b.In(r)
	in.Emit(ir.Return, []*ir.Value{in.Compare("LT", a, b)}, nil, nil, nil)
	return g.b.Emit(ir.Sort, []*ir.Value{x}, ir.AttrsOf(ir.NamedAttr{Name: "dimension", Attr: ir.I64Attr(g.r.IntN(x.Type.Rank()))}), []*ir.Block{r}, nil).Result()
}

// argmax reduces numbers and their places together.
func (g *programMaker) argmax() *ir.Value {
	x := g.pick()
	d := g.r.IntN(x.Type.Rank())
	return g.foldPlaces(ir.Reduce, x, d, ir.AttrsOf(facts.Named("dimensions", ir.Ints{d})))
}

// foldPlaces is the numbers, of what op folds, that are the largest, with their
// places along d, by a region of several ops.
func (g *programMaker) foldPlaces(k ir.Kind, x *ir.Value, d int, attrs ir.Attrs) *ir.Value {
	place := g.b.Iota(x.Type, d)
	r := new(ir.Block)
	var a [4]*ir.Value
	for i := range a {
		a[i] = g.b.Func.NewArg(r, ir.Tensor(ir.F64), "")
	}
	in := g.b.In(r)
	first := in.Binary(ir.Or, in.Compare("GT", a[0], a[2]), in.Binary(ir.And, in.Compare("EQ", a[0], a[2]), in.Compare("LT", a[1], a[3])))
	in.Emit(ir.Return, []*ir.Value{in.Select(first, a[0], a[2]), in.Select(first, a[1], a[3])}, nil, nil, nil)
	lowest, none := g.b.Splat(ir.Tensor(ir.F64), math.Inf(-1)), g.b.Splat(ir.Tensor(ir.F64), 1000)
	op := g.b.Emit(k, []*ir.Value{x, place, lowest, none}, attrs, []*ir.Block{r}, nil)
	return g.b.Add(op.Results[0], op.Results[1])
}

// A program computes the same numbers partitioned as it does on one device, also
// where its sizes do not divide. PPC_SEEDS=1000:2000 makes other programs than
// those of every run.
func TestPartitionRandom(t *testing.T) {
	from, to := seedsOf(t, randomPrograms)
	meshes, padded := wildMeshes(), uint64(0)
	for seed := from; seed < to; seed++ {
		m, args := wildProgram(seed, meshes[seed%uint64(len(meshes))], 1+int(seed%12))
		local, err := partitionedProgram(m, args)
		if err != nil {
			failing{m, args}.report(t, seed, err, partitionedEqual)
			continue
		}
		if hasPadding(local.Main()) {
			padded++
		}
	}
	t.Logf("seeds %d to %d: in %d programs a parameter or result is padded", from, to-1, padded)
	if padded < (to-from)/10 {
		t.Errorf("in %d of %d programs a parameter or result is padded, which shows little", padded, to-from)
	}
}

// seedsOf are the first n seeds, or those that PPC_SEEDS=FROM:TO says.
func seedsOf(t *testing.T, n uint64) (from, to uint64) {
	s := shared.Setting(t, "PPC_SEEDS")
	if s == "" {
		return 0, n
	}
	if _, err := fmt.Sscanf(s, "%d:%d", &from, &to); err != nil {
		t.Fatalf("PPC_SEEDS=%s: want FROM:TO", s)
	}
	return from, to
}

// hasPadding reports whether a parameter or result of f is larger than it is in
// truth.
func hasPadding(f *ir.Func) bool {
	return slices.ContainsFunc(f.Params(), func(v *ir.Value) bool { return v.Attrs.Has("pp.size") }) ||
		slices.ContainsFunc(f.Results, func(r ir.Result) bool { return r.Attrs.Has("pp.size") })
}

// randomMeshes are of one to three axes, of sizes that are alike and that are
// not. Their number has no divisor in common with what else a seed decides.
func randomMeshes() []*ir.Mesh {
	mesh := func(sizes ...int) *ir.Mesh {
		m := &ir.Mesh{Name: "mesh"}
		for i, n := range sizes {
			m.Axes = append(m.Axes, ir.MeshAxis{Name: string(rune('x' + i)), Size: n})
		}
		return m
	}
	shuffled := mesh(2, 2)
	shuffled.DeviceIDs = []int{2, 0, 1, 3}
	return []*ir.Mesh{mesh(2, 2), mesh(4, 2), shuffled, mesh(2, 2, 2), mesh(3, 2), mesh(2, 3, 2), mesh(6)}
}

const randomPrograms = 600

// partitionedEqual propagates and partitions a copy of m, runs both, and
// compares the results.
func partitionedEqual(m *ir.Module, args []*ir.Literal) error {
	_, err := partitionedProgram(m, args)
	return err
}

// partitionedProgram is partitionedEqual, and returns the program of one device.
func partitionedProgram(m *ir.Module, args []*ir.Literal) (*ir.Module, error) {
	return partitionedBy(m, args, func(*ir.Module) {})
}

// partitionedBy is partitionedProgram by a partitioner after which spoil has
// its way.
func partitionedBy(m *ir.Module, args []*ir.Literal, spoil func(*ir.Module)) (*ir.Module, error) {
	global := &ir.Module{Name: m.Name, Funcs: m.Funcs, Meshes: m.Meshes, Form: m.Form} // without attributes, that speak of devices
	want, err := eval.Run(global, m.Main(), args, eval.Options{Float64: true})
	if err != nil {
		return nil, fmt.Errorf("global: %w", err)
	}
	local := m.Clone()
	for _, name := range []string{"expand", "propagate", "pad", "choose", "collectives", "localize"} {
		p := byName(name)
		if err := caught(p.Run, local); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		local.Form = p.After(local.Form)
		if err := verify.Verify(local); err != nil {
			return nil, fmt.Errorf("after %s: %w", name, err)
		}
		if p.Ensures&(ir.Padded|ir.Resharded|ir.Explicit) != 0 {
			if local, err = resumed(local, args, want); err != nil {
				return nil, fmt.Errorf("after %s: %w", name, err)
			}
		}
	}
	spoil(local)
	f, mesh := local.Main(), local.Meshes[0]
	shards := make([][]*ir.Literal, mesh.Size())
	for device := range shards {
		for i, a := range args {
			s, _ := f.Params()[i].Attrs.Get("pp.sharding").(*ir.Sharding)
			part := ir.ShardOf(padded(a, s.Global(f.Params()[i].Type, mesh)), reduced(s), mesh, device)
			shards[device] = append(shards[device], share(mesh, s, part, device))
		}
	}
	got, err := eval.RunDevices(local, f, shards, eval.Options{Float64: true})
	if err != nil {
		return nil, fmt.Errorf("on devices: %w", err)
	}
	for i, r := range f.Results {
		s, _ := r.Attrs.Get("pp.sharding").(*ir.Sharding)
		global := s.Global(r.Type, mesh)
		want, looked := padded(want[i], global), padded(ir.SplatOf(want[i].Type, 1), global)
		for device := range got {
			part, looked := ir.ShardOf(want, reduced(s), mesh, device), ir.ShardOf(looked, reduced(s), mesh, device)
			for k := range part.Type.NumElements() {
				a, b := part.Float(k), combined(mesh, s, got, device, i, k)
				if looked.Float(k) != 0 && a != b && !(math.IsNaN(a) && math.IsNaN(b)) {
					return nil, fmt.Errorf("result %d, device %d, element %d: %v, want %v", i, device, k, b, a)
				}
			}
		}
	}
	return local, nil
}

// resumed is m, a global form of the program, as it is read from its print, once
// it has computed what is wanted.
func resumed(m *ir.Module, args, want []*ir.Literal) (*ir.Module, error) {
	m, err := mlir.Parse("after.mlir", []byte(mlir.Print(m)))
	if err != nil {
		return nil, fmt.Errorf("read again: %w", err)
	}
	if err := verify.Verify(m); err != nil {
		return nil, fmt.Errorf("read again: %w", err)
	}
	global, f := &ir.Module{Name: m.Name, Funcs: m.Funcs, Meshes: m.Meshes, Form: m.Form}, m.Main()
	given := make([]*ir.Literal, len(args))
	for i, a := range args {
		given[i] = padded(a, f.Params()[i].Type)
	}
	got, err := eval.Run(global, f, given, eval.Options{Float64: true})
	if err != nil {
		return nil, err
	}
	for i, w := range want {
		looked := padded(ir.SplatOf(w.Type, 1), got[i].Type)
		w = padded(w, got[i].Type)
		for k := range w.Type.NumElements() {
			if a, b := w.Float(k), got[i].Float(k); looked.Float(k) != 0 && a != b && !(math.IsNaN(a) && math.IsNaN(b)) {
				return nil, fmt.Errorf("result %d, element %d: %v, want %v", i, k, b, a)
			}
		}
	}
	return m, nil
}

// caught is the error of a pass, or its panic as one, so that it shrinks too.
func caught(run func(*pass.Context, *ir.Module) error, m *ir.Module) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return run(nil, m)
}

// reduced is s without unreduced axes.
func reduced(s *ir.Sharding) *ir.Sharding {
	if len(layout.UnreducedOf(s)) == 0 {
		return s
	}
	s = s.Clone()
	s.Unreduced, s.ReducedBy = nil, ""
	return s
}

// share is what a device has of part: all of it, or what combines to it along
// the axes that s leaves unreduced.
func share(mesh *ir.Mesh, s *ir.Sharding, part *ir.Literal, device int) *ir.Literal {
	if len(layout.UnreducedOf(s)) == 0 {
		return part
	}
	place, n := 0, mesh.RefsSize(s.Unreduced)
	for _, r := range s.Unreduced {
		place = place*mesh.RefSize(r) + mesh.Coordinate(device, r)
	}
	vs := make([]float64, part.Type.NumElements())
	for k := range vs {
		x, holds := part.Float(k), k%n == place
		switch by := layout.CombinerOf(s); {
		case by == ir.Maximum && !holds:
			x--
		case by == ir.Minimum && !holds:
			x++
		case by == ir.Add && holds:
			x -= float64(n - 1)
		case by == ir.Add:
			x = 1
		}
		vs[k] = x
	}
	return ir.Floats64(part.Type, vs...)
}

// combined is element k of result i as a device has it, or the sum, the maximum
// or the minimum of what the devices along the axes have that s leaves unreduced.
func combined(mesh *ir.Mesh, s *ir.Sharding, got [][]*ir.Literal, device, i, k int) float64 {
	out := got[device][i].Float(k)
	if len(layout.UnreducedOf(s)) == 0 {
		return out
	}
	row := func(device int) int {
		n := mesh.Place(device)
		for _, r := range s.Unreduced {
			n -= mesh.Coordinate(device, r) * mesh.Stride(r)
		}
		return n
	}
	for other := range got {
		if other == device || row(other) != row(device) {
			continue
		}
		switch x := got[other][i].Float(k); layout.CombinerOf(s) {
		case ir.Add:
			out += x
		case ir.Maximum:
			out = max(out, x)
		case ir.Minimum:
			out = min(out, x)
		}
	}
	return out
}

// padded is l with zeros at the end of dimensions, so that it has the shape of t.
func padded(l *ir.Literal, t *ir.Type) *ir.Literal {
	if slices.Equal(l.Type.Shape, t.Shape) {
		return l
	}
	out := &ir.Literal{Type: l.Type.WithShape(t.Shape...)}
	out.Data = make([]byte, out.Type.Bytes())
	size, data := l.Type.Elem.Size(), l.Expand()
	for k := range l.Type.NumElements() {
		to, rest, step := 0, k, 1
		for d := t.Rank() - 1; d >= 0; d-- {
			to += rest % l.Type.Shape[d] * step
			rest /= l.Type.Shape[d]
			step *= t.Shape[d]
		}
		copy(out.Data[to*size:], data[k*size:(k+1)*size])
	}
	return out
}
