package expand

import (
	"ppc/ir"
	"ppc/passes/pass"
)

// A region that an op calls for single elements, such as the combiner of a
// reduction or the comparison of a sort, computes with scalars, and each device
// runs it for itself. A sharding of a scalar says nothing, so the ops of Shardy
// that change only where a value is are identities there.

// holdsTensors reports whether the regions of op compute with tensors of the
// program, which have shardings; those of other ops compute with scalars.
func holdsTensors(op *ir.Op) bool {
	switch op.Kind {
	case ir.While, ir.Case, ir.If, ir.ManualComputation, ir.NamedComputation, ir.PPScan, ir.PPCheckpoint, ir.Unknown, ir.CustomCall:
		return true
	}
	return false
}

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
	switch op.Kind {
	case ir.ShardingConstraint, ir.Reshard, ir.DataFlowEdge, ir.PropagationBarrier,
		ir.SdyAllGather, ir.SdyAllSlice, ir.SdyAllToAll, ir.SdyCollectivePermute:
		e.sub.Apply(op.Operands)
		e.replace(op, op.Operands)
	case ir.ShardingGroup:
	case ir.SdyConstant:
		e.replace(op, []*ir.Value{b.Const(op.Literal("value"))})
	case ir.NamedComputation:
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
	case ir.ManualComputation, ir.SdyAllReduce, ir.SdyReduceScatter, ir.ReplicatedToUnreduced, ir.ShardedToUnreduced:
		e.fail(op, "%s in the region of %s, which each device runs for itself on single elements; move it out of the region", op.Name(), outer.Name())
	case ir.While, ir.Case, ir.If:
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
