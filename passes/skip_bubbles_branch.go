package passes

import (
	"slices"

	"ppc/ir"
)

// A branch is the work of one block that is left out where a truth value is
// false, while it is chosen.
type branch struct {
	*skipper
	b     *ir.Block
	pred  *ir.Value
	in    map[*ir.Op]bool // goes into the branch
	stays map[*ir.Op]bool // could not be moved
	owner map[*ir.Value]*ir.Op
	users map[*ir.Value][]use // by ops of the block
	reads map[*ir.Op][]*ir.Value
	exits []use // through which work leaves the branch
}

// A use is operand at of op, or, where at is negative, in a region of op.
type use struct {
	op *ir.Op
	at int
}

// skip moves the work in b that counts only where p holds into an if.
func (s *skipper) skip(b *ir.Block, p *ir.Value) error {
	w := &branch{skipper: s, b: b, pred: p, stays: make(map[*ir.Op]bool)}
	w.index()
	for {
		w.choose()
		late := w.late()
		if late == nil {
			break
		}
		w.stays[late] = true
	}
	if !w.worthwhile() {
		return nil
	}
	if op := w.together(); op != nil {
		return errorf(op, "pipeline: skip_bubbles = true: layer %s has a %s over the mesh axis stage, in which all stages take part, those in a bubble, too; leave skip_bubbles out", op.Origin.Layer, op.Name())
	}
	w.build()
	return nil
}

// together is an op of a layer that all stages have to execute together; nil
// for none.
func (w *branch) together() *ir.Op {
	for _, op := range w.b.Ops {
		if w.stays[op] && w.exchanges(op, w.stage()) && op.Origin != nil && op.Origin.Layer != "" {
			return op
		}
	}
	return nil
}

// index finds who reads what.
func (w *branch) index() {
	w.owner, w.users, w.reads = make(map[*ir.Value]*ir.Op), make(map[*ir.Value][]use), make(map[*ir.Op][]*ir.Value)
	for _, op := range w.b.Ops {
		for _, v := range op.Results {
			w.owner[v] = op
		}
		captures := op.Captures()
		w.reads[op] = slices.Concat(op.Operands, captures)
		for i, v := range op.Operands {
			w.users[v] = append(w.users[v], use{op, i})
		}
		for _, v := range captures {
			w.users[v] = append(w.users[v], use{op, -1})
		}
	}
}

// exit reports whether operand i of op is one through which work that is left
// out may leave: what is selected where the predicate holds, and the row of a
// residual. A row of several iterations, as an unrolled loop or a loop over
// repeats writes, has some that count where the predicate of one does not hold.
func (w *branch) exit(op *ir.Op, i int) bool {
	return i == 1 && (truth(op) == w.pred || op.Kind == ir.DynamicUpdateSlice && op.Attrs.Has("pp.iteration"))
}

// choose finds the ops whose every reader is in the branch, or an exit. One walk
// from the end is enough, since readers stand after what they read.
func (w *branch) choose() {
	w.in, w.exits = make(map[*ir.Op]bool), nil
	for _, op := range slices.Backward(w.b.Ops) {
		if w.stays[op] || op.Kind.Has(ir.Terminator) || op.Kind == ir.Constant || len(op.Results) == 0 || !w.onlyRead(op) {
			continue
		}
		pure := op.Kind.Has(ir.Pure) || op.Kind.Has(ir.Collective) || placed(op) || op.Kind == ir.OptimizationBarrier
		if !pure || w.exchanges(op, w.stage()) {
			w.stays[op] = true
			continue
		}
		w.in[op] = true
	}
	for _, op := range w.b.Ops {
		for i, v := range op.Operands {
			if !w.in[op] && w.exit(op, i) && w.in[w.owner[v]] {
				w.exits = append(w.exits, use{op, i})
			}
		}
	}
}

