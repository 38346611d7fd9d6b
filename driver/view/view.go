// Package view writes the IR of a program through the passes as one page: what
// each pass changed, line by line, the program as it was read and as it is at the
// end with regions that fold, and beside every op a link to the line of the source
// that it comes from. The page needs nothing beside itself, no script among it.
//
// [New] takes the program as it was read, [View.Step] what a pass has made of it,
// and [View.HTML] writes the page.
package view

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

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

// A changed is a line of a hunk: added '+', removed '-' or as before ' '.
type changed struct {
	mark byte
	line
}

// New is a view of m, as it was read, called name.
func New(name string, m *ir.Module) *View {
	lines := linesOf(m)
	return &View{name: shorten(name), first: lines, last: lines}
}

const (
	context    = 3    // unchanged lines around a change
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
			if o.Layer != "" {
				words = append(words, "in "+shorten(o.Layer))
			}
			if o.Pass != "" {
				words = append(words, "made by "+o.Pass)
			}
			x.note = strings.Join(words, ", ")
		}
		out = append(out, x)
	}
	return out
}

// shorten is s as a page may have it: the beginning of a long text, and what is no
// printable character quoted.
func shorten(s string) string {
	if len(s) <= longestRow {
		return diag.Line(s)
	}
	at := longestRow
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return fmt.Sprintf("%s… (%d characters)", diag.Line(s[:at]), utf8.RuneCountInString(s))
}

// compare makes hunks of what differs.
func (s *step) compare(before, after []line) {
	var rows []changed
	a, b := 0, 0
	for _, m := range append(matches(before, after), [2]int{len(before), len(after)}) {
		for ; a < m[0]; a++ {
			rows = append(rows, changed{'-', before[a]})
			s.removed++
		}
		for ; b < m[1]; b++ {
			rows = append(rows, changed{'+', after[b]})
			s.added++
		}
		if b < len(after) {
			rows = append(rows, changed{' ', after[b]})
		}
		a, b = m[0]+1, m[1]+1
	}
	s.fold(rows)
}

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

// matches are the places of lines that are the same in two texts, in order. Lines
// that stand once in both, in the same order, are the same line; between two of
// these that holds of lines that stand once there, and so on. Where none do, a
// short piece has the most lines in common that it can.
func matches(before, after []line) [][2]int {
	var out [][2]int
	n := min(len(before), len(after))
	head := 0
	for head < n && before[head].key == after[head].key {
		out = append(out, [2]int{head, head})
		head++
	}
	tail := 0
	for tail < n-head && before[len(before)-1-tail].key == after[len(after)-1-tail].key {
		tail++
	}
	out = append(out, shifted(between(before[head:len(before)-tail], after[head:len(after)-tail]), head, head)...)
	for ; tail > 0; tail-- {
		out = append(out, [2]int{len(before) - tail, len(after) - tail})
	}
	return out
}

const most = 1 << 18 // places in the table that common fills

// between is matches where neither the first nor the last lines are the same.
func between(before, after []line) [][2]int {
	if len(before) == 0 || len(after) == 0 {
		return nil
	}
	pairs := anchors(before, after)
	if len(pairs) == 0 {
		if len(before) <= most/len(after) {
			return common(before, after)
		}
		return nil
	}
	var out [][2]int
	a, b := 0, 0
	for _, m := range append(pairs, [2]int{len(before), len(after)}) {
		out = append(out, shifted(matches(before[a:m[0]], after[b:m[1]]), a, b)...)
		if m[0] < len(before) {
			out = append(out, m)
		}
		a, b = m[0]+1, m[1]+1
	}
	return out
}

func shifted(pairs [][2]int, a, b int) [][2]int {
	for i := range pairs {
		pairs[i][0] += a
		pairs[i][1] += b
	}
	return pairs
}

// common is the longest list of lines that both have in the same order.
func common(before, after []line) [][2]int {
	width := len(after) + 1
	length := make([]int32, (len(before)+1)*width) // of the list for what follows both places
	for i := len(before) - 1; i >= 0; i-- {
		for k := len(after) - 1; k >= 0; k-- {
			if before[i].key == after[k].key {
				length[i*width+k] = length[(i+1)*width+k+1] + 1
			} else {
				length[i*width+k] = max(length[(i+1)*width+k], length[i*width+k+1])
			}
		}
	}
	var out [][2]int
	for i, k := 0, 0; i < len(before) && k < len(after); {
		switch {
		case before[i].key == after[k].key:
			out = append(out, [2]int{i, k})
			i, k = i+1, k+1
		case length[(i+1)*width+k] >= length[i*width+k+1]:
			i++
		default:
			k++
		}
	}
	return out
}

// anchors are places of lines that stand once in each text: of these the longest
// list that is in order in both.
func anchors(before, after []line) [][2]int {
	type places struct{ a, b, countA, countB int }
	at := make(map[string]*places)
	for i, l := range before {
		if at[l.key] == nil {
			at[l.key] = new(places)
		}
		at[l.key].a, at[l.key].countA = i, at[l.key].countA+1
	}
	for i, l := range after {
		if p := at[l.key]; p != nil {
			p.b, p.countB = i, p.countB+1
		}
	}
	var pairs [][2]int
	for i, l := range before {
		if p := at[l.key]; p.a == i && p.countA == 1 && p.countB == 1 {
			pairs = append(pairs, [2]int{p.a, p.b})
		}
	}
	return increasing(pairs)
}

// increasing is the longest list of pairs, which are in order of their first, that
// is in order of the second.
func increasing(pairs [][2]int) [][2]int {
	var ends []int // by length - 1, the pair that ends the list whose end is least
	previous := make([]int, len(pairs))
	for i, p := range pairs {
		n, _ := slices.BinarySearchFunc(ends, p[1], func(e, b int) int { return pairs[e][1] - b })
		previous[i] = -1
		if n > 0 {
			previous[i] = ends[n-1]
		}
		ends = append(ends[:n], append([]int{i}, ends[min(n+1, len(ends)):]...)...)
	}
	var out [][2]int
	if len(ends) > 0 {
		for i := ends[len(ends)-1]; i >= 0; i = previous[i] {
			out = append(out, pairs[i])
		}
	}
	slices.Reverse(out)
	return out
}
