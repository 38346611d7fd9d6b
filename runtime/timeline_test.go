package runtime_test

import (
	"testing"
	"time"

	"ppc/ir"
	"ppc/runtime"
)

// A timeline has every op of every device in the order in which it began, each
// inside of the op around it, and waits inside of the collective.
func TestTimeline(t *testing.T) {
	exe, err := runtime.Load(small(4))
	if err != nil {
		t.Fatal(err)
	}
	args := perDevice(4, ir.Tensor(ir.F64, 4, 4), func(d, i int) float64 { return float64(d+i) / 100 })
	line, trace := new(runtime.Timeline), new(runtime.Trace)
	if _, err := exe.Run(t.Context(), args, runtime.WithTimeline(line), runtime.WithTrace(trace)); err != nil {
		t.Fatal(err)
	}
	total := 0
	for d := range line.Devices {
		times := make(map[*ir.Op]int)
		var last time.Duration
		events, pauses := line.Events(d)
		for _, e := range events {
			total++
			times[line.Ops[e.Op]]++
			if e.Begin < last || e.End < e.Begin {
				t.Fatalf("device %d: %s from %s to %s, after one that began at %s", d, line.Ops[e.Op].Name(), e.Begin, e.End, last)
			}
			last = e.Begin
			for len(pauses) > 0 && line.Groups[e.Op] != nil && pauses[0].End <= e.End {
				if p := pauses[0]; p.Begin < e.Begin || p.Ready < p.Begin || p.End < p.Ready || int(p.On) == d {
					t.Errorf("device %d waits for %d from %s to %s, until %s, in an op from %s to %s", d, p.On, p.Begin, p.Ready, p.End, e.Begin, e.End)
				}
				pauses = pauses[1:]
			}
		}
		for _, c := range trace.Collectives {
			if times[c.Op] != c.Times[d] {
				t.Errorf("device %d: %s %d times, want %d", d, c.Op.Name(), times[c.Op], c.Times[d])
			}
		}
		if len(pauses) > 0 {
			t.Errorf("device %d: %d waits are in no collective", d, len(pauses))
		}
	}
	limited := &runtime.Timeline{Limit: total / 2}
	if _, err := exe.Run(t.Context(), args, runtime.WithTimeline(limited)); err != nil {
		t.Fatal(err)
	}
	kept := 0
	for d := range limited.Devices {
		events, _ := limited.Events(d)
		kept += len(events)
	}
	if kept != limited.Kept || kept > limited.Limit || kept < limited.Limit/2 || limited.Lost != total-kept {
		t.Errorf("of %d events with a limit of %d, %d are kept and %d lost", total, limited.Limit, kept, limited.Lost)
	}
}
