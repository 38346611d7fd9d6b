package verify

import (
	"slices"
	"sync/atomic"

	"ppc/internal/split"
	"ppc/ir"
)

// long is how many ops without regions must follow one another to be checked in parts.
const long = 1 << 13

// straight checks the first of ops, those of parent, as long as they have no regions and
// another op follows, if there are many of them, and returns how many it has checked.
//
// They are checked in parts at the same time: first the parts define their results, then
// each op is checked as [verifier.op] does, and sees those that are defined before it.
func (v *verifier) straight(ops []*ir.Op, parent *ir.Op) int {
	if len(ops) <= v.long {
		return 0
	}
	n := slices.IndexFunc(ops[:len(ops)-1], func(op *ir.Op) bool { return op == nil || len(op.Regions) > 0 })
	if n < 0 {
		n = len(ops) - 1
	}
	parts := split.Parts(n, v.long/2)
	if n < v.long || len(parts) == 1 {
		return 0
	}
	v.inParts = true
	checkers := make([]verifier, len(parts))
	split.Do(parts, func(p split.Part) {
		c := &checkers[p.Number]
		*c = *v
		c.errs = &Errors{fn: v.errs.fn}
		for i, op := range ops[p.From:p.To] {
			c.defineInParts(op, v.ops+int32(p.From+i)+1)
		}
	})
	split.Do(parts, func(p split.Part) {
		c := &checkers[p.Number]
		for i, op := range ops[p.From:p.To] {
			c.limit = v.ops + int32(p.From+i) + 1
			c.op(op)
			c.position(op, false, parent)
		}
	})
	for i := range checkers {
		v.errs.join(checkers[i].errs)
	}
	v.ops += int32(n)
	return n
}

// defineInParts is define of the results of op, the one of this number, while others
// define theirs.
func (v *verifier) defineInParts(op *ir.Op, number int32) {
	for _, x := range op.Results {
		switch {
		case x == nil: // the check of op says so
		case x.ID <= 0 || int(x.ID) >= len(v.defined) || !atomic.CompareAndSwapInt32(&v.defined[x.ID], 0, number):
			v.errs.add(op, ir.NewRule("structure-3", "value %q has an ID that no value of its own has", x.Name))
		default:
			v.visible[x.ID], v.level[x.ID] = x, v.inside
		}
	}
}

// join adds what has been found in the next part of a function.
func (e *Errors) join(part *Errors) {
	e.append(part.List...)
	e.More += part.More
	for _, op := range part.calls[e.fn] {
		e.runs(op)
	}
}
