package runtime

import (
	"context"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"

	"ppc/internal/ticks"
	"ppc/ir"
	"ppc/runtime/kernel"
)

// A run is one execution of a program. At most workers devices compute at a
// time; the others are parked: they wait for other devices, or in line. A
// device gives its permit back while it waits.
type run struct {
	exe *Executable
	options
	pool      pool
	memory    gauge // bytes in buffers with references; only with a trace
	devices   []*device
	began     ticks.Start // with a timeline
	recorders []recorder
	failed    atomic.Bool // err is set

	mu      sync.Mutex
	permits int       // free ones
	seats   []*seat   // of free permits, but for those that nobody has needed yet
	made    int       // seats
	line    []*device // may go on as soon as there is a permit
	live    int       // devices that have not returned
	rng     *rand.Rand
	err     error
	boxes   [][]box     // by permute and receiving device
	rooms   [][]meeting // by collective and group
	lanes   map[route]*lane
	fed     int // infeeds so far
}

// A waiter is what a parked device waits for; run.mu is held.
type waiter interface {
	// missing is a device that has to come before d can go on.
	missing(r *run, d *device) int
	// on is the device that let d go on.
	on(d *device) int
	// only reports whether the op does nothing but wait and hand references on.
	only() bool
}

func newRun(exe *Executable, opts []Option) *run {
	r := &run{exe: exe, live: exe.devices}
	r.workers = goruntime.GOMAXPROCS(0)
	for _, opt := range opts {
		opt(&r.options)
	}
	r.permits = r.workers
	if r.shuffle {
		r.rng = rand.New(rand.NewPCG(r.seed, 0))
	}
	n := len(exe.classes.sizes)
	r.pool.free = make([][]*buffer, n)
	r.pool.takeAll(&exe.spare)
	for _, w := range exe.works.take(r.workers, &r.failed) {
		r.seats = append(r.seats, r.newSeat(w))
	}
	for id := range exe.devices {
		d := &device{id: id, run: r, parked: true, wake: make(chan struct{}, 1), kept: make([]keptPanels, exe.keeps)}
		for _, k := range r.kills {
			if k.device == id {
				d.killAt = k.n
			}
		}
		if r.trace != nil {
			d.times = make([]int, len(exe.colls))
		}
		if r.profile != nil {
			d.spent = make([]spent, len(exe.ops))
		}
		r.devices = append(r.devices, d)
	}
	r.homes()
	if r.timeline != nil {
		r.startTimeline()
	}
	r.boxes, r.rooms = make([][]box, len(exe.colls)), make([][]meeting, len(exe.colls))
	for i, c := range exe.colls {
		r.boxes[i], r.rooms[i] = make([]box, len(c.to)), make([]meeting, len(c.groups))
	}
	return r
}

// do runs every device and waits for all of them.
func (r *run) do(ctx context.Context, inputs [][]*buffer) ([][]*buffer, error) {
	cancelled := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		r.fail(ctx.Err())
		close(cancelled)
	})
	results := make([][]*buffer, len(r.devices))
	var wg sync.WaitGroup
	for i, d := range r.devices {
		wg.Go(func() { results[i] = d.main(inputs[i]) })
	}
	r.mu.Lock()
	r.line = slices.Clone(r.devices)
	r.dispatch()
	r.mu.Unlock()
	wg.Wait()
	if !stop() {
		<-cancelled
	}
	if r.trace != nil {
		r.trace.PeakBytes = int(r.memory.peak.Load())
		r.trace.Collectives = r.traced()
	}
	if r.profile != nil {
		r.profile.Ops = r.profiled()
	}
	if r.timeline != nil {
		r.endTimeline()
	}
	if r.err == nil { // nobody is left who uses a buffer that is free
		r.devices[0].seat = r.seats[0]
		r.releaseKept()
		r.exe.spare.giveAll(r.pool.free)
		for _, s := range r.seats {
			r.exe.spare.giveAll(s.free)
			r.exe.works.give(s.work)
		}
	}
	return results, r.err
}

// traced is what the devices did at each collective.
func (r *run) traced() []Traced {
	out := make([]Traced, len(r.exe.colls))
	for i, c := range r.exe.colls {
		out[i] = Traced{Op: c.op, Times: make([]int, len(r.devices)), Meets: make([]int, len(r.devices))}
		for id, d := range r.devices {
			out[i].Times[id], out[i].Meets[id] = d.times[i], c.meets(id)
		}
	}
	return out
}

// park gives up d's permit until ready and a permit come. r.mu is held before, and
// after unless it fails. In a run that has failed no device would wake d, so it
// does not wait.
func (r *run) park(d *device, w waiter) error {
	if r.err != nil {
		r.mu.Unlock()
		return errStopped
	}
	var begin int64
	only := d.recorder != nil && w.only() && !d.recorder.waiting
	if d.recorder != nil && !only {
		begin = d.recorder.waits()
	}
	d.waits, d.parked = w, true
	r.giveBack(d)
	r.dispatch()
	r.mu.Unlock()
	<-d.wake
	if r.failed.Load() {
		return errStopped
	}
	r.mu.Lock()
	switch {
	case only:
		d.recorder.onlyWaits(d.readyAt, w.on(d))
	case d.recorder != nil:
		d.recorder.waited(begin, d.readyAt, w.on(d))
	}
	return nil
}

