// Package report says what a person wants to see of a program before it runs on
// many devices: what every stage does in every iteration, what is gathered and
// how often, who holds the memory, which collectives run, what loops carry and
// save, and what the lints find.
//
// [Before] reads the schedules of a program as it was read, [Of] measures the
// per-device program that the passes make of it. [Facts] is one struct, which
// encodes as JSON; [Text] and [HTML] print the same facts as tables, HTML with a
// plot beside the tables. [Diff] lists the facts in which two programs differ.
//
// Devices are told by the axes of the mesh and never listed, so that a report of
// 16,384 devices is as long as one of eight.
package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ppc/internal/diag"
	"ppc/ir"
	"ppc/lower/flow"
	"ppc/lower/hlo"
	"ppc/lower/lint"
	"ppc/lower/stats"
)

// Facts is what is known of one program under one choice of settings. Bytes are
// those of one device, and counts those of one step. A count that the program
// does not tell is null.
type Facts struct {
	Program     string       `json:"program"`
	Settings    []string     `json:"settings"` // beside those of the file
	Mesh        []Axis       `json:"mesh"`
	Devices     int          `json:"devices"`
	Schedules   []*Schedule  `json:"schedules"`
	Gathers     []Gather     `json:"weight_gathers"`
	Memory      Memory       `json:"memory"`
	Collectives []Collective `json:"collectives"`
	Loops       []Loop       `json:"loops"`
	Windows     []Window     `json:"windows"`
	Residuals   []Residual   `json:"residuals"`
	Findings    []Finding    `json:"findings"`
}

// An Axis is one axis of the mesh.
type Axis struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

// A Gather is the all-gathers of one weight in one loop, over the same axes.
type Gather struct {
	Weight     string `json:"weight"`
	Loop       string `json:"in"` // the innermost loop around; "" for none
	Axes       string `json:"axes"`
	Type       string `json:"type"`
	Bytes      int    `json:"bytes"` // of the weight as it is gathered, each time
	Ops        int    `json:"ops"`
	Executions *int   `json:"executions"`
	Layers     bool   `json:"layers,omitempty"` // a weight of layers, which are stacked
}

// A Collective is the collectives of one kind in one loop, over the same axes.
type Collective struct {
	Loop       string `json:"in"`
	Kind       string `json:"kind"`
	Axes       string `json:"axes"`
	Ops        int    `json:"ops"`
	Bytes      int    `json:"bytes"` // of the values, each once
	Executions *int   `json:"executions"`
	Received   *int   `json:"received"` // bytes per step that a device gets from others, in a ring
}

// A Loop is a loop of the program, with what its iterations hand on (carries)
// and what all of them read (closures).
type Loop struct {
	Name     string  `json:"name"`
	Trips    *int    `json:"trips"`
	Carries  []Array `json:"carries"`
	Closures []Array `json:"closures"`
}

// An Array is a value that a loop carries or captures.
type Array struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Bytes  int    `json:"bytes"`
	Origin string `json:"origin"` // where the program makes it
}

// A Window is a gathered weight that a loop holds while it runs.
type Window struct {
	Loop   string `json:"in"`
	Weight string `json:"weight"`
	Type   string `json:"type"`
	Bytes  int    `json:"bytes"`
	Copies int    `json:"copies"` // the repeats of which it is there at a time
}

// A Residual is what a loop saves for the backward pass.
type Residual struct {
	Name   string `json:"name"`
	Loop   string `json:"in"`
	Type   string `json:"type"`
	Bytes  int    `json:"bytes"`
	Why    string `json:"saved_because"`
	Origin string `json:"origin"`
}

// A Finding is what a lint found.
type Finding struct {
	Lint       string `json:"lint"`
	Severity   string `json:"severity"`
	Place      string `json:"place"`
	Name       string `json:"name"`
	Loop       string `json:"in"`
	Axes       string `json:"axes"`
	Bytes      int    `json:"bytes"`
	Executions *int   `json:"executions"`
	Message    string `json:"message"`
}

