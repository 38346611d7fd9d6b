package passes

import (
	"math/rand/v2"
	"slices"
	"testing"

	"ppc/ir"
	"ppc/ir/facts"
)

// bigPad pads by up to more than the operand has, or takes away, in any
// dimensions: pieces are smaller than what they move by.
func (g *programMaker) bigPad() *ir.Value {
	x := g.pick()
	n := x.Type.Rank()
	low, high, interior := make([]int, n), make([]int, n), make([]int, n)
	for d, size := range x.Type.Shape {
		if g.r.IntN(3) == 0 {
			continue
		}
		interior[d] = g.r.IntN(8) / 6
		low[d], high[d] = g.r.IntN(2*size+3)-size, g.r.IntN(2*size+3)-size
		for (size-1)*(interior[d]+1)+1+low[d]+high[d] < 1 {
			high[d]++
		}
	}
	return g.b.Pad(x, g.b.Splat(ir.Tensor(ir.F64), float64(g.r.IntN(2))), low, high, interior)
}

// anySlice is a slice anywhere, with any strides, of any dimensions.
func (g *programMaker) anySlice() *ir.Value {
	x := g.pick()
	start, limit, strides := make(ir.Ints, x.Type.Rank()), slices.Clone(ir.Ints(x.Type.Shape)), make(ir.Ints, x.Type.Rank())
	for d, n := range x.Type.Shape {
		if strides[d] = 1; g.r.IntN(3) > 0 {
			start[d] = g.r.IntN(n)
			limit[d], strides[d] = start[d]+1+g.r.IntN(n-start[d]), 1+g.r.IntN(3)
		}
	}
	return g.b.Emit(ir.Slice, []*ir.Value{x}, ir.AttrsOf(facts.Named("start_indices", start), facts.Named("limit_indices", limit), facts.Named("strides", strides)), nil, nil).Result()
}

// reverses reverses several dimensions.
func (g *programMaker) reverses() *ir.Value {
	x := g.pick()
	dims := g.r.Perm(x.Type.Rank())[:1+g.r.IntN(x.Type.Rank())]
	return g.b.Emit(ir.Reverse, []*ir.Value{x}, ir.AttrsOf(facts.Named("dimensions", ir.Ints(dims))), nil, nil).Result()
}

// regroup puts the elements of a value, or of what is left of it where sizes
// shall not divide, into dimensions of other sizes, in several groups.
func (g *programMaker) regroup() *ir.Value {
	x := g.pick()
	if g.r.IntN(2) == 0 {
		d := g.r.IntN(x.Type.Rank())
		if n := x.Type.Shape[d]; n > 2 {
			x = g.b.SliceDim(x, d, 0, n-1-g.r.IntN(2))
			x.Sharding = g.sharding(x.Type.Shape, false)
		}
	}
	var primes []int // of the sizes, in order
	for _, n := range x.Type.Shape {
		for f := 2; n > 1; f++ {
			for ; n%f == 0; n /= f {
				primes = append(primes, f)
			}
		}
	}
	shape := []int{1}
	for _, f := range primes {
		if k := len(shape) - 1; g.r.IntN(2) == 0 || len(shape) == 5 {
			shape[k] *= f
		} else {
			shape = append(shape, f)
		}
	}
	if shape[0] == 1 && len(shape) > 1 && g.r.IntN(4) > 0 {
		shape = shape[1:]
	}
	return g.b.Reshape(x, shape...)
}

// concats are several values of different sizes side by side.
func (g *programMaker) concats() *ir.Value {
	x := g.pick()
	d := g.r.IntN(x.Type.Rank())
	var xs []*ir.Value
	for range 1 + g.r.IntN(4) {
		from := g.r.IntN(x.Type.Shape[d])
		v := g.b.SliceDim(x, d, from, from+1+g.r.IntN(x.Type.Shape[d]-from))
		if g.r.IntN(2) == 0 {
			v.Sharding = g.sharding(v.Type.Shape, false)
		}
		xs = append(xs, v)
	}
	return g.b.Concat(d, xs...)
}

