package view

import (
	"bytes"
	_ "embed"
	"fmt"
	"html"
	"maps"
	"path"
	"slices"
	"strings"

	"ppc/ir"
)

//go:embed view.css
var style string

// HTML is the page. read returns the text of a file that ops come from; a file
// that it has not is named only.
func (v *View) HTML(read func(name string) ([]byte, error)) string {
	p := &page{files: v.files(), linked: make(map[int]map[int]bool)}
	p.printf("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n")
	p.printf("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n")
	p.printf("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<meta name=\"color-scheme\" content=\"light dark\"/>\n")
	p.printf("<title>%s through the passes</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n", esc(v.name), style)
	p.printf("<h1>%s</h1>\n<p>The program as it was read, what each pass changed, and the per-device program at the end. A line links to its origin in the source. Of a line that a pass edits, the words that went are struck out and those that came are underlined; numbers of values and indentation are not compared.</p>\n", esc(v.name))
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
	p.printf("<thead><tr><th scope=\"col\">pass</th><th scope=\"col\" class=\"n\">added</th><th scope=\"col\" class=\"n\">removed</th><th scope=\"col\" class=\"n\">edited</th><th scope=\"col\" class=\"n\">lines</th><th scope=\"col\">what it does</th></tr></thead>\n<tbody>\n")
	p.printf("<tr><th scope=\"row\"><a href=\"#first\">as it was read</a></th><td></td><td></td><td></td><td class=\"n\">%d</td><td></td></tr>\n", len(v.first))
	for i, s := range v.steps {
		name := esc(s.pass)
		if s.changes() > 0 {
			name = fmt.Sprintf("<a href=\"#pass-%d\">%s</a>", i+1, name)
		}
		p.printf("<tr><th scope=\"row\">%s</th><td class=\"n\">%d</td><td class=\"n\">%d</td><td class=\"n\">%d</td><td class=\"n\">%d</td><td>%s</td></tr>\n", name, s.added, s.removed, s.edited, s.total, esc(s.doc))
	}
	p.printf("<tr><th scope=\"row\"><a href=\"#last\">at the end</a></th><td></td><td></td><td></td><td class=\"n\">%d</td><td></td></tr>\n", len(v.last))
	p.printf("</tbody></table></div>\n</nav>\n")
}

func esc(s string) string { return html.EscapeString(s) }

// A page is HTML in the making.
type page struct {
	b     strings.Builder
	files map[string]int // numbers of those that have lines to link to

	linked map[int]map[int]bool // the lines of each that links lead to
}

