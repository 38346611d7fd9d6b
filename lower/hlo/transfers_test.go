package hlo

import (
	"path/filepath"
	"testing"

	"ppc/internal/golden"
	"ppc/ir/mlir"
	"ppc/ir/verify"
)

// TestTransfers shows what becomes of StableHLO's ops that have no kind and that HLO has: the
// text, which prints the same once it has been read.
func TestTransfers(t *testing.T) {
	golden.Run(t, filepath.Join("..", "..", "testdata", "golden", "transfers"), map[string]golden.Stage{
		"hlo": func(t *testing.T, src string, _ []string) string {
			m, err := mlir.Parse("in.mlir", []byte(src))
			if err == nil {
				err = verify.Verify(m)
			}
			if err != nil {
				t.Fatal(err)
			}
			text, err := Print(m)
			if err != nil {
				return err.Error() + "\n"
			}
			if err := readable(text); err != nil {
				t.Error(err)
			}
			return text
		},
	})
}
