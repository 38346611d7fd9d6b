package runtime

import (
	"time"

	"ppc/ir"
	"ppc/lower/fuse"
)

// A Profile is where the time of a run went.
type Profile struct {
	// Ops is what the devices spent on each op that ran, in the order in which the
	// program was compiled. An op with regions or a callee includes what is in
	// them; a collective includes the wait for other devices.
	Ops []ProfiledOp
}

// A ProfiledOp is an op, and what all devices together spent on it.
type ProfiledOp struct {
	Op    *ir.Op
	Group *fuse.Group // that it is the last op of; nil where it ran by itself
	Times int
	Time  time.Duration
}

// WithProfile fills p when the run ends, failed or not. Taking the time of
// every step makes a run slower.
func WithProfile(p *Profile) Option { return func(o *options) { o.profile = p } }

// A ran is what a step computes.
type ran struct {
	op    *ir.Op
	group *fuse.Group
}

// spent is what one device spent on one step.
type spent struct {
	times int
	time  time.Duration
}

// profiled adds up what the devices spent.
func (r *run) profiled() []ProfiledOp {
	var out []ProfiledOp
	for i, o := range r.exe.ops {
		p := ProfiledOp{Op: o.op, Group: o.group}
		for _, d := range r.devices {
			p.Times += d.spent[i].times
			p.Time += d.spent[i].time
		}
		if p.Times > 0 {
			out = append(out, p)
		}
	}
	return out
}
