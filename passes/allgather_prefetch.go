package passes

import "ppc/ir"

// allgatherPrefetch places the gathers of weights that are stored in parts.
// stage-sharding left one pp.gather at each use, with the policy in it:
//
//   - per_iteration: it stays, so that one stage and repeat is whole at a time;
//   - once: it moves before the loop, over the weights of all repeats. A gather
//     and the choice of a repeat commute: one is along the mesh axes of the
//     weight's own dimensions, the other along the repeat dimension.
func allgatherPrefetch(m *ir.Module) error {
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		p := &gatherPlacer{f: f, sub: f.NewSubst()}
		if err := p.block(f.Body, nil); err != nil {
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

// block places the gathers in b; before is where an op lands that moves out of
// the outermost loop that b is in, nil outside of loops.
func (p *gatherPlacer) block(b *ir.Block, before *[]*ir.Op) error {
	var ops []*ir.Op
	for _, op := range b.Ops {
		at := before
		if at == nil {
			at = &ops
		}
		for _, r := range op.Regions {
			if err := p.block(r, at); err != nil {
				return err
			}
		}
		if op.Kind == ir.PPGather && op.Attrs.Has("policy") {
			policy := op.Attrs.Str("policy")
			op.Attrs.Delete("policy")
			switch policy {
			case "per_iteration":
			case "once":
				if before != nil {
					p.hoist(op, before)
					continue
				}
			default:
				return errorf(op, "pipeline: gather = %s has no pass; per_iteration and once do", policy)
			}
		}
		ops = append(ops, op)
	}
	b.Ops = ops
	return nil
}

// hoist puts the gather g of chosen rows before the loop: the choice reads the
// gathered weights instead.
func (p *gatherPlacer) hoist(g *ir.Op, before *[]*ir.Op) {
	used := g.Operands[0]
	s := g.Attrs.Get("sharding").(*ir.Sharding)
	source := used
	choice := used.Def
	if choice != nil && choice.Kind == ir.Gather {
		source = choice.Operands[0]
		s = s.Prepend()
	}
	out := &ir.Block{}
	w := (&ir.Builder{Func: p.f, Block: out, Origin: g.Origin}).Emit(ir.PPGather, []*ir.Value{source}, ir.AttrsOf(named("sharding", s)), nil, nil).Results[0]
	w.Name = source.Name
	*before = append(*before, out.Ops...)
	if source == used {
		p.sub[g.Result().ID] = w
		return
	}
	choice.Operands[0] = w
	used.Sharding = g.Attrs.Get("sharding").(*ir.Sharding)
	p.sub[g.Result().ID] = used
}