// Of measures m, a per-device program. schedules is what [Before] said of it,
// found what the lints find.
func Of(m *ir.Module, program string, settings []string, schedules []*Schedule, found []*lint.Finding) (*Facts, error) {
	u, err := hlo.Unfuse(m)
	if err != nil {
		return nil, err
	}
	s, err := stats.Of(u)
	if err != nil {
		return nil, err
	}
	f := &Facts{Program: clip(program), Settings: []string{}, Mesh: []Axis{}, Devices: u.NumDevices(), Schedules: schedules,
		Memory: memoryOf(s), Collectives: collectivesOf(s), Residuals: []Residual{}, Findings: []Finding{}}
	for _, set := range settings {
		f.Settings = append(f.Settings, clip(set))
	}
	if len(u.Meshes) > 0 {
		for _, a := range u.Meshes[0].Axes {
			f.Mesh = append(f.Mesh, Axis{clip(a.Name), a.Size})
		}
	}
	weights := flow.WeightsOf(u, u.Main())
	f.Gathers = gathersOf(s, weights)
	f.Loops, f.Windows = loopsOf(s, weights)
	for _, r := range s.Residuals {
		f.Residuals = append(f.Residuals, Residual{clip(cmp.Or(r.Name, savedBy(r.Op))), clip(r.Loop), stats.TypeText(r.Type), r.Bytes, clip(r.Why), place(r.Op)})
	}
	for _, x := range found {
		f.Findings = append(f.Findings, Finding{x.Lint, x.Severity.String(), clip(lint.PlaceText(x.Pos)), clip(x.Name), clip(x.Loop), clip(x.Axes), x.Bytes, count(x.Executions), clip(x.Msg)})
	}
	return f, nil
}

// savedBy is what a residual without a name is called: the op that makes what op,
// which puts it in its place, saves.
func savedBy(op *ir.Op) string {
	for op != nil && (op.Kind == ir.DynamicUpdateSlice || op.Kind == ir.Reshape) {
		v := op.Operands[0]
		if op.Kind == ir.DynamicUpdateSlice {
			v = op.Operands[1]
		}
		if v.Def == nil {
			break
		}
		op = v.Def
	}
	if op == nil {
		return "(unnamed)"
	}
	return "(" + opName(op) + ")"
}

// longest is how many characters of a name are shown.
const longest = 400

// clip is s as text that a terminal and a page may have: what is no printable
// character is quoted, and of a long name the beginning is enough.
func clip(s string) string { return diag.Short(s, longest) }

func count(c stats.Count) *int {
	if c == stats.Unknown {
		return nil
	}
	n := int(c)
	return &n
}

func place(op *ir.Op) string {
	if op == nil {
		return ""
	}
	return clip(lint.PlaceText(op.Origin.Place()))
}

// gathersOf lists the all-gathers of weights, in program order.
func gathersOf(s *stats.Stats, weights *flow.Weights) []Gather {
	type key struct{ weight, loop, axes, typ string }
	out := []Gather{}
	at := make(map[key]int)
	for _, c := range s.Collectives {
		if c.Op.Kind != ir.AllGather {
			continue
		}
		for i, v := range c.Op.Operands {
			w := weights.Of[v]
			if w == nil {
				continue
			}
			r := c.Op.Results[i]
			k := key{nameOf(w), c.Loop, c.Axes, stats.TypeText(r.Type)}
			n, known := at[k]
			if !known {
				n = len(out)
				at[k] = n
				out = append(out, Gather{Weight: clip(k.weight), Loop: clip(k.loop), Axes: clip(k.axes), Type: k.typ, Bytes: stats.BytesOf(r.Type),
					Executions: new(int), Layers: w.Attrs.Has(ir.KeyLayers)})
			}
			out[n].Ops++
			out[n].Executions = plus(out[n].Executions, count(c.Executions))
		}
	}
	return out
}

