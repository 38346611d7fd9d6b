package report

import (
	"fmt"
	"math"
	"testing"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/lower/stats"
)

// The grid, the counts and the formula are what microbatches do that enter in
// order, repeat after repeat, each as soon as the one before it has left a stage
// and its own result of the stage before has arrived.
func TestGridByEnumeration(t *testing.T) {
	for S := 1; S <= 8; S++ {
		for R := 1; R <= 4; R++ {
			for M := S; M <= 4*S; M++ {
				for D := 1; D <= 2; D++ {
					schedule := facts.Schedule{S: S, M: M, R: R, L: 1, D: D}
					if err := enumerated(schedule); err != nil {
						t.Errorf("S = %d, M = %d, R = %d, D = %d: %v", S, M, R, D, err)
					}
				}
			}
		}
	}
}

type slot struct{ stage, iteration int }

// played is which microbatch is where, in which repeat, and how long it takes.
func played(s facts.Schedule) (at map[slot][2]int, length int) {
	at = make(map[slot][2]int)
	free := make([]int, s.S)    // when each stage can take the next
	arrives := make([]int, s.M) // when each microbatch is back at stage 0
	for r := range s.R {
		for m := range s.M {
			t := arrives[m]
			for stage := range s.S {
				t = max(t, free[stage])
				at[slot{stage, t}] = [2]int{m, r}
				free[stage] = t + 1
				length = max(length, t+1)
				t += s.D
			}
			arrives[m] = t
		}
	}
	return at, length
}

func enumerated(schedule facts.Schedule) error {
	s := scheduleOf(facts.Config{Schedule: schedule}, "layer", new(ir.Op))
	at, length := played(schedule)
	if s.Iterations != length {
		return fmt.Errorf("%d iterations, want %d", s.Iterations, length)
	}
	seen := 0
	for _, r := range s.Grid {
		for t := r.From; t <= r.Through; t++ {
			seen++
			if have, want := [2]int{r.First + t - r.From, r.Repeat}, at[slot{r.Stage, t}]; have != want {
				return fmt.Errorf("stage %d, iteration %d: microbatch and repeat %v, want %v", r.Stage, t, have, want)
			}
		}
	}
	bubbles := schedule.S*length - len(at)
	if seen != len(at) || s.Work != len(at) || s.Bubbles != bubbles {
		return fmt.Errorf("%d cells, %d with work, %d bubbles, want %d, %d, %d", seen, s.Work, s.Bubbles, len(at), len(at), bubbles)
	}
	if want := float64(bubbles) / float64(schedule.S*length); math.Abs(s.Fraction-want) > 1e-15 {
		return fmt.Errorf("bubbles are %g by %s, %g counted", s.Fraction, s.Formula, want)
	}
	return nil
}

// Of many stages the grid has the first and the last, and says how many are left
// out; the counts are of all.
func TestManyStages(t *testing.T) {
	s := scheduleOf(facts.Config{Schedule: facts.Schedule{S: 500, M: 500, R: 2, L: 1, D: 1}}, "layer", new(ir.Op))
	if s.Left != 500-mostStages || len(s.shown()) != mostStages || s.Work != 500*1000 || s.Bubbles != 500*499 {
		t.Errorf("%d stages shown, %d left out, %d with work, %d bubbles", len(s.shown()), s.Left, s.Work, s.Bubbles)
	}
}

// Every owner of memory has a sentence that says why it holds it.
func TestMeanings(t *testing.T) {
	for c := range stats.Temporaries + 1 {
		if meanings[c.String()] == "" {
			t.Errorf("%v: no sentence", c)
		}
	}
	if len(meanings) != int(stats.Temporaries)+1 {
		t.Errorf("%d sentences for %d owners", len(meanings), stats.Temporaries+1)
	}
}
