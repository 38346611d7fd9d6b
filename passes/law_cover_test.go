package passes

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A lawCover is the meetings of values that are still to take place.
type lawCover struct {
	groups []lawGroup
	all    []int   // groups, by index
	of     [][]int // for each factor, those that it is in
	todo   []bool  // by the number of the meeting
}

// A lawGroup is two or three factors, each value of which is to meet each value of the
// others. Its meetings have the numbers from base on.
type lawGroup struct {
	factors    []int
	base, size int
	weight     float64
	piped      bool // meets in a pipeline alone: it has a factor that says nothing of a stack
}

// formAt is the place of the factor called form.
var formAt = slices.IndexFunc(lawFactors, func(f lawFactor) bool { return f.name == "form" })

// pipedFactors are the factors that say nothing of a stack of layers. In groups of
// up to mostPiped meetings their values meet others in pipelines, in larger ones in
// pipelines or stacks: nearly each of their meetings needs a case of its own, and a
// pipeline takes four times as long as a stack.
var pipedFactors = words("stages repeats microbatches delay batch_split rotate scan_iterations scan_repeats skip_bubbles")

const mostPiped = 1500

// newLawCover is all meetings of as many values as strength says, of groups that have at most
// so many, and those of the first three factors, which are the size of a pipeline.
func newLawCover(strength, most int) *lawCover {
	v := &lawCover{of: make([][]int, len(lawFactors))}
	v.add(0, 1, 2)
	for k := range lawFactors {
		for j := range k {
			if strength == 2 {
				v.addUpTo(most, j, k)
				continue
			}
			for i := range j {
				if k > 2 {
					v.addUpTo(most, i, j, k)
				}
			}
		}
	}
	// What has the most meetings needs the most cases; others take place in them.
	slices.SortStableFunc(v.groups[1:], func(a, b lawGroup) int { return cmp.Compare(b.size, a.size) })
	n := 0
	for g := range v.groups {
		v.groups[g].base = n
		n += v.groups[g].size
		v.all = append(v.all, g)
		for _, i := range v.groups[g].factors {
			v.of[i] = append(v.of[i], g)
		}
	}
	v.todo = slices.Repeat([]bool{true}, n)
	return v
}

func (v *lawCover) addUpTo(most int, factors ...int) {
	size := 1
	for _, i := range factors {
		size *= len(lawFactors[i].values)
	}
	if size <= most {
		v.add(factors...)
	}
}

func (v *lawCover) add(factors ...int) {
	g, piped := lawGroup{factors: factors, size: 1}, false
	for _, i := range factors {
		g.size *= len(lawFactors[i].values)
		piped = piped || slices.Contains(pipedFactors, lawFactors[i].name)
	}
	g.piped = piped && g.size <= mostPiped
	g.weight = float64(g.size)
	v.groups = append(v.groups, g)
}

// meeting is the number of the meeting of g that takes place in c; false if none does.
func (g *lawGroup) meeting(c lawCase) (n int, ok bool) {
	for _, i := range g.factors {
		n = n*len(lawFactors[i].values) + c[i]
	}
	return g.base + n, !g.piped || c[formAt] == 0
}

// set gives c the values of the meeting numbered n.
func (g *lawGroup) set(c lawCase, n int) {
	n -= g.base
	for _, i := range slices.Backward(g.factors) {
		c[i] = n % len(lawFactors[i].values)
		n /= len(lawFactors[i].values)
	}
	if g.piped {
		c[formAt] = 0
	}
}

// meet notes what takes place in c.
func (v *lawCover) meet(c lawCase) {
	for i := range v.groups {
		if m, ok := v.groups[i].meeting(c); ok {
			v.todo[m] = false
		}
	}
}

// gain is how many meetings of the groups with these indices take place in c for the
// first time. A meeting of a large group weighs more: fewer cases have it.
func (v *lawCover) gain(c lawCase, groups []int) float64 {
	n := 0.0
	for _, i := range groups {
		g := &v.groups[i]
		if m, ok := g.meeting(c); ok && v.todo[m] {
			n += g.weight
		}
	}
	return n
}

