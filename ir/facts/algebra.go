package facts

import (
	"math"
	"slices"

	"ppc/ir"
)

// Reducer reports whether op's only region combines scalars of its own.
func Reducer(op *ir.Op) bool {
	return len(op.Regions) == 1 && len(op.Regions[0].Args) > 0 && op.Kind != ir.PPScan && !op.Kind.Has(ir.Isolated) && len(op.Captures()) == 0
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

// LinearIn are the operands of op in which its result is linear: computed from
// the parts of sums, it is the parts of the sum.
func LinearIn(op *ir.Op) []int {
	switch op.Kind {
	case ir.Add, ir.Subtract, ir.DynamicUpdateSlice, ir.Pad:
		return []int{0, 1}
	case ir.Select:
		return []int{1, 2}
	case ir.Negate, ir.Reshape, ir.Transpose, ir.Slice, ir.DynamicSlice, ir.Reverse, ir.BroadcastInDim:
		return []int{0}
	case ir.Divide:
		return []int{0}
	case ir.Multiply:
		for i := range op.Operands {
			if l := Constant(op.Operands[1-i]); l != nil && l.IsSplat() {
				return []int{i}
			}
		}
	case ir.Reduce:
		if l := Constant(op.Operands[len(op.Operands)-1]); len(op.Results) == 1 && ir.CombinerOf(op.Regions[0]) == ir.Add && l != nil && l.IsAll(0) {
			return []int{0}
		}
	case ir.Convert:
		if op.Operands[0].Type.Elem.IsFloat() {
			return []int{0}
		}
	case ir.Scatter:
		if len(op.Results) == 1 && ir.CombinerOf(op.Regions[0]) == ir.Add {
			return []int{0, 2}
		}
	case ir.Concatenate:
		all := make([]int, len(op.Operands))
		for i := range all {
			all[i] = i
		}
		return all
	}
	return nil
}

// IsNeutral reports whether v is a constant that changes nothing when it is
// combined with a value by k.
func IsNeutral(k ir.Kind, v *ir.Value) bool {
	l := Constant(v)
	return l != nil && l.IsSplat() && slices.Equal(l.Data, Neutral(k, v.Type.Elem).Data)
}

// Neutral is the number that changes nothing when it is combined with another
// by k.
func Neutral(k ir.Kind, t ir.DType) *ir.Literal {
	scalar := ir.Tensor(t)
	switch k {
	case ir.Multiply:
		return ir.SplatOf(scalar, 1)
	case ir.And:
		return ir.Ints64(scalar, -1)
	case ir.Maximum:
		return extreme(scalar, -1)
	case ir.Minimum:
		return extreme(scalar, 1)
	}
	return ir.SplatOf(scalar, 0)
}

// extreme is the smallest or, of sign 1, the largest number of a type.
func extreme(t *ir.Type, sign int) *ir.Literal {
	bits := t.Elem.Bits()
	switch {
	case t.Elem.IsFloat():
		return ir.SplatOf(t, math.Inf(sign))
	case t.Elem.Class() == ir.Signed && sign < 0:
		return ir.Ints64(t, -1<<(bits-1))
	case t.Elem.Class() == ir.Signed:
		return ir.Ints64(t, 1<<(bits-1)-1)
	case sign < 0:
		return ir.SplatOf(t, 0)
	}
	return ir.Ints64(t, -1)
}

// IsLocal reports whether op computes each element of its result from one of
// each operand.
func IsLocal(op *ir.Op) bool {
	return op.Kind.Has(ir.Pure) && (op.Kind.Has(ir.Elementwise) || op.Kind == ir.BroadcastInDim) && !(ir.ShardingConstraint <= op.Kind && op.Kind <= ir.ShardedToUnreduced)
}

// Constant is the literal that v is, nil if it is no constant or its elements do
// not matter.
func Constant(v *ir.Value) *ir.Literal {
	if v.Def == nil || v.Def.Attrs.Has(ir.KeyDontCare) {
		return nil
	}
	switch v.Def.Kind {
	case ir.Constant:
		return v.Def.Literal("value")
	case ir.BroadcastInDim: // of a scalar: a splat
		if l := Constant(v.Def.Operands[0]); l != nil && l.IsSplat() {
			return &ir.Literal{Type: v.Type, Data: l.Data}
		}
	}
	return nil
}
