package view

import (
	_ "embed"
	"fmt"
	"html"
	"slices"
	"strings"

	"ppc/ir"
)

//go:embed view.css
var style string

// HTML is the page. read returns the text of a file that ops come from; a file
// that it has not is named only.
func (v *View) HTML(read func(name string) ([]byte, error)) string {
	p := &page{files: v.files()}
	p.printf("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n")
	p.printf("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n")
	p.printf("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<meta name=\"color-scheme\" content=\"light dark\"/>\n")
	p.printf("<title>%s through the passes</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n", esc(v.name), style)
	p.printf("<h1>%s</h1>\n<p>The program as it was read, what each pass changed, and the per-device program at the end. A line links to its origin in the source; numbers of values and indentation are not compared.</p>\n", esc(v.name))
	v.contents(p)
	p.printf("<h2 id=\"first\">As it was read</h2>\n")
	p.program(v.first)
	for i := range v.steps {
		p.step(i, &v.steps[i])
	}
	p.printf("<h2 id=\"last\">At the end</h2>\n")
	p.program(v.last)
	p.sources(v.last, read)
	p.printf("</main>\n</body>\n</html>\n")
	return p.b.String()
}

// files are the files that ops of the program come from, in the order in which
// they are met.
func (v *View) files() map[string]int {
	files := make(map[string]int)
	see := func(l line) {
		if _, known := files[l.from.File]; l.from.Line > 0 && !known {
			files[l.from.File] = len(files)
		}
	}
	for _, l := range v.first {
		see(l)
	}
	for _, s := range v.steps {
		for _, h := range s.hunks {
			for _, c := range h.lines {
				see(c.line)
			}
		}
	}
	for _, l := range v.last {
		see(l)
	}
	return files
}

func (v *View) contents(p *page) {
	p.printf("<nav aria-label=\"Contents\">\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Passes, table\"><table>\n")
	p.printf("<thead><tr><th scope=\"col\">pass</th><th scope=\"col\" class=\"n\">added</th><th scope=\"col\" class=\"n\">removed</th><th scope=\"col\" class=\"n\">lines</th><th scope=\"col\">what it does</th></tr></thead>\n<tbody>\n")
	p.printf("<tr><th scope=\"row\"><a href=\"#first\">as it was read</a></th><td></td><td></td><td class=\"n\">%d</td><td></td></tr>\n", len(v.first))
	for i, s := range v.steps {
		name := esc(s.pass)
		if s.added+s.removed > 0 {
			name = fmt.Sprintf("<a href=\"#pass-%d\">%s</a>", i+1, name)
		}
		p.printf("<tr><th scope=\"row\">%s</th><td class=\"n\">%d</td><td class=\"n\">%d</td><td class=\"n\">%d</td><td>%s</td></tr>\n", name, s.added, s.removed, s.total, esc(s.doc))
	}
	p.printf("<tr><th scope=\"row\"><a href=\"#last\">at the end</a></th><td></td><td></td><td class=\"n\">%d</td><td></td></tr>\n", len(v.last))
	p.printf("</tbody></table></div>\n</nav>\n")
}

func esc(s string) string { return html.EscapeString(s) }

// A page is HTML in the making.
type page struct {
	b     strings.Builder
	files map[string]int // numbers of those that have lines to link to
}

