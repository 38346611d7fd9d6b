package expand

import (
	"ppc/ir"
	"ppc/passes/pass"
)

// A region that an op applies to single elements, such as the combiner of a
// reduction or the comparator of a sort, computes with scalars, and each device
// runs it by itself. A sharding of a scalar has no effect, so the ops of Shardy
// that only change shardings are identities there.

// scalarRegion expands the region b of op outer, whose values are scalars: no
// sharding and no op of Shardy is left, inner regions included. Ops that
// compute across devices there are an error.
func (e *expander) scalarRegion(outer *ir.Op, b *ir.Block) {
	out := new(ir.Block)
	for _, a := range b.Args {
		a.Sharding = nil
	}
	for _, op := range b.Ops {
		e.scalarOp(outer, &ir.Builder{Func: e.f, Block: out, Origin: op.Origin}, op)
	}
	b.Ops = out.Ops
}

func (e *expander) scalarOp(outer *ir.Op, b *ir.Builder, op *ir.Op) {
	switch kind := op.Kind; {
	case kind == ir.ManualComputation, kind.Has(ir.Unreduced):
		e.fail(op, "%s in the region of %s, which each device runs for itself on single elements; move it out of the region", op.Name(), outer.Name())
	case kind.Has(ir.Relayout):
		e.sub.Apply(op.Operands)
		e.replace(op, op.Operands)
	case kind == ir.ShardingGroup:
	case kind == ir.SdyConstant:
		e.replace(op, []*ir.Value{b.Const(op.Literal("value"))})
	case kind == ir.NamedComputation:
		e.sub.Apply(op.Operands)
		body := op.Regions[0]
		for i, a := range body.Args {
			e.sub[a.ID] = op.Operands[i]
		}
		n := len(body.Ops) - 1
		for _, inner := range body.Ops[:n] {
			e.scalarOp(outer, b, inner)
		}
		e.sub.Apply(body.Ops[n].Operands)
		e.replace(op, body.Ops[n].Operands)
	case kind.Has(ir.TensorRegions):
		e.sub.Apply(op.Operands)
		for _, r := range op.Regions {
			e.scalarRegion(outer, r)
		}
		unshardedResults(op)
		b.Block.Ops = append(b.Block.Ops, op)
	default:
		first := len(b.Block.Ops)
		e.op(b, op)
		for _, made := range b.Block.Ops[first:] {
			unshardedResults(made)
		}
	}
}

func unshardedResults(op *ir.Op) {
	for _, v := range op.Results {
		v.Sharding = nil
	}
}

func (e *expander) fail(op *ir.Op, format string, args ...any) {
	if e.err == nil {
		e.err = pass.Errorf(op, format, args...)
	}
}
