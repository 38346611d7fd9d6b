package report

import (
	"cmp"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/lower/lint"
	"ppc/lower/stats"
)

// Memory is what one device holds, by owner, and how that changes while the
// program runs.
type Memory struct {
	Peak     int       `json:"peak"`
	Host     int       `json:"host"`
	At       string    `json:"at"` // the op at the peak
	Loop     string    `json:"in"`
	Owners   []Owner   `json:"owners"`   // of the peak, the largest first
	Holdings []Holding `json:"holdings"` // the largest buffers at the peak
	Rest     int       `json:"rest"`     // bytes of the peak in other buffers
	Moments  int       `json:"moments"`  // how many ops of the program the profile samples
	Profile  []Moment  `json:"profile"`  // in program order, each body of a loop once
}

// An Owner is what the memory at the peak is used for.
type Owner struct {
	Owner string `json:"owner"`
	Bytes int    `json:"bytes"`
}

// A Holding is the buffers of one name, type and use at the peak.
type Holding struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Owner  string `json:"owner"`
	Count  int    `json:"count"`
	Bytes  int    `json:"bytes"` // of all of them
	Op     string `json:"op"`    // that made it; "" of an argument
	Loop   string `json:"in"`
	Origin string `json:"origin"`
}

// A Moment is the memory at one op.
type Moment struct {
	Number int    `json:"number"` // of the ops, from 1
	Loop   string `json:"in"`
	At     string `json:"at"`
	Bytes  int    `json:"bytes"`
	Parts  []int  `json:"parts"` // by owner, in the order of Memory.Owners
}

const (
	mostHoldings = 24  // rows of what is held at the peak
	mostMoments  = 160 // points of the profile
)

func memoryOf(s *stats.Stats) Memory {
	p := s.Profile()
	m := Memory{Peak: s.Memory.Peak, Host: s.Memory.Host, At: clip(s.Memory.At), Loop: clip(s.Memory.Loop), Owners: []Owner{}, Moments: len(p.Moments)}
	var classes []stats.Class
	for c := range s.Memory.Parts {
		most := 0
		for i := range p.Moments {
			most = max(most, p.Moments[i].Parts[c])
		}
		if most > 0 {
			classes = append(classes, stats.Class(c))
		}
	}
	for _, c := range classes {
		m.Owners = append(m.Owners, Owner{c.String(), s.Memory.Parts[c]})
	}
	m.Profile = profileOf(p, classes)
	m.Holdings, m.Rest = holdingsOf(p)
	return m
}

// profileOf is the profile in at most mostMoments points: of the moments that
// one point represents, the one with the most memory.
func profileOf(p *stats.Profile, classes []stats.Class) []Moment {
	out := []Moment{}
	n := len(p.Moments)
	points := min(n, mostMoments)
	for i := range points {
		from, to := i*n/points, (i+1)*n/points
		at := from
		for k := from + 1; k < to; k++ {
			if p.Moments[k].Peak > p.Moments[at].Peak {
				at = k
			}
		}
		x := &p.Moments[at]
		row := Moment{Number: at + 1, Loop: clip(x.Loop), At: clip(x.At), Bytes: x.Peak, Parts: []int{}}
		for _, c := range classes {
			row.Parts = append(row.Parts, x.Parts[c])
		}
		out = append(out, row)
	}
	return out
}

// holdingsOf is what is held at the peak, alike buffers together, the largest
// first, and the bytes of those that are left out.
func holdingsOf(p *stats.Profile) (out []Holding, rest int) {
	type key struct{ name, typ, owner, op, loop, origin string }
	out = []Holding{}
	at := make(map[key]int)
	for _, h := range p.Holdings {
		typ := ""
		if h.Type != nil {
			typ = stats.TypeText(h.Type)
		}
		k := key{h.Name, typ, h.Class.String(), h.Op, h.Loop, lint.PlaceText(h.Pos)}
		n, known := at[k]
		if !known {
			n = len(out)
			at[k] = n
			out = append(out, Holding{Name: clip(cmp.Or(k.name, "(unnamed)")), Type: clip(typ), Owner: k.owner, Op: clip(k.op), Loop: clip(k.loop), Origin: clip(k.origin)})
		}
		out[n].Count++
		out[n].Bytes += h.Bytes
	}
	slices.SortStableFunc(out, func(a, b Holding) int { return cmp.Compare(b.Bytes, a.Bytes) })
	for _, h := range out[min(len(out), mostHoldings):] {
		rest += h.Bytes
	}
	return out[:min(len(out), mostHoldings)], rest
}

func opName(op *ir.Op) string { return strings.TrimPrefix(op.Name(), "stablehlo.") }
