package passes

import (
	"math/rand/v2"
	"testing"

	"ppc/ir"
	"ppc/ir/facts"
)

// keyedBits are random bits as numbers, and the state after them.
func (g *programMaker) keyedBits() *ir.Value {
	state := []int{g.r.IntN(100), -1 - g.r.IntN(3)} // counters that come around
	word := []string{"DEFAULT", "THREE_FRY", "PHILOX"}[g.r.IntN(3)]
	if word != "THREE_FRY" && g.r.IntN(2) == 0 {
		state = append(state, g.r.IntN(100))
	}
	elem := []ir.DType{ir.UI8, ir.UI32, ir.UI64}[g.r.IntN(3)]
	t := g.pick().Type.WithElem(elem)
	op := g.b.Emit(ir.RngBitGenerator, []*ir.Value{g.b.Const(ir.Ints64(ir.Tensor(ir.UI64, len(state)), state...))},
		ir.AttrsOf(facts.Named("rng_algorithm", ir.HLOEnum("rng_algorithm", word))), nil, []*ir.Type{ir.Tensor(ir.UI64, len(state)), t})
	number := func(v *ir.Value) *ir.Value {
		return g.b.Convert(g.b.Binary(ir.Remainder, v, g.b.Splat(v.Type, 17)), ir.F64)
	}
	v := g.b.Add(number(op.Results[1]), g.b.Broadcast(g.b.Reduce(ir.Add, number(op.Results[0]), g.b.Splat(ir.Tensor(ir.F64), 0), 0), t.Shape))
	return g.b.Constrain(v, g.sharding(t.Shape, false))
}

// Random bits of shards are those of the global tensor, as is the state after them,
// and are made shard by shard where counters allow that.
func TestPartitionBits(t *testing.T) {
	meshes, parts := randomMeshes(), 0
	for seed := range uint64(350) {
		mesh := meshes[seed%uint64(len(meshes))]
		f := ir.NewFunc("main")
		g := &programMaker{r: rand.New(rand.NewPCG(seed, 11)), mesh: mesh, b: ir.NewBuilder(f)}
		g.pool = []*ir.Value{f.NewArg(f.Body, g.shape(), "x")}
		v := g.keyedBits()
		g.b.Return(v)
		m := &ir.Module{Name: "bits", Meshes: []*ir.Mesh{mesh}, Funcs: []*ir.Func{f}, Form: ir.Expanded}
		args := []*ir.Literal{g.literal(g.pool[0].Type)}
		local, err := partitionedProgram(m, args)
		if err != nil {
			failing{m, args}.report(t, seed, err, partitionedEqual)
			continue
		}
		local.Main().Body.Walk(func(op *ir.Op) {
			if op.Kind == ir.RngBitGenerator && op.Results[1].Type.NumElements() < v.Type.NumElements() {
				parts++
			}
		})
	}
	t.Logf("%d programs make their part alone", parts)
	if parts < 60 {
		t.Errorf("%d programs make their part alone, want 60", parts)
	}
}
