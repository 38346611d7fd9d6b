package binding

import (
	"strings"
	"testing"
)

// A list of names in a message has a length that does not depend on the names.
func TestFew(t *testing.T) {
	long := strings.Repeat("a", 60000)
	names := append(strings.Split(strings.Repeat("b ", 29), " "), long)
	if got, want := Few([]string{long, "b"}), strings.Repeat("a", 100)+"… (60000 characters), b"; got != want {
		t.Errorf("%.200q, want %q", got, want)
	}
	if got := Few(names); !strings.HasSuffix(got, "and 19 more") {
		t.Errorf("%.200q, want 12 names and 19 more", got)
	}
	if names[30] != long {
		t.Error("the names are changed")
	}
}
