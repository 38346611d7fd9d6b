// Package split works on parts of a long list at the same time, on the cores that the
// process may use. What comes of the parts is put together in their order, so that no
// result depends on how many there are.
package split

import (
	"runtime"
	"sync"
)

// A Part is list[From:To], the part of a list of that number, from 0.
type Part struct{ Number, From, To int }

// perCore is how many parts each core gets: one that other processes hold up leaves
// some of its parts to the others.
const perCore = 4

// Parts splits a list of n things into parts of at least so many, in order: into one
// where the process has one core or the list is short.
func Parts(n, least int) []Part {
	count := min(n/max(1, least), perCore*runtime.GOMAXPROCS(0))
	if runtime.GOMAXPROCS(0) == 1 || count < 2 {
		return []Part{{0, 0, n}}
	}
	parts := make([]Part, count)
	for i := range parts {
		parts[i] = Part{i, n * i / count, n * (i + 1) / count}
	}
	return parts
}

// Do calls do for every part, for several at the same time, and returns when all calls
// have. A panic of one of them is one of Do.
func Do(parts []Part, do func(Part)) {
	if len(parts) == 1 {
		do(parts[0])
		return
	}
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		next   int
		broken any
	)
	take := func() (Part, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(parts) || broken != nil {
			return Part{}, false
		}
		next++
		return parts[next-1], true
	}
	for range min(len(parts), runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			defer func() {
				// A bug in do is for whoever called Do: here it would end the process,
				// and nobody could say what was at work.
				if p := recover(); p != nil {
					mu.Lock()
					broken = p
					mu.Unlock()
				}
			}()
			for p, ok := take(); ok; p, ok = take() {
				do(p)
			}
		})
	}
	all.Wait()
	if broken != nil {
		panic(broken)
	}
}
