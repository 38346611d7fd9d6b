package mlir

import (
	"strings"
	"testing"

	"ppc/internal/wordfuzz"
	"ppc/ir/verify"
)

// No text makes the parser panic or hang, and what it takes and the verifier
// accepts prints the same way when it is read again.
func FuzzParse(f *testing.F) {
	seeds := wordfuzz.Seeds(f, "mlir", "mlir", "verify", "xla", "passes")
	for _, s := range seeds {
		f.Add([]byte(s), wordfuzz.Nothing)
	}
	f.Add([]byte(strings.Repeat("(", 100)), wordfuzz.Nothing)
	words := wordfuzz.Of(seeds...)
	f.Fuzz(func(t *testing.T, src, edits []byte) {
		parses(t, words.Edit(string(src), edits))
	})
}

// parses holds FuzzParse for one text.
func parses(t *testing.T, src string) {
	m, err := Parse("in.mlir", []byte(src))
	if err != nil || verify.Verify(m) != nil {
		return
	}
	if err := stable([]byte(src)); err != nil {
		t.Errorf("%v\nof\n%s", err, src)
	}
}
