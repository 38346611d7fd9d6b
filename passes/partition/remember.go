package partition

import (
	"slices"

	"ppc/ir"
	"ppc/passes/layout"
)

// A walk decides for most ops what the walk before it has decided, since it has the
// same to go by: what was asked for a decision is kept with it, and the answers. Where
// these are still the same, so is the decision, without a search.

// A decision is how an op was computed in an earlier walk, or before in this one, where
// its results were wanted in some layouts.
type decision struct {
	want   []layout.Layout
	still  []ir.AxisRef // along which devices had different values
	made   assignment
	copies []copiesSeen
	got    []gotSeen
}

// copiesSeen are the layouts in which a value was at hand when an op was decided.
type copiesSeen struct {
	v  *ir.Value
	at []valueCopy // without the values themselves
}

// A gotSeen is whether another op got a value in a layout.
type gotSeen struct {
	v   *ir.Value
	at  layout.Layout
	got bool
}

// remembered is what was decided for op where that is what a search would find.
func (p *chooser) remembered(op *ir.Op, want []layout.Layout) *assignment {
	for _, d := range p.decisions[op] {
		if d.holds(p, want) {
			p.wasTold(d.got)
			return d.assignment()
		}
	}
	return nil
}

// remember has the search for op, which do makes, note what it asks.
func (p *chooser) remember(op *ir.Op, want []layout.Layout, do func() *assignment) *assignment {
	d := &decision{want: want, still: p.resharder.Still}
	p.asking = d
	p.askings++
	a := do()
	p.asking = nil
	p.wasTold(d.got)
	d.made = *a
	known := p.decisions[op]
	i := slices.IndexFunc(known, func(o *decision) bool { return o.meant(p, want) })
	if i < 0 {
		p.decisions[op] = append(known, d)
	} else {
		known[i] = d
	}
	return d.assignment()
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

// holds reports whether a search for want would have the answers that d had.
func (d *decision) holds(p *chooser, want []layout.Layout) bool {
	if !d.meant(p, want) {
		return false
	}
	for _, s := range d.copies {
		if !slices.EqualFunc(s.at, p.copies[s.v.ID], valueCopy.alike) {
			return false
		}
	}
	for _, s := range d.got {
		if p.known.gotBy(s.v, s.at, p.home, p.user) != s.got {
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
		d.copies = append(d.copies, copiesSeen{v, seen})
	}
	return copies
}

// gotAnyway reports whether an op other than the one being walked, in the same
// block, gets v in the given layout.
func (p *chooser) gotAnyway(v *ir.Value, at layout.Layout) bool {
	seen := gotSeen{v, at, p.known.gotBy(v, at, p.home, p.user)}
	if d := p.asking; d != nil {
		d.got = append(d.got, seen)
	} else {
		p.wasTold([]gotSeen{seen})
	}
	return seen.got
}

// wasTold notes what this walk was told.
func (p *chooser) wasTold(got []gotSeen) {
	if len(got) > 0 {
		p.told = append(p.told, answers{p.user, p.home, got})
	}
}
