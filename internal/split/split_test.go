package split

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// The parts are all of the list, in order and without gaps, and each is done once.
func TestParts(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, cores := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(cores)
		for _, n := range []int{0, 1, 99, 100, 200, 12345} {
			parts := Parts(n, 100)
			if cores == 1 && len(parts) != 1 || cores > 1 && n >= 200 && len(parts) < 2 {
				t.Errorf("%d things on %d cores: %d parts", n, cores, len(parts))
			}
			end := 0
			for i, p := range parts {
				if p.Number != i || p.From != end || p.To < p.From || len(parts) > 1 && p.To-p.From < 100 {
					t.Errorf("%d things on %d cores: part %d of %d is %+v", n, cores, i, len(parts), p)
				}
				end = p.To
			}
			if end != n {
				t.Errorf("%d things on %d cores: the parts end at %d", n, cores, end)
			}
			done := make([]atomic.Int32, n)
			Do(parts, func(p Part) {
				for i := p.From; i < p.To; i++ {
					done[i].Add(1)
				}
			})
			for i := range done {
				if k := done[i].Load(); k != 1 {
					t.Fatalf("%d things on %d cores: %d is done %d times", n, cores, i, k)
				}
			}
		}
	}
}

// What breaks a part breaks the caller, who can say what was at work.
func TestPanic(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	defer func() {
		if p := recover(); p != "broken" {
			t.Errorf("got %v", p)
		}
	}()
	Do(Parts(1000, 1), func(p Part) {
		if p.Number == 3 {
			panic("broken")
		}
	})
	t.Error("Do returned")
}
