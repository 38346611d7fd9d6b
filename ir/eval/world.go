package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"ppc/ir"
)

// A world is one run: its processes and their shared state. Of P partitions in each
// replica, device r*P + p is partition p of replica r.
type world struct {
	m         *ir.Module
	opts      Options
	rows      map[ir.Kind]row
	replicas  int
	devices   int             // that Run or RunDevices started with
	ctx       context.Context // done once a process has failed
	fail      context.CancelCauseFunc
	unhook    func() bool
	used      atomic.Int64 // bytes that values take
	constants sync.Map     // *ir.Op to *tensor
	dead      sync.Map     // *ir.Block to [][]*ir.Value, see deaths

	mu      sync.Mutex // guards the rest
	change  *sync.Cond // a parcel has come, a process has ended, or ctx is done
	alive   int        // processes that run or wait for a parcel
	boxes   map[address]*parcel
	waiting map[int]wait   // by device
	epochs  map[[2]any]int // parcels sent so far, by device and route
	infeed  [][]*tensor    // what the host will hand in
}

// An address identifies a message: the sender, the collective, and which of its
// executions.
type address struct {
	route string
	from  int
	epoch int
}

// A parcel is a sent message, kept until all receivers have it.
type parcel struct {
	content []*tensor
	readers int
}

// A wait is the message that a device waits for.
type wait struct {
	at address
	op *ir.Op
}

func newWorld(m *ir.Module, opts Options, replicas, devices int) *world {
	w := &world{m: m, opts: opts, rows: table, replicas: replicas, devices: devices, alive: 1,
		boxes: make(map[address]*parcel), waiting: make(map[int]wait), epochs: make(map[[2]any]int)}
	w.change = sync.NewCond(&w.mu)
	ctx := opts.Context
	if ctx == nil {
		ctx = context.Background()
	}
	w.ctx, w.fail = context.WithCancelCause(ctx)
	w.unhook = context.AfterFunc(w.ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.change.Broadcast()
	})
	return w
}

func (w *world) close() {
	w.unhook()
	w.fail(nil)
}

// ranks are the devices of a per-device program.
func (w *world) ranks() []int {
	rs := make([]int, w.devices)
	for i := range rs {
		rs[i] = i
	}
	return rs
}

// reserve counts the results of op as taken and returns their size.
func (w *world) reserve(op *ir.Op) (int64, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	var sum int64
	for _, v := range op.Results {
		if v.Type.IsTensor() && !v.Type.IsStatic() {
			continue // has a size when it is made
		}
		n, err := w.size(v.Type)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, w.take(sum)
}

// take counts n bytes as taken, also where they are too many.
func (w *world) take(n int64) error {
	if limit := w.limit(); w.used.Add(n) > limit {
		return &TooLarge{Limit: limit}
	}
	return nil
}

func (w *world) limit() int64 { return cmp.Or(w.opts.Memory, maxBytes) }

// size is bytes of a value that may be held.
func (w *world) size(t *ir.Type) (int64, error) {
	n, err := bytes(t)
	if limit := w.limit(); err == nil && n > limit {
		return 0, &TooLarge{t, limit}
	}
	return n, err
}

// Fits finds the first op of m, if there is one, with a result that alone takes more memory
// than opts allow: an evaluation that gets there ends with this error.
func Fits(m *ir.Module, opts Options) error {
	w := &world{opts: opts}
	var err error
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		f.Body.Walk(func(op *ir.Op) {
			for _, v := range op.Results {
				if err != nil || !v.Type.IsTensor() || !v.Type.IsStatic() {
					continue
				}
				if _, large := w.size(v.Type); large != nil {
					err = &Error{f.Name, op, large}
				}
			}
		})
	}
	return err
}

// A TooLarge says that an evaluation takes more memory than it may.
type TooLarge struct {
	Type  *ir.Type // of a value that alone is too large; nil where all that are held are
	Limit int64    // bytes
}

