package lang

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ppc/internal/golden"
	"ppc/ir/lang/syntax"
)

// sources are all .pp files that the repository keeps.
func sources(t testing.TB) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"std/*.pp", "../../examples/*.pp", "../../examples/*/*.pp"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, paths...)
	}
	return out
}

// Every .pp file of the repository is formatted.
func TestFormatted(t *testing.T) {
	for _, path := range sources(t) {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := syntax.Format(path, src)
		if err != nil {
			t.Error(err)
			continue
		}
		if golden.Updating() && string(got) != string(src) {
			if err := os.WriteFile(path, got, 0o666); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if diff := cmp.Diff(string(src), string(got)); diff != "" {
			t.Errorf("%s is not formatted (-have +want):\n%s", path, diff)
		}
	}
}
