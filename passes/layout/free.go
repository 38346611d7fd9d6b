package layout

import (
	"ppc/ir"
	"ppc/ir/facts"
)

// FreeValues finds, by ID, the values that any device can compute any shard of by
// itself: constants, iota, what is computed from these alone, and broadcasts
// of one number. With constrained, so is what a constraint makes of such a
// value: nothing has to move for it, whatever the constraint says.
func FreeValues(f *ir.Func, constrained bool) []bool {
	free := make([]bool, f.NumIDs())
	f.Body.Walk(func(op *ir.Op) {
		if len(op.Results) != 1 || !op.Result().Type.IsTensor() {
			return
		}
		constant := op.Kind.Has(ir.Source)
		if facts.IsLocal(op) || op.Kind == ir.Reshape || op.Kind == ir.Slice || constrained && op.Kind == ir.ShardingConstraint && len(UnreducedOf(op.Result().Sharding)) == 0 {
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
