package report

import (
	_ "embed"
	"fmt"
	"html"
	"strings"
)

//go:embed report.css
var style string

// HTML is the facts as one page that needs nothing besides itself, no script
// among it; of several facts, a comparison first and then one after the other.
func HTML(all []*Facts) string {
	var b strings.Builder
	title := html.EscapeString(all[0].Program)
	b.WriteString("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n")
	b.WriteString("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n")
	b.WriteString("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<meta name=\"color-scheme\" content=\"light dark\"/>\n")
	fmt.Fprintf(&b, "<title>%s</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n", title, style)
	fmt.Fprintf(&b, "<h1>%s</h1>\n", title)
	p := &page{b: &b}
	if len(all) > 1 {
		p.section(comparison(all), "")
	}
	for i, f := range all {
		prefix := ""
		if len(all) > 1 {
			prefix = fmt.Sprintf("%d-", i)
			fmt.Fprintf(&b, "<h2 class=\"variant\">%s</h2>\n", html.EscapeString(f.title()))
		}
		sections := f.sections()
		p.contents(sections, prefix)
		for _, s := range sections {
			p.section(s, prefix)
		}
	}
	b.WriteString("</main>\n</body>\n</html>\n")
	return b.String()
}

// A page is HTML in the making.
type page struct{ b *strings.Builder }

func (p *page) contents(sections []section, prefix string) {
	p.b.WriteString("<nav aria-label=\"Contents\"><ul>\n")
	for _, s := range sections[1:] {
		fmt.Fprintf(p.b, "<li><a href=\"#%s%s\">%s</a></li>\n", prefix, s.id, html.EscapeString(s.title))
	}
	p.b.WriteString("</ul></nav>\n")
}

func (p *page) section(s section, prefix string) {
	id := prefix + s.id
	fmt.Fprintf(p.b, "<section id=\"%s\" aria-labelledby=\"%s-title\">\n", id, id)
	title := s.title
	if s.id == "glance" { // which has the title of the page
		title = "At a glance"
	}
	fmt.Fprintf(p.b, "<h2 id=\"%s-title\">%s</h2>\n", id, html.EscapeString(title))
	for _, text := range s.text {
		fmt.Fprintf(p.b, "<p>%s</p>\n", html.EscapeString(text))
	}
	if s.plot != nil {
		if svg := s.plot(); svg != "" {
			fmt.Fprintf(p.b, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s, plot\">\n%s</div>\n", html.EscapeString(title), svg)
		}
	}
	for _, t := range s.tables {
		p.table(&t, title)
	}
	p.b.WriteString("</section>\n")
}

func (p *page) table(t *table, title string) {
	if len(t.rows) == 0 {
		return
	}
	caption := t.caption
	if t.folded {
		fmt.Fprintf(p.b, "<details><summary>%s</summary>\n", html.EscapeString(caption))
		title, caption = caption, ""
	}
	fmt.Fprintf(p.b, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s, table\">\n<table>\n", html.EscapeString(title))
	if caption != "" {
		fmt.Fprintf(p.b, "<caption>%s</caption>\n", html.EscapeString(caption))
	}
	p.head(t)
	p.b.WriteString("<tbody>\n")
	for _, r := range t.rows {
		p.b.WriteString("<tr>")
		for i, c := range r {
			p.cell(c, i == 0)
		}
		p.b.WriteString("</tr>\n")
	}
	p.b.WriteString("</tbody></table>\n</div>\n")
	if t.folded {
		p.b.WriteString("</details>\n")
	}
}

func (p *page) head(t *table) {
	if strings.Join(t.head, "") == "" {
		return
	}
	p.b.WriteString("<thead><tr>")
	for i, h := range t.head {
		class := ""
		if t.rows[0][i].exact != "" {
			class = " class=\"n\""
		}
		fmt.Fprintf(p.b, "<th scope=\"col\"%s>%s</th>", class, html.EscapeString(h))
	}
	p.b.WriteString("</tr></thead>\n")
}

// cell is c, with its number where the text is another.
func (p *page) cell(c cell, first bool) {
	text := html.EscapeString(c.text)
	if c.exact != "" && c.exact != c.text {
		text = fmt.Sprintf("<data value=\"%s\">%s</data>", c.exact, text)
	}
	tag, class := "td", ""
	if c.exact != "" {
		class = " class=\"n\""
	}
	if first {
		if strings.HasPrefix(c.text, " ") {
			class = " class=\"sub\""
		}
		class += " scope=\"row\""
		tag = "th"
	}
	fmt.Fprintf(p.b, "<%s%s>%s</%s>", tag, class, text, tag)
}
