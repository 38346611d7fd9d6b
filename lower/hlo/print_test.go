package hlo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ppc/internal/golden"
	"ppc/ir"
)

// TestPrint compares the text of each program with its golden file. XLA has
// parsed and run all of them; tools/xlacheck.py says how.
func TestPrint(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			m := module(p.name, p.mesh, p.build)
			if err := ir.Verify(m); err != nil {
				t.Fatal(err)
			}
			text, err := Print(m)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("..", "..", "testdata", "golden", "hlo", p.name+".hlo")
			if golden.Updating() {
				if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), text); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestRows holds that every op that may stand in a per-device program has a row.
func TestRows(t *testing.T) {
	for _, k := range ir.Kinds() {
		final := !k.Has(ir.Pipeline) && !k.Has(ir.Composite) && !k.Has(ir.Terminator) && !strings.HasPrefix(k.String(), "sdy.")
		if has := rowOf(k) != nil; has != final {
			t.Errorf("%s: has a row: %v, want %v", k, has, final)
		}
	}
}
