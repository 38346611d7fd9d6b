package driver

import (
	"slices"

	"ppc/ir"
)

// boundInputs gives every integer parameter of the main function that numbers
// the elements of an axis the attribute pp.max, the size of that axis: it is
// an index of a gather, or is compared with all indices, as in one_hot and
// cross_entropy. One walk against the order of execution is enough, for uses
// stand after definitions.
func boundInputs(m *ir.Module) {
	f := m.Main()
	bound := make([]int, f.NumIDs())
	lower := func(v *ir.Value, n int) {
		if n > 0 && (bound[v.ID] == 0 || n < bound[v.ID]) {
			bound[v.ID] = n
		}
	}
	var ops []*ir.Op
	f.Body.Walk(func(op *ir.Op) { ops = append(ops, op) })
	for _, op := range slices.Backward(ops) {
		switch {
		case op.Kind == ir.Gather:
			if g, ok := op.Attrs.Get("dimension_numbers").(ir.GatherDims); ok && len(g.StartIndexMap) == 1 {
				lower(op.Operands[1], op.Operands[0].Type.Shape[g.StartIndexMap[0]])
			}
		case op.Kind == ir.Compare && op.Word("comparison_direction") == "EQ":
			lower(op.Operands[0], countedBy(op.Operands[1]))
			lower(op.Operands[1], countedBy(op.Operands[0]))
		case movesIntegers(op):
			lower(op.Operands[0], bound[op.Results[0].ID])
		}
	}
	for _, v := range f.Params() {
		if n := bound[v.ID]; n > 0 && v.Type.IsTensor() && v.Type.Elem.IsInt() && !v.Attrs.Has(ir.KeyMax) {
			v.Attrs.Set(ir.KeyMax, ir.I64Attr(n))
		}
	}
}

// movesIntegers reports whether the result of op has the integers of its only operand.
func movesIntegers(op *ir.Op) bool {
	moves := []ir.Kind{ir.Reshape, ir.BroadcastInDim, ir.Transpose, ir.Convert, ir.ShardingConstraint, ir.PPName}
	return slices.Contains(moves, op.Kind) && op.Operands[0].Type.IsTensor() && op.Operands[0].Type.Elem.IsInt()
}

// countedBy is n where v counts 0, 1, … n-1 along an axis, and 0 elsewhere.
func countedBy(v *ir.Value) int {
	for v.Def != nil && movesIntegers(v.Def) {
		v = v.Def.Operands[0]
	}
	if v.Def == nil || v.Def.Kind != ir.Iota {
		return 0
	}
	return v.Type.Shape[v.Def.Int("iota_dimension")]
}
