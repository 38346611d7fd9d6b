package driver_test

import (
	"strings"
	"sync"
	"testing"

	"ppc/driver"
)

// A run says which pass of how many it is at, which step of training, and which
// of the check, in order.
func TestProgress(t *testing.T) {
	var mu sync.Mutex
	var all []driver.Progress
	ctx := driver.WithProgress(t.Context(), func(p driver.Progress) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, p)
	})
	two := 2
	if _, err := driver.Run(ctx, &driver.Source{File: "../examples/llama.pp", Set: []string{"axes.seq=8", "axes.embed=16", "axes.head=4", "axes.mlp=32", "axes.vocab=64"}}, driver.RunOptions{Steps: &two, Check: true}); err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int)
	done := make(map[string]int)
	for _, p := range all {
		if p.Total > 0 && (p.Done < 0 || p.Done >= p.Total) {
			t.Errorf("%s: %d of %d done", p.Doing, p.Done, p.Total)
		}
		if p.Even {
			if p.Done != done[p.Doing] {
				t.Errorf("%s: %d done after %d", p.Doing, p.Done, done[p.Doing])
			}
			done[p.Doing]++
		}
		counts[strings.Fields(p.Doing)[0]+" "+p.Unit]++
	}
	for what, want := range map[string]int{"compiling pass": len(driver.Passes()) - 1, "training step": 2, "checking step": 2} {
		if counts[what] < want {
			t.Errorf("%s: said %d times, want %d", what, counts[what], want)
		}
	}
}
