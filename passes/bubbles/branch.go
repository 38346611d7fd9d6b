package bubbles

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/pass"
	"ppc/passes/rewrite"
)

// A branch is the ops of one block that are skipped where a predicate is false.
// They are done in turns, each of which becomes an if: an op that depends on a
// result of a turn's if is of a later turn.
type branch struct {
	*sequence
	pred   *ir.Value
	leaves []*member // the ops outside of the branch that read its results, as operand 1
	work   []*member // what is in the branch, in order
	bubble bool      // a residual is not read where pred is false
	stays  []*member // ops that only the branch reads and that cannot be moved into it
}

// skip moves the ops whose results are used only where p holds into ifs.
func (q *sequence) skip(p predicate) error {
	w := &branch{sequence: q, pred: p.truth, leaves: slices.Clone(p.selects), bubble: p.bubble}
	if p.bubble {
		w.leaves = append(w.leaves, q.rows...)
	}
	w.leaves = slices.DeleteFunc(w.leaves, func(l *member) bool { return q.members[l.at] != l })
	slices.SortFunc(w.leaves, inOrder)
	w.choose()
	for turn, work := range w.turns() {
		if !w.worthwhile(turn, work) {
			for _, x := range work {
				x.in = nil
			}
			continue
		}
		if op := w.together(); op != nil {
			return pass.Errorf(op, "pipeline: skip_bubbles = true: layer %s has a %s over the mesh axis stage, in which all stages take part, those in a bubble, too; leave skip_bubbles out", op.Origin.Layer(), op.Name())
		}
		w.build(turn, work)
	}
	return nil
}

// choose finds the ops whose every reader is in the branch, or a leaf.
func (w *branch) choose() {
	for _, l := range w.leaves {
		w.read(l.op.Operands[1])
	}
	for i := 0; i < len(w.work); i++ {
		x := w.work[i]
		for k, v := range x.reads {
			if k != 1 || !w.leaf(x) {
				w.read(v)
			}
		}
	}
	slices.SortFunc(w.work, inOrder)
	slices.SortFunc(w.stays, inOrder)
}

// leaf reports whether operand 1 of x may be any value where the predicate is
// false: x selects it by the predicate, or, where false is a bubble, writes it as the
// row of a residual. A row of several iterations, as an unrolled loop or a loop over
// repeats writes, does not qualify, since the predicate of one iteration does not
// hold for the others.
func (w *branch) leaf(x *member) bool { return x.truth == w.pred || x.row && w.bubble }

// read records that a leaf or an op of the branch reads v.
func (w *branch) read(v *ir.Value) {
	x := w.maker(v)
	if x == nil || x.op.Kind == ir.Constant {
		return
	}
	x.meet(w)
	if x.left--; x.left > 0 {
		return
	}
	pure := x.op.Kind.Has(ir.Pure) || x.op.Kind.Has(ir.Collective) || facts.IsPlacement(x.op) || x.op.Kind == ir.OptimizationBarrier
	if !pure || w.exchanges(x.op, w.stage()) {
		w.stays = append(w.stays, x)
		return
	}
	x.in = w
	w.work = append(w.work, x)
}

// turns is the ops of each turn, in order.
func (w *branch) turns() (turns [][]*member) {
	w.earliest()
	w.latest()
	for _, x := range w.work {
		for len(turns) <= x.turn {
			turns = append(turns, nil)
		}
		turns[x.turn] = append(turns[x.turn], x)
	}
	return turns
}

// earliest finds the first turn in which each op of the branch can be done, and the
// number of turns that must precede each op between the first leaf and the last.
func (w *branch) earliest() {
	first, last := len(w.members), -1
	for _, l := range w.leaves {
		if x := w.leavesBy(l); x != nil {
			first, last = min(first, l.at), l.at
		}
	}
	if x := w.maker(w.pred); x != nil {
		last = max(last, x.at)
	}
	for at := first; at <= last; at++ {
		x := w.members[at]
		if x == nil {
			continue
		}
		x.meet(w)
		for _, v := range x.reads {
			y := w.maker(v)
			switch {
			case y == nil || y.seen != w:
			case y.in == w && x.in != w:
				x.turn = max(x.turn, y.turn+1)
			default:
				x.turn = max(x.turn, y.turn)
			}
		}
	}
}

// latest moves each op to the first turn that reads it: its result is not live
// between turns, and rematerialised values are not computed early.
func (w *branch) latest() {
	for _, l := range w.leaves {
		if x := w.leavesBy(l); x != nil {
			x.until = x.turn
		}
	}
	for _, x := range slices.Backward(w.work) {
		x.turn = x.until
		for _, v := range x.reads {
			if y := w.maker(v); y != nil && y.in == w {
				y.until = min(y.until, x.turn)
			}
		}
	}
}

// leavesBy is the op of the branch that l reads; nil if there is none.
func (w *branch) leavesBy(l *member) *member {
	if x := w.maker(l.op.Operands[1]); l.in != w && x != nil && x.in == w {
		return x
	}
	return nil
}

// waits reports whether the op that defines v depends on a result of the given
// turn.
func (w *branch) waits(v *ir.Value, turn int) bool {
	x := w.maker(v)
	return x != nil && x.seen == w && x.turn > turn
}

// worthwhile reports whether the ops of a turn cost enough to be worth an if, and
// may be in one.
func (w *branch) worthwhile(turn int, work []*member) bool {
	if x := w.maker(w.pred); x != nil && x.in == w || w.waits(w.pred, turn) {
		return false
	}
	return slices.ContainsFunc(work, func(x *member) bool {
		return x.op.Kind.Has(ir.Costly) || x.op.Kind.Has(ir.Loop) || x.op.Kind.Has(ir.Collective)
	})
}

