package tidy

import (
	"sync"

	"ppc/ir"
	"ppc/passes/pass"
)

// Sink moves tensors that are made of one element or of none, such as zeros, into the
// branch of an if or a case that alone reads them. They take memory and time where that
// branch is taken, and no longer wherever the op is reached.
func Sink(_ *pass.Context, m *ir.Module) error {
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		sink(f.Body, sync.OnceValue(f.Uses))
	}
	return nil
}

// sink moves what it can of b into branches in it. uses counts the readers of each
// value, by ID, which moving changes nothing about.
func sink(b *ir.Block, uses func() []int) {
	into := make(map[*ir.Op]*ir.Block)
	for _, op := range b.Ops {
		if op.Kind != ir.If && op.Kind != ir.Case {
			continue
		}
		for _, r := range op.Regions {
			in := make(map[*ir.Value]int)
			r.Walk(func(op *ir.Op) {
				for _, v := range op.Operands {
					if fills(v.Def) {
						in[v]++
					}
				}
			})
			for v, n := range in {
				if n == uses()[v.ID] {
					into[v.Def] = r
				}
			}
		}
	}
	if len(into) > 0 {
		kept := b.Ops[:0]
		moved := make(map[*ir.Block][]*ir.Op)
		for _, op := range b.Ops {
			if r := into[op]; r != nil {
				moved[r] = append(moved[r], op)
				continue
			}
			kept = append(kept, op)
		}
		b.Ops = kept
		for r, ops := range moved {
			r.Ops = append(ops, r.Ops...)
		}
	}
	for _, op := range b.Ops {
		for _, r := range op.Regions {
			sink(r, uses)
		}
	}
}

// fills reports whether op makes a tensor of one element or of none.
func fills(op *ir.Op) bool {
	if op == nil {
		return false
	}
	return op.Kind == ir.Iota || op.Kind == ir.BroadcastInDim && op.Operands[0].Type.NumElements() == 1
}
