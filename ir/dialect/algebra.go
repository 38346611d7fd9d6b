package dialect

import (
	"math"
	"slices"

	"ppc/ir"
)

// What rows say of ops as functions: which operands move, which are linear, what
// is neutral.

// operands are always the same ones.
func operands(list ...int) func(*ir.Op) []int {
	return func(*ir.Op) []int { return slices.Clone(list) } // whoever asks may change it
}

func everyOperand(op *ir.Op) []int {
	all := make([]int, len(op.Operands))
	for i := range all {
		all[i] = i
	}
	return all
}

// sameNumber is the operand of a broadcast to new dimensions of size 1.
func sameNumber(op *ir.Op) []int {
	from, to := op.Operands[0].Type, op.Result().Type
	if from.IsStatic() && to.IsStatic() && from.NumElements() == to.NumElements() {
		return []int{0}
	}
	return nil
}

// ofFloats is the first operand of an op that keeps sums of floating-point numbers
// but for rounding, and truncates others.
func ofFloats(op *ir.Op) []int {
	if op.Operands[0].Type.Elem.IsFloat() {
		return []int{0}
	}
	return nil
}

// timesNumber is the operand that a product multiplies by one number.
func timesNumber(op *ir.Op) []int {
	for i := range op.Operands {
		if l := ir.ConstantOf(op.Operands[1-i]); l != nil && l.IsSplat() {
			return []int{i}
		}
	}
	return nil
}

// reducedSums is the operand of a sum that starts from zero.
func reducedSums(op *ir.Op) []int {
	if l := ir.ConstantOf(op.Operands[len(op.Operands)-1]); len(op.Results) == 1 && ir.CombinerOf(op.Regions[0]) == ir.Add && l != nil && l.IsAll(0) {
		return []int{0}
	}
	return nil
}

// scatteredSums are operand and updates of a scatter that adds.
func scatteredSums(op *ir.Op) []int {
	if len(op.Results) == 1 && ir.CombinerOf(op.Regions[0]) == ir.Add {
		return []int{0, 2}
	}
	return nil
}

func neutral(n float64) func(ir.DType) *ir.Literal {
	return func(t ir.DType) *ir.Literal { return ir.SplatOf(ir.Tensor(t), n) }
}

func allOnes(t ir.DType) *ir.Literal { return ir.Ints64(ir.Tensor(t), -1) }

// extreme is the smallest or, of sign 1, the largest number of a type.
func extreme(sign int) func(ir.DType) *ir.Literal {
	return func(elem ir.DType) *ir.Literal {
		t, bits := ir.Tensor(elem), elem.Bits()
		switch {
		case elem.IsFloat():
			return ir.SplatOf(t, math.Inf(sign))
		case elem.Class() == ir.Signed && sign < 0:
			return ir.Ints64(t, -1<<(bits-1))
		case elem.Class() == ir.Signed:
			return ir.Ints64(t, 1<<(bits-1)-1)
		case sign < 0:
			return ir.SplatOf(t, 0)
		}
		return ir.Ints64(t, -1)
	}
}
