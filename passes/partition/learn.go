package partition

import (
	"maps"
	"slices"

	"ppc/ir"
	"ppc/passes/layout"
	"ppc/passes/pass"
)

// The chooser walks the program in order and decides op by op. What it would
// have to know from further on it learns in one walk for the next: that a copy
// of a value will be needed anyway, so that an earlier op may have it for
// nothing; and that a loop's carry is a sum of partial terms, which needs to be
// reduced once, after the loop. A walk does not change the program that it is
// given, so that the next begins with the same one.

// lessons are what a walk has found, of ops and values of the given program.
type lessons struct {
	// unreduced are the axes along which terms of the sum are unreduced that a
	// result of a loop is. It only grows from walk to walk: a carry is unreduced
	// because a term is, never because it was taken to be.
	unreduced map[*ir.Value][]ir.AxisRef
	got       map[gotCopy]users
}

// A gotCopy is a value in the layout in which ops of a block get it.
type gotCopy struct {
	v     *ir.Value
	at    string
	block *ir.Block
}

// users are the first two ops that get a copy: one, at least, is not the one
// that asks.
type users [2]*ir.Op

// maxWalks bounds the walks; each is right, and a later one knows more.
const maxWalks = 8

// learn walks the program until there is nothing new to learn, and returns what
// the last walk has built, of which alone it warns.
func learn(c *pass.Context, prog *program) *ir.Block {
	return learnFrom(c, newGiven(prog), func() {})
}

// learnFrom is [learn], with something done before each walk.
func learnFrom(c *pass.Context, g *given, before func()) *ir.Block {
	known := lessons{unreduced: make(map[*ir.Value][]ir.AxisRef)}
	for walk := 1; ; walk++ {
		before()
		p := newChooser(g)
		p.known = known
		p.learned = lessons{unreduced: maps.Clone(known.unreduced), got: make(map[gotCopy]users)}
		var warnings []*pass.Error
		if c.Wants() {
			p.warn = func(e *pass.Error) { warnings = append(warnings, e) }
		}
		p.run()
		if walk == maxWalks || p.learned.equal(known) {
			for _, e := range warnings {
				c.Warn(e)
			}
			return p.body
		}
		known = p.learned
	}
}

func (l lessons) equal(o lessons) bool {
	return maps.EqualFunc(l.unreduced, o.unreduced, func(a, b []ir.AxisRef) bool { return slices.Equal(a, b) }) && maps.Equal(l.got, o.got)
}

// learnUnreduced notes that v, which flows into the result sum of a loop, is at
// hand unreduced.
func (p *chooser) learnUnreduced(v, sum *ir.Value) {
	axes := p.outside(p.unreducedAlong(v, p.deferrable(sum, p.layoutOf(sum))), p.learned.unreduced[sum])
	if len(axes) > 0 {
		p.learned.unreduced[sum] = p.sortedAxes(slices.Concat(p.learned.unreduced[sum], axes))
	}
}

// learnCopy notes that the op that is being walked gets v in a layout.
func (p *chooser) learnCopy(v *ir.Value, at layout.Layout) {
	if p.free[v.ID] || !v.Type.IsTensor() || len(p.copies[v.ID]) == 0 || p.copies[v.ID][0].at.Equal(at) {
		return
	}
	key := gotCopy{v, at.String(), p.home}
	switch by := p.learned.got[key]; {
	case by[0] == nil:
		p.learned.got[key] = users{p.user}
	case by[0] != p.user && by[1] == nil:
		p.learned.got[key] = users{by[0], p.user}
	}
}

// gotAnyway reports whether an op other than the one being walked, in the same
// block, gets v in the given layout.
func (p *chooser) gotAnyway(v *ir.Value, at layout.Layout) bool {
	if len(p.known.got) == 0 { // as in the first walk
		return false
	}
	by := p.known.got[gotCopy{v, at.String(), p.home}]
	return by[0] != nil && by[0] != p.user || by[1] != nil && by[1] != p.user
}
