package hlo_test

import (
	"testing"

	"ppc/ir"
	"ppc/ir/mlir"
	"ppc/lower/hlo"
)

// Numbers have the types that StableHLO gives them, so that what is printed can be read.
func TestNumberTypes(t *testing.T) {
	m, err := hlo.Parse("m.hlo", []byte(`HloModule m

ENTRY main {
  x = f32[3]{0} parameter(0)
  r = f32[3]{0} reduce-precision(x), exponent_bits=5, mantissa_bits=10
  t = (f32[3]{0}, f32[3]{0}) tuple(r, x)
  ROOT g = f32[3]{0} get-tuple-element(t), index=1
}
`))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	m.Main().Body.Walk(func(op *ir.Op) {
		for _, name := range []string{"exponent_bits", "mantissa_bits"} {
			if n, ok := op.Attrs.Get(name).(ir.Int); ok {
				if found++; n.Type != ir.I32 {
					t.Errorf("%s of %s is of type %s", name, op.Name(), n.Type)
				}
			}
		}
	})
	if found != 2 {
		t.Errorf("%d numbers, want 2", found)
	}
	if m, err = hlo.Runnable(m); err != nil {
		t.Fatal(err)
	}
	if _, err := mlir.Parse("m.mlir", []byte(mlir.Print(m))); err != nil {
		t.Error(err)
	}
}
