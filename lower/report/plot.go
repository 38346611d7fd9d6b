package report

import (
	"fmt"
	"html"
	"math"
	"strings"

	"ppc/lower/stats"
)

// An svg is a plot in the making: shapes have classes, to which the style sheet
// of the page gives colours, light and dark.
type svg struct {
	b             strings.Builder
	width, height float64
}

func (s *svg) printf(format string, args ...any) { fmt.Fprintf(&s.b, format, args...) }

func (s *svg) text(x, y float64, class, anchor, text string) {
	s.printf("<text x=\"%s\" y=\"%s\" class=\"%s\" text-anchor=\"%s\">%s</text>\n", px(x), px(y), class, anchor, html.EscapeString(text))
}

func (s *svg) rect(x, y, w, h float64, class, title string) {
	s.printf("<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" class=\"%s\">", px(x), px(y), px(w), px(h), class)
	if title != "" {
		s.printf("<title>%s</title>", html.EscapeString(title))
	}
	s.printf("</rect>\n")
}

func (s *svg) line(x1, y1, x2, y2 float64, class string) {
	s.printf("<line x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\" class=\"%s\"/>\n", px(x1), px(y1), px(x2), px(y2), class)
}

// px is a length with at most two decimals.
func px(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
}

// done is the plot, told in words by label.
func (s *svg) done(label string) string {
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%s\" height=\"%s\" viewBox=\"0 0 %s %s\" role=\"img\" aria-label=\"%s\">\n%s</svg>\n",
		px(s.width), px(s.height), px(s.width), px(s.height), html.EscapeString(label), s.b.String())
}

const (
	repeatColours = 6 // classes c0, c1, …

	cellWidth, cellHeight = 30, 24
	mostCells             = 8000 // of a grid in which every cell has its number
	plotWidth             = 1100
)

// plot is the grid: a row for each stage, a column for each iteration. Where
// there are too many for numbers, runs of them have one box.
func (s *Schedule) plot() string {
	stages := s.shown()
	detailed := s.Iterations*len(stages) <= mostCells && s.Iterations <= 500
	step, left, top := float64(cellWidth), 64.0, 22.0
	if !detailed {
		step = plotWidth / float64(s.Iterations)
	}
	out := &svg{width: left + step*float64(s.Iterations) + 12, height: top + cellHeight*float64(len(stages)) + 8}
	out.printf("<defs><pattern id=\"bubble\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"7\" class=\"hatch\"/></pattern></defs>\n")
	out.printf("<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" fill=\"url(#bubble)\"><title>bubble</title></rect>\n", px(left), px(top), px(step*float64(s.Iterations)), px(cellHeight*float64(len(stages))))
	ticks := 1
	if !detailed {
		ticks = int(nice(float64(s.Iterations) / 10))
	}
	for t := 0; t < s.Iterations; t += ticks {
		out.text(left+step*(float64(t)+.5), top-7, "quiet", "middle", fmt.Sprint(t))
	}
	row := make(map[int]float64)
	for i, stage := range stages {
		row[stage] = top + cellHeight*float64(i)
		out.text(left-8, row[stage]+16, "quiet", "end", fmt.Sprintf("stage %d", stage))
	}
	for _, r := range s.Grid {
		if detailed {
			s.cells(out, r, left, row[r.Stage])
			continue
		}
		s.box(out, r, left, step, row[r.Stage])
	}
	return out.done(fmt.Sprintf("Schedule grid: %d stages, %d iterations, %d microbatches, %d repeats; the table has the same as runs", s.Stages, s.Iterations, s.Microbatches, s.Repeats))
}

// cells are the iterations of a run, each with its microbatch.
func (s *Schedule) cells(out *svg, r Run, left, y float64) {
	for t := r.From; t <= r.Through; t++ {
		x := left + cellWidth*float64(t)
		out.rect(x, y, cellWidth, cellHeight, s.class(r), "")
		out.text(x+cellWidth/2, y+16, "on cell", "middle", s.cellText(r.First+t-r.From, r.Repeat))
	}
}

