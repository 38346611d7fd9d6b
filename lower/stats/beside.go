package stats

import (
	"slices"

	"ppc/ir"
)

// beside is, for every all_to_all of a block, the matrix products of the block that
// neither wait for it nor does it wait for: what a device can compute while it runs.
func beside(b *ir.Block) map[*ir.Op]int {
	var exchanges []*ir.Op
	for _, op := range b.Ops {
		if op.Kind == ir.AllToAll {
			exchanges = append(exchanges, op)
		}
	}
	out := make(map[*ir.Op]int, len(exchanges))
	for some := range slices.Chunk(exchanges, 64) {
		related := relatives(b, some)
		for i, op := range b.Ops {
			for k, x := range some {
				if op.Kind.Has(ir.Costly) && related[i]&(1<<k) == 0 {
					out[x]++
				}
			}
		}
	}
	return out
}

// relatives are, by op of b, which of at most 64 others it waits for or wait for it.
func relatives(b *ir.Block, others []*ir.Op) []uint64 {
	at := make(map[*ir.Op]int, len(b.Ops))
	after, before := make([]uint64, len(b.Ops)), make([]uint64, len(b.Ops))
	for i, op := range b.Ops {
		at[op] = i
		if k := slices.Index(others, op); op.Kind == ir.AllToAll && k >= 0 {
			after[i], before[i] = 1<<k, 1<<k
		}
	}
	for i, op := range b.Ops {
		for _, v := range inputs(op) {
			if j, here := at[v.Def]; here {
				after[i] |= after[j]
			}
		}
	}
	for i, op := range slices.Backward(b.Ops) {
		for _, v := range inputs(op) {
			if j, here := at[v.Def]; here {
				before[j] |= before[i]
			}
		}
	}
	for i := range after {
		after[i] |= before[i]
	}
	return after
}

// inputs are the operands of op and what its regions read from outside.
func inputs(op *ir.Op) []*ir.Value {
	if len(op.Regions) == 0 {
		return op.Operands
	}
	return append(op.Captures(), op.Operands...)
}
