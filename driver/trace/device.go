package trace

import (
	"fmt"
	"time"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/runtime"
)

// A reader goes through the events of one device, with the loops around.
type reader struct {
	*writer
	s      *step
	device int
	stage  int
	loops  []*frame          // that run, outermost first
	done   map[ir.Pos][2]int // iterations of each pipeline so far, forward and backward
	pauses []runtime.Pause   // that are still to come
}

// A frame is a loop that runs.
type frame struct {
	event     runtime.Event
	iteration int32 // that its last event was of
	begin     time.Duration
	end       time.Duration // of the last event
	open      bool          // an iteration has begun
	work      *work         // of the iteration, in a pipeline
}

// A work is what a stage does in an iteration of a pipeline.
type work struct {
	iteration          int
	backward           bool
	microbatch, repeat int
	bubble             bool
}

// timeline writes the track of device d.
func (t *writer) timeline(s *step, d int) {
	r := &reader{writer: t, s: s, device: d, stage: t.stage(d), done: make(map[ir.Pos][2]int)}
	events, pauses := s.line.Events(d)
	r.pauses = pauses
	for _, e := range events {
		r.leave(e.Begin)
		r.enter(e)
		r.op(e)
		if s.line.Ops[e.Op].Kind == ir.While {
			r.loops = append(r.loops, &frame{event: e, iteration: -1})
		}
	}
	r.leave(1 << 62)
}

// leave ends the loops that ended before now.
func (r *reader) leave(now time.Duration) {
	for n := len(r.loops); n > 0 && (r.loops[n-1].event.End <= now); n-- {
		r.close(r.loops[n-1])
		r.loops = r.loops[:n-1]
	}
}

// enter begins an iteration of the innermost loop, where e is the first event of it.
func (r *reader) enter(e runtime.Event) {
	if len(r.loops) == 0 {
		return
	}
	f := r.loops[len(r.loops)-1]
	if r.names[e.Op].condition {
		r.close(f)
		return
	}
	if f.iteration != e.Iteration || !f.open {
		r.close(f)
		f.open, f.iteration, f.begin = true, e.Iteration, e.Begin
		f.work = r.next(f)
	}
	f.end = e.End
}

// next is what the stage does in the iteration of f that begins.
func (r *reader) next(f *frame) *work {
	n := &r.names[f.event.Op]
	if n.loop != ir.LoopIterations || n.turn {
		return nil
	}
	schedule, known := r.pipelines[n.pos]
	if !known {
		return nil
	}
	direction := 0
	if n.reverse {
		direction = 1
	}
	counts := r.done[n.pos]
	t := counts[direction]
	if t >= schedule.Iterations() {
		return nil
	}
	counts[direction]++
	r.done[n.pos] = counts
	return workOf(schedule, r.stage, t, n.reverse)
}

func workOf(s facts.Schedule, stage, t int, backward bool) *work {
	w := &work{iteration: t, backward: backward}
	if backward {
		w.iteration = s.Iterations() - 1 - t
	}
	microbatch, repeat, busy := s.At(stage, w.iteration)
	w.microbatch, w.repeat, w.bubble = microbatch, repeat, !busy
	return w
}

// close ends the iteration of f and writes it.
func (r *reader) close(f *frame) {
	if !f.open {
		return
	}
	f.open = false
	if f.work != nil {
		r.slice(r.s, devices, r.device+1, f.work.name(), f.work.category(), f.begin, f.end, f.work.args(r.stage, nil))
	}
}

func (w *work) name() string {
	direction := ""
	if w.backward {
		direction = "backward "
	}
	if w.bubble {
		return fmt.Sprintf("%sbubble, iteration %d", direction, w.iteration)
	}
	return fmt.Sprintf("%smicrobatch %d, repeat %d", direction, w.microbatch, w.repeat)
}

func (w *work) category() string {
	if w.bubble {
		return "bubble"
	}
	return "microbatch"
}

// args adds what w says to the arguments of an event.
func (w *work) args(stage int, args map[string]any) map[string]any {
	if args == nil {
		args = make(map[string]any)
	}
	args["stage"], args["iteration"] = stage, w.iteration
	if w.bubble {
		args["bubble"] = true
		return args
	}
	args["microbatch"], args["repeat"] = w.microbatch, w.repeat
	return args
}

// op writes an op, and what the device waited for in it.
func (r *reader) op(e runtime.Event) {
	n := &r.names[e.Op]
	args := map[string]any{"step": r.s.number}
	if n.origin != "" {
		args["origin"] = n.origin
	}
	if n.layer != "" {
		args["layer"] = n.layer
	}
	if n.fused != nil {
		args["fused"] = n.fused
	}
	if w := r.working(); w != nil {
		w.args(r.stage, args)
	}
	r.slice(r.s, devices, r.device+1, n.name, n.kind, e.Begin, e.End, args)
	if !n.moves {
		return
	}
	for len(r.pauses) > 0 && r.pauses[0].End <= e.End {
		p := r.pauses[0]
		r.pauses = r.pauses[1:]
		if p.Begin < e.Begin || p.Op != e.Op {
			continue // of an op that is not in the recording
		}
		r.slice(r.s, devices, r.device+1, fmt.Sprintf("wait for device %d", p.On), "wait", p.Begin, p.Ready, map[string]any{"on": p.On})
		r.slice(r.s, devices, r.device+1, "wait for a core", "wait", p.Ready, p.End, nil)
	}
}

// working is what the innermost pipeline around does.
func (r *reader) working() *work {
	for i := len(r.loops) - 1; i >= 0; i-- {
		if w := r.loops[i].work; w != nil {
			return w
		}
	}
	return nil
}
