package spell

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	candidates := []string{"embed", "heads", "head", "fsdp", "microbatches"}
	for word, want := range map[string]string{
		"embd":                   "embed",
		"haeds":                  "heads",
		"fdsp":                   "fsdp",
		"microbatchs":            "microbatches",
		"tensor":                 "",
		"":                       "",
		"head":                   "head",
		strings.Repeat("x", 1e6): "",
	} {
		if got := Nearest(word, candidates); got != want {
			t.Errorf("%.20q: %q, want %q", word, got, want)
		}
	}
}
