package facts

import (
	"bytes"

	"ppc/ir"
)

// Replaces reports whether update, a dynamic_update_slice, writes what slice, a dynamic_slice, reads: the same part of
// the same tensor.
func Replaces(update, slice *ir.Op) bool {
	if update.Kind != ir.DynamicUpdateSlice || slice.Kind != ir.DynamicSlice || update.Operands[0] != slice.Operands[0] || !slice.Result().Type.Equal(update.Operands[1].Type) {
		return false
	}
	for i, at := range slice.Operands[1:] {
		if !sameIndex(at, update.Operands[2+i]) {
			return false
		}
	}
	return true
}

// sameIndex reports whether x and y are one value or equal constants.
func sameIndex(x, y *ir.Value) bool {
	if x == y {
		return true
	}
	a, b := ir.ConstantOf(x), ir.ConstantOf(y)
	return a != nil && b != nil && a.Type.Equal(b.Type) && bytes.Equal(a.Data, b.Data)
}
