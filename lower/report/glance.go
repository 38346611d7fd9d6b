package report

import (
	"fmt"
	"strings"
)

// glance is the answers to what people ask first.
func (f *Facts) glance() section {
	t := table{head: []string{"", "", "why"}}
	devices := "1 device"
	if f.Devices != 1 {
		devices = fmt.Sprintf("%d devices", f.Devices)
	}
	t.row(words("devices"), number(f.Devices), words(strings.Join(append(f.axes(), f.Settings...), ", ")))
	for _, s := range f.Schedules {
		t.row(words("bubble"+s.of(len(f.Schedules))), percent(s.Fraction), words(s.why()))
	}
	f.glanceGathers(&t)
	f.glanceMemory(&t)
	f.glanceMoved(&t)
	notes := 0
	for _, x := range f.Findings {
		if x.Severity == "note" {
			notes++
		}
	}
	t.row(words("findings"), number(len(f.Findings)), words(fmt.Sprintf("%d warnings, %d notes", len(f.Findings)-notes, notes)))
	return section{id: "glance", title: f.Program, text: []string{"One step on " + devices + ". Bytes are those of one device."}, tables: []table{t}}
}

// axes is the mesh for people: stage = 4.
func (f *Facts) axes() []string {
	var out []string
	for _, a := range f.Mesh {
		out = append(out, fmt.Sprintf("%s = %d", a.Name, a.Size))
	}
	return out
}

// of names the pipeline, where there are several.
func (s *Schedule) of(n int) string {
	if n == 1 {
		return ""
	}
	return " of " + s.Layer
}

// why is where the bubble comes from.
func (s *Schedule) why() string {
	n, have := s.Iterations-s.Microbatches*s.Repeats, "have"
	if n == 1 {
		have = "has"
	}
	return fmt.Sprintf("of the %d iterations of a stage, %d %s no microbatch: %s with D = %d, S = %d stages, M = %d microbatches, R = %d repeats", s.Iterations, n, have, s.Formula, s.Delay, s.Stages, s.Microbatches, s.Repeats)
}

// glanceGathers says how often weights are gathered, those of layers first.
func (f *Facts) glanceGathers(t *table) {
	for _, kind := range []struct {
		title  string
		layers bool
	}{{"gathers of a layer's weight", true}, {"gathers of another weight", false}} {
		most := f.mostGathered(kind.layers)
		if most == "" {
			continue
		}
		total, places := new(int), []string(nil)
		for _, g := range f.Gathers {
			if g.Weight != most {
				continue
			}
			total = plus(total, g.Executions)
			places = append(places, fmt.Sprintf("%s %s %s", times(g.Executions).text, strings.TrimPrefix(inside(g.Loop), ", "), over(g.Axes)))
		}
		t.row(words(kind.title), times(total), words("per step; "+most+": "+strings.Join(places, "; ")))
	}
}

// mostGathered is the weight that is gathered most often, of several the largest;
// "" where none is.
func (f *Facts) mostGathered(layers bool) string {
	sums, bytes := make(map[string]*int), make(map[string]int)
	var order []string
	for _, g := range f.Gathers {
		if g.Layers != layers {
			continue
		}
		if sums[g.Weight] == nil {
			sums[g.Weight] = new(int)
			order = append(order, g.Weight)
		}
		if n := plus(sums[g.Weight], g.Executions); n != nil {
			sums[g.Weight], bytes[g.Weight] = n, max(bytes[g.Weight], g.Bytes)
			continue
		}
		return g.Weight
	}
	best := ""
	for _, w := range order {
		if best == "" || *sums[w] > *sums[best] || *sums[w] == *sums[best] && bytes[w] > bytes[best] {
			best = w
		}
	}
	return best
}

func (f *Facts) glanceMemory(t *table) {
	m := &f.Memory
	t.row(words("peak memory"), size(m.Peak), words(strings.TrimPrefix(inside(m.Loop), ", ")+", at "+m.At))
	var most *Owner
	for i := range m.Owners {
		if o := &m.Owners[i]; most == nil || o.Bytes > most.Bytes {
			most = o
		}
	}
	if most == nil {
		return
	}
	var largest []string
	for i := range m.Holdings {
		if h := &m.Holdings[i]; h.Owner == most.Owner && len(largest) < 3 {
			largest = append(largest, fmt.Sprintf("%s %s (%s)", h.Name, size(h.Bytes).text, h.madeAt()))
		}
	}
	why := percent(part(most.Bytes, m.Peak)).text + " of the peak: " + meanings[most.Owner]
	if len(largest) > 0 {
		why += "; the largest: " + strings.Join(largest, ", ")
	}
	t.row(words("most of it: "+most.Owner), size(most.Bytes), words(why))
}

// meanings says why memory of an owner is held.
var meanings = map[string]string{
	"parameters":       "weights and inputs as a device stores them",
	"optimizer state":  "what the optimizer keeps for each weight",
	"gathered weights": "weights after their all-gather, until the last op that reads them",
	"residuals":        "what the forward loops save for the backward pass",
	"gradient sums":    "gradients added up over accumulated batches",
	"loop buffers":     "what loops carry from one iteration to the next",
	"temporaries":      "results of ops, each until the last op that reads it",
}

// madeAt is what made a buffer and where.
func (h *Holding) madeAt() string {
	if h.Op == "" {
		return h.Type
	}
	return strings.TrimSuffix(h.Type+" of "+h.Op+", "+h.Origin, ", ")
}

func (f *Facts) glanceMoved(t *table) {
	total := new(int)
	var most *Collective
	for i := range f.Collectives {
		c := &f.Collectives[i]
		total = plus(total, c.Received)
		if most == nil || c.Received != nil && most.Received != nil && *c.Received > *most.Received {
			most = c
		}
	}
	if most == nil {
		return
	}
	t.row(words("received from other devices"), sizes(total), words(fmt.Sprintf("per step; most of it, %s, by %s %s%s", sizes(most.Received).text, most.Kind, over(most.Axes), inside(most.Loop))))
}
