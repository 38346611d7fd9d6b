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
	of     [][]lawPart // for each factor, the groups that it is in
	left   []int       // by the number of the meeting: 1 until it has taken place, then 0
}

// A lawGroup is two or three factors, each value of which is to meet each value of the
// others. Its meetings have the numbers from base on.
type lawGroup struct {
	factors    []int
	strides    []int // of the factors: the numbers of meetings that differ in the next value are so far apart
	base, size int
	piped      bool // meets in a pipeline alone: it has a factor that says nothing of a stack
}

// A lawPart is a factor as part of a group.
type lawPart struct {
	group  *lawGroup
	stride int         // of the factor
	others [2]struct { // of a pair the second has stride 0
		factor, stride int
	}
}

// first is the number of the meeting of the group in c, with the first value of the factor.
func (p *lawPart) first(c lawCase) int {
	a, b := p.others[0], p.others[1]
	return p.group.base + a.stride*c[a.factor] + b.stride*c[b.factor]
}

// Places of factors.
var (
	formAt     = slices.IndexFunc(lawFactors, func(f lawFactor) bool { return f.name == "form" })
	prefetchAt = slices.IndexFunc(lawFactors, func(f lawFactor) bool { return f.name == "prefetch" })
	rotateAt   = slices.IndexFunc(lawFactors, func(f lawFactor) bool { return f.name == "rotate" })
)

// pipedFactors are the factors that say nothing of a stack of layers. In groups of
// up to mostPiped meetings their values meet others in pipelines, in larger ones in
// pipelines or stacks: nearly each of their meetings needs a case of its own, and a
// pipeline takes longer than a stack.
var pipedFactors = words("stages repeats microbatches delay batch_split rotate scan_iterations scan_repeats skip_bubbles")

const mostPiped = 1500

