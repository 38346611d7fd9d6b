package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Difference is a quantity of a thing that two programs both have or of which
// one has none: null. Of a thing that one of them lacks it is the first quantity.
type Difference struct {
	What     string `json:"what"` // mesh, schedule, memory, gather, collective, loop, carry, closure, window, residual, finding
	Name     string `json:"name"` // as the user calls it
	Loop     string `json:"in"`
	Quantity string `json:"quantity"`
	A        any    `json:"a"` // a number or text
	B        any    `json:"b"`

	bytes, share bool
}

// A thing is what a program has, under a name that another program may have too.
type thing struct {
	what, name, loop string
	values           []value
}

// A value is one quantity of a thing.
type value struct {
	name         string
	v            any // int, float64, string; nil where it is not known
	bytes, share bool
}

// things is the facts as one list. What has the same name in the same loop is one
// thing, whose numbers are sums.
func (f *Facts) things() *thingList {
	l := &thingList{at: make(map[thingKey]*thing)}
	for _, a := range f.Mesh {
		l.add("mesh", a.Name, "", value{name: "size", v: a.Size})
	}
	for i, s := range f.Schedules {
		l.add("schedule", cmp.Or(s.Layer, fmt.Sprint(i)), "", value{name: "bubble", v: s.Fraction, share: true}, value{name: "iterations", v: s.Iterations}, value{name: "stages", v: s.Stages},
			value{name: "microbatches", v: s.Microbatches}, value{name: "repeats", v: s.Repeats}, value{name: "layers per stage", v: s.LayersPerStage}, value{name: "delay", v: s.Delay},
			value{name: "gather", v: s.Gather}, value{name: "prefetch", v: s.Prefetch}, value{name: "rotate", v: s.Rotate}, value{name: "remat", v: s.Remat}, value{name: "checkpoint", v: s.Checkpoint})
	}
	l.add("memory", "peak", "", value{name: "bytes", v: f.Memory.Peak, bytes: true})
	for _, o := range f.Memory.Owners {
		l.add("memory", o.Owner, "", value{name: "bytes at the peak", v: o.Bytes, bytes: true})
	}
	for _, g := range f.Gathers {
		l.add("gather", g.Weight+" "+over(g.Axes), g.Loop, value{name: "executions", v: known(g.Executions)}, value{name: "bytes each time", v: g.Bytes, bytes: true})
	}
	for _, c := range f.Collectives {
		l.add("collective", c.Kind+" "+over(c.Axes), c.Loop, value{name: "received per step", v: known(c.Received), bytes: true}, value{name: "executions", v: known(c.Executions)})
	}
	for _, x := range f.Loops {
		l.add("loop", x.Name, "", value{name: "iterations", v: known(x.Trips)}, value{name: "carries", v: bytesOf(x.Carries), bytes: true}, value{name: "closures", v: bytesOf(x.Closures), bytes: true})
	}
	for _, x := range f.Loops {
		for _, a := range x.Carries {
			l.add("carry", a.Name, x.Name, value{name: "bytes", v: a.Bytes, bytes: true})
		}
		for _, a := range x.Closures {
			l.add("closure", a.Name, x.Name, value{name: "bytes", v: a.Bytes, bytes: true})
		}
	}
	for _, w := range f.Windows {
		l.add("window", w.Weight, w.Loop, value{name: "bytes", v: w.Bytes, bytes: true}, value{name: "copies", v: w.Copies})
	}
	for _, r := range f.Residuals {
		l.add("residual", r.Name, r.Loop, value{name: "bytes", v: r.Bytes, bytes: true}, value{name: "saved because", v: r.Why})
	}
	for _, x := range f.Findings {
		l.add("finding", x.Lint+": "+x.Name, x.Loop, value{name: "findings", v: 1})
	}
	return l
}

func known(n *int) any {
	if n == nil {
		return nil
	}
	return *n
}

type thingKey struct{ what, name, loop string }

type thingList struct {
	things []*thing
	at     map[thingKey]*thing
}

func (l *thingList) add(what, name, loop string, values ...value) {
	k := thingKey{what, name, loop}
	t := l.at[k]
	if t == nil {
		t = &thing{what, name, loop, values}
		l.things, l.at[k] = append(l.things, t), t
		return
	}
	for i, v := range values {
		t.values[i].v = together(t.values[i].v, v.v)
	}
}

// together is the quantity of two things of one name.
func together(a, b any) any {
	x, number := a.(int)
	y, also := b.(int)
	switch {
	case a == nil || b == nil:
		return nil
	case number && also:
		return x + y
	case a == b || slices.Contains(strings.Split(fmt.Sprint(a), ", "), fmt.Sprint(b)):
		return a
	}
	return fmt.Sprint(a, ", ", b)
}

// Diff lists what differs between two programs, in the order of the facts.
func Diff(a, b *Facts) []Difference {
	var out []Difference
	left, right := a.things(), b.things()
	for _, x := range left.things {
		y := right.at[x.key()]
		for i, v := range x.values {
			d := Difference{x.what, x.name, x.loop, v.name, v.v, nil, v.bytes, v.share}
			if y == nil {
				out = append(out, d)
				break
			}
			if d.B = y.values[i].v; d.A != d.B {
				out = append(out, d)
			}
		}
	}
	for _, y := range right.things {
		if left.at[y.key()] == nil {
			v := y.values[0]
			out = append(out, Difference{y.what, y.name, y.loop, v.name, nil, v.v, v.bytes, v.share})
		}
	}
	slices.SortStableFunc(out, func(x, y Difference) int {
		return cmp.Compare(slices.Index(subjects, x.What), slices.Index(subjects, y.What))
	})
	return out
}