func (p *page) printf(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

// step is what a pass changed.
func (p *page) step(i int, s *step) {
	if s.added+s.removed == 0 {
		return
	}
	p.printf("<h2 id=\"pass-%d\">%d. %s</h2>\n<p>%s. Afterwards the program is %s.</p>\n", i+1, i+1, esc(s.pass), esc(s.doc), esc(s.form))
	p.printf("<details open=\"open\"><summary>%d added, %d removed</summary>\n<div class=\"code\" tabindex=\"0\" role=\"region\" aria-label=\"what %s changed\">\n", s.added, s.removed, esc(s.pass))
	shown := 0
	for _, h := range s.hunks {
		p.skipped(h.skipped)
		shown += h.skipped
		for _, c := range h.lines {
			p.changed(c)
			if c.mark != '-' {
				shown++
			}
		}
	}
	if s.left > 0 {
		p.printf("<div class=\"skip\">… %d changed lines more</div>\n", s.left)
	} else {
		p.skipped(s.total - shown)
	}
	p.printf("</div></details>\n")
}

func (p *page) skipped(n int) {
	if n > 0 {
		p.printf("<div class=\"skip\">… %d unchanged</div>\n", n)
	}
}

func (p *page) changed(c changed) {
	class := map[byte]string{'+': "line added", '-': "line removed", ' ': "line"}[c.mark]
	p.printf("<div class=\"%s\"><span class=\"mark\">%c</span>", class, c.mark)
	p.text(c.line)
	p.printf("</div>\n")
}

// text is a line and the link to its origin.
func (p *page) text(l line) {
	p.printf("<span class=\"text\">%s</span>", esc(l.text))
	if l.from.Line == 0 {
		return
	}
	title := ""
	if l.note != "" {
		title = fmt.Sprintf(" title=\"%s\"", esc(l.note))
	}
	p.printf(" <a class=\"from\" href=\"#%s\"%s>%s</a>", p.anchor(l.from), title, esc(shorten(l.from.String())))
}

func (p *page) anchor(at ir.Pos) string { return fmt.Sprintf("s%d-%d", p.files[at.File], at.Line) }

// program is the whole text of a program; what stands in braces folds.
func (p *page) program(lines []line) {
	p.printf("<div class=\"code\" tabindex=\"0\" role=\"region\" aria-label=\"program\">\n")
	for i := 0; i < len(lines); {
		i = p.folded(lines, i)
	}
	p.printf("</div>\n")
}

// folded writes the line at i, and what it opens, and returns which line is next.
// What main has is open, regions in it are closed.
func (p *page) folded(lines []line, i int) int {
	depth := indent(lines[i].text)
	end := i + 1
	if strings.HasSuffix(lines[i].text, "{") {
		for end < len(lines) && indent(lines[end].text) > depth {
			end++
		}
	}
	if end-i < 4 {
		p.printf("<div class=\"line\">")
		p.text(lines[i])
		p.printf("</div>\n")
		return i + 1
	}
	open := ""
	if depth < 4 {
		open = " open=\"open\""
	}
	p.printf("<details%s><summary class=\"line\">", open)
	p.text(lines[i])
	p.printf(" <span class=\"quiet\">%d lines</span></summary>\n", end-i-1)
	for k := i + 1; k < end; {
		k = p.folded(lines, k)
	}
	p.printf("</details>\n")
	return end
}

func indent(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }

// sources are the files that ops come from, with how many ops of the last program
// come from each line.
func (p *page) sources(last []line, read func(string) ([]byte, error)) {
	ops := make(map[ir.Pos]int)
	for _, l := range last {
		if l.from.Line > 0 {
			ops[ir.Pos{File: l.from.File, Line: l.from.Line}]++
		}
	}
	names := make([]string, len(p.files))
	for name, i := range p.files {
		names[i] = name
	}
	for i, name := range names {
		p.printf("<h2 id=\"s%d\">%s</h2>\n", i, esc(shorten(name)))
		text, err := read(name)
		if err != nil {
			p.printf("<p>The text of this file is not at hand.</p>\n")
			p.bare(i, name, last)
			continue
		}
		p.printf("<p>At the right, how many ops of the program at the end come from each line.</p>\n<div class=\"code\" tabindex=\"0\" role=\"region\" aria-label=\"source\">\n")
		n := 0
		for row := range strings.Lines(string(text)) {
			n++
			p.printf("<div class=\"line source\" id=\"s%d-%d\"><span class=\"mark\">%d</span><span class=\"text\">%s</span>", i, n, n, esc(shorten(strings.TrimRight(row, "\r\n"))))
			if k := ops[ir.Pos{File: name, Line: n}]; k > 0 {
				p.printf(" <span class=\"quiet\">%d ops</span>", k)
			}
			p.printf("</div>\n")
		}
		p.printf("</div>\n")
	}
}

// bare makes places for links to the lines of a file that is not at hand.
func (p *page) bare(i int, name string, last []line) {
	var seen []int
	for _, l := range last {
		if l.from.File == name && l.from.Line > 0 && !slices.Contains(seen, l.from.Line) {
			seen = append(seen, l.from.Line)
		}
	}
	slices.Sort(seen)
	for _, n := range seen {
		p.printf("<div id=\"s%d-%d\">line %d</div>\n", i, n, n)
	}
}