// box is a run as one box, with its microbatches where there is room.
func (s *Schedule) box(out *svg, r Run, left, step, y float64) {
	n := r.Through - r.From + 1
	label := fmt.Sprintf("%s%d–%d", strings.TrimRight(s.cellText(0, r.Repeat), "0"), r.First, r.First+n-1)
	x, w := left+step*float64(r.From), step*float64(n)
	out.rect(x, y, w, cellHeight, s.class(r), fmt.Sprintf("stage %d, repeat %d, microbatches %s, iterations %s", r.Stage, r.Repeat, span(r.First, r.First+n-1), span(r.From, r.Through)))
	if w > 8*float64(len(label)) {
		out.text(x+w/2, y+16, "on", "middle", label)
	}
}

func (s *Schedule) class(r Run) string { return fmt.Sprintf("cells c%d", r.Repeat%repeatColours) }

// nice is the least of 1, 2, 5, 10, 20, … that is at least v.
func nice(v float64) float64 {
	if v <= 1 {
		return 1
	}
	base := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if base*m >= v {
			return base * m
		}
	}
	return 10 * base
}

// plot is the memory over time, one area for each owner on top of the others.
func (m *Memory) plot() string {
	if len(m.Profile) == 0 || m.Peak == 0 {
		return ""
	}
	const left, top, width, height = 84.0, 12.0, 980.0, 260.0
	out := &svg{width: left + width + 12, height: top + height + 62 + 22*float64((len(m.Owners)+2)/3)}
	unit := math.Pow(1024, math.Floor(math.Log(float64(m.Peak))/math.Log(1024)))
	step := tick(float64(m.Peak)/unit/4) * unit
	most := step * math.Ceil(float64(m.Peak)/step)
	y := func(bytes float64) float64 { return top + height*(1-bytes/most) }
	x := func(i int) float64 { return left + width*float64(i)/float64(len(m.Profile)) }
	m.bands(out, x, top, height)
	for v := 0.0; v <= most; v += step {
		out.line(left, y(v), left+width, y(v), "rule")
		out.text(left-8, y(v)+4, "quiet", "end", strings.TrimSpace(stats.SizeText(int(v))))
	}
	base := make([]float64, len(m.Profile))
	for k := range m.Owners {
		out.printf("<path class=\"%s cells\" d=\"%s\"><title>%s</title></path>\n", m.Owners[k].class(), m.area(k, base, x, y), m.Owners[k].Owner)
	}
	out.line(left, top, left, top+height, "axis")
	out.line(left, top+height, left+width, top+height, "axis")
	out.text(left, top+height+32, "quiet", "start", "op 1")
	out.text(left+width, top+height+32, "quiet", "end", fmt.Sprintf("op %d", m.Moments))
	for k, o := range m.Owners {
		lx, ly := left+330*float64(k%3), top+height+48+22*float64(k/3)
		out.rect(lx, ly, 14, 14, o.class(), "")
		out.text(lx+20, ly+12, "", "start", fmt.Sprintf("%s, %s at the peak", o.Owner, size(o.Bytes).text))
	}
	return out.done("Memory of one device over the ops of the program, by owner; peak " + size(m.Peak).text + "; the tables have the numbers")
}

// area is owner k between what the owners before it take, which is base, and
// that with its own, which base is afterwards.
func (m *Memory) area(k int, base []float64, x func(int) float64, y func(float64) float64) string {
	var up, down strings.Builder
	n := len(m.Profile)
	for i := range n {
		fmt.Fprintf(&down, "H%sV%s", px(x(n-i)), px(y(base[n-1-i])))
	}
	for i, p := range m.Profile {
		base[i] += float64(p.Parts[k])
		fmt.Fprintf(&up, "V%sH%s", px(y(base[i])), px(x(i+1)))
	}
	return fmt.Sprintf("M%s %s%s%sZ", px(x(0)), px(y(0)), up.String(), strings.TrimPrefix(down.String(), "H"+px(x(n))))
}

