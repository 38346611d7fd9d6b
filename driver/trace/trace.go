// Package trace writes what the devices of a run did as a trace that Perfetto and
// chrome://tracing open: one track for each device, with its ops by the user's
// names, the iterations of pipelines with repeat and microbatch, bubbles, and
// waits with the device that was waited for; and one for each group of devices
// that meets in collectives.
//
// A run adds its steps to a [Recording]; [Recording.Write] writes them.
package trace

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"ppc/internal/diag"
	"ppc/ir"
	"ppc/ir/facts"
	"ppc/lower/stats"
	"ppc/runtime"
)

// A Recording is the steps of a run.
type Recording struct {
	m         *ir.Module
	pipelines map[ir.Pos]facts.Schedule // by the place of the pipeline
	began     time.Time                 // the first run
	steps     []step
	left      int // events that may still be kept
	lost      int
}

type step struct {
	number int
	at     time.Duration // from the beginning of the recording
	line   *runtime.Timeline
}

// mostEvents bounds the memory of a recording: some 4 bytes for each event.
const mostEvents = 4 << 20

// New is a recording of runs of a program that m has become: a module as it was
// read, which the passes may change afterwards. It says which pipelines there are.
func New(m *ir.Module) *Recording {
	r := &Recording{m: m, pipelines: make(map[ir.Pos]facts.Schedule), left: mostEvents}
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		f.Body.Walk(func(op *ir.Op) {
			if op.Kind == ir.PPPipeline {
				r.pipelines[op.Origin.Place()] = facts.ConfigOf(op).Schedule
			}
		})
	}
	return r
}

// Run runs exe and keeps what its devices do, which is the next step, as far as
// there is room.
func (r *Recording) Run(ctx context.Context, exe *runtime.Executable, args [][]*ir.Literal) ([][]*ir.Literal, error) {
	if r.left == 0 {
		return exe.Run(ctx, args)
	}
	if len(r.steps) == 0 {
		r.began = time.Now()
	}
	s := step{number: len(r.steps) + 1, at: time.Since(r.began), line: &runtime.Timeline{Limit: r.left}}
	out, err := exe.Run(ctx, args, runtime.WithTimeline(s.line))
	if ctx.Err() != nil {
		return out, err
	}
	r.left = max(r.left-s.line.Kept, 0)
	if r.lost += s.line.Lost; s.line.Lost > 0 {
		r.left = 0
	}
	r.steps = append(r.steps, s)
	return out, err
}

// Lost is how many ops are not in the recording, for which it has no room.
func (r *Recording) Lost() int { return r.lost }

// The processes of a trace: tracks are threads of one of them.
const (
	devices = 1
	groups  = 2
)

// An event is one object of the trace.
type event struct {
	Name string         `json:"name"`
	Cat  string         `json:"cat,omitempty"`
	Ph   string         `json:"ph"`
	PID  int            `json:"pid"`
	TID  int            `json:"tid"`
	TS   *micros        `json:"ts,omitempty"`
	Dur  *micros        `json:"dur,omitempty"`
	Args map[string]any `json:"args,omitempty"`
}

// micros is a time in microseconds, with the nanoseconds behind the point.
type micros time.Duration

func (m micros) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%d.%03d", m/1000, m%1000), nil
}

// A writer writes events, one to a line.
type writer struct {
	*Recording
	b     *bufio.Writer
	e     *json.Encoder
	first bool

	names  []naming // of the ops
	tracks map[string]int
}

// Write writes the recording to w.
func (r *Recording) Write(w io.Writer) error {
	b := bufio.NewWriterSize(w, 1<<16)
	t := &writer{Recording: r, b: b, e: json.NewEncoder(b), first: true, tracks: make(map[string]int)}
	t.e.SetEscapeHTML(false)
	b.WriteString("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")
	t.name("process_name", devices, 0, "devices")
	t.name("process_name", groups, 0, "collectives")
	for i := range r.steps {
		s := &r.steps[i]
		if i == 0 {
			for d := range s.line.Devices {
				t.name("thread_name", devices, d+1, t.device(d))
			}
		}
		t.named(s.line)
		for d := range s.line.Devices {
			t.timeline(s, d)
		}
		t.meetings(s)
	}
	b.WriteString("]}\n")
	return b.Flush()
}

func (t *writer) emit(e *event) {
	if !t.first {
		t.b.WriteByte(',')
	}
	t.first = false
	t.e.Encode(e) // to a buffer whose errors Flush returns
}

// name gives a process or a track its name.
func (t *writer) name(what string, pid, tid int, name string) {
	t.emit(&event{Name: what, Ph: "M", PID: pid, TID: tid, Args: map[string]any{"name": name}})
}

// slice is a time on a track.
func (t *writer) slice(s *step, pid, tid int, name, cat string, begin, end time.Duration, args map[string]any) {
	ts, dur := micros(s.at+begin), micros(end-begin)
	t.emit(&event{Name: name, Cat: cat, Ph: "X", PID: pid, TID: tid, TS: &ts, Dur: &dur, Args: args})
}

// device is a device by its place on the mesh.
func (t *writer) device(d int) string {
	name := fmt.Sprintf("device %d", d)
	if at := t.place(d); at != nil {
		var words []string
		for i, a := range t.m.Meshes[0].Axes {
			words = append(words, fmt.Sprintf("%s %d", a.Name, at[i]))
		}
		name += ": " + clip(strings.Join(words, ", "))
	}
	return name
}

