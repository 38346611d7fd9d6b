package diag

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

func TestPrintable(t *testing.T) {
	for _, c := range []struct{ text, printable, line string }{
		{"plain, ünïcödé, 日本\n\tx", "plain, ünïcödé, 日本\n\tx", `plain, ünïcödé, 日本\x0a\x09x`},
		{"\x1b[31mred\r\x07\x00\x7f", `\x1b[31mred\x0d\x07\x00\x7f`, `\x1b[31mred\x0d\x07\x00\x7f`},
		{"\u009b2J \u0085", `\u009b2J \u0085`, `\u009b2J \u0085`},
		{"\u202eabc\u2066\u200f\u061c", `\u202eabc\u2066\u200f\u061c`, `\u202eabc\u2066\u200f\u061c`},
		{"a\u200bb\ufeff\u00a0\u2028\U000e0041", `a\u200bb\ufeff\u00a0\u2028\U000e0041`, `a\u200bb\ufeff\u00a0\u2028\U000e0041`},
		{"\xff\xc3x\ufffd", `\xff\xc3x` + "\ufffd", `\xff\xc3x` + "\ufffd"},
	} {
		if got := Printable(c.text); got != c.printable {
			t.Errorf("Printable(%q) is %q, want %q", c.text, got, c.printable)
		}
		if got := Line(c.text); got != c.line {
			t.Errorf("Line(%q) is %q, want %q", c.text, got, c.line)
		}
	}
}

// The mark stands below what it means, also after and around what is quoted.
func TestMarksOfQuotedText(t *testing.T) {
	d := &Diagnostic{File: "a\n.pp", Line: 1, Col: 5, Len: 3, Text: "\tx\x1b\xffy\u202ez = 1", Msg: "what is \u202e", Hint: "no \x07"}
	want := `a\x0a.pp:1:5: what is \u202e
  	x\x1b\xffy\u202ez = 1
  	         ^~~~~~~~ no \x07
`
	if got := d.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// Nothing that a terminal obeys is left of any text.
func FuzzPrintable(f *testing.F) {
	f.Add("\x1b[31m\u202e\xff\n", 1, 2)
	f.Add(strings.Repeat("\x83", 8000), -2, 9)
	f.Add(strings.Repeat("\x83", 8000), 3, 9)
	f.Fuzz(func(t *testing.T, text string, col, n int) {
		d := &Diagnostic{File: text, Line: 1, Col: col % 10, Len: n % 10, Text: text, Msg: text, Hint: text}
		for _, s := range []string{Printable(text), Line(text), d.String()} {
			for _, r := range s {
				if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
					t.Fatalf("%q has %q", s, r)
				}
			}
			if b, err := json.Marshal(s); err != nil || !json.Valid(b) {
				t.Fatal(err)
			}
		}
	})
}
