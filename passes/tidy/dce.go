package tidy

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/pass"
)

// Dce keeps the ops that a result of the function or an effect depends on, in
// order. A loop loses the carries that no live value depends on; a carry that only
// feeds itself is dead.
func Dce(_ *pass.Context, m *ir.Module) error {
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		l := &liveness{live: make([]bool, f.NumIDs()), ops: make([]bool, f.NumIDs()), none: make(map[*ir.Op]bool), owner: make(map[*ir.Block]*ir.Op)}
		f.Body.Walk(func(op *ir.Op) {
			for _, r := range op.Regions {
				l.owner[r] = op
			}
		})
		for _, v := range f.Return().Operands {
			l.value(v)
		}
		l.effects(f.Body)
		l.run()
		l.sweep(f.Body)
	}
	return nil
}

// A liveness is the values and ops that are known to be needed.
type liveness struct {
	live  []bool          // by ID
	ops   []bool          // by ID of the first result
	none  map[*ir.Op]bool // ops without results
	owner map[*ir.Block]*ir.Op
	work  []*ir.Value
}

func (l *liveness) value(v *ir.Value) {
	if !l.live[v.ID] {
		l.live[v.ID] = true
		l.work = append(l.work, v)
	}
}

func (l *liveness) run() {
	for len(l.work) > 0 {
		v := l.work[len(l.work)-1]
		l.work = l.work[:len(l.work)-1]
		switch {
		case v.Def != nil:
			l.op(v.Def)
			l.slot(v.Def, v.Index)
		case l.owner[v.Block] != nil:
			l.argument(l.owner[v.Block], v.Block, v.Index)
		}
	}
}

// effects marks the ops of b that have an effect beyond their results: those in
// regions have it if the op that has the region is needed, but for what the
// outside can see, for which that is needed too.
func (l *liveness) effects(b *ir.Block) {
	for _, op := range b.Ops {
		effect := !op.Kind.Has(ir.Pure) && !op.Kind.Has(ir.Terminator) && !facts.IsPlacement(op)
		if effect || slices.ContainsFunc(op.Regions, seenOutside) {
			l.op(op)
		}
	}
}

// seenOutside reports whether b has an op with effects outside of the program.
func seenOutside(b *ir.Block) bool {
	found := false
	b.Walk(func(op *ir.Op) {
		found = found || op.Kind == ir.Unknown || op.Kind == ir.CustomCall && op.Bool("has_side_effect")
	})
	return found
}

// needs reports whether op is known to be needed.
func (l *liveness) needs(op *ir.Op) bool {
	if len(op.Results) > 0 {
		return l.ops[op.Results[0].ID]
	}
	return l.none[op]
}

// op marks what op needs whichever of its results is live.
func (l *liveness) op(op *ir.Op) {
	if l.needs(op) {
		return
	}
	if len(op.Results) > 0 {
		l.ops[op.Results[0].ID] = true
	} else {
		l.none[op] = true
	}
	for _, r := range op.Regions {
		l.effects(r)
	}
	c := carriesOf(op)
	for i, v := range op.Operands {
		if i < c.first || i >= c.first+c.n {
			l.value(v)
		}
	}
	if op.Kind == ir.While {
		l.value(op.Regions[0].Terminator().Operands[0])
		return
	}
	for _, r := range op.Regions {
		for i, v := range r.Terminator().Operands {
			if i < c.first || i >= c.first+c.n || !c.loop {
				l.value(v)
			}
		}
	}
	if !op.Kind.Has(ir.Pure) {
		for i := range op.Results {
			l.slot(op, i)
		}
	}
}

// A carrySpan says which operands of a loop are its carries.
type carrySpan struct {
	first, n int
	loop     bool
}

func carriesOf(op *ir.Op) carrySpan {
	switch op.Kind {
	case ir.While:
		return carrySpan{0, len(op.Operands), true}
	case ir.PPScan:
		return carrySpan{0, op.Int("carries"), true}
	}
	return carrySpan{}
}

// slot marks the values that carry i of a loop depends on.
func (l *liveness) slot(op *ir.Op, i int) {
	c := carriesOf(op)
	if !c.loop || i >= c.n {
		return
	}
	l.op(op)
	l.value(op.Operands[i])
	body := op.Regions[len(op.Regions)-1]
	l.value(body.Terminator().Operands[i])
}

// argument marks the value that argument i of a region of op is bound to.
func (l *liveness) argument(op *ir.Op, b *ir.Block, i int) {
	switch op.Kind {
	case ir.While:
		l.slot(op, i)
	case ir.PPScan:
		if i > 0 && i <= op.Int("carries") {
			l.slot(op, i-1)
		}
	}
}

// sweep drops what is not live from b.
func (l *liveness) sweep(b *ir.Block) {
	b.Ops = slices.DeleteFunc(b.Ops, func(op *ir.Op) bool {
		return !op.Kind.Has(ir.Terminator) && !l.needs(op)
	})
	for _, op := range b.Ops {
		if op.Kind.Has(ir.Loop) {
			l.dropCarries(op)
		}
		for _, r := range op.Regions {
			l.sweep(r)
		}
	}
}

// dropCarries removes the dead carries of a loop.
func (l *liveness) dropCarries(op *ir.Op) {
	c := carriesOf(op)
	body := op.Regions[len(op.Regions)-1]
	skip := 0 // a scan's first argument is the iteration
	if op.Kind == ir.PPScan {
		skip = 1
	}
	dead, n := make([]bool, c.n), 0
	for i := range c.n {
		if !l.live[op.Results[i].ID] && !l.live[body.Args[i+skip].ID] && !l.live[op.Regions[0].Args[i+skip].ID] {
			dead[i] = true
			n++
		}
	}
	if n == 0 {
		return
	}
	op.Operands = without(op.Operands, dead, 0)
	op.Results = numbered(without(op.Results, dead, 0))
	for _, r := range op.Regions {
		r.Args = numbered(without(r.Args, dead, skip))
	}
	yield := body.Terminator()
	yield.Operands = without(yield.Operands, dead, 0)
	if op.Kind == ir.PPScan {
		op.Attrs.Set("carries", ir.I64Attr(c.n-n))
	}
}

// without is vs but for those that are dead, of which the first is at skip.
func without(vs []*ir.Value, dead []bool, skip int) []*ir.Value {
	var out []*ir.Value
	for i, v := range vs {
		if k := i - skip; k < 0 || k >= len(dead) || !dead[k] {
			out = append(out, v)
		}
	}
	return out
}

// numbered is vs, results or arguments, each with its place.
func numbered(vs []*ir.Value) []*ir.Value {
	for i, v := range vs {
		v.Index = i
	}
	return vs
}