func (e *TooLarge) Error() string {
	limit := fmt.Sprintf("%d bytes", e.Limit)
	if n := e.Limit >> 30; n > 0 {
		limit = fmt.Sprintf("%d GiB", n)
	}
	if e.Type == nil {
		return "the values held at one time take more than " + limit
	}
	return fmt.Sprintf("%s takes more than %s", e.Type, limit)
}

// release subtracts the bytes that reserve counted for v.
func (w *world) release(v *ir.Value) int64 {
	n, _ := bytes(v.Type) // has been reserved without an error
	w.used.Add(-n)
	return n
}

// deaths lists, for each op of b, the values of b that no op after it uses.
func (w *world) deaths(b *ir.Block) [][]*ir.Value {
	if dead, ok := w.dead.Load(b); ok {
		return dead.([][]*ir.Value)
	}
	last := make(map[*ir.Value]int)
	mine := slices.Clone(b.Args)
	for _, a := range b.Args {
		last[a] = 0
	}
	for i, op := range b.Ops {
		for _, v := range slices.Concat(op.Operands, op.Captures()) {
			if _, ok := last[v]; ok {
				last[v] = i
			}
		}
		for _, v := range op.Results {
			last[v] = i
		}
		mine = append(mine, op.Results...)
	}
	dead := make([][]*ir.Value, len(b.Ops))
	for _, v := range mine {
		dead[last[v]] = append(dead[last[v]], v)
	}
	w.dead.Store(b, dead)
	return dead
}

// fork runs a process like the given one on each of the devices, in place of
// the caller, and returns when all have ended: the last of them lives on as the
// caller. The first failure ends the world.
func (w *world) fork(like process, ranks []int, run func(p *process, i int) error) error {
	w.join(len(ranks) - 1)
	var wg sync.WaitGroup
	var running atomic.Int64
	running.Store(int64(len(ranks)))
	for i, rank := range ranks {
		wg.Go(func() {
			p := like
			p.rank, p.peers = rank, ranks
			if err := run(&p, i); err != nil {
				w.fail(err)
			}
			if running.Add(-1) > 0 {
				w.join(-1)
			}
		})
	}
	wg.Wait()
	return context.Cause(w.ctx)
}

// join counts n more live processes.
func (w *world) join(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.alive += n
	w.checkDeadlock()
}

// epoch returns how often the device has used the route before.
func (w *world) epoch(rank int, route string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := [2]any{rank, route}
	w.epochs[k]++
	return w.epochs[k] - 1
}

// put sends content to as many readers. It does not wait.
func (w *world) put(at address, readers int, content []*tensor) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if readers > 0 {
		w.boxes[at] = &parcel{content, readers}
		w.change.Broadcast()
	}
}

// get waits until the parcel is there and takes it, for device rank.
func (w *world) get(rank int, op *ir.Op, at address) ([]*tensor, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if w.ctx.Err() != nil {
			return nil, context.Cause(w.ctx)
		}
		if b := w.boxes[at]; b != nil {
			if b.readers--; b.readers == 0 {
				delete(w.boxes, at)
			}
			return b.content, nil
		}
		w.waiting[rank] = wait{at, op}
		w.checkDeadlock()
		if w.ctx.Err() == nil {
			w.change.Wait()
		}
		delete(w.waiting, rank)
	}
}

// checkDeadlock fails the world when every live process waits for a parcel that no
// device has sent. The caller holds mu.
func (w *world) checkDeadlock() {
	if len(w.waiting) < w.alive || w.alive == 0 {
		return
	}
	for _, x := range w.waiting {
		if w.boxes[x.at] != nil {
			return
		}
	}
	var lines []string
	for _, rank := range slices.Sorted(maps.Keys(w.waiting)) {
		x := w.waiting[rank]
		lines = append(lines, fmt.Sprintf("device %d waits at %s for device %d", rank, x.op.Name(), x.at.from))
	}
	w.fail(errors.New("the devices wait for one another: " + strings.Join(lines, "; ")))
}
