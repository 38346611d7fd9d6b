package partition

import (
	"slices"

	"ppc/ir"
	"ppc/passes/layout"
)

// A search for how to compute an op finds what an earlier one has found that had the same
// to go by: that for the op in an earlier walk, or that for another op which is alike, as
// those of the layers of a model are. What a search asks is kept with what it decides, and
// the answers. Where these are still the same, so is the decision, without a search.

// A decision is how an op was computed where its results were wanted in some layouts.
type decision struct {
	want   []layout.Layout
	still  []ir.AxisRef // along which devices had different values
	made   assignment
	copies []copiesSeen
	got    []gotSeen
	deep   bool // it depends on how operands are computed
}

// A seenValue is a value that a search asked of: an operand of the op, whichever op that
// is, or v where that is not nil.
type seenValue struct {
	operand int
	v       *ir.Value
}

// in is the value that s is for op.
func (s seenValue) in(op *ir.Op) *ir.Value {
	if s.v != nil {
		return s.v
	}
	return op.Operands[s.operand]
}

// copiesSeen are the layouts in which a value was at hand when an op was decided.
type copiesSeen struct {
	seenValue
	at []valueCopy // without the values themselves
}

// A gotSeen is whether another op got a value in a layout.
type gotSeen struct {
	seenValue
	at  layout.Layout
	got bool
}

// maxDecisions bounds the decisions that are known of ops that are alike.
const maxDecisions = 16

// classOf is the class of op, if what is decided for one of it holds for all.
func (p *chooser) classOf(op *ir.Op) (c layout.Class, ok bool) {
	if p.alike == nil {
		return c, false
	}
	for _, v := range op.Results {
		if p.combined[v.ID] != nil || len(p.deferred[v.ID]) > 0 || len(p.merged[v.ID]) > 0 {
			return c, false
		}
	}
	return p.program.classOf(op, p.layoutOf, func(v *ir.Value) bool { return p.free[v.ID] })
}

// remember is what was decided for op where that is what a search would find, and what do
// finds, which is to be remembered, elsewhere.
func (p *chooser) remember(op *ir.Op, want []layout.Layout, do func() *assignment) *assignment {
	own := p.decisions[op]
	class, classed := p.classOf(op)
	alike := p.alike[class]
	for _, known := range [][]*decision{own, alike} {
		for _, d := range known {
			if d.holds(p, op, want) {
				p.wasTold(op, d)
				return d.assignment()
			}
		}
	}
	d := &decision{want: want, still: p.resharder.Still}
	p.asking = d
	p.askings++
	a := do()
	p.asking = nil
	d.made = *a
	if classed && d.ofOperands(op) {
		if len(p.alike) == layout.MaxClasses && alike == nil {
			clear(p.alike)
		}
		if len(alike) == maxDecisions {
			alike = alike[1:]
		}
		p.alike[class] = append(alike, d)
	} else if i := slices.IndexFunc(own, func(o *decision) bool { return o.meant(p, want) }); i >= 0 {
		own[i] = d
	} else {
		p.decisions[op] = append(own, d)
	}
	p.wasTold(op, d)
	return d.assignment()
}

// ofOperands makes d one for all ops like op, and reports whether it can be: whether the
// search has asked of nothing but the operands.
func (d *decision) ofOperands(op *ir.Op) bool {
	other := func(s seenValue) bool { return !slices.Contains(op.Operands, s.v) }
	if d.deep || slices.ContainsFunc(d.copies, func(s copiesSeen) bool { return other(s.seenValue) }) ||
		slices.ContainsFunc(d.got, func(s gotSeen) bool { return other(s.seenValue) }) {
		return false
	}
	of := func(s *seenValue) { *s = seenValue{operand: slices.Index(op.Operands, s.v)} }
	for i := range d.copies {
		of(&d.copies[i].seenValue)
	}
	for i := range d.got {
		of(&d.got[i].seenValue)
	}
	return true
}

// assignment is what was decided: op's to change, as far as its results go.
func (d *decision) assignment() *assignment {
	a := d.made
	a.results = slices.Clone(a.results)
	return &a
}

// meant reports whether d is what was decided for want, whatever the answers were.
func (d *decision) meant(p *chooser, want []layout.Layout) bool {
	return slices.EqualFunc(d.want, want, layout.Layout.Equal) && slices.Equal(d.still, p.resharder.Still)
}

// holds reports whether a search for op and want would have the answers that d had.
func (d *decision) holds(p *chooser, op *ir.Op, want []layout.Layout) bool {
	if !d.meant(p, want) {
		return false
	}
	for _, s := range d.copies {
		if !slices.EqualFunc(s.at, p.copies[s.in(op).ID], valueCopy.alike) {
			return false
		}
	}
	for _, s := range d.got {
		if p.known.gotBy(s.in(op), s.at, p.home, p.user) != s.got {
			return false
		}
	}
	return true
}

// alike reports whether c and o are copies of a value in the same layout.
func (c valueCopy) alike(o valueCopy) bool {
	return c.by == o.by && c.at.Equal(o.at) && slices.Equal(c.unreduced, o.unreduced)
}

// atHand are the copies of v, for a decision.
func (p *chooser) atHand(v *ir.Value) []valueCopy {
	copies := p.copies[v.ID]
	if d := p.asking; d != nil && p.asked[v.ID] != p.askings {
		p.asked[v.ID] = p.askings
		seen := slices.Clone(copies)
		for i := range seen {
			seen[i].v = nil
		}
		d.copies = append(d.copies, copiesSeen{seenValue{v: v}, seen})
	}
	return copies
}

// gotAnyway reports whether an op other than the one being walked, in the same
// block, gets v in the given layout.
func (p *chooser) gotAnyway(v *ir.Value, at layout.Layout) bool {
	seen := gotSeen{seenValue{v: v}, at, p.known.gotBy(v, at, p.home, p.user)}
	if d := p.asking; d != nil {
		d.got = append(d.got, seen)
	} else {
		p.wasTold(nil, &decision{got: []gotSeen{seen}})
	}
	return seen.got
}

// wasTold notes what this walk was told for the decision d of op.
func (p *chooser) wasTold(op *ir.Op, d *decision) {
	if len(d.got) > 0 {
		p.told = append(p.told, answers{p.user, p.home, op, d})
	}
}