// subjects is the order of differences.
var subjects = []string{"mesh", "schedule", "memory", "gather", "collective", "loop", "residual", "window", "finding", "carry", "closure"}

func (t *thing) key() thingKey { return thingKey{t.what, t.name, t.loop} }

// DiffText is differences for a terminal, a and b being what the programs are called.
func DiffText(a, b string, ds []Difference) string {
	if len(ds) == 0 {
		return "no difference\n"
	}
	t := table{head: []string{"", "name", "in", "quantity", clip(a), clip(b), "change"}}
	for _, d := range ds {
		t.row(words(d.What), words(d.Name), words(d.Loop), words(d.Quantity), d.cell(d.A), d.cell(d.B), d.change())
	}
	return t.text()
}

func (d *Difference) cell(v any) cell {
	switch v := v.(type) {
	case nil:
		return words("-")
	case int:
		if d.bytes {
			return size(v)
		}
		return number(v)
	case float64:
		return percent(v)
	}
	return words(fmt.Sprint(v))
}

// change is how many times as much the second has.
func (d *Difference) change() cell {
	a, one := d.A.(int)
	b, other := d.B.(int)
	if !one || !other || a == 0 || b == 0 {
		return words("")
	}
	return words(fmt.Sprintf("x %.3g", float64(b)/float64(a)))
}

// comparison is the first facts beside others of the same program.
func comparison(all []*Facts) section {
	t, loops := newColumns("", all), newColumns("Loops: how often, carries, closures", all)
	add := t.add
	for i, f := range all {
		for _, s := range f.Schedules {
			add(i, "iterations"+s.of(len(f.Schedules)), number(s.Iterations))
			add(i, "bubble"+s.of(len(f.Schedules)), percent(s.Fraction))
		}
		g := table{}
		f.glanceGathers(&g)
		for _, r := range g.rows {
			add(i, r[0].text, r[1])
		}
		moved := new(int)
		for _, c := range f.Collectives {
			moved = plus(moved, c.Received)
		}
		add(i, "received from other devices per step", sizes(moved))
		for _, c := range f.byKind() {
			add(i, "  by "+c.Kind+" "+over(c.Axes), sizes(c.Received))
		}
		add(i, "peak memory", size(f.Memory.Peak))
		for _, o := range f.Memory.Owners {
			add(i, "  "+o.Owner, size(o.Bytes))
		}
		saved := 0
		for _, r := range f.Residuals {
			saved += r.Bytes
		}
		add(i, "saved for the backward pass", size(saved))
		held := 0
		for _, w := range f.Windows {
			held = max(held, f.windowIn(w.Loop))
		}
		add(i, "gathered weights that one loop holds", size(held))
		add(i, "loops", number(len(f.Loops)))
		for _, l := range f.Loops {
			loops.add(i, l.Name, words(fmt.Sprintf("%s × %d carries %s, %d closures %s", times(l.Trips).text, len(l.Carries), size(bytesOf(l.Carries)).text, len(l.Closures), size(bytesOf(l.Closures)).text)))
		}
		add(i, "findings", number(len(f.Findings)))
	}
	return section{id: "comparison", title: "Side by side", text: []string{"The same program under different settings."}, plot: func() string { return peaks(all) }, tables: []table{t.table(), loops.table()}}
}

// A columns is a table in the making: a column for each of several facts, rows by name.
type columns struct {
	t     table
	rows  map[string][]cell
	order []string
}

func newColumns(caption string, all []*Facts) *columns {
	c := &columns{t: table{caption: caption, head: []string{""}}, rows: make(map[string][]cell)}
	for _, f := range all {
		c.t.head = append(c.t.head, f.title())
	}
	return c
}

func (c *columns) add(column int, name string, x cell) {
	if c.rows[name] == nil {
		c.order = append(c.order, name)
		for range c.t.head[1:] {
			c.rows[name] = append(c.rows[name], words("-"))
		}
	}
	c.rows[name][column] = x
}

func (c *columns) table() table {
	for _, name := range c.order {
		c.t.row(append([]cell{words(name)}, c.rows[name]...)...)
	}
	return c.t
}

// title tells facts of one program from others.
func (f *Facts) title() string {
	if len(f.Settings) == 0 {
		return "as written"
	}
	return strings.Join(f.Settings, " ")
}

// byKind is the collectives by kind and axes, whatever loop they are in.
func (f *Facts) byKind() []Collective {
	var out []Collective
	for _, c := range f.Collectives {
		i := slices.IndexFunc(out, func(o Collective) bool { return o.Kind == c.Kind && o.Axes == c.Axes })
		if i < 0 {
			out = append(out, c)
			continue
		}
		out[i].Received = plus(out[i].Received, c.Received)
	}
	return out
}

func (f *Facts) windowIn(loop string) int {
	n := 0
	for _, w := range f.Windows {
		if w.Loop == loop {
			n += w.Bytes
		}
	}
	return n
}
