package hlo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ppc/internal/golden"
	"ppc/ir/verify"
)

// TestPrint compares the text of each program with its golden file. XLA has
// parsed and run all of them; tools/xlacheck.py says how.
func TestPrint(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			m := module(p.name, p.mesh, p.build)
			if err := verify.Verify(m); err != nil {
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

// Names are those of the program, but for what XLA reads as something else.
func TestNames(t *testing.T) {
	for name, want := range map[string]string{"x": "x", "decoder.wq": "decoder.wq", "a b": "a_b", "1": "_1", "": "_", "s1": "s1_", "pred": "pred_", "bf16": "bf16_", "f8e4m3fn": "f8e4m3fn_", "s3": "s3", "f8": "f8"} {
		if got := sanitise(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
