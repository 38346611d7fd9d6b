package verify

import (
	"math"
	"sync/atomic"

	"ppc/internal/split"
	"ppc/ir"
)

// long is how many ops a block must have to be checked in parts.
const long = 1 << 13

// A use is one of a value that another part is to define, in so many regions that see
// nothing from outside.
type use struct {
	value *ir.Value
	level int32
}

// inParts checks ops, those of a block of parent, in parts at the same time, if there are
// many, and reports whether it has. A part sees what is defined in it and before all of
// them; its uses of what others define are checked when all have been.
func (v *verifier) inParts(ops []*ir.Op, parent *ir.Op) bool {
	if len(ops) <= v.long {
		return false
	}
	parts := split.Parts(len(ops), v.long/2)
	if len(parts) == 1 {
		return false
	}
	if n := len(parts) - len(v.checker.parts); n > 0 {
		v.checker.parts = append(v.checker.parts, make([]known, n)...)
	}
	checkers := make([]verifier, len(parts))
	split.Do(parts, func(p split.Part) {
		c := &checkers[p.Number]
		*c = *v
		c.errs, c.blocks = &Errors{fn: v.errs.fn}, make(map[*ir.Block]bool)
		c.apart, c.part, c.before, c.long = true, v.part+1+int32(p.Number), v.part, math.MaxInt
		c.known = &v.checker.parts[p.Number]
		c.form.misfit = c.form.misfit || len(v.errs.List) > 0
		c.known.reserve(p.To - p.From)
		c.ops(ops[p.From:p.To], parent, p.To == len(ops))
	})
	for i := range checkers {
		c := &checkers[i]
		v.errs.join(c.errs)
		v.form.misfit = v.form.misfit || c.form.misfit
		for b := range c.blocks {
			v.errs.unordered = v.errs.unordered || v.blocks[b]
			v.blocks[b] = true
		}
		for _, u := range c.outside {
			at := &(*v.values)[u.value.ID]
			v.errs.unordered = v.errs.unordered || at.value != u.value || at.level != u.level || at.part == 0 || at.part >= c.part
		}
	}
	v.errs.unordered = v.errs.unordered || len(v.errs.List) > 0
	v.part += int32(len(parts))
	v.before = v.part
	return true
}

// later reports whether x, which is not seen, may be what another part defines, and then
// notes its use.
func (v *verifier) later(x *ir.Value) bool {
	if !v.apart || x == nil || x.ID <= 0 || int(x.ID) >= len(*v.values) {
		return false
	}
	v.outside = append(v.outside, use{x, v.inside})
	return true
}

// claim makes what is at a place defined in this part. It reports false where it has been
// defined.
func (v *verifier) claim(at *place) bool {
	if v.apart {
		return atomic.CompareAndSwapInt32(&at.part, 0, v.part)
	}
	if at.part > 0 {
		return false
	}
	at.part = v.part
	return true
}

// join adds what has been found in the next part of a function.
func (e *Errors) join(part *Errors) {
	e.append(part.List...)
	e.More += part.More
	for _, op := range part.calls[e.fn] {
		e.runs(op)
	}
}