// place is the coordinates of a device on the mesh; nil where there is none.
func (t *writer) place(d int) []int {
	if len(t.m.Meshes) == 0 || d >= t.m.Meshes[0].Size() {
		return nil
	}
	mesh := t.m.Meshes[0]
	at := make([]int, len(mesh.Axes))
	for i, a := range mesh.Axes {
		at[i] = mesh.Coordinate(d, ir.AxisRef{Name: a.Name})
	}
	return at
}

// stage is the stage that a device is; 0 without such an axis.
func (t *writer) stage(d int) int {
	at := t.place(d)
	if at == nil {
		return 0
	}
	if i := t.m.Meshes[0].Axis(facts.StageAxis); i >= 0 {
		return at[i]
	}
	return 0
}

// A naming is an op as a trace shows it.
type naming struct {
	name, kind, origin, layer string
	loop                      string // of a while
	reverse                   bool
	turn                      bool // one body holds several iterations
	pos                       ir.Pos
	moves                     bool // a collective
	condition                 bool // in the condition of a loop
	fused                     []string
}

// clip is s as a trace may have it: without control characters, and not long.
func clip(s string) string { return diag.Short(s, 200) }

func (t *writer) named(line *runtime.Timeline) {
	ops := line.Ops
	if t.names != nil {
		return
	}
	t.names = make([]naming, len(ops))
	for i, op := range ops {
		kind := strings.TrimPrefix(op.Name(), "stablehlo.")
		n := naming{name: kind, kind: kind, loop: op.Attrs.Str(ir.KeyLoop), reverse: op.Attrs.Has(ir.KeyReverse), turn: op.Attrs.Has(ir.KeyTurn), moves: op.Kind.Has(ir.Collective)}
		if name := cmp.Or(stats.NameOf(op), n.loop); name != "" {
			n.name = clip(kind + " " + name)
		}
		if op.Origin != nil {
			n.pos, n.layer = op.Origin.Place(), clip(op.Origin.Layer())
			if n.pos.Line > 0 {
				n.origin = clip(n.pos.String())
			}
		}
		for _, member := range line.Fused[i] {
			n.fused = append(n.fused, clip(strings.TrimSpace(strings.TrimPrefix(member.Name(), "stablehlo.")+" "+stats.NameOf(member))))
		}
		t.names[i] = n
	}
	at := make(map[*ir.Op]int, len(ops))
	for i, op := range ops {
		at[op] = i
	}
	for _, op := range ops {
		if op.Kind == ir.While {
			op.Regions[0].Walk(func(c *ir.Op) {
				if i, runs := at[c]; runs {
					t.names[i].condition = true
				}
			})
		}
	}
}

// meetings writes what groups of devices do together: from when the first of them
// is there to when the last goes on.
func (t *writer) meetings(s *step) {
	events := make(map[[2]int][]runtime.Event) // by op and device, in order
	for d := range s.line.Devices {
		own, _ := s.line.Events(d)
		for _, e := range own {
			if s.line.Groups[e.Op] != nil {
				k := [2]int{int(e.Op), d}
				events[k] = append(events[k], e)
			}
		}
	}
	for op, gs := range s.line.Groups {
		for _, g := range gs {
			t.group(s, op, g, func(d int) []runtime.Event { return events[[2]int{op, d}] })
		}
	}
}

func (t *writer) group(s *step, op int, group []int, of func(device int) []runtime.Event) {
	if len(group) < 2 {
		return
	}
	tid := t.track(group)
	for n := range of(group[0]) {
		var begin, end time.Duration
		last := 0
		var came time.Duration
		for i, d := range group {
			es := of(d)
			if n >= len(es) {
				return // of a run that ended early
			}
			if i == 0 || es[n].Begin < begin {
				begin = es[n].Begin
			}
			if i == 0 || es[n].Begin > came {
				came, last = es[n].Begin, d
			}
			end = max(end, es[n].End)
		}
		t.slice(s, groups, tid, t.names[op].name, t.names[op].kind, begin, end, map[string]any{"step": s.number, "last to come": fmt.Sprintf("device %d", last), "origin": t.names[op].origin,
			"bytes": stats.BytesOf(s.line.Ops[op].Results[0].Type)})
	}
}

// track is the number of the track of a group of devices.
func (t *writer) track(group []int) int {
	words := make([]string, min(len(group), 16))
	for i := range words {
		words[i] = fmt.Sprint(group[i])
	}
	if len(group) > len(words) {
		words = append(words, fmt.Sprintf("… (%d devices)", len(group)))
	}
	name := t.along(group) + "devices " + strings.Join(words, ", ")
	if t.tracks[name] == 0 {
		t.tracks[name] = len(t.tracks) + 1
		t.name("thread_name", groups, t.tracks[name], name)
	}
	return t.tracks[name]
}

// along is the axes in which the devices of a group differ.
func (t *writer) along(group []int) string {
	first := t.place(group[0])
	if first == nil {
		return ""
	}
	var axes []string
	for i, a := range t.m.Meshes[0].Axes {
		if slices.ContainsFunc(group, func(d int) bool { at := t.place(d); return at == nil || at[i] != first[i] }) {
			axes = append(axes, clip(a.Name))
		}
	}
	return strings.Join(axes, ", ") + ": "
}