// ready puts d, which is parked, in line. r.mu is held.
func (r *run) ready(d *device) {
	if d.recorder != nil {
		d.readyAt = ticks.Now()
	}
	r.enqueue(d)
}

// readyBy is ready for what a device needs to do nothing for but to come: it is there
// since its op began, if it has not waited in that itself.
func (r *run) readyBy(by, d *device) {
	if d.recorder != nil {
		d.readyAt = by.recorder.waits()
	}
	r.enqueue(d)
}

func (r *run) enqueue(d *device) {
	d.waits = nil
	r.line = append(r.line, d)
	r.dispatch()
}

// dispatch hands out permits. If no device computes and none is in line, all wait
// for each other: a deadlock. r.mu is held.
func (r *run) dispatch() {
	for r.err == nil && r.permits > 0 && len(r.line) > 0 {
		i := r.next()
		d := r.line[i]
		r.line = slices.Delete(r.line, i, i+1)
		r.permit(d)
		d.parked = false
		d.wake <- struct{}{}
	}
	if r.err == nil && r.permits == r.workers && r.live > 0 {
		r.stop(r.deadlock())
	}
}

// mostLooked is how many devices at the end of the line are looked at for one whose home is a seat.
const mostLooked = 64

// next is the place in line of the device that goes on: of those whose home is the free seat the one that
// came last, since what it computed on is in a cache, more likely than what others did; if there is none, the last
// one. r.mu is held.
func (r *run) next() int {
	last := len(r.line) - 1
	if r.rng != nil {
		return r.rng.IntN(len(r.line))
	}
	seat := r.made // one that is still to be made
	if n := len(r.seats); n > 0 {
		seat = r.seats[n-1].index
	}
	for i := last; i > last-mostLooked && i >= 0; i-- {
		if r.line[i].home == seat {
			return i
		}
	}
	return last
}

// homes gives each device a seat to go on in: the same one to those that gather the same, which they read one after
// the other; where none gather anything, to those that follow one another.
func (r *run) homes() {
	gather := slices.IndexFunc(r.exe.colls, func(c *collective) bool { return c.op.Kind == ir.AllGather && len(c.groups[0]) > 1 })
	for id, d := range r.devices {
		d.home = id * r.workers / len(r.devices)
		if gather >= 0 {
			d.home = r.exe.colls[gather].group[id] % r.workers
		}
	}
}

// fail ends the run with err, unless it has failed before.
func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop(err)
}

// stop lets every parked device go, to find that the run has failed. r.mu is held.
func (r *run) stop(err error) {
	if r.err != nil {
		return
	}
	r.err = err
	r.failed.Store(true)
	for _, d := range r.devices {
		if d.parked {
			d.parked = false
			d.wake <- struct{}{}
		}
	}
}

func (r *run) finish(d *device) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d.returned = true
	r.live--
	r.giveBack(d)
	r.dispatch()
}

// A seat is the memory that a device computes in: of a core and not of a device, since what
// one device leaves there is in the core's caches when the next one takes it.
type seat struct {
	work  *kernel.Work
	free  [][]*buffer // by class
	index int         // among those of the run
}

// permit lets d compute, in the seat of the device that gave a permit back last. r.mu is held.
func (r *run) permit(d *device) {
	r.permits--
	if n := len(r.seats); n > 0 {
		d.seat, r.seats = r.seats[n-1], r.seats[:n-1]
		return
	}
	d.seat = r.newSeat(&kernel.Work{Stop: &r.failed})
}

func (r *run) newSeat(w *kernel.Work) *seat {
	r.made++
	return &seat{w, make([][]*buffer, len(r.exe.classes.sizes)), r.made - 1}
}

// giveBack ends what permit began. r.mu is held.
func (r *run) giveBack(d *device) {
	r.permits++
	if d.seat != nil { // else it was let go to find that the run has failed
		r.seats = append(r.seats, d.seat)
		d.seat = nil
	}
}

// deadlock follows who waits for whom from the first device that waits, until
// it comes back to one it has seen or to one that has returned. r.mu is held.
func (r *run) deadlock() *Deadlock {
	at := slices.IndexFunc(r.devices, func(d *device) bool { return d.waits != nil })
	seen := make(map[int]int) // place in chain
	var chain []Wait
	for {
		if first, ok := seen[at]; ok {
			return &Deadlock{chain[first:]}
		}
		d := r.devices[at]
		next := d.waits.missing(r, d)
		seen[at] = len(chain)
		chain = append(chain, Wait{d.id, next, r.devices[next].returned, d.op(), slices.Clone(d.iterations)})
		if r.devices[next].returned {
			return &Deadlock{chain}
		}
		at = next
	}
}