func (p *page) printf(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

// step is what a pass changed.
func (p *page) step(i int, s *step) {
	if s.changes() == 0 {
		return
	}
	p.printf("<h2 id=\"pass-%d\">%d. %s</h2>\n<p>%s. Afterwards the program is %s.</p>\n", i+1, i+1, esc(s.pass), esc(s.doc), esc(s.form))
	lines := len(s.hunks) + 1
	for _, h := range s.hunks {
		lines += len(h.lines)
	}
	p.printf("<details open=\"open\"><summary>%d added, %d removed, %d edited</summary>\n", s.added, s.removed, s.edited)
	p.box("code changes", "what "+s.pass+" changed", lines)
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

// box begins a box of so many lines. That of what a pass changed has a height that
// follows from them, and a browser lays it out when it comes into sight.
func (p *page) box(class, label string, lines int) {
	p.printf("<div class=\"%s\" style=\"--lines: %d\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">\n", class, lines, esc(label))
}

func (p *page) skipped(n int) {
	if n > 0 {
		p.printf("<div class=\"skip\">… %d unchanged</div>\n", n)
	}
}

// changed writes a line of a hunk: one that was added is ins, one that was removed
// del, which the style sheet puts + and - before.
func (p *page) changed(c changed) {
	switch c.mark {
	case '+':
		p.line("ins", c.line)
	case '-', ' ':
		c.note = "" // said where it was added
		p.line(map[byte]string{'-': "del", ' ': "p"}[c.mark], c.line)
	case '~':
		p.printf("<p class=\"e\">")
		for _, x := range pieces(c.before, c.text) {
			switch x.mark {
			case '+':
				p.printf("<ins>%s</ins>", text(x.text))
			case '-':
				p.printf("<del>%s</del>", text(x.text))
			default:
				p.printf("%s", text(x.text))
			}
		}
		p.origin(c.line)
		p.printf("</p>\n")
	}
}

func (p *page) line(element string, l line) {
	p.printf("<%s>%s", element, text(l.text))
	p.origin(l)
	p.printf("</%s>\n", element)
}

// text is s as text of an element, in which quotes may stand.
func text(s string) string { return markup.Replace(s) }

var markup = strings.NewReplacer("&", "&amp;", "<", "&lt;", "]]>", "]]&gt;")

// origin links a line to its origin.
func (p *page) origin(l line) {
	if l.from.Line == 0 {
		return
	}
	title := ""
	if l.note != "" {
		title = fmt.Sprintf(" title=\"%s\"", esc(l.note))
	}
	p.printf(" <a href=\"#%s\"%s>%s</a>", p.anchor(l.from), title, text(p.place(l.from)))
}

// place is a place in the source by the last part of the file's name, if no other
// file has the same.
func (p *page) place(at ir.Pos) string {
	short := path.Base(at.File)
	for name := range p.files {
		if name != at.File && path.Base(name) == short {
			return shorten(at.String())
		}
	}
	at.File = short
	return shorten(at.String())
}

func (p *page) anchor(at ir.Pos) string {
	i := p.files[at.File]
	if p.linked[i] == nil {
		p.linked[i] = make(map[int]bool)
	}
	p.linked[i][at.Line] = true
	return fmt.Sprintf("s%d-%d", i, at.Line)
}

// program is the text of a program, in which regions fold.
func (p *page) program(lines []line) {
	p.box("code all", "program", len(lines))
	for i := 0; i < len(lines); {
		i = p.folded(lines, i)
	}
	p.printf("</div>\n")
}

// opens is where what the line at i opens ends, and whether it is folded at first:
// what main has is open, regions in it are not.
func opens(lines []line, i int) (end int, closed bool) {
	depth := indent(lines[i].text)
	end = i + 1
	if strings.HasSuffix(lines[i].text, "{") {
		for end < len(lines) && indent(lines[end].text) > depth {
			end++
		}
	}
	return end, depth >= 4 && end-i >= shortest
}

const shortest = 4 // lines that fold

// folded writes the line at i, and what it opens, and returns which line is next.
func (p *page) folded(lines []line, i int) int {
	end, closed := opens(lines, i)
	if end-i < shortest {
		p.line("p", lines[i])
		return i + 1
	}
	open := " open=\"open\""
	if closed {
		open = ""
	}
	p.printf("<details%s><summary>%s", open, text(lines[i].text))
	p.origin(lines[i])
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
		source, err := read(name)
		if err != nil {
			p.printf("<p>The text of this file is not at hand.</p>\n")
			p.bare(i, 0)
			continue
		}
		p.printf("<p>At the right, how many ops of the program at the end come from each line.</p>\n")
		p.box("code all", "source", bytes.Count(source, []byte("\n")))
		n := 0
		for row := range strings.Lines(string(source)) {
			n++
			p.printf("<p class=\"source\" id=\"s%d-%d\"><span class=\"mark\">%d</span>%s", i, n, n, text(shorten(strings.TrimRight(row, "\r\n"))))
			if k := ops[ir.Pos{File: name, Line: n}]; k > 0 {
				p.printf(" <span class=\"quiet\">%d ops</span>", k)
			}
			p.printf("</p>\n")
		}
		p.printf("</div>\n")
		p.bare(i, n)
	}
}

// bare makes places for links to the lines of file i after line from, which are not
// at hand.
func (p *page) bare(i, from int) {
	lines := slices.Sorted(maps.Keys(p.linked[i]))
	for _, n := range lines {
		if n > from {
			p.printf("<div id=\"s%d-%d\">line %d</div>\n", i, n, n)
		}
	}
}