// plus is the sum of two counts, which may be unknown.
func plus(a, b *int) *int {
	if a == nil || b == nil {
		return nil
	}
	n := *a + *b
	return &n
}

// nameOf is what the user calls a parameter.
func nameOf(p *ir.Value) string {
	return cmp.Or(hlo.UserName(p), p.Attrs.Str(ir.KeyName), p.Name, fmt.Sprintf("argument %d", p.Index))
}

// collectivesOf lists the collectives by loop, kind and axes; those of one loop
// are neighbours.
func collectivesOf(s *stats.Stats) []Collective {
	type key struct{ loop, kind, axes string }
	out := []Collective{}
	at := make(map[key]int)
	for _, c := range s.Collectives {
		k := key{c.Loop, c.Kind, strings.TrimPrefix(c.Over(), "over ")}
		n, known := at[k]
		if !known {
			n = len(out)
			at[k] = n
			out = append(out, Collective{Loop: clip(k.loop), Kind: k.kind, Axes: clip(k.axes), Executions: new(int), Received: new(int)})
		}
		l := &out[n]
		l.Ops++
		l.Bytes += c.Bytes
		l.Executions = plus(l.Executions, count(c.Executions))
		l.Received = plus(l.Received, count(stats.Count(c.Moved).Times(c.Executions)))
	}
	first := make(map[string]int)
	for i, c := range out {
		if _, seen := first[c.Loop]; !seen {
			first[c.Loop] = i
		}
	}
	slices.SortStableFunc(out, func(a, b Collective) int { return cmp.Compare(first[a.Loop], first[b.Loop]) })
	return out
}

// loopsOf lists the loops, and the gathered weights that they hold.
func loopsOf(s *stats.Stats, weights *flow.Weights) ([]Loop, []Window) {
	loops, windows := []Loop{}, []Window{}
	for _, l := range s.Loops {
		row := Loop{Name: clip(l.Name), Trips: count(l.Trips), Carries: []Array{}, Closures: []Array{}}
		held := make(map[string]int) // places in windows
		for _, list := range []struct {
			from []stats.Array
			to   *[]Array
		}{{l.Carries, &row.Carries}, {l.Invariants, &row.Closures}} {
			for _, a := range list.from {
				*list.to = append(*list.to, arrayOf(l, a, weights))
				w := weights.Of[a.Value]
				if w == nil || !weights.Gathered[a.Value] {
					continue
				}
				k := nameOf(w) + " " + stats.TypeText(a.Type)
				n, known := held[k]
				if !known {
					n = len(windows)
					held[k] = n
					windows = append(windows, Window{Loop: row.Name, Weight: clip(nameOf(w)), Type: stats.TypeText(a.Type)})
				}
				windows[n].Copies++
				windows[n].Bytes += a.Bytes
			}
		}
		loops = append(loops, row)
	}
	return loops, windows
}

// arrayOf is a value that l carries or captures, under the user's name.
func arrayOf(l *stats.Loop, a stats.Array, weights *flow.Weights) Array {
	out := Array{Type: stats.TypeText(a.Type), Bytes: a.Bytes}
	v := a.Value
	if v.Block == l.Op.Regions[1] { // what the body makes of it, or where it begins
		next := l.Op.Regions[1].Terminator().Operands[v.Index]
		if next == v {
			next = l.Op.Operands[v.Index]
		}
		out.Origin, v = place(next.Def), next
	} else {
		out.Origin = place(v.Def)
	}
	name := a.Name
	if w := weights.Of[a.Value]; w != nil && name == "" {
		name = nameOf(w)
	}
	if name == "" && v.Def != nil {
		name = cmp.Or(stats.NameOf(v.Def), "("+opName(v.Def)+")")
	}
	out.Name = clip(cmp.Or(name, "(unnamed)"))
	return out
}
