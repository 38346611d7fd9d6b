package expand

import (
	"cmp"

	"ppc/ir"
	"ppc/ir/facts"
)

// targets has the compositions of custom calls, by target. A composition returns nil
// where it leaves its op as it is.
var targets = map[string]composition{
	"AssumeGatherIndicesInBound":    known,
	"GatherScatterIndicesBitpacked": known,
	"AllocateBuffer": func(c *composer, op *ir.Op) []*ir.Value { // whose elements nobody reads before they are written
		return []*ir.Value{c.b.Broadcast(c.b.Splat(ir.Tensor(op.Result().Type.Elem), 0), op.Result().Type.Shape)}
	},
	"TopK": (*composer).customTopK, // what XLA:CPU makes of top_k
}

func (e *expander) customCall(b *ir.Builder, op *ir.Op) {
	c := &composer{b: b}
	if f := targets[op.Str("call_target_name")]; f != nil {
		if vs := f(c, op); vs != nil {
			e.err = cmp.Or(e.err, c.err)
			e.replace(op, vs)
			return
		}
	}
	for _, r := range op.Regions {
		e.block(r)
	}
	b.Block.Ops = append(b.Block.Ops, op)
}

// known is the operand of a call by which XLA:TPU keeps what it knows of the indices of a
// gather or scatter: that they are in bounds, or parts of the bits of one number.
func known(_ *composer, op *ir.Op) []*ir.Value {
	if len(op.Operands) != 1 || len(op.Results) != 1 || !op.Operands[0].Type.Equal(op.Result().Type) {
		return nil
	}
	return op.Operands
}

// customTopK takes the largest along the last dimension.
func (c *composer) customTopK(op *ir.Op) []*ir.Value {
	if len(op.Operands) != 1 || len(op.Results) != 2 || op.Operands[0].Type.Rank() == 0 || op.Results[1].Type.Elem != ir.I32 {
		return nil
	}
	shape := op.Results[0].Type.Shape
	top := &ir.Op{Kind: ir.TopK, Operands: op.Operands, Attrs: ir.AttrsOf(facts.Named("k", ir.I64Attr(shape[len(shape)-1])))}
	return c.topK(top)
}
