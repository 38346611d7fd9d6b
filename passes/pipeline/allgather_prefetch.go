package pipeline

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/pass"
	"ppc/passes/rewrite"
)

// AllgatherPrefetch places the all-gathers of weights whose storage is sharded
// along axes that their uses need gathered. stage-sharding left one pp.gather at
// each use, with the policy in it:
//
//   - per_iteration: it stays, so that the weights of one layer of each stage are
//     gathered at a time;
//   - once: it moves before the loop, over the weights of all repeats. An
//     all-gather and the slice of a repeat commute: one is along the mesh axes of
//     the weight's own dimensions, the other along the repeat dimension. It has
//     the attribute pp.save, by which a loop over accumulated batches is entered
//     with the gathered weight;
//   - per_repeat: the loop becomes one over repeats, around loops over the
//     iterations of a repeat, and the weights of two repeats are gathered at a
//     time: see window.
func AllgatherPrefetch(_ *pass.Context, m *ir.Module) error {
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		p := &gatherPlacer{f: f, sub: f.NewSubst()}
		if err := p.block(f.Body, nil, nil); err != nil {
			return err
		}
		p.sub.ApplyBlock(f.Body)
	}
	return nil
}

// A gatherPlacer moves the gathers of one function.
type gatherPlacer struct {
	f   *ir.Func
	sub ir.Subst
}

// block places the gathers in b, which is in the op around; before is where an op
// lands that moves out of the outermost loop that b is in, nil outside of loops.
func (p *gatherPlacer) block(b *ir.Block, around *ir.Op, before *[]*ir.Op) error {
	var ops []*ir.Op
	for _, op := range b.Ops {
		at := before
		if at == nil {
			at = &ops
		}
		for _, r := range op.Regions {
			if err := p.block(r, op, at); err != nil {
				return err
			}
		}
		if op.Kind == ir.PPScan && slices.ContainsFunc(op.Regions[0].Ops, perRepeat) {
			out := new(ir.Block)
			vs, err := p.window(&ir.Builder{Func: p.f, Block: out, Origin: op.Origin}, op)
			if err != nil {
				return err
			}
			for i, v := range op.Results {
				p.sub[v.ID] = vs[i]
			}
			ops = append(ops, out.Ops...)
			continue
		}
		if op.Kind == ir.PPGather && op.Attrs.Has("policy") {
			switch policy := op.Attrs.Str("policy"); policy {
			case "per_iteration":
				op.Attrs.Delete("policy")
			case "per_repeat":
				if before == nil {
					return pass.Errorf(op, "pipeline: gather = per_repeat outside of a loop over iterations")
				}
			case "once":
				op.Attrs.Delete("policy")
				if before != nil {
					p.hoist(op, around, before)
					continue
				}
			default:
				return pass.Errorf(op, "pipeline: gather = %s is no place; per_iteration, once and per_repeat are", policy)
			}
		}
		ops = append(ops, op)
	}
	b.Ops = ops
	return nil
}

// hoist moves the gather g of a slice before the loop: it gathers the sliced value,
// and the slice reads the gathered weights. A per-iteration input of the loop
// around counts as a slice of one row.
func (p *gatherPlacer) hoist(g, around *ir.Op, before *[]*ir.Op) {
	used := g.Operands[0]
	s := g.Attrs.Get("sharding").(*ir.Sharding)
	source := used
	choice := used.Def
	row := around.Kind == ir.PPScan && facts.InputOf(around, used) != nil
	switch {
	case row:
		source, s = facts.InputOf(around, used), s.Prepend()
	case choice != nil && choice.Kind == ir.Gather:
		source, s = choice.Operands[0], s.Prepend()
	}
	out := &ir.Block{}
	w := (&ir.Builder{Func: p.f, Block: out, Origin: g.Origin}).Emit(ir.PPGather, []*ir.Value{source}, rewrite.AttrsWith(g, facts.Named("sharding", s)), nil, nil).Results[0]
	w.Name = source.Name
	w.Def.Attrs.Set(ir.KeySave, ir.Unit{})
	*before = append(*before, out.Ops...)
	switch {
	case row:
		around.Operands[used.Index-1] = w
	case source == used:
		p.sub[g.Result().ID] = w
		return
	default:
		choice.Operands[0] = w
	}
	used.Type, used.Sharding = g.Result().Type, g.Attrs.Get("sharding").(*ir.Sharding)
	p.sub[g.Result().ID] = used
}
