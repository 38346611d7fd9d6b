package facts

import (
	"slices"

	"ppc/ir"
)

// Reducer reports whether op's only region combines scalars of its own.
func Reducer(op *ir.Op) bool {
	return len(op.Regions) == 1 && len(op.Regions[0].Args) > 0 && !op.Kind.Has(ir.TensorRegions) && len(op.Captures()) == 0
}

// largest is the largest number that a value of integer type t can hold.
func largest(t ir.DType) int {
	bits := t.Bits() - 1
	if t.Class() == ir.Unsigned {
		bits++
	}
	return 1<<min(bits, 62) - 1
}

// Combines is the kind of the op by which region combines argument i of each
// half to result i, and nothing else; Invalid if there is none.
func Combines(region *ir.Block, i int) ir.Kind {
	x, y := region.Args[i], region.Args[len(region.Args)/2+i]
	op := region.Terminator().Operands[i].Def
	if op == nil || len(op.Operands) != 2 || len(op.Regions) > 0 {
		return ir.Invalid
	}
	if a, b := op.Operands[0], op.Operands[1]; a == x && b == y || a == y && b == x {
		return op.Kind
	}
	return ir.Invalid
}

// Neutral is the number that changes nothing when k combines it with another; 0
// where k does not combine.
func Neutral(k ir.Kind, t ir.DType) *ir.Literal {
	if n := k.Neutral(t); n != nil {
		return n
	}
	return ir.SplatOf(ir.Tensor(t), 0)
}

// IsNeutral reports whether v is the neutral element of k, a constant: k(x, v) = x.
func IsNeutral(k ir.Kind, v *ir.Value) bool {
	l := ir.ConstantOf(v)
	return l != nil && l.IsSplat() && slices.Equal(l.Data, Neutral(k, v.Type.Elem).Data)
}

// IsLocal reports whether op computes each element of its result from one of
// each operand.
func IsLocal(op *ir.Op) bool {
	return op.Kind.Has(ir.Pure) && (op.Kind.Has(ir.Elementwise) || op.Kind == ir.BroadcastInDim) && !op.Kind.Has(ir.Relayout)
}
