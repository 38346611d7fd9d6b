package optest

import "ppc/ir"

// DTypes returns every element type, in table order.
func DTypes() []ir.DType {
	var ts []ir.DType
	for t := ir.InvalidDType + 1; t < ir.NumDTypes; t++ {
		ts = append(ts, t)
	}
	return ts
}
