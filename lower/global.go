package lower

import (
	"slices"

	"ppc/ir"
)

// forPartitioners makes m, a global program, one that other partitioners accept. A
// loop-invariant carry becomes a value that the loop captures: XLA removes such
// carries from a loop, which then has one sharding too many. Constraints that only
// permit a later reduction, which are ppc's own, are removed, and so are the
// shardings of sums with zeros; see [forgetFolded].
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
				s[id] = resolved(s, s[id])
			}
		}
		s.ApplyBlock(f.Body)
		forgetFolded(f)
	}
}

// forgetFolded removes the sharding of values that may fold to one of several
// results of an op, as x + 0 does: XLA folds them, moves the sharding to the op
// that defines x, and applies it to all results of that. An elementwise op of
// several operands can only fold to the one that is no constant.
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

// anyUnreduced reports whether some value of m is unreduced: a parameter, or the
// result of an op that says so. If there is none, unreduced axes of a constraint
// only permit a later reduction, which other partitioners would take for a
// requirement.
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

// capture removes loop-invariant carries from the loops of b, and records in s the
// values that replace them; those of inner loops first, which may be all that
// changes one of an outer loop. If such a carry is sharded otherwise than its
// initial value, the loop captures the initial value resharded.
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

// resolved is the value that finally replaces v in s.
func resolved(s ir.Subst, v *ir.Value) *ir.Value {
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
		if resolved(s, yield.Operands[i]) != body.Args[i] || !r.Type.IsTensor() {
			keep(op.Operands, i)
			keep(op.Results, i)
			keep(cond.Args, i)
			keep(body.Args, i)
			keep(yield.Operands, i)
			kept++
			continue
		}
		v := resolved(s, op.Operands[i])
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
