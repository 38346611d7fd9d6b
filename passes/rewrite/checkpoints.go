package rewrite

import (
	"ppc/ir"
)

// OpenCheckpoints inlines the checkpoint regions of f, nested ones included.
func OpenCheckpoints(f *ir.Func) {
	sub := f.NewSubst()
	var open func(b *ir.Block)
	open = func(b *ir.Block) {
		var out []*ir.Op
		for _, op := range b.Ops {
			sub.Apply(op.Operands)
			for i, r := range op.Regions {
				if op.Kind == ir.PPCheckpoint {
					for k, a := range r.Args {
						sub[a.ID] = op.Operands[k]
					}
				}
				open(op.Regions[i])
			}
			if op.Kind != ir.PPCheckpoint {
				out = append(out, op)
				continue
			}
			body := op.Regions[0].Ops
			yield := body[len(body)-1]
			for i, v := range op.Results {
				sub[v.ID] = yield.Operands[i]
			}
			out = append(out, body[:len(body)-1]...)
		}
		b.Ops = out
	}
	open(f.Body)
}
