package runtime

import (
	"iter"
	"slices"
	"time"

	"ppc/internal/ticks"
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
	ran       *told
	scale     ticks.Scale
}

// Events are the ops that a device executed, in the order in which they began.
func (t *Timeline) Events(device int) iter.Seq[Event] {
	r := t.recorders[device]
	return func(yield func(Event) bool) {
		last := r.began
		for _, page := range r.pages() {
			for _, x := range page {
				e := Event{Op: x.op, Iteration: x.iteration, Begin: t.scale.Time(last)}
				if x.end != 0 {
					e.End = t.scale.Time(x.end)
				}
				if !t.ran.holds[x.op] && x.end != 0 {
					last = x.end
				}
				if !yield(e) {
					return
				}
			}
		}
	}
}

// Pauses are the times when a device waited, in order, each inside of the event of
// a collective.
func (t *Timeline) Pauses(device int) []Pause {
	var out []Pause
	for _, w := range t.recorders[device].waits {
		out = append(out, Pause{On: w.on, Op: w.op, Begin: t.scale.Time(w.begin), Ready: t.scale.Time(w.ready), End: t.scale.Time(w.end)})
	}
	return out
}

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

const largest = 4096 // records that are allocated at a time, but for the first times

// A recorder is the timeline of one device, in ticks.
type recorder struct {
	began int64
	last  int64 // when the last op ended
	page  []record
	used  int        // records of page
	full  [][]record // the pages before it
	waits []wait
	left  int // records that may still be kept
	lost  int
}

// A record is an op that was executed. It began where the last one ended that had no
// others in it.
type record struct {
	op, iteration int32
	end           int64 // 0 of one that did not end
}

type wait struct {
	on, op            int32
	begin, ready, end int64
}

// begin opens the record of s; nil if no more are kept.
func (r *recorder) begin(d *device, s *step) *record {
	if r.used == len(r.page) && !r.turn() {
		return nil
	}
	x := &r.page[r.used]
	r.used++
	x.op, x.iteration = int32(s.id), -1
	if k := len(d.iterations); k > 0 {
		x.iteration = int32(d.iterations[k-1])
	}
	return x
}

// end closes the record of s. Time is taken once, at the end of an op that has no
// others in it: one clock reading for each op is most of what a timeline costs.
func (r *recorder) end(x *record, s *step) {
	if x == nil {
		return
	}
	if len(s.blocks) == 0 && s.callee == nil {
		r.last = max(ticks.Now(), r.last)
	}
	x.end = r.last
}

// turn begins the next page, if records may still be kept.
func (r *recorder) turn() bool {
	size := min(128<<min(len(r.full), 8), largest)
	if r.left >= 0 {
		size = min(size, r.left)
		r.left -= size
	}
	if size == 0 {
		r.lost++
		return false
	}
	if r.page != nil {
		r.full = append(r.full, r.page)
	}
	r.page, r.used = make([]record, size), 0
	return true
}

// pages are all records.
func (r *recorder) pages() [][]record {
	return append(slices.Clone(r.full), r.page[:r.used])
}

// waited keeps that d, whose op is at, waited from begin to now for another.
func (d *device) waited(begin int64, on int) {
	d.recorder.waits = append(d.recorder.waits, wait{on: int32(on), op: int32(d.at.id), begin: begin, ready: d.readyAt, end: ticks.Now()})
}

// startTimeline gives every device a recorder.
func (r *run) startTimeline() {
	left := -1
	if r.timeline.Limit > 0 {
		left = r.timeline.Limit / len(r.devices)
	}
	r.began = ticks.Begin()
	recorders := make([]recorder, len(r.devices))
	for i, d := range r.devices {
		recorders[i].left, recorders[i].waits = left, make([]wait, 0, 16)
		d.recorder = &recorders[i]
	}
}

func (r *run) endTimeline() {
	t := r.timeline
	t.scale, t.ran, t.Devices, t.Lost, t.recorders = r.began.End(), r.exe.told(), len(r.devices), 0, nil
	t.Ops, t.Fused, t.Groups = t.ran.ops, t.ran.fused, t.ran.groups
	for _, d := range r.devices {
		t.recorders = append(t.recorders, d.recorder)
		t.Lost += d.recorder.lost
	}
}

// A told is what every timeline of a program says of its ops.
type told struct {
	ops    []*ir.Op
	fused  [][]*ir.Op
	groups [][][]int
	holds  []bool // others run in it
}

// tell makes it, which the first timeline does.
func (exe *Executable) tell() *told {
	n := len(exe.ops)
	out := &told{ops: make([]*ir.Op, n), fused: make([][]*ir.Op, n), groups: make([][][]int, n), holds: make([]bool, n)}
	at := make(map[*ir.Op]int, n)
	for i, o := range exe.ops {
		out.ops[i], out.holds[i] = o.op, o.holds
		if _, known := at[o.op]; !known {
			at[o.op] = i
		}
		if o.group == nil {
			continue
		}
		for k := range o.group.Members {
			out.fused[i] = append(out.fused[i], o.group.Members[k].Op)
		}
	}
	for _, c := range exe.colls {
		out.groups[at[c.op]] = c.meeting()
	}
	return out
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
