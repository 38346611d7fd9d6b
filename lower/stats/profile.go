package stats

import (
	"cmp"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/lower/flow"
)

// A Profile is the memory of one device while the program runs, each body of a
// loop once, and what is in it at the peak.
type Profile struct {
	Moments  []Memory  // in program order; Host is the most so far
	Holdings []Holding // at the peak, the largest first; their sum is Memory.Peak
}

// A Holding is a buffer that is live at the peak.
type Holding struct {
	Array
	Class Class
	Op    string // what made its contents; "" of an argument
	Pos   ir.Pos // of that
	Loop  string // the innermost loop around that
}

// Profile walks the main function once more.
func (s *Stats) Profile() *Profile {
	p := new(Profile)
	l := newLiveness(s.m, s.nests, s.m.Main(), s.calls)
	in := flow.NewUses(l.f).In
	l.watch = func(m *Memory, n int) {
		p.Moments = append(p.Moments, *m)
		if n == s.Memory.seen {
			p.Holdings = l.holdings(m, in)
		}
	}
	l.run()
	return p
}

// holdings are the buffers that are live at m, and what a function that is
// called there takes.
func (l *liveness) holdings(m *Memory, in map[*ir.Op]*ir.Block) []Holding {
	var out []Holding
	seen := make(map[*buffer]bool)
	sum := 0
	for _, bs := range l.buffers {
		for _, b := range bs {
			if seen[b] || b.bytes == 0 || b.host || b.lent || b.holds == 0 && !b.kept {
				continue
			}
			seen[b] = true
			sum += b.bytes
			out = append(out, l.holding(b, in))
		}
	}
	if rest := m.Peak - sum; rest > 0 {
		out = append(out, Holding{Array: Array{Bytes: rest}, Class: Temporaries, Op: "call", Loop: m.Loop})
	}
	slices.SortStableFunc(out, func(x, y Holding) int { return cmp.Compare(y.Bytes, x.Bytes) })
	return out
}

func (l *liveness) holding(b *buffer, in map[*ir.Op]*ir.Block) Holding {
	h := Holding{Array: arrayOf(b.of.Name, b.of), Class: b.class}
	h.Bytes = b.bytes
	op := b.of.Def
	switch {
	case op == nil && b.of.Block == l.f.Body:
		h.Name = cmp.Or(b.of.Attrs.Str(ir.KeyName), h.Name)
		return h
	case op == nil:
		h.Op, h.Loop = "while", l.n.at[b.of.Block]
		return h
	}
	h.Op, h.Name = strings.TrimPrefix(op.Name(), "stablehlo."), cmp.Or(h.Name, NameOf(op))
	h.Pos, h.Loop = op.Origin.Place(), l.n.at[in[op]]
	return h
}