// onlyRead reports whether nothing but the branch and exits reads op.
func (w *branch) onlyRead(op *ir.Op) bool {
	some := false
	for _, v := range op.Results {
		for _, u := range w.users[v] {
			some = true
			if !w.in[u.op] && (u.at < 0 || !w.exit(u.op, u.at)) {
				return false
			}
		}
	}
	return some
}

// after is the ops outside of the branch that depend on it.
func (w *branch) after() map[*ir.Op]bool {
	after := make(map[*ir.Op]bool)
	for _, l := range w.exits {
		after[l.op] = true
	}
	for _, op := range w.b.Ops {
		if !w.in[op] && slices.ContainsFunc(w.reads[op], func(v *ir.Value) bool { return after[w.owner[v]] }) {
			after[op] = true
		}
	}
	return after
}

// late is an op in the branch that depends on what leaves it; nil for none.
func (w *branch) late() *ir.Op {
	after := w.after()
	for _, op := range w.b.Ops {
		if w.in[op] && slices.ContainsFunc(w.reads[op], func(v *ir.Value) bool { return after[w.owner[v]] }) {
			return op
		}
	}
	return nil
}

// worthwhile reports whether the branch has work that is worth a branch.
func (w *branch) worthwhile() bool {
	for _, op := range w.b.Ops {
		if w.in[op] && (op.Kind == ir.DotGeneral || op.Kind == ir.While || op.Kind.Has(ir.Collective)) {
			at := w.owner[w.pred]
			return !w.in[at] && !w.after()[at]
		}
	}
	return false
}

// build puts the branch between the ops that it does not depend on and those
// that depend on it.
func (w *branch) build() {
	after := w.after()
	var before, later []*ir.Op
	then, otherwise := new(ir.Block), new(ir.Block)
	for _, op := range w.b.Ops {
		switch {
		case w.in[op]:
			then.Ops = append(then.Ops, op)
		case after[op] || op.Kind.Has(ir.Terminator):
			later = append(later, op)
		default:
			before = append(before, op)
		}
	}
	head := &ir.Block{Ops: before}
	b := &ir.Builder{Func: w.f, Block: head, Origin: then.Ops[0].Origin}
	pred := b.Reshape(w.pred)
	var work, other []*ir.Value
	var types []*ir.Type
	result := make(map[use]int)
	for _, l := range w.exits {
		v := l.op.Operands[l.at]
		var instead *ir.Value
		if l.op.Kind == ir.Select && !after[w.owner[l.op.Operands[2]]] {
			instead = l.op.Operands[2]
		}
		k := -1
		for i := range work {
			if work[i] == v && other[i] == instead {
				k = i
			}
		}
		if k < 0 {
			k = len(work)
			work, other, types = append(work, v), append(other, instead), append(types, v.Type)
		}
		result[l] = k
	}
	in := b.In(otherwise)
	for i, v := range other {
		if v == nil {
			other[i] = in.Broadcast(in.Splat(ir.Tensor(types[i].Elem), 0), types[i].Shape)
			other[i].Def.Attrs.Set("pp.dont_care", ir.Unit{})
		}
	}
	in.Emit(ir.Return, other, nil, nil, nil)
	b.In(then).Emit(ir.Return, work, nil, nil, nil)
	branch := b.Emit(ir.If, []*ir.Value{pred}, nil, []*ir.Block{then, otherwise}, types)
	sub := w.f.NewSubst()
	gone := make(map[*ir.Op]bool)
	for _, l := range w.exits {
		v := branch.Results[result[l]]
		v.Name = l.op.Operands[l.at].Name
		if l.op.Kind == ir.Select && !after[w.owner[l.op.Operands[2]]] {
			sub[l.op.Result().ID], gone[l.op] = v, true
		} else {
			l.op.Operands[l.at] = v
		}
	}
	later = slices.DeleteFunc(later, func(op *ir.Op) bool { return gone[op] })
	w.b.Ops = append(head.Ops, later...)
	sub.ApplyBlock(w.b)
}
