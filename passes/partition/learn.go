package partition

import (
	"maps"
	"slices"

	"ppc/ir"
	"ppc/passes/layout"
	"ppc/passes/pass"
)

// The partitioner walks the program once, in order, and decides op by op. What
// it would have to know from further on it learns in one run for the next: that
// a copy of a value will be needed anyway, so that an earlier op may have it for
// nothing; and that a loop's carry is a sum of partial terms, which needs to be
// combined once, after the loop.

// lessons are what a run has found. Ops and values are those of the global
// program.
type lessons struct {
	// partial are the axes along which terms of the sum come up partial that a
	// result of a loop is. It only grows from run to run: a carry is partial
	// because a term is, never because it was taken to be.
	partial map[*ir.Value][]ir.AxisRef
	taken   map[takenCopy]takers
}

// A takenCopy is a value as the ops of a block take it.
type takenCopy struct {
	v     *ir.Value
	at    string
	block *ir.Block
}

// takers are the first two ops that take a copy: one, at least, is not the one
// that asks.
type takers [2]*ir.Op

// maxRuns bounds the runs; each is right, and a later one knows more.
const maxRuns = 8

// learn runs the partitioner until there is nothing new to learn, and returns
// the last run, of which alone it warns.
func learn(c *pass.Context, m *ir.Module, mesh *ir.Mesh, f *ir.Func) (*partitioner, error) {
	var known lessons
	plans := make(map[string]*layout.ReshardPlan)
	for run := 1; ; run++ {
		p := newPartitioner(m, mesh, f, plans)
		p.lessons = known
		p.learned = lessons{partial: maps.Clone(known.partial), taken: make(map[takenCopy]takers)}
		if p.learned.partial == nil {
			p.learned.partial = make(map[*ir.Value][]ir.AxisRef)
		}
		var warnings []*pass.Error
		if c.Wants() {
			p.warn = func(e *pass.Error) { warnings = append(warnings, e) }
		}
		if err := p.run(); err != nil {
			return nil, err
		}
		if run == maxRuns || p.learned.equal(known) {
			for _, e := range warnings {
				c.Warn(e)
			}
			return p, nil
		}
		known = p.learned
		for _, undo := range slices.Backward(p.undo) {
			undo()
		}
	}
}

func (l lessons) equal(o lessons) bool {
	return maps.EqualFunc(l.partial, o.partial, func(a, b []ir.AxisRef) bool { return slices.Equal(a, b) }) && maps.Equal(l.taken, o.taken)
}

// learnPartial notes that v, which flows into the result sum of a loop, is at
// hand as parts.
func (p *partitioner) learnPartial(v, sum *ir.Value) {
	axes := p.outside(p.partialAlong(v, p.lateOf(sum, p.layoutOf(sum))), p.learned.partial[sum])
	if len(axes) > 0 {
		p.learned.partial[sum] = p.sortedAxes(slices.Concat(p.learned.partial[sum], axes))
	}
}

// learnCopy notes that the op being partitioned takes v lying as at says.
func (p *partitioner) learnCopy(v *ir.Value, at layout.Layout) {
	if p.free[v.ID] || !v.Type.IsTensor() || len(p.copies[v.ID]) == 0 || p.copies[v.ID][0].at.Equal(at) {
		return
	}
	key := takenCopy{v, at.String(), p.home}
	switch by := p.learned.taken[key]; {
	case by[0] == nil:
		p.learned.taken[key] = takers{p.taker}
	case by[0] != p.taker && by[1] == nil:
		p.learned.taken[key] = takers{by[0], p.taker}
	}
}

// takenAnyway reports whether an op other than the one being partitioned, in
// the same block, takes v lying as at says.
func (p *partitioner) takenAnyway(v *ir.Value, at layout.Layout) bool {
	by := p.lessons.taken[takenCopy{v, at.String(), p.home}]
	return by[0] != nil && by[0] != p.taker || by[1] != nil && by[1] != p.taker
}
