package layout

import "ppc/ir"

// Rules makes the sharding rules of a program: ops that are alike share one, which
// nobody may change. The zero value is ready to use.
type Rules struct{ known map[ruleKey]*ir.Factors }

// A ruleKey is what the rule of an op without regions follows from.
type ruleKey struct {
	kind     ir.Kind
	operands int
	types    [4]*ir.Type
	attrs    *ir.NamedAttr // the first
}

// maxRules bounds the rules that are known at a time.
const maxRules = 1 << 12

// Of is [ir.FactorsOf].
func (r *Rules) Of(op *ir.Op) *ir.Factors {
	k := ruleKey{kind: op.Kind, operands: len(op.Operands)}
	if len(op.Operands)+len(op.Results) > len(k.types) || len(op.Regions) > 0 {
		return ir.FactorsOf(op)
	}
	for i, v := range op.Operands {
		k.types[i] = v.Type
	}
	for i, v := range op.Results {
		k.types[k.operands+i] = v.Type
	}
	if len(op.Attrs) > 0 {
		k.attrs = &op.Attrs[0]
	}
	f, ok := r.known[k]
	if !ok {
		if r.known == nil || len(r.known) == maxRules {
			r.known = make(map[ruleKey]*ir.Factors)
		}
		f = ir.FactorsOf(op)
		r.known[k] = f
	}
	return f
}
