package rewrite

import (
	"ppc/ir"
)

// OpenCheckpoints inlines the checkpoint regions of f, nested ones included. What a
// region yields takes the name of the result, where it has none.
func OpenCheckpoints(f *ir.Func) {
	sub := f.NewSubst()
	var open func(b *ir.Block)
	open = func(b *ir.Block) {
		var out []*ir.Op
		for _, op := range b.Ops {
			sub.Apply(op.Operands)
			if op.Kind == ir.PPCheckpoint {
				for k, a := range op.Regions[0].Args {
					sub[a.ID] = op.Operands[k]
				}
			}
			for _, r := range op.Regions {
				open(r)
			}
			if op.Kind != ir.PPCheckpoint {
				out = append(out, op)
				continue
			}
			last := len(op.Regions[0].Ops) - 1
			for i, y := range op.Regions[0].Ops[last].Operands {
				sub[op.Results[i].ID] = y
				if y.Name == "" {
					y.Name = op.Results[i].Name
				}
			}
			out = append(out, op.Regions[0].Ops[:last]...)
		}
		b.Ops = out
	}
	open(f.Body)
}
