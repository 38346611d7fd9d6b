package layout

import (
	"ppc/ir"
	"ppc/ir/facts"
)

// FreeValues finds, by ID, the values that any device can compute any shard of by
// itself: constants, iota, what is computed from these alone, and broadcasts
// of one number.
func FreeValues(f *ir.Func) []bool {
	return freeValues(f, func(op *ir.Op) bool { return false })
}

// FreeOrConstrained finds the free values and what constraints make of them: nothing
// has to move for it, whatever the constraint says.
func FreeOrConstrained(f *ir.Func) []bool {
	return freeValues(f, func(op *ir.Op) bool {
		return op.Kind == ir.ShardingConstraint && len(UnreducedOf(op.Result().Sharding)) == 0
	})
}

// freeValues finds the free values; what op makes of them is free too where keeps
// says so. The list is that of the passes which compute a free value again at each
// use: what else moves elements of a free value is resharded like any other.
func freeValues(f *ir.Func, keeps func(op *ir.Op) bool) []bool {
	free := make([]bool, f.NumIDs())
	f.Body.Walk(func(op *ir.Op) {
		if len(op.Results) != 1 || !op.Result().Type.IsTensor() {
			return
		}
		constant := op.Kind.Has(ir.Source)
		if facts.IsLocal(op) || op.Kind == ir.Reshape || op.Kind == ir.Slice || keeps(op) {
			constant = true
			for _, v := range op.Operands {
				constant = constant && free[v.ID]
			}
		}
		scalar := op.Kind == ir.BroadcastInDim && op.Operands[0].Type.Rank() == 0
		free[op.Result().ID] = constant || scalar
	})
	return free
}
