package ticks

import (
	"testing"
	"time"
)

// Ticks take as long as the clock of the system says.
func TestScale(t *testing.T) {
	start, began := Begin(), time.Now()
	var at []int64
	var want []time.Duration
	for range 20 {
		time.Sleep(time.Millisecond)
		before := time.Since(began)
		at = append(at, Now())
		want = append(want, (before+time.Since(began))/2)
	}
	scale := start.End()
	for i, n := range at {
		if i > 0 && n < at[i-1] {
			t.Errorf("%d ticks after %d", n, at[i-1])
		}
		// A goroutine that the system lets wait in between is late.
		if have := scale.Time(n); have < want[i]-20*time.Millisecond || have > want[i]+20*time.Millisecond {
			t.Errorf("%v where the clock says %v", have, want[i])
		}
	}
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		Now()
	}
}

func BenchmarkClock(b *testing.B) {
	for b.Loop() {
		time.Since(epoch)
	}
}
