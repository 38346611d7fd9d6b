package tidy

import (
	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/pass"
)

// Licm moves loop-invariant ops out of loops, if their results take no more memory
// than their operands: a moved result is live throughout the loop. So weights are
// not all-gathered before a loop that is configured to gather them inside, and no
// broadcast is kept in memory.
//
// Collectives stay where the pipeline configuration put them. Constants stay too;
// one that a moved op needs is copied along.
func Licm(_ *pass.Context, m *ir.Module) error {
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		f.Body.Ops = (&hoister{f: f}).block(f.Body)
	}
	return nil
}

type hoister struct{ f *ir.Func }

// block moves what it can out of the loops in b and returns b's ops.
func (h *hoister) block(b *ir.Block) []*ir.Op {
	var out []*ir.Op
	from := 0 // out has the ops of b before it
	for i, op := range b.Ops {
		for _, r := range op.Regions {
			r.Ops = h.block(r)
		}
		if !op.Kind.Has(ir.Loop) {
			continue
		}
		out = append(out, b.Ops[from:i]...)
		from = i
		for _, r := range op.Regions {
			out = append(out, h.hoist(r)...)
		}
	}
	if from == 0 && len(out) == 0 {
		return b.Ops
	}
	return append(out, b.Ops[from:]...)
}

// hoist takes the ops of a loop's region that may stand before the loop out of
// it, and returns them.
func (h *hoister) hoist(b *ir.Block) []*ir.Op {
	inside := make(map[*ir.Value]bool)
	for _, a := range b.Args {
		inside[a] = true
	}
	var moved, kept []*ir.Op
	for _, op := range b.Ops {
		if h.movable(op, inside) {
			for i, v := range op.Operands {
				if inside[v] { // a constant
					c := h.f.CopyOp(v.Def, make(map[*ir.Value]*ir.Value))
					moved = append(moved, c)
					op.Operands[i] = c.Result()
				}
			}
			moved = append(moved, op)
			continue
		}
		for _, v := range op.Results {
			inside[v] = true
		}
		kept = append(kept, op)
	}
	b.Ops = kept
	return moved
}

func (h *hoister) movable(op *ir.Op, inside map[*ir.Value]bool) bool {
	if !op.Kind.Has(ir.Pure) || op.Kind.Has(ir.Collective) || op.Kind.Has(ir.Pipeline) || op.Kind.Has(ir.Source) || len(op.Regions) > 0 && !facts.Reducer(op) {
		return false
	}
	in, out := 0, 0
	for _, v := range op.Operands {
		if inside[v] && (v.Def == nil || v.Def.Kind != ir.Constant) {
			return false
		}
		in += facts.BytesOf(v.Type)
	}
	for _, v := range op.Results {
		out += facts.BytesOf(v.Type)
	}
	return out <= max(in, facts.SmallBytes)
}
