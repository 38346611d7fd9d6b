package report

import (
	"fmt"
	"strconv"
	"strings"

	"ppc/lower/stats"
)

// A section is one subject of a report: a plot, where there is one, and tables
// with all that the plot shows.
type section struct {
	id, title string
	text      []string // what the tables mean
	plot      func() string
	tables    []table
}

// A table has a caption, a head and rows.
type table struct {
	caption string
	head    []string
	rows    [][]cell
	folded  bool // a page shows it when asked to
}

// A cell is text for people, and its number as JSON has it;
// "" where the text is no number.
type cell struct{ text, exact string }

func (t *table) row(cells ...cell) { t.rows = append(t.rows, cells) }

func words(s string) cell { return cell{text: s} }

func number(n int) cell { return cell{strconv.Itoa(n), strconv.Itoa(n)} }

func size(n int) cell {
	return cell{strings.TrimSpace(stats.SizeText(n)), strconv.Itoa(n)}
}

// times is a count; of one that is not known, the word.
func times(n *int) cell {
	if n == nil {
		return cell{"unknown", "null"}
	}
	return number(*n)
}

func sizes(n *int) cell {
	if n == nil {
		return cell{"unknown", "null"}
	}
	return size(*n)
}

func percent(f float64) cell {
	text := fmt.Sprintf("%.1f %%", 100*f)
	if 0 < f && f < 0.001 {
		text = fmt.Sprintf("%.1g %%", 100*f)
	}
	return cell{text, strconv.FormatFloat(f, 'g', -1, 64)}
}

// over says along what a collective moves: over fsdp, or by pairs.
func over(axes string) string {
	if strings.HasPrefix(axes, "by ") || strings.HasPrefix(axes, "of ") {
		return axes
	}
	return "over " + axes
}

// inLoop is a loop for people.
func inLoop(loop string) cell {
	if loop == "" {
		return words("outside of loops")
	}
	return words(loop)
}

// sections are all facts, subject by subject.
func (f *Facts) sections() []section {
	out := []section{f.glance()}
	for i, s := range f.Schedules {
		out = append(out, s.section(i, len(f.Schedules)))
	}
	return append(out, f.gathers(), f.memory(), f.collectives(), f.windows(), f.residuals(), f.loops(), f.findings())
}

func (f *Facts) gathers() section {
	t := table{head: []string{"weight", "per step", "in each iteration", "of", "over", "type", "bytes each time"}}
	for _, g := range f.Gathers {
		each := number(g.Ops)
		if g.Loop == "" {
			each = words("")
		}
		t.row(words(g.Weight), times(g.Executions), each, inLoop(g.Loop), words(g.Axes), words(g.Type), size(g.Bytes))
	}
	text := "Every all-gather of a weight that is stored in parts. A device executes each so often per step, forward and backward pass together."
	if len(f.Gathers) == 0 {
		text = "No weight is all-gathered."
	}
	return section{id: "gathers", title: "Weights gathered", text: []string{text}, tables: []table{t}}
}

func (f *Facts) memory() section {
	m := &f.Memory
	owners := table{caption: "The peak by owner", head: []string{"owner", "bytes", "of the peak"}}
	for _, o := range m.Owners {
		owners.row(words(o.Owner), size(o.Bytes), percent(part(o.Bytes, m.Peak)))
	}
	owners.row(words("peak"), size(m.Peak), percent(part(m.Peak, m.Peak)))
	if m.Host > 0 {
		owners.row(words("memory of the host, at most"), size(m.Host), words(""))
	}
	held := table{caption: "The largest buffers at the peak", head: []string{"name", "bytes", "owner", "buffers", "type", "made by", "in", "origin"}}
	for _, h := range m.Holdings {
		made := h.Op
		if made == "" {
			made = "argument"
		}
		held.row(words(h.Name), size(h.Bytes), words(h.Owner), number(h.Count), words(h.Type), words(made), inLoop(h.Loop), words(h.Origin))
	}
	if m.Rest > 0 {
		held.row(words("all others"), size(m.Rest), words(""), words(""), words(""), words(""), words(""), words(""))
	}
	over := table{caption: "Over time", head: []string{"op", "in", "live", "at"}, folded: true}
	for _, o := range m.Owners {
		over.head = append(over.head, o.Owner)
	}
	for _, x := range m.Profile {
		cells := []cell{number(x.Number), inLoop(x.Loop), size(x.Bytes), words(x.At)}
		for _, n := range x.Parts {
			cells = append(cells, size(n))
		}
		over.row(cells...)
	}
	text := []string{"Bytes of one device, from when each value is made to when it is last read, in program order; each body of a loop once. Nothing is fused: a compiler that fuses needs less."}
	if m.At != "" {
		text = append(text, "The peak is at "+m.At+", "+strings.TrimPrefix(inside(m.Loop), ", ")+".")
	}
	return section{id: "memory", title: "Memory", text: text, plot: m.plot, tables: []table{owners, held, over}}
}

