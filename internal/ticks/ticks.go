// Package ticks measures short times: it reads the counter of the processor where
// that runs at one rate, which takes a tenth of the time that asking the clock of
// the system does, and that clock elsewhere.
package ticks

import "time"

var epoch = time.Now()

// Now is the number of ticks so far. Ticks are all of one length, which a [Scale]
// says.
func Now() int64 {
	if counts {
		return counter()
	}
	return system()
}

// system is the clock of the system, kept out of Now so that Now is inlined.
//
//go:noinline
func system() int64 { return int64(time.Since(epoch)) }

// A Start is a moment of which both clocks are known.
type Start struct {
	ticks int64
	at    time.Time
}

// Begin is now.
func Begin() Start { return Start{Now(), time.Now()} }

// A Scale says how long ticks are, and since when times are.
type Scale struct {
	from int64
	nano float64 // in a tick
}

// End is the scale of ticks from s to now: the counter took as many steps as the
// clock says that time has passed.
func (s Start) End() Scale {
	out := Scale{from: s.ticks, nano: 1}
	if n := Now() - s.ticks; counts && n > 0 {
		out.nano = float64(time.Since(s.at)) / float64(n)
	}
	return out
}

// Time is when the number of ticks was t, from the beginning of the scale. Later
// ticks have no earlier time.
func (s Scale) Time(t int64) time.Duration { return time.Duration(float64(t-s.from) * s.nano) }
