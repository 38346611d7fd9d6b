package runtime

import (
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"ppc/internal/ticks"
	"ppc/ir"
	"ppc/runtime/kernel"
)

// A device is one goroutine's state. Only that goroutine touches it, but for
// the fields that the scheduler guards.
type device struct {
	id   int
	run  *run
	home int // the seat that it goes on in, if that is free

	slots      []*buffer // of the function at hand
	at         *step
	iterations []int // of the loops around at, outermost first
	stack      []*buffer
	src, dst   []kernel.Mem
	made       []*buffer
	*seat                   // while it computes
	kept       []keptPanels // by index
	pieces     *buffer      // that are none any more, linked by base
	chunk      kernel.Mem   // of a sum
	terms      [2]kernel.Mem
	recorder   *recorder // nil unless that is asked for
	spent      []spent   // by step; nil unless that is asked for
	times      []int     // by collective, how often it took part; nil unless that is asked for
	met        int       // collectives so far
	killAt     int       // 0: never

	// Guarded by run.mu.
	parked   bool
	wake     chan struct{} // one token; the scheduler sends it to let a parked device go on
	waits    waiter        // what it waits for; nil while it does not
	returned bool
	readyAt  int64     // when it was put in line last; only with a timeline
	exchange *exchange // what it got from the others
}

// main runs the program on d and reports how it ended.
func (d *device) main(args []*buffer) (results []*buffer) {
	defer d.run.finish(d)
	defer func() {
		// A bug in ppc: it is reported with the op, and the other devices end.
		if p := recover(); p != nil {
			d.run.fail(&Fault{Device: d.id, Op: d.op(), Iterations: slices.Clone(d.iterations), Err: fmt.Errorf("panic: %v", p), Stack: debug.Stack()})
		}
	}()
	<-d.wake
	if d.run.failed.Load() {
		return nil
	}
	growStack()
	if d.recorder != nil {
		d.recorder.began = ticks.Now()
		d.recorder.last = d.recorder.began
	}
	results, err := d.call(d.run.exe.main, slices.Clone(args))
	if err != nil && err != errStopped {
		d.run.fail(&Fault{Device: d.id, Op: d.op(), Iterations: slices.Clone(d.iterations), Err: err})
	}
	return results
}

func (d *device) op() *ir.Op {
	if d.at == nil {
		return nil
	}
	return d.at.op
}

// call runs f; it takes the references of args and gives those of the results.
func (d *device) call(f *function, args []*buffer) ([]*buffer, error) {
	frame := f.frame
	if d.run.poisonBubbles {
		frame = f.bubbles
	}
	outer := d.slots
	d.slots = slices.Clone(frame)
	for i, slot := range f.params {
		d.slots[slot] = args[i]
	}
	if err := d.steps(f.body); err != nil {
		return nil, err
	}
	results := args[:0]
	for i, slot := range f.body.results {
		b := d.slots[slot]
		if !f.body.move[i] {
			b.retain()
		}
		results = append(results, b)
	}
	d.slots = outer
	return results, nil
}

// steps runs the steps of b.
func (d *device) steps(b *block) error {
	recorder := d.recorder
	if recorder != nil && !recorder.enter(b) {
		recorder = nil
	}
	for _, slot := range b.unused {
		d.release(d.slots[slot])
		d.slots[slot] = nil
	}
	for i := range b.steps {
		s := &b.steps[i]
		d.at = s
		if d.run.failed.Load() {
			return errStopped
		}
		var err error
		switch {
		case recorder != nil:
			if err = s.exec(d, s); s.untimed {
				recorder.open = true
			} else {
				recorder.end(s)
			}
		case d.spent != nil:
			err = d.measure(s)
		default:
			err = s.exec(d, s)
		}
		if err != nil {
			return err
		}
		if s.dontCare && d.run.poisonBubbles {
			d.poison(s)
		}
		for _, slot := range s.free {
			d.release(d.slots[slot])
			d.slots[slot] = nil
		}
	}
	return nil
}

// measure runs one step and adds up its time.
func (d *device) measure(s *step) error {
	begin := time.Now()
	err := s.exec(d, s)
	t := &d.spent[s.id]
	t.times++
	t.time += time.Since(begin)
	return err
}

// poison replaces the results of s by NaN.
func (d *device) poison(s *step) {
	for i, slot := range s.out {
		if !canPoison(s.elems[i]) {
			continue
		}
		b := d.alloc(s.classes[i])
		kernel.Poison(b.mem, s.elems[i])
		d.release(d.slots[slot])
		d.slots[slot] = b
	}
}

// growStack makes the goroutine's stack as large as a device needs, before there is anything on it that growing would copy.
//
//go:noinline
func growStack() (n byte) {
	var room [12 << 10]byte
	for i := 0; i < len(room); i += 4096 {
		n += room[i]
	}
	return n
}
