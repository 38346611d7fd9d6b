package gradient

import (
	"ppc/ir"
	"ppc/ir/facts"
)

// A replay is a carry of a loop whose next value f(t) follows from the iteration
// number t and from outside of the loop: in iteration t the carry is f(t-1). A
// backward loop that needs the carry does not save it as a residual; it computes
// f(t-1), and carries it to its next iteration, t-1, where it is f(t). So each f(t)
// is computed once, and two of them are live at a time.
//
// The two buffers of gathered weights, for the current and the next repeat, are
// such carries.
type replay struct {
	index int       // of the carry
	next  *ir.Value // f(t) in the forward body
	init  *ir.Value // before the first iteration

	newer *ir.Value // f(t) in the backward body, a carry; nil if the body does not read it
	older *ir.Value // f(t-1) in the backward body; nil until the body reads it
}

// replays finds the carries of t's loop that its body reads and that can be
// replayed.
func (t *tape) replays() []*replay {
	body := t.scan.Regions[0]
	used := make(map[*ir.Value]bool)
	body.Walk(func(op *ir.Op) {
		for _, v := range op.Operands {
			used[v] = used[v] || op != body.Terminator()
		}
	})
	var out []*replay
	for i, v := range body.Terminator().Operands[:t.scan.Int("carries")] {
		if used[body.Args[1+i]] && t.local[v] && (t.light(v) || saved(v) && t.light(v.Def.Operands[0])) {
			out = append(out, &replay{index: i, next: v, init: t.scan.Operands[i]})
		}
	}
	return out
}

// saved reports whether v is a gathered weight that is kept for the backward pass.
func saved(v *ir.Value) bool {
	return v.Def != nil && v.Def.Kind == ir.PPGather && v.Def.Attrs.Has(ir.KeySave)
}

// replayed is the forward value v in the backward body if it is the carry of a
// replay or what becomes it.
func (t *tape) replayed(v *ir.Value) *ir.Value {
	for _, p := range t.replaying {
		switch v {
		case t.scan.Regions[0].Args[1+p.index]:
			return t.older(p)
		case p.next:
			if p.newer == nil {
				p.newer = t.d.f.NewValue(v.Type, v.Name)
				p.newer.Sharding = v.Sharding
			}
			return p.newer
		}
	}
	return nil
}

// older is f(t-1). In the first iteration that is the initial value, unless f(-1)
// equals it or its elements are never read.
func (t *tape) older(p *replay) *ir.Value {
	if p.older != nil {
		return p.older
	}
	now := t.memo[t.scan.Regions[0].Args[0]]
	before := t.b.Sub(now, t.b.Splat(now.Type, 1))
	var v *ir.Value
	if saved(p.next) {
		v = t.b.Index(t.outer.stacked(t.scan, p.next), 0, before)
	} else {
		v = t.recomputeAt(p.next, map[*ir.Value]*ir.Value{t.scan.Regions[0].Args[0]: before})
	}
	if !t.continues(p) && !dontCare(p.init) {
		first := t.b.Compare("EQ", now, t.b.Splat(now.Type, 0))
		v = t.b.Select(first, t.outer.need(p.init), v)
	}
	if v.Name == "" {
		v.Name = p.next.Name
	}
	p.older = v
	return v
}

// recomputeAt computes v in the backward body with the operands in sub in place of
// the iteration's own.
func (t *tape) recomputeAt(v *ir.Value, sub map[*ir.Value]*ir.Value) *ir.Value {
	if w := sub[v]; w != nil {
		return w
	}
	if !t.local[v] {
		return t.outer.need(v)
	}
	if rows := facts.InputOf(t.scan, v); rows != nil {
		return t.b.Index(t.outer.need(rows), 0, sub[t.scan.Regions[0].Args[0]])
	}
	for _, x := range v.Def.Operands {
		sub[x] = t.recomputeAt(x, sub)
	}
	t.shield(v.Def, sub)
	t.b.Block.Ops = append(t.b.Block.Ops, t.d.f.CopyOp(v.Def, sub))
	return sub[v]
}

// shield makes the copy of a gather in a loop read its operand, in sub, through a
// barrier: where the loops are unrolled, no common-subexpression elimination merges
// it with the gather of the forward loop.
func (t *tape) shield(op *ir.Op, sub map[*ir.Value]*ir.Value) {
	if op.Kind != ir.PPGather || t.outer == nil {
		return
	}
	sub[op.Operands[0]] = t.waiting(sub[op.Operands[0]])
}

// waiting is x behind an optimization barrier together with the cotangents computed
// so far. So a value rematerialised from it is not merged with the forward pass's,
// and not computed before those cotangents are. Without the second a compiler may
// rematerialise early, and keep the result live.
func (t *tape) waiting(x *ir.Value) *ir.Value {
	operands := []*ir.Value{x}
	if t.after != nil {
		operands = append(operands, t.after)
	}
	y := t.b.Emit(ir.OptimizationBarrier, operands, nil, nil, ir.Types(operands)).Results[0]
	y.Name, y.Sharding = x.Name, x.Sharding
	return y
}

// continues reports whether the initial value of p is f(-1), so that f gives it too.
func (t *tape) continues(p *replay) bool {
	return !saved(p.next) && t.sameAt(p.init, p.next, -1)
}

// sameAt reports whether x, from outside of t's loop, has the value that y of its
// body has in iteration n.
func (t *tape) sameAt(x, y *ir.Value, n int) bool {
	if x == y {
		return true
	}
	if want, ok := t.numberAt(y, n); ok {
		l := ir.ConstantOf(x)
		return l != nil && l.Type.Equal(y.Type) && l.Int(0) == int64(want)
	}
	if x.Def == nil || y.Def == nil || !t.local[y] || x.Index != y.Index || len(y.Def.Regions) > 0 {
		return false
	}
	any := func(*facts.Key, *ir.Value) {}
	var a, b facts.Key
	facts.WriteKey(&a, x.Def, any)
	facts.WriteKey(&b, y.Def, any)
	if a.String() != b.String() {
		return false
	}
	for i, v := range y.Def.Operands {
		if !t.sameAt(x.Def.Operands[i], v, n) {
			return false
		}
	}
	return true
}

// numberAt is the integer value of the scalar v of the body in iteration n, if it
// follows from n by sums and products.
func (t *tape) numberAt(v *ir.Value, n int) (int, bool) {
	if v == t.scan.Regions[0].Args[0] {
		return n, true
	}
	if v.Type.Rank() != 0 || !v.Type.Elem.IsInt() || v.Def == nil {
		return 0, false
	}
	if l := ir.ConstantOf(v); l != nil {
		return int(l.Int(0)), true
	}
	if len(v.Def.Operands) != 2 || !t.local[v] {
		return 0, false
	}
	x, okX := t.numberAt(v.Def.Operands[0], n)
	y, okY := t.numberAt(v.Def.Operands[1], n)
	switch v.Def.Kind {
	case ir.Add:
		return x + y, okX && okY
	case ir.Subtract:
		return x - y, okX && okY
	case ir.Multiply:
		return x * y, okX && okY
	}
	return 0, false
}

// dontCare reports whether the elements of v are never read.
func dontCare(v *ir.Value) bool {
	for v.Def != nil && v.Def.Kind == ir.ShardingConstraint {
		v = v.Def.Operands[0]
	}
	return v.Def != nil && v.Def.Attrs.Has(ir.KeyDontCare)
}
