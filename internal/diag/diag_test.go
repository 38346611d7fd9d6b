package diag

import (
	"strings"
	"testing"
)

func TestString(t *testing.T) {
	for _, tt := range []struct {
		name string
		d    Diagnostic
		want string
	}{
		{"word", Diagnostic{File: "in.pp", Line: 2, Col: 6, Len: 5, Text: "\tx = rellu(a)", Msg: "no"}, "in.pp:2:6: no\n  \tx = rellu(a)\n  \t    ^~~~~\n"},
		{"hint", Diagnostic{File: "in.pp", Line: 1, Col: 1, Len: 9, Text: "axes", Msg: "no", Hint: "so"}, "in.pp:1:1: no\n  axes\n  ^~~~ so\n"},
		{"end of line", Diagnostic{File: "in.pp", Line: 1, Col: 5, Len: 1, Text: "axes\n", Msg: "no"}, "in.pp:1:5: no\n  axes\n      ^\n"},
		{"nowhere", Diagnostic{File: "in.pp", Msg: "no", Hint: "so"}, "in.pp: no\n  so\n"},
		{"far right", Diagnostic{File: "in.pp", Line: 1, Col: 1000, Len: 1, Text: strings.Repeat("(", 5000), Msg: "no"},
			"in.pp:1:1000: no\n  " + strings.Repeat("(", maxText) + "\n  " + strings.Repeat(" ", maxText/2) + "^\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := tt.d
			if got := d.String(); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestSort(t *testing.T) {
	l := List{{Rank: 1, Line: 1}, {Line: 2, Msg: "b"}, {Line: 2, Msg: "b"}, {Line: 1}}
	l.Sort()
	if len(l) != 3 || l[0].Line != 1 || l[1].Msg != "b" || l[2].Rank != 1 {
		t.Errorf("order: %v", l)
	}
}

func TestLineOf(t *testing.T) {
	for n, want := range []string{1: "a", 2: "", 3: "c", 4: ""} {
		if n > 0 {
			if got := LineOf("a\n\nc", n); got != want {
				t.Errorf("line %d is %q, want %q", n, got, want)
			}
		}
	}
}

// Of a long line what is shown is looked at, not all of it.
func TestLongLine(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	d := &Diagnostic{File: "f", Line: 1, Col: 3, Len: 1, Msg: "wrong", Text: long}
	want := "f:1:3: wrong\n  " + strings.Repeat("é", maxText) + "\n    ^\n"
	if got := d.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := len(start(long, 100)); n != 400 {
		t.Errorf("start has %d bytes, want 400", n)
	}
}
