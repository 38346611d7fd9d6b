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
	got       map[ir.ID][]gotCopy // by ID
}

// A gotCopy is a value in a layout in which ops of a block get it.
type gotCopy struct {
	at    layout.Layout
	block *ir.Block
	by    [2]*ir.Op // the first two of the ops: one, at least, is not the one that asks
}

// answers are what a walk was told of copies, for one op in a block.
type answers struct {
	op    *ir.Op
	block *ir.Block
	of    *ir.Op // that was decided
	by    *decision
}

// maxWalks bounds the walks; each is right, and a later one knows more.
const maxWalks = 8

// learn walks the program until what is to be learned would change nothing, and
// returns what the last walk has built, of which alone it warns.
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
		p.learned = lessons{unreduced: maps.Clone(known.unreduced), got: make(map[ir.ID][]gotCopy)}
		var warnings []*pass.Error
		if c.Wants() {
			p.warn = func(e *pass.Error) { warnings = append(warnings, e) }
		}
		p.run()
		if walk == maxWalks || p.again() {
			for _, e := range warnings {
				c.Warn(e)
			}
			return p.body
		}
		known = p.learned
	}
}

// again reports whether another walk, with what this one has learned, would be the
// same: it would be told the same.
func (p *chooser) again() bool {
	return maps.EqualFunc(p.learned.unreduced, p.known.unreduced, slices.Equal) && !slices.ContainsFunc(p.told, func(a answers) bool {
		return slices.ContainsFunc(a.by.got, func(s gotSeen) bool { return p.learned.gotBy(s.in(a.of), s.at, a.block, a.op) != s.got })
	})
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
	known := p.learned.got[v.ID]
	i := slices.IndexFunc(known, func(c gotCopy) bool { return c.block == p.home && c.at.Equal(at) })
	switch {
	case i < 0:
		p.learned.got[v.ID] = append(known, gotCopy{at, p.home, [2]*ir.Op{p.user}})
	case known[i].by[0] != p.user && known[i].by[1] == nil:
		known[i].by[1] = p.user
	}
}

// gotBy reports whether an op of the block other than op gets v in the given layout.
func (l lessons) gotBy(v *ir.Value, at layout.Layout, block *ir.Block, op *ir.Op) bool {
	return slices.ContainsFunc(l.got[v.ID], func(c gotCopy) bool {
		return c.block == block && c.at.Equal(at) && (c.by[0] != op || c.by[1] != nil && c.by[1] != op)
	})
}
