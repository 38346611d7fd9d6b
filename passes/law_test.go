package passes

import (
	"math"
	"math/rand/v2"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The law: every legal configuration computes what the layers one after the
// other do: loss, gradients, and what a step of training makes of them; both
// times at which a repeat's weights are gathered give the same bits; devices
// execute the collectives that are counted in the program; and what is not
// legal is refused for its reason.
//
// The configurations are a part of the product of all choices: every stages,
// repeats and microbatches meet, and every two values of two choices that do
// not have too many. With PPC_LAW=pairs every two values of two choices meet, with
// PPC_LAW=triples every three of three, some thousand cases. PPC_LAW=3m draws
// from the product for that long, from the seed PPC_LAW_SEED; PPC_LAW=all goes
// through stages, repeats, microbatches, meshes, gathers, rotates and remat
// policies, with the other choices drawn.
func TestLaw(t *testing.T) {
	seed := uint64(1)
	if s := os.Getenv("PPC_LAW_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("PPC_LAW_SEED: %v", err)
		}
		seed = n
	}
	how := os.Getenv("PPC_LAW")
	budget, err := time.ParseDuration(how)
	if how != "" {
		t.Logf("PPC_LAW=%s PPC_LAW_SEED=%d", how, seed)
	}
	switch {
	case how == "":
		everyCase(t, covering(rand.New(rand.NewPCG(seed, 0)), 2, 40))
	case how == "pairs":
		everyCase(t, covering(rand.New(rand.NewPCG(seed, 0)), 2, math.MaxInt))
	case how == "triples":
		everyCase(t, covering(rand.New(rand.NewPCG(seed, 0)), 3, math.MaxInt))
	case how == "all":
		everyCase(t, fullProduct(seed))
	case err != nil:
		t.Fatalf("PPC_LAW=%s: want a time, as 3m, or pairs, triples, or all", how)
	default:
		everyCase(t, draws(t, seed, time.Now().Add(budget)))
	}
}

// everyCase holds the law to the cases, as many at a time as there are cores.
func everyCase(t *testing.T, cases func(yield func(lawCase) bool)) {
	refs := new(lawReferences)
	work := make(chan lawCase)
	var all sync.WaitGroup
	var mu sync.Mutex
	held, refused := 0, 0
	for range goruntime.GOMAXPROCS(0) {
		all.Go(func() {
			for c := range work {
				err := refs.holds(c)
				mu.Lock()
				switch {
				case err != nil:
					t.Errorf("%v\n\n%s\n\n# as law.pp:\n%s\n%s", err, c, c.text(), c.command())
				case c.refused() != "":
					refused++
				default:
					held++
				}
				mu.Unlock()
			}
		})
	}
	for c := range cases {
		work <- c
		if t.Failed() && testing.Short() {
			break
		}
	}
	close(work)
	all.Wait()
	t.Logf("%d configurations hold, %d are refused", held, refused)
}

// command is what runs the program of c and says by how much it is wrong.
func (c lawCase) command() string {
	if c.has("step", "grad") {
		return "# ppc run law.pp --check --grad"
	}
	return "# ppc run law.pp --check --steps 1"
}

// draws is points of the product, a tenth of them such that are refused, until
// the time is over.
func draws(t *testing.T, seed uint64, end time.Time) func(yield func(lawCase) bool) {
	return func(yield func(lawCase) bool) {
		r := rand.New(rand.NewPCG(seed, 1))
		for time.Now().Before(end) {
			c := drawn(r)
			if (c.refused() == "" && c.cost() < 2000 || r.IntN(20) == 0) && !yield(c) {
				return
			}
		}
	}
}