// newLawCover is all meetings of as many values as strength says, of groups that have at most
// so many, those of the first three factors, which are the size of a pipeline, and with a strength of 3 those of
// every two.
func newLawCover(strength, most int) *lawCover {
	v := &lawCover{of: make([][]lawPart, len(lawFactors))}
	v.add(0, 1, 2)
	for k := range lawFactors {
		for j := range k {
			if strength == 2 {
				v.addUpTo(most, j, k)
				continue
			}
			if most < math.MaxInt { // else they meet in threes
				v.add(j, k)
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
	for i := range v.groups {
		g := &v.groups[i]
		g.base = n
		n += g.size
		for k, f := range g.factors {
			part, n := lawPart{group: g, stride: g.strides[k]}, 0
			for l, other := range g.factors {
				if l != k {
					part.others[n].factor, part.others[n].stride = other, g.strides[l]
					n++
				}
			}
			v.of[f] = append(v.of[f], part)
		}
	}
	v.left = slices.Repeat([]int{1}, n)
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
	n := g.size
	for _, i := range factors {
		n /= len(lawFactors[i].values)
		g.strides = append(g.strides, n)
	}
	v.groups = append(v.groups, g)
}

// meeting is the number of the meeting of g that takes place in c; false if none does.
func (g *lawGroup) meeting(c lawCase) (n int, ok bool) {
	n = g.base
	for k, i := range g.factors {
		n += g.strides[k] * c[i]
	}
	return n, !g.piped || c[formAt] == 0
}

// set gives c the values of the meeting numbered n.
func (g *lawGroup) set(c lawCase, n int) {
	n -= g.base
	for k, i := range g.factors {
		c[i], n = n/g.strides[k], n%g.strides[k]
	}
	if g.piped {
		c[formAt] = 0
	}
}

// meet notes what takes place in c and in its twin.
func (v *lawCover) meet(c lawCase) {
	for _, c := range c.held() {
		for i := range v.groups {
			if m, ok := v.groups[i].meeting(c); ok {
				v.left[m] = 0
			}
		}
	}
}

// gain is how many meetings take place in c for the first time.
func (v *lawCover) gain(c lawCase) int {
	n := 0
	for i := range v.groups {
		if m, ok := v.groups[i].meeting(c); ok {
			n += v.left[m]
		}
	}
	return n
}

// twinGain is how many take place in the twin of c alone.
func (v *lawCover) twinGain(c lawCase) int {
	i := c.twinned()
	if i < 0 {
		return 0
	}
	n := 0
	for k := range v.of[i] {
		if p := &v.of[i][k]; !p.group.piped || c[formAt] == 0 {
			n += v.left[p.first(c)+p.stride*(1-c[i])]
		}
	}
	return n
}

// gains is, for each value of the factor i, the part of the gain of c with that value that the value
// decides.
func (v *lawCover) gains(c lawCase, i int) (by [32]int) {
	for k := range v.of[i] {
		p := &v.of[i][k]
		if p.group.piped && (i == formAt || c[formAt] != 0) {
			continue
		}
		m := p.first(c)
		for k := range lawFactors[i].values {
			by[k] += v.left[m]
			m += p.stride
		}
	}
	if i == formAt {
		was := c[formAt]
		c[formAt] = 0
		for k := range v.groups {
			if g := &v.groups[k]; g.piped {
				m, _ := g.meeting(c)
				by[0] += v.left[m]
			}
		}
		c[formAt] = was
	}
	return by
}

// climb changes c value by value, not those of the factors that keep has, as long as
// that makes it worth more, which it returns: its gain divided by a power of its cost. Divided by
// the cost itself, cheap cases would be taken first, and each meeting of expensive
// values would need a case of its own.
func (v *lawCover) climb(r *rand.Rand, c lawCase, keep []int) float64 {
	worth := func(gain int) float64 { return float64(gain) / math.Pow(c.cost(), 0.75) }
	own := v.gain(c)
	most := worth(own + v.twinGain(c))
	mostTwin := max(len(v.of[prefetchAt]), len(v.of[rotateAt])) // no twin gains more
	for changed := true; changed; {
		changed = false
		for _, i := range r.Perm(len(c)) {
			if slices.Contains(keep, i) {
				continue
			}
			by := v.gains(c, i)
			was, best, rest := c[i], c[i], own-by[c[i]]
			for k := range lawFactors[i].values {
				if k == was {
					continue
				}
				c[i] = k
				if worth(rest+by[k]+mostTwin) <= most {
					continue
				}
				if w := worth(rest + by[k] + v.twinGain(c)); w > most*(1+1e-9) && c.legal() {
					own, most, best, changed = rest+by[k], w, k, true
				}
			}
			c[i] = best
		}
	}
	return most
}

// covering is legal cases in which, together, all meetings of two or of three
// factors take place that can, of groups that have at most so many, and for each reason to be
// refused some cases. For each meeting that has not taken place, the case is taken
// that is worth most, of some that it takes place in; then each is made as cheap as
// the meetings are that take place in no other.
func covering(r *rand.Rand, strength, most int) func(yield func(lawCase) bool) {
	return func(yield func(lawCase) bool) {
		for _, c := range refusals(r) {
			if !yield(c) {
				return
			}
		}
		v := newLawCover(strength, most)
		var cases []lawCase
		for _, g := range v.groups {
			for m := g.base; m < g.base+g.size; m++ {
				if v.left[m] == 0 {
					continue
				}
				if c := v.best(r, &g, m); c != nil {
					v.meet(c)
					cases = append(cases, c)
				}
			}
		}
		for _, c := range v.cheaper(r, cases) {
			if !yield(c) {
				return
			}
		}
	}
}

// cheaper is cases, which v has met, made cheaper: the most expensive one first, each is left out,
// or changed so that the meetings still take place that do in no other.
func (v *lawCover) cheaper(r *rand.Rand, cases []lawCase) []lawCase {
	times := make([]int, len(v.left)) // that each meeting takes place
	meetings := func(c lawCase) func(yield func(int) bool) {
		return func(yield func(int) bool) {
			for i, c := range c.held() {
				for k := range v.groups {
					g := &v.groups[k]
					if i > 0 && !slices.Contains(g.factors, c.twinned()) {
						continue // takes place in both
					}
					if m, ok := g.meeting(c); ok && !yield(m) {
						return
					}
				}
			}
		}
	}
	for _, c := range cases {
		for m := range meetings(c) {
			times[m]++
		}
	}
	slices.SortStableFunc(cases, func(a, b lawCase) int { return cmp.Compare(b.cost(), a.cost()) })
	var kept []lawCase
	for _, c := range cases {
		var alone []int
		for m := range meetings(c) {
			if times[m]--; times[m] == 0 {
				alone = append(alone, m)
				v.left[m] = 1
			}
		}
		if alone == nil {
			continue
		}
		v.descend(r, c, len(alone))
		for m := range meetings(c) {
			times[m]++
		}
		for _, m := range alone {
			v.left[m] = 0
		}
		kept = append(kept, c)
	}
	return kept
}

// descend changes c value by value as long as that makes it cheaper and it gains as much as gain.
func (v *lawCover) descend(r *rand.Rand, c lawCase, gain int) {
	least, own := c.cost(), v.gain(c)
	for changed := true; changed; {
		changed = false
		for _, i := range r.Perm(len(c)) {
			by := v.gains(c, i)
			was, best, rest := c[i], c[i], own-by[c[i]]
			for k := range lawFactors[i].values {
				if k == was {
					continue
				}
				c[i] = k
				if rest+by[k]+v.twinGain(c) < gain {
					continue
				}
				if cost := c.cost(); cost < least*(1-1e-9) && c.legal() {
					own, least, best, changed = rest+by[k], cost, k, true
				}
			}
			c[i] = best
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
			if m, ok := v.groups[i].meeting(c); ok && v.left[m] > 0 {
				t.Fatalf("in no case, but in %s: the values of %s", c, lawFactors[v.groups[i].factors[0]].name+" and "+lawFactors[v.groups[i].factors[1]].name)
			}
		}
	}
}
