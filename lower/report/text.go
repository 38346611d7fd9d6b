package report

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Text is the facts for a terminal: of several, a comparison first. With colour the
// repeats in the grid have some. Tables that
// a page folds are left out where the text would be long; JSON has them.
func Text(all []*Facts, colour bool) string {
	var b strings.Builder
	if len(all) > 1 {
		writeSection(&b, comparison(all), nil, colour)
	}
	for _, f := range all {
		sections := f.sections()
		for i, s := range sections {
			var grid *Schedule
			if i > 0 && i <= len(f.Schedules) {
				grid = f.Schedules[i-1]
			}
			writeSection(&b, s, grid, colour)
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func writeSection(b *strings.Builder, s section, grid *Schedule, colour bool) {
	fmt.Fprintf(b, "%s\n", s.title)
	for _, p := range s.text {
		for _, line := range wrap(p, 96) {
			fmt.Fprintf(b, "  %s\n", line)
		}
	}
	if grid != nil {
		b.WriteString("\n" + grid.text(colour))
	}
	for _, t := range s.tables {
		if len(t.rows) == 0 || t.folded && s.id != "loops" {
			continue
		}
		b.WriteString("\n" + t.text())
	}
	b.WriteString("\n\n")
}

// wrap breaks text into lines.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// text is the table in aligned columns, numbers to the right.
func (t *table) text() string {
	rows := [][]cell{}
	head := make([]cell, len(t.head))
	titled := false
	for i, h := range t.head {
		head[i] = words(h)
		titled = titled || h != ""
	}
	if titled {
		rows = append(rows, head)
	}
	rows = append(rows, t.rows...)
	width, numbers := make([]int, len(t.head)), make([]bool, len(t.head))
	for _, r := range rows {
		for i, c := range r {
			width[i] = max(width[i], utf8.RuneCountInString(c.text))
			numbers[i] = numbers[i] || c.exact != ""
		}
	}
	var b strings.Builder
	if t.caption != "" {
		fmt.Fprintf(&b, "  %s\n", t.caption)
	}
	for _, r := range rows {
		line := " "
		for i, c := range r {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c.text))
			if numbers[i] {
				line += " " + pad + c.text + " "
			} else {
				line += " " + c.text + pad + " "
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