func inside(loop string) string {
	if loop == "" {
		return ", outside of loops"
	}
	return ", in " + loop
}

func part(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

func (f *Facts) collectives() section {
	t := table{head: []string{"in", "collective", "over", "received per step", "executions", "ops", "bytes of the values"}}
	for _, c := range f.Collectives {
		t.row(inLoop(c.Loop), words(c.Kind), words(c.Axes), sizes(c.Received), times(c.Executions), number(c.Ops), size(c.Bytes))
	}
	text := "What one device receives from others per step, by the loop that the collectives are in. Over: the mesh axes along which devices exchange."
	if len(f.Collectives) == 0 {
		text = "The program has no collectives."
	}
	return section{id: "collectives", title: "Collectives", text: []string{text}, plot: f.bars, tables: []table{t}}
}

func (f *Facts) windows() section {
	t := table{head: []string{"weight", "in", "copies", "type", "bytes"}}
	for _, w := range f.Windows {
		t.row(words(w.Weight), words(w.Loop), number(w.Copies), words(w.Type), size(w.Bytes))
	}
	text := "Gathered weights that a loop holds while it runs. Two copies are those of two repeats: a window."
	if len(f.Windows) == 0 {
		text = "No loop holds gathered weights: where any are gathered, each iteration gathers its own."
	}
	return section{id: "windows", title: "Gathered weights that loops hold", text: []string{text}, tables: []table{t}}
}

func (f *Facts) residuals() section {
	t := table{head: []string{"name", "bytes", "saved because", "in", "type", "origin"}}
	total := 0
	for _, r := range f.Residuals {
		total += r.Bytes
		t.row(words(r.Name), size(r.Bytes), words(r.Why), inLoop(r.Loop), words(r.Type), words(r.Origin))
	}
	text := fmt.Sprintf("What loops save for the backward pass, one row for each iteration: %s together.", size(total).text)
	if len(f.Residuals) == 0 {
		text = "No loop saves anything for another."
	}
	return section{id: "residuals", title: "Residuals", text: []string{text}, tables: []table{t}}
}

func (f *Facts) loops() section {
	sum := table{head: []string{"loop", "iterations", "carries", "bytes", "closures", "bytes"}}
	tables := []table{{}}
	for _, l := range f.Loops {
		sum.row(words(l.Name), times(l.Trips), number(len(l.Carries)), size(bytesOf(l.Carries)), number(len(l.Closures)), size(bytesOf(l.Closures)))
		t := table{caption: l.Name, head: []string{"name", "bytes", "is", "type", "origin"}, folded: true}
		for _, list := range []struct {
			is     string
			arrays []Array
		}{{"carry", l.Carries}, {"closure", l.Closures}} {
			for _, a := range list.arrays {
				t.row(words(a.Name), size(a.Bytes), words(list.is), words(a.Type), words(a.Origin))
			}
		}
		tables = append(tables, t)
	}
	tables[0] = sum
	text := "A carry is what an iteration hands to the next; a closure is what all of them read."
	if len(f.Loops) == 0 {
		text = "The program has no loops."
	}
	return section{id: "loops", title: "Loops", text: []string{text}, tables: tables}
}

func bytesOf(as []Array) int {
	n := 0
	for _, a := range as {
		n += a.Bytes
	}
	return n
}

func (f *Facts) findings() section {
	t := table{head: []string{"severity", "lint", "value", "finding", "place", "executions", "bytes", "in", "over"}}
	for _, x := range f.Findings {
		t.row(words(x.Severity), words(x.Lint), words(x.Name), words(x.Message), words(x.Place), times(x.Executions), size(x.Bytes), inLoop(x.Loop), words(x.Axes))
	}
	text := "What the program pays for without need. A note is a cost that a setting may ask for, a warning is not; ppc lint --explain NAME says more."
	if len(f.Findings) == 0 {
		text = "The lints find nothing."
	}
	return section{id: "findings", title: "Findings", text: []string{text}, tables: []table{t}}
}
