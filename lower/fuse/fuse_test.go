package fuse_test

import (
	"testing"

	"ppc/internal/golden"
	"ppc/ir"
	"ppc/ir/mlir"
	"ppc/lower/fuse"
)

// The archives say what is computed together.
func TestGolden(t *testing.T) {
	golden.Run(t, "../../testdata/golden/fuse", map[string]golden.Stage{"fuse": func(t *testing.T, src string, _ []string) string {
		m, err := mlir.Parse("in.mlir", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		return fuse.Text(fuse.Plan(m.Main().Body.Ops), func(v *ir.Value) string { return "%" + v.Name })
	}})
}