// fullProduct is stages, repeats, microbatches, meshes, gathers, rotates and
// policies in all combinations that are legal.
func fullProduct(seed uint64) func(yield func(lawCase) bool) {
	all := words("stages repeats microbatches mesh gather prefetch rotate remat")
	return func(yield func(lawCase) bool) {
		r := rand.New(rand.NewPCG(seed, 2))
		total := 1
		for _, name := range all {
			total *= len(lawFactors[factorAt(name)].values)
		}
		for _, n := range r.Perm(total) {
			c := legal(r, func(c lawCase) {
				rest := n
				for _, name := range all {
					i := factorAt(name)
					c[i], rest = rest%len(lawFactors[i].values), rest/len(lawFactors[i].values)
				}
			})
			if c != nil && !yield(c) {
				return
			}
		}
	}
}

// legal draws a legal case after set; nil where none is found.
func legal(r *rand.Rand, set func(c lawCase)) lawCase {
	for range 50 {
		c := drawn(r)
		set(c)
		if c.refused() == "" && c.cost() < 400 {
			return c
		}
	}
	return nil
}

// A lawMeeting is a value each of three factors, or of two, the second one twice.
type lawMeeting struct{ factors, values [3]int }

// covering is legal cases in which, together, all meetings of two or of three
// factors take place that can, of those that have at most so many, and for each reason to be
// refused some cases. One at a time, the case is taken that has the most pairs
// that were not there, of some that are drawn around one such pair.
func covering(r *rand.Rand, strength, most int) func(yield func(lawCase) bool) {
	return func(yield func(lawCase) bool) {
		reasons := make(map[string]int)
		for range 2000 {
			c := drawn(r)
			reason, _, _ := strings.Cut(c.refused(), " with ")
			if reason = strings.TrimRight(reason, "0123456789 "); reason == "" || reasons[reason] == 4 {
				continue
			}
			reasons[reason]++
			if !yield(c) {
				return
			}
		}
		todo, order := meetings(strength, most)
		for _, first := range order {
			if !todo[first] {
				continue
			}
			var best lawCase
			gain := 0.0
			for range 30 {
				c := legal(r, func(c lawCase) {
					for k, i := range first.factors {
						c[i] = first.values[k]
					}
				})
				if c == nil {
					break
				}
				n := 0
				for _, p := range c.meetings(strength) {
					if todo[p] {
						n++
					}
				}
				if worth := float64(n) / c.cost(); worth > gain {
					best, gain = c, worth
				}
			}
			for _, p := range best.meetings(strength) {
				delete(todo, p)
			}
			if best != nil && !yield(best) {
				return
			}
		}
	}
}

// meetings are those that are to be met by covering, also in order.
func meetings(strength, most int) (map[lawMeeting]bool, []lawMeeting) {
	todo := make(map[lawMeeting]bool)
	var order []lawMeeting
	for _, f := range factorGroups(strength) {
		var sizes [3]int
		for k, i := range f {
			sizes[k] = len(lawFactors[i].values)
		}
		if f[1] == f[2] {
			sizes[2] = 1
		}
		if sizes[0]*sizes[1]*sizes[2] > most && f != [3]int{0, 1, 2} {
			continue
		}
		for n := range sizes[0] * sizes[1] * sizes[2] {
			v := [3]int{n % sizes[0], n / sizes[0] % sizes[1], n / sizes[0] / sizes[1]}
			if f[1] == f[2] {
				v[2] = v[1]
			}
			todo[lawMeeting{f, v}] = true
			order = append(order, lawMeeting{f, v})
		}
	}
	return todo, order
}

// factorGroups are the first three factors, which are the size of a pipeline, and all
// two or three of the others.
func factorGroups(strength int) [][3]int {
	out := [][3]int{{0, 1, 2}}
	for k := range lawFactors {
		for j := range k {
			if strength == 2 {
				out = append(out, [3]int{j, k, k})
				continue
			}
			for i := range j {
				if i+j+k > 3 {
					out = append(out, [3]int{i, j, k})
				}
			}
		}
	}
	return out
}

// meetings are those that c makes.
func (c lawCase) meetings(strength int) []lawMeeting {
	if c == nil {
		return nil
	}
	var out []lawMeeting
	for _, f := range factorGroups(strength) {
		out = append(out, lawMeeting{f, [3]int{c[f[0]], c[f[1]], c[f[2]]}})
	}
	return out
}
