package hlo

import (
	"slices"

	"ppc/ir"
)

// deferred reports whether op, of type t, starts an operation that has neither operands nor
// results yet: XLA:TPU starts another core before it has them, and the update brings them.
// The operation stands then where the update does.
func (u *unfuser) deferred(op *ir.Op, t *ir.Type) bool {
	empty := func(t *ir.Type) bool { return t.Kind == ir.TupleType && len(t.Elems) == 0 }
	if len(op.Operands) > 0 || t.Kind != ir.TupleType || len(t.Elems) < 2 || !empty(t.Elems[0]) || !empty(t.Elems[1]) {
		return false
	}
	context := u.builder(op).Emit(ir.Unknown, nil, nil, nil, []*ir.Type{t})
	context.Spelling = "hlo.context"
	u.replace(op, context.Result())
	u.starts[context.Result()] = op
	return true
}

// brought is the operation that op, an update, brings operands to; nil where it brings none.
func (u *unfuser) brought(op *ir.Op) *ir.Op {
	if len(op.Operands) < 2 || u.starts[op.Operands[0]] == nil {
		return nil
	}
	full := *op
	full.Attrs, full.Operands = u.starts[op.Operands[0]].Attrs, op.Operands[1:]
	return &full
}

// offloaded names the computation that another core runs for op, a custom call on a thread of
// its own, and gives a value of type t; "" where there is none, or where it does not take the
// operands.
func (u *unfuser) offloaded(op *ir.Op, t *ir.Type) string {
	called, _ := op.Attrs.Get("called_computations").(ir.Array)
	if op.Str("async_execution_thread") == "" || len(called) != 1 {
		return ""
	}
	name, _ := called[0].(ir.Sym)
	f := u.m.Func(string(name))
	if f == nil || f.Body == nil || f.Return() == nil {
		return ""
	}
	result := ir.Types(f.Return().Operands)
	if !slices.EqualFunc(f.Params(), op.Operands, func(p, v *ir.Value) bool { return p.Type.Equal(v.Type) }) ||
		!slices.EqualFunc(result, flatTypes(t, nil), (*ir.Type).Equal) {
		return ""
	}
	return string(name)
}
