package bubbles

import (
	"math"
	"slices"

	"ppc/ir"
)

// A sequence is the ops of one block, some of which are being replaced by branches.
type sequence struct {
	*skipper
	members []*member // in order; nil where one has moved into a branch
	rows    []*member // those that write a row of a residual
}

// A member is an op of a sequence.
type member struct {
	q     *sequence
	op    *ir.Op
	ops   []*ir.Op // op, after the ops that only op reads
	at    int      // its place in the sequence
	reads []*ir.Value
	uses  int       // how often its results are read in the sequence
	truth *ir.Value // by which it selects all elements, if it does
	row   bool

	// The following are of the branch seen.
	seen  *branch
	in    *branch // that it is in
	left  int     // uses that are neither in the branch nor leaves
	turn  int     // of the branch in which it is done, or the number of turns that precede it
	until int     // the first turn that reads it
}

// A predicate is a scalar of type i1, and the selects of a block by it.
type predicate struct {
	truth   *ir.Value
	selects []*member
	bubble  bool // false is a bubble: nothing that is computed in the iteration counts
}

// predicates is the predicates of b that may differ along the mesh axis stage, and
// along no other.
func (s *skipper) predicates(b *ir.Block) (preds []*predicate) {
	found := make(map[*ir.Value]bool)
	for _, op := range b.Ops {
		if p := truth(op); p != nil && !found[p] && s.onWhich(p) == s.stage() {
			found[p] = true
			preds = append(preds, &predicate{truth: p})
		}
	}
	return preds
}

// sequenceOf is the ops of b; it adds to each of preds its selects.
func (s *skipper) sequenceOf(b *ir.Block, preds []*predicate) *sequence {
	q := &sequence{skipper: s}
	by := make(map[*ir.Value]*predicate)
	for _, p := range preds {
		by[p.truth] = p
	}
	for i, op := range b.Ops {
		x := &member{q: q, op: op, ops: b.Ops[i : i+1 : i+1], at: i, reads: op.Operands, truth: truth(op)}
		if len(op.Regions) > 0 {
			x.reads = slices.Concat(op.Operands, op.Captures())
		}
		if x.row = op.Kind == ir.DynamicUpdateSlice && op.Attrs.Has(ir.KeyIteration); x.row {
			q.rows = append(q.rows, x)
		}
		if p := by[x.truth]; p != nil {
			p.selects = append(p.selects, x)
			p.bubble = p.bubble || op.Attrs.Has(ir.KeyBubble)
		}
		for _, v := range x.reads {
			if y := q.maker(v); y != nil {
				y.uses++
			}
		}
		for _, v := range op.Results {
			q.define(v, x)
		}
		q.members = append(q.members, x)
	}
	return q
}

// ops is the ops of the sequence, branches included.
func (q *sequence) ops() (ops []*ir.Op) {
	for _, x := range q.members {
		if x != nil {
			ops = append(ops, x.ops...)
		}
	}
	return ops
}

// maker is the member that defines v; nil if v comes from outside.
func (q *sequence) maker(v *ir.Value) *member {
	if int(v.ID) < len(q.def) && q.def[v.ID] != nil && q.def[v.ID].q == q {
		return q.def[v.ID]
	}
	return nil
}

func (q *sequence) define(v *ir.Value, x *member) {
	if n := int(v.ID) + 1 - len(q.def); n > 0 {
		q.def = append(q.def, make([]*member, n)...)
	}
	q.def[v.ID] = x
}

// meet resets the fields of x that are of a branch, for w.
func (x *member) meet(w *branch) {
	if x.seen != w {
		x.seen, x.left, x.turn, x.until = w, x.uses, 0, math.MaxInt
	}
}

func inOrder(x, y *member) int { return x.at - y.at }
