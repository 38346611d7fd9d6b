package stats

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ppc/ir"
)

// Text is s for people: tables of aligned columns. Collectives of one loop,
// kind and axes are one line; single numbers are summed up.
func (s *Stats) Text() string {
	tables := []*table{s.memoryText(), s.loopsText(), s.collectivesText(), s.residualsText()}
	texts := make([]string, len(tables))
	for i, t := range tables {
		texts[i] = t.String()
	}
	return strings.Join(texts, "\n")
}

func (s *Stats) memoryText() *table {
	t := new(table)
	t.row("peak memory", "", SizeText(s.Memory.Peak), s.Memory.where())
	for c, n := range s.Memory.Parts {
		if n > 0 {
			t.row("  "+Class(c).String(), "", SizeText(n), "")
		}
	}
	if s.Run.Peak != s.Memory.Peak {
		t.row("  of a run", "", SizeText(s.Run.Peak), "which computes large values in strips, "+s.Run.where())
	}
	if s.Memory.Host > 0 {
		t.row("host memory", "", SizeText(s.Memory.Host), "at the most")
	}
	return t
}

func (m *Memory) where() string {
	switch {
	case m.At == "":
		return ""
	case m.Loop == "":
		return "at " + m.At
	}
	return fmt.Sprintf("in %s, at %s", m.Loop, m.At)
}

func (s *Stats) loopsText() *table {
	t := new(table)
	t.row("loops", "", "", strconv.Itoa(len(s.Loops)))
	for _, l := range s.Loops {
		t.row("  "+l.Name, "", "", l.Trips.String()+" iterations")
		arraysText(t, "carries", l.Carries)
		arraysText(t, "invariants", l.Invariants)
	}
	return t
}

func arraysText(t *table, title string, arrays []Array) {
	total, scalars := 0, 0
	for _, a := range arrays {
		total += a.Bytes
		if single(a.Type) {
			scalars++
		}
	}
	t.row("    "+title, "", SizeText(total), strconv.Itoa(len(arrays)))
	for _, a := range arrays {
		if !single(a.Type) {
			t.row("      "+named(a.Name), TypeText(a.Type), SizeText(a.Bytes), "")
		}
	}
	if scalars > 0 {
		t.row("      "+plural(scalars, "scalar"), "", "", "")
	}
}

// single reports whether t is one number, or none.
func single(t *ir.Type) bool {
	return !t.IsTensor() && t.Kind != ir.TupleType || t.IsTensor() && t.Rank() == 0
}

func (s *Stats) collectivesText() *table {
	t := new(table)
	if len(s.Collectives) == 0 {
		t.row("collectives", "", "", "none")
		return t
	}
	t.row("collectives", "ops", "bytes", "executions and bytes received per step")
	for _, loop := range s.paths() {
		var lines []*collectiveLine
		for _, c := range s.Collectives {
			if c.Loop == loop {
				lines = count(lines, c)
			}
		}
		if lines == nil {
			continue
		}
		slices.SortFunc(lines, func(a, b *collectiveLine) int { return strings.Compare(a.title, b.title) })
		t.row("  "+outermost(loop), "", "", "")
		for _, l := range lines {
			t.row("    "+l.title, strconv.Itoa(l.ops), SizeText(l.bytes), fmt.Sprintf("%s, %s", l.executions.String(), strings.TrimSpace(countSize(l.moved))))
			if l.beside > 0 {
				t.row("      beside "+plural(l.beside, "product")+" or more each", "", "", "")
			}
		}
	}
	return t
}

// paths are the loops that have collectives, those outside of loops first.
func (s *Stats) paths() []string {
	paths := []string{""}
	for _, l := range s.Loops {
		paths = append(paths, l.Name)
	}
	for _, c := range s.Collectives { // functions that are called
		if !slices.Contains(paths, c.Loop) {
			paths = append(paths, c.Loop)
		}
	}
	return paths
}

func outermost(loop string) string {
	if loop == "" {
		return "main"
	}
	return loop
}

// A collectiveLine is the collectives of one loop, kind and axes.
type collectiveLine struct {
	title      string
	ops, bytes int
	executions Count
	moved      Count
	beside     int // products beside each, at least
}

func count(lines []*collectiveLine, c *Collective) []*collectiveLine {
	title := c.Kind + " " + c.Over()
	i := slices.IndexFunc(lines, func(l *collectiveLine) bool { return l.title == title })
	if i < 0 {
		i = len(lines)
		lines = append(lines, &collectiveLine{title: title, beside: c.Beside})
	}
	l := lines[i]
	l.ops++
	l.bytes += c.Bytes
	l.beside = min(l.beside, c.Beside)
	l.executions = l.executions.Plus(c.Executions)
	l.moved = l.moved.Plus(Count(c.Moved).Times(c.Executions))
	return lines
}

// Over says which devices a group has: over fsdp.
func (c *Collective) Over() string {
	switch {
	case c.Axes != "" && c.Slices > 1:
		return fmt.Sprintf("over %s, %d slices", c.Axes, c.Slices)
	case c.Axes != "":
		return "over " + c.Axes
	case c.Group > 0:
		return fmt.Sprintf("of %d", c.Group)
	}
	return "by pairs"
}

func (s *Stats) residualsText() *table {
	t := new(table)
	if len(s.Residuals) == 0 {
		t.row("residuals", "", "", "none")
		return t
	}
	total := 0
	for _, r := range s.Residuals {
		total += r.Bytes
	}
	t.row("residuals", "", SizeText(total), strconv.Itoa(len(s.Residuals)))
	loop := ""
	for _, r := range s.Residuals {
		if r.Loop != loop {
			loop = r.Loop
			t.row("  "+loop, "", "", "")
		}
		t.row("    "+named(r.Name), TypeText(r.Type), SizeText(r.Bytes), r.Why)
	}
	return t
}

func countSize(c Count) string {
	if c == Unknown {
		return "unknown"
	}
	return SizeText(int(c))
}

func named(name string) string {
	if name == "" {
		return "(unnamed)"
	}
	return name
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// TypeText is t as f32[2,64].
func TypeText(t *ir.Type) string {
	if !t.IsTensor() {
		return t.String()
	}
	return t.Elem.String() + strings.ReplaceAll(fmt.Sprint(append([]int{}, t.Shape...)), " ", ",")
}

// SizeText is n bytes in the largest unit of which there is at least one.
func SizeText(n int) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B  ", n)
	}
	v, unit := float64(n), 0
	for v >= 1<<10 && unit < len(units) {
		v /= 1 << 10
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", v, units[unit-1])
}

const units = "KMGTPE"

// A table is rows of a title, a word or type, a number, and remarks; the
// numbers end in one column.
type table struct{ rows [][4]string }

func (t *table) row(title, word, number, remark string) {
	t.rows = append(t.rows, [4]string{title, word, number, remark})
}

func (t *table) String() string {
	var width [4]int
	for _, r := range t.rows {
		for i, cell := range r {
			width[i] = max(width[i], len(cell))
		}
	}
	var b strings.Builder
	for _, r := range t.rows {
		line := fmt.Sprintf("%-*s  %-*s  %*s  %s", width[0], r[0], width[1], r[1], width[2], r[2], r[3])
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
