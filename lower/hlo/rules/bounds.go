package rules

import (
	"fmt"
	"slices"

	"ppc/ir"
	"ppc/lower/hlo"
)

// bounded checks that an op keeps its rules where every size that is bounded is as large as it
// may be: HLO compares bounds like sizes, which StableHLO takes for unknown.
func bounded(op *ir.Op) string {
	if len(op.Regions) > 0 || !slices.ContainsFunc(ir.Types(op.Operands), isBounded) && !slices.ContainsFunc(ir.Types(op.Results), isBounded) {
		return ""
	}
	full := *op
	full.Operands, full.Results = largest(op.Operands), largest(op.Results)
	made, broken := ir.Infer(&full)
	if broken != nil {
		return "of the bounds: " + broken.Msg
	}
	for i, t := range made {
		if got := full.Results[i].Type; !hlo.ShapesAgree(got, t) {
			return fmt.Sprintf("is %s, its operands make %s", hlo.BareShape(op.Results[i].Type), hlo.BareShape(t))
		}
	}
	return ""
}

func isBounded(t *ir.Type) bool {
	bounds, ok := t.Bounds()
	return ok && len(bounds) == t.Rank()
}

// largest are values like vs, each as large as it may be.
func largest(vs []*ir.Value) []*ir.Value {
	full := slices.Clone(vs)
	for i, v := range vs {
		if isBounded(v.Type) {
			w := *v
			w.Type = ir.Tensor(v.Type.Elem, hlo.Largest(v.Type)...)
			full[i] = &w
		}
	}
	return full
}
