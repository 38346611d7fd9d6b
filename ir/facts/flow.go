package facts

import (
	"slices"

	"ppc/ir"
)

// DefinedIn is the set of values that b defines, regions included.
func DefinedIn(b *ir.Block) map[*ir.Value]bool {
	local := make(map[*ir.Value]bool)
	var block func(b *ir.Block)
	block = func(b *ir.Block) {
		for _, a := range b.Args {
			local[a] = true
		}
		for _, op := range b.Ops {
			for _, v := range op.Results {
				local[v] = true
			}
			for _, r := range op.Regions {
				block(r)
			}
		}
	}
	block(b)
	return local
}

// InputOf is the per-iteration input of op, a pp.scan, of which v, a value of its
// body, is the row of the iteration; nil if there is none.
func InputOf(op *ir.Op, v *ir.Value) *ir.Value {
	if i := v.Index - 1; v.Block == op.Regions[0] && i >= op.Int("carries") {
		return op.Operands[i]
	}
	return nil
}

// ResidualsOf is a copy of the attribute pp.residuals of op: an entry for each
// per-iteration output, empty for those that are no residuals.
func ResidualsOf(op *ir.Op) ir.Array {
	out := make(ir.Array, len(op.Results)-op.Int("carries"))
	for i := range out {
		out[i] = ir.Dict(nil)
	}
	if old, ok := op.Attrs.Get(ir.KeyResiduals).(ir.Array); ok {
		copy(out, old)
	}
	return out
}

// Roots is the entry points of m: the main function, or the public ones if there is
// no main.
func Roots(m *ir.Module) []*ir.Func {
	if f := m.Main(); f != nil {
		return []*ir.Func{f}
	}
	return slices.DeleteFunc(slices.Clone(m.Funcs), func(f *ir.Func) bool { return f.Private })
}

// VisitSymbols calls visit for every symbol in a.
func VisitSymbols(a ir.Attr, visit func(string)) {
	switch a := a.(type) {
	case ir.Sym:
		visit(string(a))
	case ir.Array:
		for _, e := range a {
			VisitSymbols(e, visit)
		}
	case ir.Dict:
		for _, e := range a {
			VisitSymbols(e.Attr, visit)
		}
	}
}
