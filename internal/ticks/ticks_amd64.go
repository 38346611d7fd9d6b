package ticks

// counts reports whether the counter runs at one rate whatever the processor does.
var counts = invariant()

// counter is the counter of the processor.
func counter() int64

// invariant is what the processor says of its counter.
func invariant() bool