// together is a collective of a layer over the stage axis, which all stages have to
// execute; nil if there is none.
func (w *branch) together() *ir.Op {
	for _, x := range w.stays {
		if w.exchanges(x.op, w.stage()) && x.op.Origin.Layer() != "" {
			return x.op
		}
	}
	return nil
}

// A leaving is a result of an if: v in the one branch, other in the other, which
// may be any value if it is nil.
type leaving struct {
	v, other *ir.Value
	by       *member // the select that it replaces
}

// leaving is the results of a turn's if, each value once unless several selects
// read it, and the other readers of each.
func (w *branch) leaving(turn int) (out []leaving, readers []*member) {
	left := make(map[*ir.Value]bool)
	for _, l := range w.leaves {
		if x := w.leavesBy(l); x == nil || x.turn != turn {
			continue
		}
		if l.truth == nil || w.waits(l.op.Operands[2], turn) {
			readers = append(readers, l)
			continue
		}
		out = append(out, leaving{l.op.Operands[1], l.op.Operands[2], l})
		left[l.op.Operands[1]] = true
	}
	for _, x := range w.work {
		if x.turn > turn {
			readers = append(readers, x)
		}
	}
	for _, x := range readers {
		for _, v := range x.reads {
			if y := w.maker(v); y != nil && y.in == w && y.turn == turn && !left[v] {
				out = append(out, leaving{v: v})
				left[v] = true
			}
		}
	}
	return out, readers
}

// build moves the ops of a turn into an if, behind its operands and before its
// readers.
func (w *branch) build(turn int, work []*member) {
	out, readers := w.leaving(turn)
	then, otherwise, head := new(ir.Block), new(ir.Block), new(ir.Block)
	for _, x := range work {
		then.Ops = append(then.Ops, x.ops...)
	}
	b := &ir.Builder{Func: w.f, Block: head, Origin: then.Ops[0].Origin}
	pred, in := b.Reshape(w.pred), b.In(otherwise)
	var types []*ir.Type
	var yes, no []*ir.Value
	for _, l := range out {
		yes, no, types = append(yes, l.v), append(no, l.other), append(types, l.v.Type)
		if l.other == nil {
			v := in.Broadcast(in.Splat(ir.Tensor(l.v.Type.Elem), 0), l.v.Type.Shape)
			v.Def.Attrs.Set(ir.KeyDontCare, ir.Unit{})
			no[len(no)-1] = v
		}
	}
	in.Emit(ir.Return, no, nil, nil, nil)
	b.In(then).Emit(ir.Return, yes, nil, nil, nil)
	x := &member{q: w.sequence, op: b.Emit(ir.If, []*ir.Value{pred}, nil, []*ir.Block{then, otherwise}, types), ops: head.Ops, seen: w, turn: turn}
	w.connect(x, work, out, readers)
	w.arrange(x, work, out)
}

// connect updates the uses of the members: x, the if, reads the operands of work,
// and the readers of work read x.
func (w *branch) connect(x *member, work []*member, out []leaving, readers []*member) {
	x.reads = []*ir.Value{w.pred}
	if y := w.maker(w.pred); y != nil {
		y.uses++
	}
	for _, y := range work {
		for _, v := range y.reads {
			if z := w.maker(v); z != nil && (z.in != w || z.turn != x.turn) {
				x.reads = append(x.reads, v)
			}
		}
	}
	result := make(map[*ir.Value]*ir.Value)
	for i, l := range out {
		if l.by != nil {
			rewrite.Adopt(x.op, i, l.by.op.Result())
			x.reads = append(x.reads, l.other)
			x.uses += l.by.uses
			if y := w.maker(l.by.op.Operands[0]); y != nil {
				y.uses--
			}
		}
		r := x.op.Results[i]
		r.Name = l.v.Name
		w.define(r, x)
		if result[l.v] == nil {
			result[l.v] = r
		}
	}
	replace := func(vs []*ir.Value) {
		for i, v := range vs {
			if r := result[v]; r != nil {
				vs[i] = r
			}
		}
	}
	for _, y := range readers {
		for _, v := range y.reads {
			if result[v] != nil {
				x.uses++
			}
		}
		replace(y.reads)
		(&ir.Block{Ops: y.ops}).Walk(func(op *ir.Op) { replace(op.Operands) })
	}
}

// arrange replaces work by x in the sequence. Ops that depend on x and precede an
// operand of x move behind x.
func (w *branch) arrange(x *member, work []*member, out []leaving) {
	lo, hi := work[0].at, work[len(work)-1].at
	if y := w.maker(w.pred); y != nil {
		hi = max(hi, y.at)
	}
	for _, l := range out {
		if l.by == nil {
			continue
		}
		w.members[l.by.at] = nil
		if y := w.maker(l.other); y != nil {
			hi = max(hi, y.at)
		}
	}
	var before, after []*member
	for _, y := range w.members[lo : hi+1] {
		switch {
		case y == nil || y.in == w && y.turn == x.turn:
		case y.seen == w && y.turn > x.turn:
			after = append(after, y)
		default:
			before = append(before, y)
		}
	}
	clear(w.members[lo : hi+1])
	for i, y := range slices.Concat(before, []*member{x}, after) {
		w.members[lo+i], y.at = y, lo+i
	}
}
