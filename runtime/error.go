package runtime

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"ppc/ir"
)

// A LoadError is an op that cannot run.
type LoadError struct {
	Func string
	Op   *ir.Op
	Err  error
}

func (e *LoadError) Error() string {
	var b strings.Builder
	if o := e.Op.Origin; o != nil && o.Place().Line > 0 {
		fmt.Fprintf(&b, "%s: ", o.Place())
	}
	fmt.Fprintf(&b, "in %s: ", ir.SymbolText(e.Func))
	if text := e.Err.Error(); strings.HasPrefix(text, e.Op.Name()) {
		b.WriteString(text)
	} else {
		fmt.Fprintf(&b, "%s: %s", e.Op.Name(), text)
	}
	return b.String()
}

func (e *LoadError) Unwrap() error { return e.Err }

// atFunc puts the place of f before an error that is about all of it.
func atFunc(f *ir.Func, err error) error {
	if f.Origin == nil || f.Origin.Place().Line == 0 {
		return err
	}
	return fmt.Errorf("%s: %w", f.Origin.Place(), err)
}

// A Fault is why a run failed, and where the device that failed first was.
type Fault struct {
	Device     int
	Op         *ir.Op
	Iterations []int // of the loops around Op, outermost first
	Err        error

	// Stack is where ppc itself went wrong; nil where it did not.
	Stack []byte
}

func (f *Fault) Error() string {
	s := fmt.Sprintf("device %d: %s: %v", f.Device, place(f.Op, f.Iterations), f.Err)
	if f.Stack != nil {
		s += "; this is a bug in ppc"
	}
	return s
}

func (f *Fault) Unwrap() error { return f.Err }

// place names an op and the iteration in which it runs.
func place(op *ir.Op, iterations []int) string {
	if op == nil {
		return "start"
	}
	var b strings.Builder
	b.WriteString(op.Name())
	if o := op.Origin; o != nil {
		if o.Name() != "" {
			fmt.Fprintf(&b, " %q", o.Name())
		}
		if o.Pos.Line > 0 {
			fmt.Fprintf(&b, " at %s", o.Pos)
		}
	}
	if c := channelOf(op); c > 0 {
		fmt.Fprintf(&b, " (channel %d)", c)
	}
	if len(iterations) > 0 {
		b.WriteString(", iteration ")
		for i, n := range iterations {
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(strconv.Itoa(n))
		}
	}
	return b.String()
}

// A Deadlock is devices that wait for each other in a cycle, or for one that
// has returned.
type Deadlock struct {
	Waits []Wait // each waits for the next; the last for the first, unless that has returned
}

// A Wait is one device that waits for another.
type Wait struct {
	Device, For int
	Returned    bool // For has returned
	Op          *ir.Op
	Iterations  []int
}

func (e *Deadlock) Error() string {
	var b strings.Builder
	b.WriteString("deadlock: no device can go on")
	for _, w := range e.Waits {
		fmt.Fprintf(&b, "\n  device %d waits for device %d", w.Device, w.For)
		if w.Returned {
			b.WriteString(", which has returned,")
		}
		fmt.Fprintf(&b, " at %s", place(w.Op, w.Iterations))
	}
	return b.String()
}

// errStopped ends a device after another one has failed.
var errStopped = errors.New("stopped")
