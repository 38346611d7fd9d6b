package passes

import "ppc/ir"

// A gradRule adds the cotangents of op's operands, given that of its only result.
type gradRule func(t *tape, op *ir.Op, ct *ir.Value)

// gradientRules holds the rule of every differentiable op.
func gradientRules() map[ir.Kind]gradRule {
	return map[ir.Kind]gradRule{
		ir.Add: func(t *tape, op *ir.Op, ct *ir.Value) {
			t.add(op.Operands[0], ct)
			t.add(op.Operands[1], ct)
		},
	}
}
