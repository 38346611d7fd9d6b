package passes

import (
	"testing"

	"ppc/internal/golden"
	"ppc/ir"
	"ppc/ir/mlir"
	"ppc/passes/pass"
)

func TestGolden(t *testing.T) {
	golden.Run(t, "../testdata/golden/passes", map[string]golden.Stage{"after.mlir": after})
}

// after runs the passes named in the archive over the program and prints.
func after(t *testing.T, src string, names []string) string {
	m, err := mlir.Parse("in.mlir", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(m); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		p := byName(name)
		if p == nil {
			t.Fatalf("no pass is called %q", name)
		}
		q := *p
		q.Ensures = 0 // the archive may lack what the passes before would have made
		if err := RunOne(&q, m); err != nil {
			return err.Error() + "\n"
		}
	}
	return mlir.Print(m)
}

func byName(name string) *pass.Pass {
	for i := range Table {
		if Table[i].Name == name {
			return &Table[i]
		}
	}
	return nil
}
