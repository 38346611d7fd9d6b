package passes

import (
	"math"
	"math/rand/v2"
	goruntime "runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"ppc/internal/shared"
)

// The law: every legal configuration computes what the layers one after the
// other do: loss, gradients, and what a step of training makes of them; both
// times at which a repeat's weights are gathered give the same bits; devices
// execute the collectives that are counted in the program; and what is not
// legal is refused for its reason.
//
// The configurations are a part of the product of all choices: every stages,
// repeats and microbatches meet, and every two values of two choices that do
// not have too many, in a pipeline where a choice acts in pipelines alone. With
// PPC_LAW=pairs every two values of two choices meet, with PPC_LAW=400 besides
// every three of three that have at most 400 together, with PPC_LAW=triples
// every three of three, some thousand cases. PPC_LAW=3m draws
// from the product for that long, from the seed PPC_LAW_SEED; PPC_LAW=all goes
// through stages, repeats, microbatches, meshes, gathers, rotates and remat
// policies, with the other choices drawn.
func TestLaw(t *testing.T) {
	seed := uint64(1)
	if s := shared.Setting(t, "PPC_LAW_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("PPC_LAW_SEED: %v", err)
		}
		seed = n
	}
	how := shared.Setting(t, "PPC_LAW")
	budget, err := time.ParseDuration(how)
	most, notNumber := strconv.Atoi(how)
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
	case notNumber == nil:
		everyCase(t, covering(rand.New(rand.NewPCG(seed, 0)), 3, most))
	case how == "all":
		everyCase(t, fullProduct(seed))
	case err != nil:
		t.Fatalf("PPC_LAW=%s: want a time, as 3m, a number, or pairs, triples, or all", how)
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
			if (c.legal() || c.refused() != "" && r.IntN(20) == 0) && !yield(c) {
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
