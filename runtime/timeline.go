package runtime

import (
	"math"
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
	Kept    int        // events of blocks for which there was room
	Lost    int        // events of blocks that begin when there is no room for them
	Devices int

	recorders []recorder
	exe       *Executable
	scale     ticks.Scale
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

// A recorder writes what one device does as words of 32 bits: which block begins,
// and how many ticks its steps take. Which steps those are, and in which iteration,
// the program says: a [replay] goes through it again.
type recorder struct {
	roll
	began, last int64 // the first reading of the clock, and the last
	left        int   // events that may still be kept
	kept, lost  int
	quiet       bool // in a block that is not kept
	open        bool // steps since the last reading share the next one
	waiting     bool // the step has waited
}

// The kinds of words, in their upper bits. The lower ones are a number.
const (
	wordTicks uint32 = iota << wordBits // of a step, or of several that share a reading
	wordLong                            // ticks of which the next word has the lower half
	wordBlock                           // one begins
	wordEnd                             // of a step that has blocks
	wordPause                           // because of a device; when it began, was over, and ended follow as ticks
	wordWaits                           // because of a device, for as long as the step takes; when it was over follows as ticks

	wordBits   = 29
	wordNumber = 1<<wordBits - 1
)

// Steps that are brief are over in little more than a reading of the clock takes, so
// that a row of them has one, and each an equal part of the time. A row goes on from one
// iteration of a loop to the next.
const (
	briefBytes  = 1024 // that one reads and writes, at most
	costlyBytes = 512  // the same of a product of matrices
	briefSteps  = 8    // in a row, at most
)

// isBrief reports whether a step of op is brief: it does one thing with a few numbers.
func isBrief(op *ir.Op, in, out []*ir.Value) bool {
	if !op.Kind.Has(ir.Pure) || op.Kind.Has(ir.Collective) || len(op.Regions) > 0 {
		return false
	}
	n := 0
	for _, vs := range [][]*ir.Value{in, out} {
		for _, v := range vs {
			if !v.Type.IsTensor() {
				return false
			}
			n += v.Type.Bytes()
		}
	}
	if op.Kind.Has(ir.Costly) {
		return n <= costlyBytes
	}
	return n <= briefBytes
}

// shareReadings finds which steps of b, one after the other, have one reading.
func (b *block) shareReadings() {
	row := 0
	for i := range b.steps {
		s := &b.steps[i]
		s.untimed = s.brief && row < briefSteps-1 && i+1 < len(b.steps) && b.steps[i+1].brief
		if row++; !s.untimed {
			row = 0
		}
	}
}

// shareAcross finds out whether the last steps of an iteration share a reading with the
// condition after it and the first steps of the next iteration.
func shareAcross(cond, body *block) {
	long := func(s step) bool { return !s.brief }
	n := len(body.steps)
	if slices.ContainsFunc(cond.steps, long) || !slices.ContainsFunc(body.steps, long) || !body.steps[0].brief || !body.steps[n-1].brief {
		return
	}
	for i := range cond.steps {
		cond.steps[i].untimed = true
	}
	body.steps[n-1].untimed = true
}

// enter is the beginning of b, and reports whether there is room for what it does.
func (r *recorder) enter(b *block) bool {
	n := len(b.steps)
	if r.quiet || n > r.left {
		r.close()
		r.left, r.quiet = 0, true
		r.lost += n
		return false
	}
	r.left -= n
	r.kept += n
	r.word(wordBlock | uint32(b.id))
	return true
}

// end is that of s, which is not untimed, and of the steps before it that share its reading.
func (r *recorder) end(s *step) {
	if !s.holds {
		r.read()
		return
	}
	r.endHolder()
}

// endHolder is the end of a step that has blocks.
func (r *recorder) endHolder() {
	r.close()
	r.quiet = false
	r.word(wordEnd)
}

// close reads the clock for steps that still share a reading.
func (r *recorder) close() {
	if r.open && !r.quiet {
		r.read()
	}
}

func (r *recorder) read() {
	now := max(ticks.Now(), r.last)
	r.ticks(now - r.last)
	r.last, r.waiting, r.open = now, false, false
}

// waits is now, in a step in which devices do nothing before they wait for each other: the
// beginning of the step, unless it has waited already.
func (r *recorder) waits() int64 {
	if r.waiting || r.open || r.quiet {
		return ticks.Now()
	}
	return r.last
}

// waited keeps that the device waited from begin until now, and for another until ready.
func (r *recorder) waited(begin, ready int64, on int) {
	if r.quiet {
		return
	}
	r.waiting = true
	begin = max(begin, r.last)
	ready = max(begin, ready)
	r.word(wordPause | uint32(on))
	r.ticks(begin - r.last)
	r.ticks(ready - begin)
	r.ticks(max(0, ticks.Now()-ready))
}

// onlyWaits keeps that the device waits for another until ready, in a step that does
// nothing else: it begins and ends with it.
func (r *recorder) onlyWaits(ready int64, on int) {
	if r.quiet {
		return
	}
	r.waiting = true
	r.word(wordWaits | uint32(on))
	r.ticks(max(0, ready-r.last))
}

// A roll is a list of words in pages. Where the roll of one run ends, that of the
// next goes on in the same page.
type roll struct {
	full [][]uint32
	page []uint32
	size int // of page, once
}

const smallest, largest = 1 << 8, 1 << 14 // words of a page

func (r *roll) word(w uint32) {
	if len(r.page) == cap(r.page) {
		r.turn()
	}
	r.page = append(r.page, w)
}

func (r *roll) ticks(n int64) {
	if n <= wordNumber {
		r.word(wordTicks | uint32(n))
		return
	}
	r.long(n)
}

// long is ticks of a large n.
func (r *roll) long(n int64) {
	r.word(wordLong | uint32(n>>32)&wordNumber)
	r.word(uint32(n))
}

// turn begins the next page.
func (r *roll) turn() {
	if len(r.page) > 0 {
		r.full = append(r.full, r.page)
	}
	r.size = min(max(2*r.size, smallest), largest)
	r.page = make([]uint32, 0, r.size)
}

// rest is the roll that goes on where r ends.
func (r *roll) rest() roll { return roll{page: r.page[len(r.page):], size: r.size} }

// startTimeline gives every device a recorder.
func (r *run) startTimeline() {
	left := math.MaxInt
	if r.timeline.Limit > 0 {
		left = r.timeline.Limit / len(r.devices)
	}
	r.began = ticks.Begin()
	r.recorders = make([]recorder, len(r.devices))
	rests := r.exe.rolls.Swap(nil)
	for i, d := range r.devices {
		d.recorder = &r.recorders[i]
		d.recorder.left = left
		if rests != nil {
			d.recorder.roll = (*rests)[i]
		}
	}
}

func (r *run) endTimeline() {
	t := r.timeline
	told := r.exe.told()
	t.Ops, t.Fused, t.Groups = told.ops, told.fused, told.groups
	t.scale, t.exe, t.recorders = r.began.End(), r.exe, r.recorders
	t.Devices, t.Kept, t.Lost = len(r.devices), 0, 0
	rests := make([]roll, len(r.devices))
	for i := range t.recorders {
		x := &t.recorders[i]
		t.Kept += x.kept
		t.Lost += x.lost
		rests[i] = x.rest()
	}
	r.exe.rolls.Store(&rests)
}

// A told is what every timeline of a program says of its ops.
type told struct {
	ops    []*ir.Op
	fused  [][]*ir.Op
	groups [][][]int
}

// tell makes it, which the first timeline does.
func (exe *Executable) tell() *told {
	n := len(exe.ops)
	out := &told{ops: make([]*ir.Op, n), fused: make([][]*ir.Op, n), groups: make([][][]int, n)}
	at := make(map[*ir.Op]int, n)
	for i, o := range exe.ops {
		out.ops[i] = o.op
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
