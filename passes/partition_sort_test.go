package passes

import (
	"math/rand/v2"
	"slices"
	"testing"

	"ppc/ir"
	"ppc/ir/facts"
)

// A sort along the one dimension there is computes on shards what it does on the
// global tensor, ties and what is sorted along included, and gathers nothing where
// exchanges move less.
func TestPartitionSort(t *testing.T) {
	mesh := func(sizes ...int) *ir.Mesh {
		m := &ir.Mesh{Name: "mesh"}
		for i, n := range sizes {
			m.Axes = append(m.Axes, ir.MeshAxis{Name: string(rune('x' + i)), Size: n})
		}
		return m
	}
	meshes := []*ir.Mesh{mesh(8), mesh(2, 8), mesh(2, 2, 4), mesh(16), mesh(4, 4), mesh(4), mesh(6), mesh(3, 8)}
	exchanged := 0
	for seed := range uint64(240) {
		g := &programMaker{r: rand.New(rand.NewPCG(seed, 13)), mesh: meshes[seed%uint64(len(meshes))]}
		f := ir.NewFunc("main")
		g.b = ir.NewBuilder(f)
		shape := []int{48 << g.r.IntN(2)}
		if g.r.IntN(3) == 0 {
			shape = []int{1, shape[0], 1}
		}
		x := f.NewArg(f.Body, ir.Tensor(ir.F64, shape...), "x")
		x.Sharding = ir.Replicated(g.mesh.Name, len(shape))
		d := len(shape) / 2
		for _, i := range g.r.Perm(len(g.mesh.Axes)) {
			x.Sharding.Dims[d].Axes = append(x.Sharding.Dims[d].Axes, ir.Ax(g.mesh.Axes[i].Name))
		}
		y := f.NewArg(f.Body, x.Type, "y")
		y.Sharding = x.Sharding.Clone()
		out := g.sortAlong(x, y, d)
		g.b.Return(out...)
		for i := range out {
			f.Results[i].Sharding = x.Sharding.Clone()
		}
		m := &ir.Module{Name: "sort", Meshes: []*ir.Mesh{g.mesh}, Funcs: []*ir.Func{f}, Form: ir.Expanded}
		args := []*ir.Literal{g.literal(x.Type), g.literal(x.Type)}
		local, err := partitionedProgram(m, args)
		if err != nil {
			failing{m, args}.report(t, seed, err, partitionedEqual)
			continue
		}
		if kinds := kindsOf(local); slices.Contains(kinds, ir.CollectivePermute) && !slices.Contains(kinds, ir.AllGather) {
			exchanged++
		}
	}
	t.Logf("%d programs gather nothing", exchanged)
	if exchanged < 70 {
		t.Errorf("%d programs gather nothing, want 70", exchanged)
	}
}

// sortAlong sorts x along d, alone or with y, or by its sizes, of which many
// tie.
func (g *programMaker) sortAlong(x, y *ir.Value, d int) []*ir.Value {
	in := []*ir.Value{x}
	if g.r.IntN(2) == 0 {
		in = append(in, y)
	}
	r := new(ir.Block)
	for range in {
		g.b.Func.NewArg(r, ir.Tensor(ir.F64), "")
		g.b.Func.NewArg(r, ir.Tensor(ir.F64), "")
	}
	b := g.b.In(r)
	k, l := r.Args[0], r.Args[1]
	if g.r.IntN(3) == 0 {
		k, l = b.Unary(ir.Abs, k), b.Unary(ir.Abs, l)
	}
	before := b.Compare([]string{"LT", "GT"}[g.r.IntN(2)], k, l)
	before.Def.Attrs.Set("compare_type", ir.HLOEnum("comparison_type", []string{"FLOAT", "TOTALORDER"}[g.r.IntN(2)]))
	b.Emit(ir.Return, []*ir.Value{before}, nil, nil, nil)
	return g.b.Emit(ir.Sort, in, ir.AttrsOf(facts.Named("dimension", ir.I64Attr(d)), facts.Named("is_stable", ir.Bool(g.r.IntN(2) == 0))), []*ir.Block{r}, nil).Results
}
