package lower

import (
	"fmt"
	"testing"

	"ppc/internal/optest"
	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/verify"
)

// A masked dot and flat dots compute what the dot by groups does, of every mode.
func TestWithoutRagged(t *testing.T) {
	for name, with := range map[string]func(*ir.Module) *ir.Module{"masked": Masked, "flat": Flat} {
		t.Run(name, func(t *testing.T) {
			modes := make(map[ir.RaggedMode]bool)
			for _, c := range optest.Of(ir.RaggedDot) {
				for seed := range uint64(60) {
					p := optest.New(seed)
					vs := c.Build(p)
					p.B.Return(vs...)
					modes[vs[0].Def.Attrs.Get("ragged_dot_dimension_numbers").(ir.RaggedDims).Mode()] = true
					sameWithout(t, p, with(p.M), fmt.Sprintf("%s, seed %d", c.Name, seed))
				}
			}
			if len(modes) != 3 {
				t.Errorf("%d of 3 modes are tested", len(modes))
			}
			plain := optest.New(0)
			plain.B.Return(plain.B.Splat(ir.Tensor(ir.F32), 1))
			if with(plain.M) != plain.M {
				t.Error("a program without dots by groups is copied")
			}
		})
	}
}

// sameWithout holds m against p, and that it has plain dots by groups alone, and no more
// of them than p has: a compiler for TPUs makes a kernel of each.
func sameWithout(t *testing.T, p *optest.Program, m *ir.Module, what string) {
	t.Helper()
	if err := verify.Verify(m); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	dots := 0
	p.M.Main().Body.Walk(func(op *ir.Op) {
		if op.Kind == ir.RaggedDot {
			dots++
		}
	})
	m.Main().Body.Walk(func(op *ir.Op) {
		if op.Kind == ir.RaggedDot {
			dots--
		}
		if op.Kind == ir.RaggedDot && (op.Operands[0].Type.Rank() != 2 || op.Operands[2].Type.Rank() != 1) {
			t.Fatalf("%s: there is a dot of %s by groups %s", what, op.Operands[0].Type, op.Operands[2].Type)
		}
	})
	if dots < 0 {
		t.Fatalf("%s: %d dots by groups more", what, -dots)
	}
	want, err := eval.Run(p.M, p.M.Main(), p.Args, eval.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := eval.Run(m, m.Main(), p.Args, eval.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		for k := range want[i].Type.NumElements() {
			if a, b := got[i].Float(k), want[i].Float(k); a-b > 1e-12 || b-a > 1e-12 {
				t.Fatalf("%s: element %d is %v, want %v", what, k, a, b)
			}
		}
	}
}
