// Package heap sets when garbage is collected.
package heap

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// A Limit is the size that the heap has when garbage is collected, where less than that
// is in use. By default the runtime collects from 4 MB on, again and again, while a program
// of which every pass makes a new one is compiled: a third of the time.
type Limit struct {
	mu     sync.Mutex
	bytes  int
	growth int // in percent of what is in use: the heap may have that much more in any case
}

// How much a heap may grow by in any case, in percent of what is in use. Where a limit
// follows from the input, memory counts, and garbage is collected seldom.
const (
	half   = 50
	eighth = 12
)

// CollectFrom has garbage collected when the heap has n bytes, or, where more than
// two thirds of that are in use, when it has half as much again.
func CollectFrom(n int) *Limit {
	l := &Limit{bytes: n, growth: half}
	l.adjust()
	return l
}

// timesInput is how large the heap is for an input of a unit of size. What is allocated
// while a large program is read and checked is about that, so that hardly any garbage is
// collected, and all of the process stays below 12 times its input.
const timesInput = 9

// Read raises the limit for an input of n bytes, where it is large. Nothing happens
// where l is nil.
func (l *Limit) Read(n int) {
	if l == nil {
		return
	}
	l.mu.Lock()
	larger := n*timesInput > l.bytes
	if larger {
		l.bytes, l.growth = n*timesInput, eighth
	}
	l.mu.Unlock()
	if larger {
		l.set()
	}
}

// set has the runtime collect garbage at the limit.
func (l *Limit) set() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	l.mu.Lock()
	defer l.mu.Unlock()
	debug.SetGCPercent(percent(uint64(l.bytes), live[0].Value.Uint64(), l.growth))
}

// adjust is set, now and after each collection of garbage: an object that nothing refers
// to says when that was, and so what is in use is known anew.
func (l *Limit) adjust() {
	l.set()
	runtime.SetFinalizer(new([16]byte), func(*[16]byte) { l.adjust() })
}

// minHeap is the size at which the runtime collects garbage for the first time, at
// the default of 100 percent.
const minHeap = 4 << 20

// percent is how much a heap with so many bytes in use may grow for n in all, or growth
// where that is more. Where half as much again is in use, n is too little to hold on to: a program whose ops
// have shardings takes several times it, and would be collected without an end.
func percent(n, live uint64, growth int) int {
	live = max(live, minHeap)
	switch {
	case live > n+n/2:
		return half
	case n <= live:
		return growth
	}
	return max(growth, int((n-live)*100/live))
}
