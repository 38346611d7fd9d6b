package report

import (
	"fmt"
	"strings"
)

// section is the schedule as a grid of stages and iterations.
func (s *Schedule) section(i, n int) section {
	title := "Schedule" + s.of(n)
	t := table{head: []string{"", ""}}
	t.row(words("pipeline of"), words(strings.TrimPrefix(s.Layer+", "+s.Origin, ", ")))
	for _, r := range []struct {
		name string
		n    int
	}{{"layers in the pipeline", s.Layers}, {"stages (S)", s.Stages}, {"microbatches (M)", s.Microbatches}, {"repeats (R)", s.Repeats}, {"layers per stage and repeat (L)", s.LayersPerStage},
		{"delay (D)", s.Delay}, {"iterations (T)", s.Iterations}} {
		t.row(words(r.name), number(r.n))
	}
	t.row(words("stage-iterations with a microbatch"), number(s.Work))
	t.row(words("stage-iterations without: bubbles"), number(s.Bubbles))
	t.row(words("bubbles, counted"), percent(part(s.Bubbles, s.Work+s.Bubbles)))
	t.row(words("bubbles, "+s.Formula), percent(s.Fraction))
	t.row(words("in bubbles"), words(map[bool]string{true: "the work is left out (skip_bubbles)", false: "a stage computes what nobody reads"}[s.SkipBubbles]))
	for _, r := range [][2]string{{"gather", s.Gather}, {"prefetch", s.Prefetch}, {"rotate", s.Rotate}, {"remat", s.Remat}, {"checkpoint", s.Checkpoint}} {
		if r[1] != "" {
			t.row(words(r[0]), words(r[1]))
		}
	}
	runs := table{caption: "The grid, as runs of iterations", head: []string{"stage", "repeat", "iterations", "microbatches"}, folded: true}
	for _, r := range s.Grid {
		runs.row(number(r.Stage), number(r.Repeat), words(span(r.From, r.Through)), words(span(r.First, r.First+r.Through-r.From)))
	}
	text := []string{"What each stage works on in each iteration of the forward pass: the number of a microbatch, coloured and lettered by repeat (a is repeat 0). The backward pass runs from the last iteration to the first."}
	if s.Left > 0 {
		text = append(text, fmt.Sprintf("The grid leaves out %d stages in the middle, each of which does what the one before it does, %d iterations later.", s.Left, s.Delay))
	}
	return section{id: fmt.Sprintf("schedule-%d", i), title: title, text: text, plot: s.plot, tables: []table{t, runs}}
}

func span(from, to int) string {
	if from == to {
		return fmt.Sprint(from)
	}
	return fmt.Sprintf("%d to %d", from, to)
}

// letter is how a repeat is written beside a microbatch.
func letter(repeat int) string {
	s := string(rune('a' + repeat%26))
	if repeat >= 26 {
		s = letter(repeat/26-1) + s
	}
	return s
}

// cellText is what a cell of the grid says: 3, or b3 in repeat 1 of several.
func (s *Schedule) cellText(micro, repeat int) string {
	if s.Repeats == 1 {
		return fmt.Sprint(micro)
	}
	return letter(repeat) + fmt.Sprint(micro)
}

// terminalColours are the colours of repeats among the 256 of a terminal, as on a page.
var terminalColours = [repeatColours]int{214, 74, 227, 175, 36, 166}

const gridColumns = 24 // of the grid, in text

// text is the grid in lines; of many iterations, the first and the last.
func (s *Schedule) text(colour bool) string {
	var shown []int
	for t := range s.Iterations {
		if s.Iterations > gridColumns && t == gridColumns/2 {
			shown = append(shown, -1)
		}
		if s.Iterations <= gridColumns || t < gridColumns/2 || t >= s.Iterations-gridColumns/2 {
			shown = append(shown, t)
		}
	}
	f, width := s.facts(), len(fmt.Sprint(s.Iterations))
	var lines [][]string
	paint := make(map[[2]int]string) // by line and column, what makes a colour
	head := []string{"iteration"}
	for _, t := range shown {
		head = append(head, columnName(t))
	}
	lines = append(lines, head)
	last := -1
	for _, stage := range s.shown() {
		if stage != last+1 {
			lines = append(lines, []string{"…"})
		}
		last = stage
		line := []string{fmt.Sprintf("stage %d", stage)}
		for _, t := range shown {
			text := columnName(t)
			if t >= 0 {
				text = "·"
				if micro, repeat, work := f.At(stage, t); work {
					text = s.cellText(micro, repeat)
					paint[[2]int{len(lines), len(line)}] = fmt.Sprintf("\x1b[30;48;5;%dm", terminalColours[repeat%repeatColours])
				}
			}
			line = append(line, text)
		}
		lines = append(lines, line)
	}
	for _, l := range lines {
		for _, c := range l[1:] {
			width = max(width, len([]rune(c)))
		}
	}
	var b strings.Builder
	for i, l := range lines {
		fmt.Fprintf(&b, "  %-10s", l[0])
		for k, c := range l[1:] {
			cell := fmt.Sprintf(" %*s", width, c)
			if start := paint[[2]int{i, k + 1}]; colour && start != "" {
				cell = start + cell + "\x1b[0m"
			}
			b.WriteString(cell)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func columnName(t int) string {
	if t < 0 {
		return "…"
	}
	return fmt.Sprint(t)
}
