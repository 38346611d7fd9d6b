package expand

import (
	"testing"

	"ppc/internal/optest"
	"ppc/ir"
	"ppc/ir/eval"
)

// A masked dot computes what the dot by groups does, of every mode, and nothing else of
// a program changes.
func TestMasked(t *testing.T) {
	modes := make(map[ir.RaggedMode]bool)
	for _, c := range optest.Of(ir.RaggedDot) {
		for seed := range uint64(60) {
			p := optest.New(seed)
			vs := c.Build(p)
			p.B.Return(vs...)
			modes[vs[0].Def.Attrs.Get("ragged_dot_dimension_numbers").(ir.RaggedDims).Mode()] = true
			masked := Masked(p.M)
			if masked == p.M || hasRagged(masked.Main()) {
				t.Fatalf("%s, seed %d: there is a dot by groups left", c.Name, seed)
			}
			if err := ir.Verify(masked); err != nil {
				t.Fatalf("%s, seed %d: %v", c.Name, seed, err)
			}
			want, err := eval.Run(p.M, p.M.Main(), p.Args, eval.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := eval.Run(masked, masked.Main(), p.Args, eval.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				for k := range want[i].Type.NumElements() {
					if a, b := got[i].Float(k), want[i].Float(k); a-b > 1e-12 || b-a > 1e-12 {
						t.Fatalf("%s, seed %d: element %d is %v, want %v", c.Name, seed, k, a, b)
					}
				}
			}
		}
	}
	if len(modes) != 3 {
		t.Errorf("%d of 3 modes are tested", len(modes))
	}
	plain := optest.New(0)
	plain.B.Return(plain.B.Splat(ir.Tensor(ir.F32), 1))
	if Masked(plain.M) != plain.M {
		t.Error("a program without dots by groups is copied")
	}
}
