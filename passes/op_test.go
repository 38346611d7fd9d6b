package passes

import (
	"testing"

	"ppc/internal/optest"
	"ppc/ir"
)

// neverRandom says of ops of the table why no random program has them. The
// traits Pipeline and Composite say it of others: they are lowered before.
var neverRandom = map[ir.Kind]string{
	ir.Unknown: "nothing is known of it, so it has no numbers to compare",
	ir.PPYield: "it ends regions of ops that are lowered before",
}

// Random programs have every op of the table, but for those of which it is said
// why not, and compute the same numbers partitioned as they do on one device.
func TestOp(t *testing.T) {
	const programs, each = 4 * randomPrograms, 2
	meshes := wildMeshes()
	program := func(seed uint64) (*ir.Module, []*ir.Literal) {
		return wildProgram(seed, meshes[seed%uint64(len(meshes))], 1+int(seed%12))
	}
	seeds := map[ir.Kind][]uint64{} // of programs with an op; the last are others than those of TestPartitionRandom
	for seed := range uint64(programs) {
		m, _ := program(seed)
		seen := map[ir.Kind]bool{}
		m.Main().Body.Walk(func(op *ir.Op) { seen[op.Kind] = true })
		for k := range seen {
			seeds[k] = append(seeds[k], seed)
		}
	}
	optest.Each(t, func(t *testing.T, k ir.Kind) {
		reason, never := neverRandom[k]
		switch has := len(seeds[k]) > 0; {
		case never && (has || reason == ""):
			t.Errorf("%s is in neverRandom, passes/op_test.go, but in random programs", k)
		case !never && !has && !k.Has(ir.Pipeline) && !k.Has(ir.Composite):
			t.Errorf("%s is in no random program: it has no maker in frontEndOps, passes/partition_random_test.go, and in neverRandom, passes/op_test.go, no reason why not", k)
		}
		for _, seed := range seeds[k][max(0, len(seeds[k])-each):] {
			m, args := program(seed)
			if err := partitionedEqual(m, args); err != nil {
				failing{m, args}.report(t, seed, err, partitionedEqual)
			}
		}
	})
}
