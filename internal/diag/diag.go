// Package diag is errors and warnings about text: what is wrong, where, and the
// cure, as data that is rendered at the edge.
package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Diagnostic is one error of the input, or one warning.
type Diagnostic struct {
	Warning   string // the name of the warning; "" of an error
	File      string
	Line, Col int    // from 1; 0 is no place
	Len       int    // columns that are underlined, at least 1
	Text      string // the source line
	Msg       string // offender, found, wanted
	Hint      string // the cure, if one is known
	Template  string // Msg before its numbers and names were put in
	Rank      int    // of File among the sources, for sorting
}

// String renders d as
//
//	in.pp:2:7: unknown name rellu
//	  x = rellu(a)
//	      ^~~~~ did you mean relu?
//
// without the second and third line where the source line is not known. A
// warning reads "in.pp:2:7: warning: … [name]".
func (d *Diagnostic) String() string {
	var b strings.Builder
	b.WriteString(d.place())
	if d.Warning != "" {
		fmt.Fprintf(&b, "warning: %s [%s]\n", Line(d.Msg), d.Warning)
	} else {
		fmt.Fprintf(&b, "%s\n", Line(d.Msg))
	}
	text := cells(start(strings.TrimRight(d.Text, " \t\r\n"), d.Col+2*maxText))
	if d.Line == 0 || d.Col < 1 || d.Col > len(text)+1 {
		if d.Hint != "" {
			fmt.Fprintf(&b, "  %s\n", Line(d.Hint))
		}
		return b.String()
	}
	text, col := window(text, d.Col-1)
	end := min(max(col+d.Len, col), len(text))
	mark := "^" + strings.Repeat("~", max(0, width(text[col:end])-1))
	if d.Hint != "" {
		mark += " " + Line(d.Hint)
	}
	fmt.Fprintf(&b, "  %s\n  %s%s\n", strings.Join(text, ""), indent(text[:col]), mark)
	return b.String()
}

// width is how many columns text takes.
func width(text []string) int {
	n := 0
	for _, cell := range text {
		n += utf8.RuneCountInString(cell)
	}
	return n
}

// indent is the blanks that bring a mark below what follows text.
func indent(text []string) string {
	var b strings.Builder
	for _, cell := range text {
		if cell == "\t" { // as wide as the terminal makes it
			b.WriteString(cell)
			continue
		}
		b.WriteString(strings.Repeat(" ", utf8.RuneCountInString(cell)))
	}
	return b.String()
}

// place is where d is, up to the message: "" where nothing is known.
func (d *Diagnostic) place() string {
	switch {
	case d.Line > 0:
		return fmt.Sprintf("%s:%d:%d: ", Line(d.File), d.Line, d.Col)
	case d.File != "":
		return Line(d.File) + ": "
	}
	return ""
}

// maxText is the longest source line that is shown in full.
const maxText = 160

// start is the first n characters of a line, at the least: what is behind is not shown.
func start(line string, n int) string {
	if n < 0 || n >= len(line)/utf8.UTFMax {
		return line
	}
	end := n * utf8.UTFMax
	for back := range min(utf8.UTFMax, end+1) { // to the start of a character, where there is one
		if utf8.RuneStart(line[end-back]) {
			return line[:end-back]
		}
	}
	return line[:end]
}

// window truncates a long line to the range around column col (from 0).
func window(text []string, col int) ([]string, int) {
	if len(text) <= maxText {
		return text, col
	}
	lo := max(0, min(col-maxText/2, len(text)-maxText))
	return text[lo : lo+maxText], col - lo
}

// A List is the errors of one run. Used as an error it is not empty.
type List []*Diagnostic

// Error is all diagnostics, one after the other.
func (l List) Error() string {
	var b strings.Builder
	for _, d := range l {
		b.WriteString(d.String())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Sort puts l in source order and drops what says the same at the same place.
func (l *List) Sort() {
	slices.SortStableFunc(*l, func(a, b *Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	*l = slices.CompactFunc(*l, func(a, b *Diagnostic) bool {
		return a.File == b.File && a.Line == b.Line && a.Col == b.Col && a.Msg == b.Msg
	})
}

// Err is l as an error, nil if it is empty.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	return l
}

// LineOf returns line n (from 1) of src, without its end.
func LineOf(src string, n int) string {
	for ; n > 1; n-- {
		i := strings.IndexByte(src, '\n')
		if i < 0 {
			return ""
		}
		src = src[i+1:]
	}
	if i := strings.IndexByte(src, '\n'); i >= 0 {
		src = src[:i]
	}
	return src
}