// climb changes c value by value, not those of the factors that keep has, as long as
// that makes it worth more: its gain divided by the root of its cost, which climb
// returns. Divided by the cost itself, cheap cases would be taken first, and each
// meeting of expensive values would need a case of its own.
func (v *lawCover) climb(r *rand.Rand, c lawCase, keep []int) float64 {
	gain, root := v.gain(c, v.all), math.Sqrt(c.cost())
	for changed := true; changed; {
		changed = false
		for _, i := range r.Perm(len(c)) {
			if slices.Contains(keep, i) {
				continue
			}
			was, best := c[i], c[i]
			affected := v.of[i]
			if i == formAt {
				affected = v.all
			}
			rest := gain - v.gain(c, affected)
			for c[i] = range lawFactors[i].values {
				if c[i] == was {
					continue
				}
				if g := rest + v.gain(c, affected); g > 0 && c.legal() {
					if k := math.Sqrt(c.cost()); g/k > gain/root*(1+1e-9) {
						gain, root, best, changed = g, k, c[i], true
					}
				}
			}
			c[i] = best
		}
	}
	return gain / root
}

// covering is legal cases in which, together, all meetings of two or of three
// factors take place that can, of groups that have at most so many, and for each reason to be
// refused some cases. For each meeting that has not taken place, the case is taken
// that is worth most, of some that it takes place in.
func covering(r *rand.Rand, strength, most int) func(yield func(lawCase) bool) {
	return func(yield func(lawCase) bool) {
		for _, c := range refusals(r) {
			if !yield(c) {
				return
			}
		}
		v := newLawCover(strength, most)
		for _, g := range v.groups {
			for m := g.base; m < g.base+g.size; m++ {
				if !v.todo[m] {
					continue
				}
				c := v.best(r, &g, m)
				if c == nil {
					continue
				}
				v.meet(c)
				if !yield(c) {
					return
				}
			}
		}
	}
}

// best is the case worth most of some in which the meeting m of g takes place, nil if
// none is found.
func (v *lawCover) best(r *rand.Rand, g *lawGroup, m int) lawCase {
	keep := g.factors
	if g.piped {
		keep = append(slices.Clone(keep), formAt)
	}
	var best lawCase
	most := 0.0
	for range 4 {
		c := legal(r, func(c lawCase) { g.set(c, m) })
		if c == nil {
			break
		}
		if n, ok := g.meeting(c); !ok || n != m {
			break // of a stack and of what acts in a pipeline alone
		}
		if worth := v.climb(r, c, keep); worth > most {
			best, most = c, worth
		}
	}
	return best
}

// refusals are cases that are refused, up to four for each reason.
func refusals(r *rand.Rand) []lawCase {
	var out []lawCase
	reasons := make(map[string]int)
	for range 2000 {
		c := drawn(r)
		reason, _, _ := strings.Cut(c.refused(), " with ")
		if reason = strings.TrimRight(reason, "0123456789 "); reason == "" || reasons[reason] == 4 {
			continue
		}
		reasons[reason]++
		out = append(out, c)
	}
	return out
}

// legal draws a legal case after set; nil where none is found.
func legal(r *rand.Rand, set func(c lawCase)) lawCase {
	for range 200 {
		c := drawn(r)
		set(c)
		if c.legal() {
			return c
		}
	}
	return nil
}

// TestCovering: every meeting that is to take place, and does in one of many cases that are drawn, takes place
// in a case of the cover, and each reason to be refused has a case.
func TestCovering(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	v, reasons := newLawCover(2, 40), make(map[string]bool)
	for c := range covering(r, 2, 40) {
		if c.refused() != "" {
			reasons[c.refused()] = true
			continue
		}
		if !c.legal() {
			t.Errorf("not legal: %s", c)
		}
		v.meet(c)
	}
	if len(reasons) < 4 {
		t.Errorf("cases are refused for %d reasons, want at least 4", len(reasons))
	}
	for range 20000 {
		c := drawn(r)
		if !c.legal() {
			continue
		}
		for i := range v.groups {
			if m, ok := v.groups[i].meeting(c); ok && v.todo[m] {
				t.Fatalf("in no case, but in %s: the values of %s", c, lawFactors[v.groups[i].factors[0]].name+" and "+lawFactors[v.groups[i].factors[1]].name)
			}
		}
	}
}
