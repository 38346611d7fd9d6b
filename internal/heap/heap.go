// Package heap sets when garbage is collected.
package heap

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// CollectFrom has garbage collected when the heap has n bytes, or, where more than
// two thirds of that are in use, when it has half as much again. By default it is collected
// from 4 MB on, again and again, while a program of which every pass makes a new one
// is compiled: a third of the time.
func CollectFrom(n int) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	debug.SetGCPercent(percent(uint64(n), live[0].Value.Uint64()))
	// An object that nothing refers to says when garbage has been collected, and so
	// what is in use is known anew.
	runtime.SetFinalizer(new([16]byte), func(*[16]byte) { CollectFrom(n) })
}

// minHeap is the size at which the runtime collects garbage for the first time, at
// the default of 100 percent.
const minHeap = 4 << 20

// defaultPercent is how much a large heap may grow by: half of what is in use.
const defaultPercent = 50

// percent is how much a heap with so many bytes in use may grow for n in all.
func percent(n, live uint64) int {
	live = max(live, minHeap)
	if n <= live+live/2 {
		return defaultPercent
	}
	return int((n - live) * 100 / live)
}