// unitOps are what a program of one op may be of, each as it is wide.
var unitOps = []struct {
	name string
	make func(*programMaker) *ir.Value
}{
	{"pad", (*programMaker).bigPad}, {"slice", (*programMaker).anySlice}, {"reverse", (*programMaker).reverses}, {"reshape", (*programMaker).regroup},
	{"concatenate", (*programMaker).concats}, {"iota", (*programMaker).iota}, {"dynamic_slice", (*programMaker).dynamicSlice},
	{"dynamic_update_slice", (*programMaker).update}, {"dot_general", (*programMaker).dot}, {"convolution", (*programMaker).convolution},
	{"kernel gradient", (*programMaker).kernelGradient}, {"reduce_window", (*programMaker).reduceWindow}, {"running sum", (*programMaker).cumulative},
	{"select_and_scatter", (*programMaker).selectAndScatter}, {"gather", (*programMaker).takeWindows}, {"scatter", (*programMaker).scatterWindows},
	{"sort", (*programMaker).sortPairs}, {"reduce", (*programMaker).argmax},
}

// unitProgram is a program of one op, or of two: operands and results have
// any shardings, along axes that need not divide them, and the last result is
// wanted replicated as well.
func unitProgram(seed uint64, mesh *ir.Mesh, ops ...func(*programMaker) *ir.Value) (*ir.Module, []*ir.Literal) {
	f := ir.NewFunc("main")
	g := &programMaker{r: rand.New(rand.NewPCG(seed, 21)), mesh: mesh, b: ir.NewBuilder(f), odd: seed%3 > 0, wild: true}
	var args []*ir.Literal
	shape := make([]int, 1+g.r.IntN(3))
	for d := range shape {
		shape[d] = []int{2, 3, 4, 5, 6, 8, 12, 16}[g.r.IntN(8)]
	}
	for range 2 {
		x := f.NewArg(f.Body, ir.Tensor(ir.F64, shape...), "x")
		x.Sharding = g.sharding(shape, false)
		g.pool = append(g.pool, x)
		args = append(args, g.literal(x.Type))
		g.r.Shuffle(len(shape), func(i, j int) { shape[i], shape[j] = shape[j], shape[i] })
		shape = slices.Clone(shape)
	}
	results := slices.Clone(g.pool[:1])
	for _, op := range ops {
		v := op(g)
		if v == nil || v.Type.Rank() == 0 || v.Type.NumElements() > 8192 {
			break
		}
		if v.Sharding == nil && v.Def != nil {
			v.Sharding = g.sharding(v.Type.Shape, false)
		}
		replicated := g.b.Emit(ir.Reshard, []*ir.Value{v}, ir.AttrsOf(facts.Named("sharding", ir.Replicated(mesh.Name, v.Type.Rank()))), nil, nil).Result()
		g.pool, results = []*ir.Value{v}, []*ir.Value{v, replicated}
	}
	g.b.Return(results...)
	m := &ir.Module{Name: "unit", Meshes: []*ir.Mesh{mesh}, Funcs: []*ir.Func{f}, Form: ir.Expanded}
	if seed%7 == 0 { // devices are replicas of one partition
		m.Attrs.Set("mhlo.num_replicas", ir.Int{Value: mesh.Size(), Type: ir.I32})
	}
	return m, args
}

// A program of one op or two, whose values are sharded in every way, computes
// the same numbers partitioned.
func TestPartitionUnits(t *testing.T) {
	from, to := seedsOf(t, 30)
	meshes := append(wildMeshes(), &ir.Mesh{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 2}}}, &ir.Mesh{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 4}}, DeviceIDs: []int{3, 2, 1, 0}})
	for i, op := range unitOps {
		t.Run(op.name, func(t *testing.T) {
			for seed := from; seed < to; seed++ {
				ops := []func(*programMaker) *ir.Value{op.make}
				if seed%2 == 1 {
					ops = append(ops, unitOps[int(seed/2)%len(unitOps)].make)
				}
				m, args := unitProgram(seed*uint64(len(unitOps))+uint64(i), meshes[seed%uint64(len(meshes))], ops...)
				if err := partitionedEqual(m, args); err != nil {
					failing{m, args}.report(t, seed, err, partitionedEqual)
				}
			}
		})
	}
}
