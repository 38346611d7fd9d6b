package runtime

import (
	"iter"
	"slices"
	"time"

	"ppc/ir"
)

// A Timeline is when each device was at which op, and what it waited for.
type Timeline struct {
	Limit int // the most events that are kept, of all devices together; 0 for no limit

	Ops     []*ir.Op   // of the program, in the order in which it was compiled; of ops that run as one, the last
	Fused   [][]*ir.Op // by op: those that run as one with it, itself among them; nil where it runs by itself
	Groups  [][][]int  // by op: the devices that meet, group by group; nil of an op that is no collective
	Lost    int        // events beyond the limit
	Devices int

	recorders []*recorder
}

// Events are the ops that a device executed, in the order in which they began.
func (t *Timeline) Events(device int) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for _, c := range t.recorders[device].chunks {
			for _, e := range c {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// Pauses are the times when a device waited, in order, each inside of the event of
// a collective.
func (t *Timeline) Pauses(device int) []Pause { return t.recorders[device].waits }

// An Event is an op that a device executed. That of an op with regions or a
// callee is around those of what is in them.
type Event struct {
	Op         int32         // in Timeline.Ops
	Iteration  int32         // of the innermost loop around it; -1 outside of loops
	Begin, End time.Duration // from the beginning of the run
}

// A Pause is time in which a device could not go on: until Ready because of
// another device, then because as many as may compute at a time did.
type Pause struct {
	On                int32 // the device that let it go on
	Op                int32
	Begin, Ready, End time.Duration
}

// WithTimeline fills t when the run ends, failed or not. It takes the place of WithProfile.
func WithTimeline(t *Timeline) Option { return func(o *options) { o.timeline = t } }

const chunk = 4096 // events that are allocated at a time, but for the first times

// A recorder is the timeline of one device.
type recorder struct {
	began  time.Time
	last   time.Duration // when the last op ended
	chunks [][]Event
	waits  []Pause
	left   int // events that may still be kept
	lost   int
}

func (r *recorder) now() time.Duration { return time.Since(r.began) }

// begin makes room for an event of op, which begins where the last one ended, or
// the one around it began, and returns where it is; nil where no more are kept.
func (r *recorder) begin(s *step, iterations []int) *Event {
	if r.left == 0 {
		r.lost++
		return nil
	}
	r.left--
	n := len(r.chunks)
	if n == 0 || len(r.chunks[n-1]) == cap(r.chunks[n-1]) {
		r.chunks = append(r.chunks, make([]Event, 0, min(256<<n, chunk)))
		n++
	}
	last := &r.chunks[n-1]
	*last = (*last)[:len(*last)+1]
	e := &(*last)[len(*last)-1]
	e.Op, e.Iteration, e.Begin = int32(s.id), -1, r.last
	if k := len(iterations); k > 0 {
		e.Iteration = int32(iterations[k-1])
	}
	return e
}

// record runs s and keeps when that was. Time is taken once, at the end of an op
// that has no others in it: one clock reading for each op is most of what a
// timeline costs.
func (d *device) record(s *step) error {
	r := d.recorder
	e := r.begin(s, d.iterations)
	if e == nil {
		return s.exec(d, s)
	}
	err := s.exec(d, s)
	if len(s.blocks) == 0 && s.callee == nil {
		r.last = r.now()
	}
	e.End = r.last
	return err
}

// waited keeps that d, whose op is at, waited from begin to now for another.
func (d *device) waited(begin time.Duration, on int) {
	d.recorder.waits = append(d.recorder.waits, Pause{On: int32(on), Op: int32(d.at.id), Begin: begin, Ready: d.readyAt, End: d.recorder.now()})
}

// startTimeline gives every device a recorder.
func (r *run) startTimeline() {
	began, left := time.Now(), -1
	if r.timeline.Limit > 0 {
		left = r.timeline.Limit / len(r.devices)
	}
	for _, d := range r.devices {
		d.recorder = &recorder{began: began, left: left}
	}
}

func (r *run) endTimeline() {
	t := r.timeline
	t.Ops, t.Fused, t.Devices, t.Lost, t.recorders = make([]*ir.Op, len(r.exe.ops)), make([][]*ir.Op, len(r.exe.ops)), len(r.devices), 0, nil
	for i, o := range r.exe.ops {
		t.Ops[i] = o.op
		if o.group == nil {
			continue
		}
		for k := range o.group.Members {
			t.Fused[i] = append(t.Fused[i], o.group.Members[k].Op)
		}
	}
	for _, d := range r.devices {
		t.recorders = append(t.recorders, d.recorder)
		t.Lost += d.recorder.lost
	}
	t.Groups = make([][][]int, len(t.Ops))
	for _, c := range r.exe.colls {
		t.Groups[slices.Index(t.Ops, c.op)] = c.meeting()
	}
}

// meeting is the groups of devices that have to do with each other, directly or
// by way of others.
func (c *collective) meeting() [][]int {
	if c.to == nil {
		return c.groups
	}
	var groups [][]int
	seen := make([]bool, len(c.to))
	for d := range c.to {
		if seen[d] {
			continue
		}
		seen[d] = true
		group := []int{d}
		for i := 0; i < len(group); i++ {
			for _, other := range []int{c.to[group[i]], c.from[group[i]]} {
				if other >= 0 && !seen[other] {
					seen[other] = true
					group = append(group, other)
				}
			}
		}
		if slices.Sort(group); len(group) > 1 {
			groups = append(groups, group)
		}
	}
	return groups
}
