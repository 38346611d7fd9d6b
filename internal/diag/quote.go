package diag

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable is s as a terminal may have it: line ends and tabs stay, and what
// else is no printable character is quoted. These are control characters, which
// a terminal obeys; characters that show nothing or turn the direction of those
// around them; and bytes that are not UTF-8.
func Printable(s string) string { return quoted(s, "\n\t") }

// Line is Printable for a name or a message, which stays on its line: line ends
// and tabs are quoted too.
func Line(s string) string { return quoted(s, "") }

// Short is Line of s, or of its first n characters and how many there are.
func Short(s string, n int) string {
	count := utf8.RuneCountInString(s)
	if count <= n {
		return Line(s)
	}
	at := 0
	for i := range s {
		if at++; at > n {
			s = s[:i]
			break
		}
	}
	return fmt.Sprintf("%s… (%d characters)", Line(s), count)
}

func quoted(s, keep string) string {
	var b strings.Builder
	for len(s) > 0 {
		cell, n := firstCell(s, keep)
		b.WriteString(cell)
		s = s[n:]
	}
	return b.String()
}

// firstCell is the first character of s, or how it is quoted, and how many
// bytes of s it takes.
func firstCell(s, keep string) (cell string, n int) {
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError && n == 1:
		return fmt.Sprintf(`\x%02x`, s[0]), 1
	case unicode.IsPrint(r) || strings.ContainsRune(keep, r):
		return s[:n], n
	case r < utf8.RuneSelf:
		return fmt.Sprintf(`\x%02x`, r), n
	case r > 0xffff:
		return fmt.Sprintf(`\U%08x`, r), n
	}
	return fmt.Sprintf(`\u%04x`, r), n
}

// cells are the characters of a line, each as it is shown.
func cells(s string) []string {
	out := make([]string, 0, len(s)) // no more than bytes
	for len(s) > 0 {
		if ' ' <= s[0] && s[0] <= '~' {
			out, s = append(out, s[:1]), s[1:]
			continue
		}
		cell, n := firstCell(s, "\t")
		out = append(out, cell)
		s = s[n:]
	}
	return out
}
