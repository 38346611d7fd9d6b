package xla

import "ppc/ir"

// edges converts the data-flow edges that Shardy adds to the parameters and call
// results of a function during propagation to constraints; one without a sharding
// is replaced by its operand.
func (im *importer) edges(f *ir.Func) {
	sub := f.NewSubst()
	var block func(b *ir.Block)
	block = func(b *ir.Block) {
		out := new(ir.Block)
		for _, op := range b.Ops {
			sub.Apply(op.Operands)
			for _, r := range op.Regions {
				block(r)
			}
			if !isEdge(op) {
				out.Ops = append(out.Ops, op)
				continue
			}
			v := op.Operands[0]
			if s := op.Result().Sharding; s != nil {
				b := &ir.Builder{Func: f, Block: out, Origin: op.Origin}
				v = b.Emit(ir.ShardingConstraint, []*ir.Value{v}, ir.AttrsOf(ir.NamedAttr{Name: "sharding", Attr: s}), nil, nil).Result()
			}
			sub[op.Result().ID] = v
		}
		b.Ops = out.Ops
	}
	block(f.Body)
}

func isEdge(op *ir.Op) bool { return op.Name() == "sdy.func_data_flow_edge" }
