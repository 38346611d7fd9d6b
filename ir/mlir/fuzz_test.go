package mlir

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"ppc/internal/shared"
	"ppc/ir/verify"
)

// No text makes the parser panic or hang, and what it takes and the verifier
// accepts prints the same way when it is read again.
func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob(filepath.Join(shared.Root(f), "testdata", "golden", "mlir", "*.txtar"))
	if err != nil || len(paths) == 0 {
		f.Fatalf("no archives (%v)", err)
	}
	for _, path := range paths {
		ar, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range ar.Files {
			f.Add(file.Data)
		}
	}
	f.Add([]byte(strings.Repeat("(", 100)))
	f.Fuzz(func(t *testing.T, src []byte) {
		m, err := Parse("in.mlir", src)
		if err != nil || verify.Verify(m) != nil {
			return
		}
		if err := stable(src); err != nil {
			t.Error(err)
		}
	})
}
