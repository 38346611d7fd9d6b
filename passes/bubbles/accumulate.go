package bubbles

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/rewrite"
)

// accumulate has b add to a sum what a stage gives only where it gives something: a gradient over iterations,
//
//	g = select(valid, work(x), 0)
//	sum' = dynamic_update_slice(sum, g + dynamic_slice(sum, i), i)
//
// becomes
//
//	sum' = select(valid, dynamic_update_slice(sum, work(x) + dynamic_slice(sum, i), i), sum)
//
// of which the update is in the branch.
func (s *skipper) accumulate(b *ir.Block, preds []*predicate) {
	a := &accumulator{uses: s.f.Uses(), here: make(map[*ir.Op]bool), truths: make(map[*ir.Value]bool)}
	for _, op := range b.Ops {
		a.here[op] = true
	}
	for _, p := range preds {
		a.truths[p.truth] = true
	}
	var ops []*ir.Op
	gone := make(map[*ir.Op]bool)
	for _, op := range b.Ops {
		ops = append(ops, op)
		sel, reader := a.adds(op)
		if sel == nil {
			continue
		}
		gone[sel] = true
		reader.Operands[slices.Index(reader.Operands, sel.Result())] = sel.Operands[1]
		behind := new(ir.Block)
		w := &ir.Builder{Func: s.f, Block: behind, Origin: op.Origin}
		sum, updated := op.Result(), s.f.NewValue(op.Result().Type, op.Result().Name)
		rewrite.Adopt(op, 0, updated)
		choice := w.Emit(ir.Select, []*ir.Value{w.Reshape(truth(sel)), updated, op.Operands[0]}, sel.Attrs, nil, nil)
		rewrite.Adopt(choice, 0, sum)
		ops = append(ops, behind.Ops...)
	}
	b.Ops = slices.DeleteFunc(ops, func(op *ir.Op) bool { return gone[op] })
}

// An accumulator finds sums in a block.
type accumulator struct {
	uses   []int // by value
	here   map[*ir.Op]bool
	truths map[*ir.Value]bool // predicates by which a branch may be taken
}

// once is the op of the block that makes v for one reader alone; nil if there is none.
func (a *accumulator) once(v *ir.Value) *ir.Op {
	if v.Def == nil || !a.here[v.Def] || a.uses[v.ID] != 1 {
		return nil
	}
	return v.Def
}

// adds returns the select whose result update adds to a part of a sum, and the op that reads it; nil if update is no such.
func (a *accumulator) adds(update *ir.Op) (sel, reader *ir.Op) {
	if update.Kind != ir.DynamicUpdateSlice || update.Attrs.Has(ir.KeyIteration) {
		return nil, nil
	}
	add := a.once(update.Operands[1])
	if add == nil || add.Kind != ir.Add {
		return nil, nil
	}
	for k, v := range add.Operands {
		if old := a.once(add.Operands[1-k]); old == nil || !facts.Replaces(update, old) {
			continue
		}
		reader, sel = add, a.once(v)
		for sel != nil && (sel.Kind == ir.Reshape || sel.Kind == ir.Convert) { // of zero, zero
			reader, sel = sel, a.once(sel.Operands[0])
		}
		if sel == nil || !a.truths[truth(sel)] || !dear(sel.Operands[1]) {
			continue
		}
		if zero := ir.ConstantOf(sel.Operands[2]); zero != nil && zero.IsAll(0) {
			return sel, reader
		}
	}
	return nil, nil
}

// dear reports whether what makes v, but for reshapes and conversions, is worth a branch by itself.
func dear(v *ir.Value) bool {
	for v.Def != nil && (v.Def.Kind == ir.Reshape || v.Def.Kind == ir.Convert) {
		v = v.Def.Operands[0]
	}
	return v.Def != nil && (v.Def.Kind.Has(ir.Collective) || v.Def.Kind.Has(ir.Costly))
}
