package rewrite

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

// Adopt makes v, so far the result of another op, result k of op.
func Adopt(op *ir.Op, k int, v *ir.Value) {
	op.Results[k] = v
	v.Def, v.Index = op, k
}

// DropUnused removes the functions that no root refers to, directly or through other
// functions; see [facts.Roots].
func DropUnused(m *ir.Module) {
	used := make(map[string]bool)
	var visit func(f *ir.Func)
	visit = func(f *ir.Func) {
		if f == nil || used[f.Name] {
			return
		}
		used[f.Name] = true
		if f.Body == nil {
			return
		}
		f.Body.Walk(func(op *ir.Op) {
			for _, a := range op.Attrs {
				facts.VisitSymbols(a.Attr, func(name string) { visit(m.Func(name)) })
			}
		})
	}
	for _, f := range facts.Roots(m) {
		visit(f)
	}
	m.Funcs = slices.DeleteFunc(m.Funcs, func(f *ir.Func) bool { return !used[f.Name] })
}

// CopyBody appends copies of the ops of body, but for its terminator, whose
// operands' copies it returns. sub maps body's arguments to the values that replace
// them.
func CopyBody(b *ir.Builder, body *ir.Block, sub map[*ir.Value]*ir.Value) []*ir.Value {
	last := len(body.Ops) - 1
	for _, op := range body.Ops[:last] {
		b.Block.Ops = append(b.Block.Ops, b.Func.CopyOp(op, sub))
	}
	vs := make([]*ir.Value, len(body.Ops[last].Operands))
	for i, v := range body.Ops[last].Operands {
		if vs[i] = v; sub[v] != nil {
			vs[i] = sub[v]
		}
	}
	return vs
}

// AttrsWith returns op's attributes with some replaced.
func AttrsWith(op *ir.Op, as ...ir.NamedAttr) ir.Attrs {
	attrs := op.Attrs
	for _, a := range as {
		attrs.Set(a.Name, a.Attr)
	}
	return attrs
}
