package lower

import (
	"slices"

	"ppc/ir"
)

// forPartitioners makes m, a global program, one that other partitioners take.
// A carry that every iteration hands on as it got it becomes a value that the
// loop captures: XLA takes such carries off a loop and then finds too many
// shardings on it. Permissions to combine later, which are ppc's own, go, and so
// does how a sum with zeros lies; see [forgetFolded].
func forPartitioners(m *ir.Module) {
	permissions := !anyUnreduced(m)
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		if permissions {
			reduceAll(f)
		}
		s := f.NewSubst()
		capture(f, f.Body, s)
		for id := range s {
			if s[id] != nil {
				s[id] = standsFor(s, s[id])
			}
		}
		s.ApplyBlock(f.Body)
		forgetFolded(f)
	}
}

// forgetFolded takes the sharding off what may fold to one of several results of
// an op, as x + 0 does: XLA folds it, and then writes its sharding on the op that
// made x, for all of whose results it takes it. An elementwise op of several
// operands folds, if to anything, to the one that is no constant.
func forgetFolded(f *ir.Func) {
	several := make([]bool, f.NumIDs()) // by ID: one of several results, or folds to one
	f.Body.Walk(func(op *ir.Op) {
		for _, v := range op.Results {
			several[v.ID] = len(op.Results) > 1
		}
		if len(op.Results) != 1 || len(op.Operands) < 2 || !op.Kind.Has(ir.Elementwise) {
			return
		}
		v := op.Result()
		for i, x := range op.Operands {
			if several[x.ID] && x.Type.Equal(v.Type) && constants(op.Operands[:i]) && constants(op.Operands[i+1:]) {
				several[v.ID], v.Sharding = true, nil
			}
		}
	})
}

// constants reports whether vs are constants, in whatever shape.
func constants(vs []*ir.Value) bool {
	return !slices.ContainsFunc(vs, func(v *ir.Value) bool {
		for v.Def != nil && (v.Def.Kind == ir.BroadcastInDim || v.Def.Kind == ir.Reshape) {
			v = v.Def.Operands[0]
		}
		return v.Def == nil || v.Def.Kind != ir.Constant
	})
}

// anyUnreduced reports whether some value of m is what several devices have,
// combined: it comes in so, or an op makes it so. Where there is none, unreduced
// axes of a constraint are a permission, and others take them for a statement.
func anyUnreduced(m *ir.Module) bool {
	unreduced := func(s *ir.Sharding) bool { return s != nil && len(s.Unreduced) > 0 }
	found := false
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		for _, v := range f.Params() {
			found = found || unreduced(v.Sharding)
		}
		f.Body.Walk(func(op *ir.Op) {
			found = found || op.Kind.Has(ir.Unreduced)
			if op.Kind == ir.ManualComputation {
				for _, name := range []string{"in_shardings", "out_shardings"} {
					per, _ := op.Attrs.Get(name).(ir.PerValue)
					found = found || slices.ContainsFunc(per, unreduced)
				}
			}
		})
	}
	return found
}

// reduceAll takes unreduced axes off every sharding in f.
func reduceAll(f *ir.Func) {
	reduced := func(s *ir.Sharding) *ir.Sharding {
		if s == nil || len(s.Unreduced) == 0 {
			return s
		}
		s = s.Clone()
		s.Unreduced = nil
		return s
	}
	for i := range f.Results {
		f.Results[i].Sharding = reduced(f.Results[i].Sharding)
	}
	f.Body.Walk(func(op *ir.Op) {
		for _, v := range op.Results {
			v.Sharding = reduced(v.Sharding)
		}
		if s, ok := op.Attrs.Get("sharding").(*ir.Sharding); ok {
			op.Attrs.Set("sharding", reduced(s))
		}
	})
}

// capture takes the carries that never change off the loops of b, and notes in
// s what stands for them; those of inner loops first, which may be all that
// changes one of an outer loop. Where such a carry lies otherwise than what it is,
// the loop captures that resharded.
func capture(f *ir.Func, b *ir.Block, s ir.Subst) {
	var out []*ir.Op
	for _, op := range b.Ops {
		for _, r := range op.Regions {
			capture(f, r, s)
		}
		if op.Kind == ir.While {
			out = append(out, captured(f, op, s)...)
		}
		out = append(out, op)
	}
	b.Ops = out
}

// standsFor is what stands for v in the end.
func standsFor(s ir.Subst, v *ir.Value) *ir.Value {
	for s.Of(v) != v {
		v = s.Of(v)
	}
	return v
}

// captured is capture for the loop op. It returns the reshards before it.
func captured(f *ir.Func, op *ir.Op, s ir.Subst) []*ir.Op {
	cond, body := op.Regions[0], op.Regions[1]
	yield := body.Terminator()
	before := ir.Builder{Func: f, Block: new(ir.Block), Origin: op.Origin}
	kept := 0
	keep := func(vs []*ir.Value, i int) { vs[kept] = vs[i] }
	for i, r := range op.Results {
		if standsFor(s, yield.Operands[i]) != body.Args[i] || !r.Type.IsTensor() {
			keep(op.Operands, i)
			keep(op.Results, i)
			keep(cond.Args, i)
			keep(body.Args, i)
			keep(yield.Operands, i)
			kept++
			continue
		}
		v := standsFor(s, op.Operands[i])
		if r.Sharding != nil && !v.Sharding.SameLayout(r.Sharding) {
			v = before.Emit(ir.ShardingConstraint, []*ir.Value{v}, ir.AttrsOf(ir.NamedAttr{Name: "sharding", Attr: r.Sharding}), nil, nil).Result()
			v.Sharding = r.Sharding
		}
		s[cond.Args[i].ID], s[body.Args[i].ID], s[r.ID] = v, v, v
	}
	op.Operands, op.Results, cond.Args, body.Args, yield.Operands = op.Operands[:kept], op.Results[:kept], cond.Args[:kept], body.Args[:kept], yield.Operands[:kept]
	for i := range kept {
		op.Results[i].Index, cond.Args[i].Index, body.Args[i].Index = i, i, i
	}
	return before.Block.Ops
}
