package fuse_test

import (
	"slices"
	"testing"

	"ppc/internal/golden"
	"ppc/ir"
	"ppc/ir/mlir"
	"ppc/lower/fuse"
)

// The archives say what is computed together, in main, or in the body of its loop.
func TestGolden(t *testing.T) {
	of := func(block func(main *ir.Func) *ir.Block) golden.Stage {
		return func(t *testing.T, src string, _ []string) string {
			m, err := mlir.Parse("in.mlir", []byte(src))
			if err != nil {
				t.Fatal(err)
			}
			return fuse.Text(fuse.Plan(block(m.Main()).Ops), func(v *ir.Value) string { return "%" + v.Name })
		}
	}
	golden.Run(t, "../../testdata/golden/fuse", map[string]golden.Stage{
		"fuse": of(func(f *ir.Func) *ir.Block { return f.Body }),
		"fuse.body": of(func(f *ir.Func) *ir.Block {
			i := slices.IndexFunc(f.Body.Ops, func(op *ir.Op) bool { return op.Kind == ir.While })
			return f.Body.Ops[i].Regions[1]
		}),
	})
}
