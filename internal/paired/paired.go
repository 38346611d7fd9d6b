// Package paired compares the time that two things take, for benchmarks.
package paired

import (
	"slices"
	"testing"
	"time"
)

// Cost runs without and with in turn, and reports as "%cost" what with takes more:
// the fastest tenth of its runs against that of the others.
func Cost(b *testing.B, without, with func() error) {
	timed := func(f func() error) time.Duration {
		begin := time.Now()
		if err := f(); err != nil {
			b.Fatal(err)
		}
		return time.Since(begin)
	}
	var off, on []time.Duration
	for b.Loop() {
		off, on = append(off, timed(without)), append(on, timed(with))
	}
	slices.Sort(off)
	slices.Sort(on)
	b.ReportMetric(100*(float64(on[len(on)/10])/float64(off[len(off)/10])-1), "%cost")
}