// bands shows which loops the ops are in.
func (m *Memory) bands(out *svg, x func(int) float64, top, height float64) {
	for i := 0; i < len(m.Profile); {
		j := i
		for j < len(m.Profile) && m.Profile[j].Loop == m.Profile[i].Loop {
			j++
		}
		if loop := m.Profile[i].Loop; loop != "" {
			out.rect(x(i), top, x(j)-x(i), height, "band", loop)
			if w := x(j) - x(i); w > 7*float64(len(loop)) {
				out.text((x(i)+x(j))/2, top+height+16, "quiet", "middle", loop)
			}
		}
		i = j
	}
}

// tick is the least of 1, 2, 4, 8, … times a power of 1024, or a half or quarter
// of it, that is at least v.
func tick(v float64) float64 {
	t := 0.25
	for t < v {
		t *= 2
	}
	return t
}

// class is the colour of an owner, the same in every plot: k0, k1, …
func (o *Owner) class() string {
	c, _ := stats.ClassNamed(o.Owner)
	return fmt.Sprintf("k%d", max(c, 0))
}

// peaks is the memory at the peak of the same program under several settings, a
// bar for each.
func peaks(all []*Facts) string {
	most := 0
	for _, f := range all {
		most = max(most, f.Memory.Peak)
	}
	if most == 0 {
		return ""
	}
	const left, width, height = 330.0, 620.0, 26.0
	out := &svg{width: left + width + 120, height: height*float64(len(all)) + 78}
	legend := make(map[string]bool)
	lx, ly := 8.0, height*float64(len(all))+24
	for i, f := range all {
		x, y := left, height*float64(i)+4
		title := []rune(f.title())
		if len(title) > 44 {
			title = append(title[:43], '…')
		}
		out.text(left-8, y+16, "", "end", string(title))
		for k := range f.Memory.Owners {
			o := &f.Memory.Owners[k]
			w := width * float64(o.Bytes) / float64(most)
			out.rect(x, y, w, height-6, o.class()+" cells", fmt.Sprintf("%s %s", o.Owner, size(o.Bytes).text))
			x += w
			if !legend[o.Owner] {
				out.rect(lx, ly, 14, 14, o.class(), "")
				out.text(lx+20, ly+12, "", "start", o.Owner)
				legend[o.Owner] = true
				if lx += 180; lx > 900 {
					lx, ly = 8, ly+22
				}
			}
		}
		out.text(x+6, y+16, "", "start", size(f.Memory.Peak).text)
	}
	out.line(left, 0, left, height*float64(len(all))+4, "axis")
	return out.done("Memory of one device at the peak, by owner, under each choice of settings; the table has the numbers")
}

const mostBars = 60

// bars is what a device receives by each kind of collective in each loop.
func (f *Facts) bars() string {
	most := 0
	for _, c := range f.Collectives {
		if c.Received != nil {
			most = max(most, *c.Received)
		}
	}
	if most == 0 {
		return ""
	}
	const left, width, height = 430.0, 540.0, 22.0
	out := &svg{width: left + width + 120}
	y, loop := 4.0, "\x00"
	for i, c := range f.Collectives {
		if i == mostBars {
			out.text(8, y+15, "quiet", "start", fmt.Sprintf("and %d more, in the table", len(f.Collectives)-mostBars))
			y += height
			break
		}
		if c.Loop != loop {
			loop = c.Loop
			out.text(8, y+15, "quiet", "start", inLoop(loop).text)
			y += height
		}
		out.text(left-8, y+15, "", "end", c.Kind+" "+over(c.Axes))
		w := 0.0
		if c.Received != nil {
			w = width * float64(*c.Received) / float64(most)
		}
		out.rect(left, y+3, max(w, 1), height-6, "k0", "")
		out.text(left+w+6, y+15, "", "start", sizes(c.Received).text)
		y += height
	}
	out.line(left, 0, left, y, "axis")
	out.height = y + 8
	return out.done("Bytes that a device receives per step, by collective and loop; the table has the same numbers")
}
