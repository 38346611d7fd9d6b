// Package view writes the IR of a program through the passes as one page: what
// each pass changed, line by line, the program as it was read and as it is at the
// end with regions that fold, and next to every op a link to the line of the source
// that it comes from. The page is one file and has no script.
//
// [New] takes the program as it was read, [View.Step] what a pass has made of it,
// and [View.HTML] writes the page.
package view

import (
	"regexp"
	"strings"

	"ppc/internal/diag"
	"ppc/ir"
	"ppc/ir/mlir"
)

// A View is a program through the passes.
type View struct {
	name  string
	first []line
	last  []line
	steps []step
}

// A line is one line of the text of a program.
type line struct {
	text string
	key  string // what it says but for the numbers of values and how far it is indented
	from ir.Pos // of the op that begins on it
	note string // the op's layer and the pass that made it
}

// A step is what a pass did.
type step struct {
	pass, doc      string
	form           string
	added, removed int
	edited         int // lines that say something else than before
	total          int // lines afterwards
	hunks          []hunk
	left           int // changed lines that are left out
}

// A hunk is lines that follow each other, and how many unchanged ones there are
// before it.
type hunk struct {
	skipped int
	lines   []changed
}

// A changed is a line of a hunk: added '+', removed '-', as before ' ', or edited '~'.
type changed struct {
	mark byte
	line
	before string // the text of an edited line before
}

// New is a view of m, as it was read, called name.
func New(name string, m *ir.Module) *View {
	lines := linesOf(m)
	return &View{name: shorten(name), first: lines, last: lines}
}

const (
	context    = 2    // unchanged lines around a change
	mostLines  = 4000 // changed lines of one pass
	longestRow = 1500 // characters of a line
)

// Step is what a pass has made of the program.
func (v *View) Step(pass, doc string, m *ir.Module) {
	now := linesOf(m)
	s := step{pass: pass, doc: doc, form: m.Form.String(), total: len(now)}
	s.compare(v.last, now)
	v.last = now
	v.steps = append(v.steps, s)
}

// numbers are those that the printer gives values: of their own, or behind a name.
var numbers = regexp.MustCompile(`%(?:\d+|([A-Za-z_$.][\w$.]*?)_\d+)\b`)

func linesOf(m *ir.Module) []line {
	var out []line
	for _, l := range mlir.Lines(m) {
		x := line{text: shorten(l.Text)}
		x.key = numbers.ReplaceAllString(strings.TrimLeft(x.text, " "), "%$1")
		if l.Op != nil && l.Op.Origin != nil {
			o := l.Op.Origin
			x.from = o.Place()
			var words []string
			if o.Layer() != "" {
				words = append(words, "in "+shorten(o.Layer()))
			}
			if o.Pass() != "" {
				words = append(words, "made by "+o.Pass())
			}
			x.note = strings.Join(words, ", ")
		}
		out = append(out, x)
	}
	return out
}

// shorten is s as a page may have it: the beginning of a long text, and what is no
// printable character quoted.
func shorten(s string) string { return diag.Short(s, longestRow) }

// compare makes hunks of what differs.
func (s *step) compare(before, after []line) {
	var rows []changed
	a, b := 0, 0
	for _, m := range append(matches(before, after), [2]int{len(before), len(after)}) {
		rows = append(rows, s.edits(before[a:m[0]], after[b:m[1]])...)
		if m[1] < len(after) {
			rows = append(rows, changed{mark: ' ', line: after[m[1]]})
		}
		a, b = m[0]+1, m[1]+1
	}
	s.fold(rows)
}

// edits makes the lines after of those before, none of which stay as they are: a
// line of the same op and name is edited, others are removed and added.
func (s *step) edits(before, after []line) []changed {
	var rows []changed
	a, b := 0, 0
	for _, m := range append(matches(stems(before), stems(after)), [2]int{len(before), len(after)}) {
		for _, l := range before[a:m[0]] {
			rows = append(rows, changed{mark: '-', line: l})
			s.removed++
		}
		for _, l := range after[b:m[1]] {
			rows = append(rows, changed{mark: '+', line: l})
			s.added++
		}
		if m[1] < len(after) {
			rows = append(rows, changed{mark: '~', line: after[m[1]], before: before[m[0]].text})
			s.edited++
		}
		a, b = m[0]+1, m[1]+1
	}
	return rows
}

func (s *step) changes() int { return s.added + s.removed + s.edited }

// fold leaves out unchanged lines that are far from a change, and changes beyond
// the most that a page has.
func (s *step) fold(rows []changed) {
	near := make([]bool, len(rows))
	for i, r := range rows {
		if r.mark == ' ' {
			continue
		}
		for k := max(0, i-context); k <= min(len(rows)-1, i+context); k++ {
			near[k] = true
		}
	}
	shown, skipped := 0, 0
	for i, r := range rows {
		switch {
		case !near[i]:
			skipped++
			continue
		case shown == mostLines:
			if r.mark != ' ' {
				s.left++
			}
			continue
		}
		if n := len(s.hunks); n == 0 || skipped > 0 {
			s.hunks = append(s.hunks, hunk{skipped: skipped})
			skipped = 0
		}
		h := &s.hunks[len(s.hunks)-1]
		h.lines = append(h.lines, r)
		shown++
	}
}
