package against_test

import (
	"strings"
	"testing"

	"ppc/driver/against"
	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/mlir"
)

// program doubles a number in each of 8 times 4 iterations, but for the third of the sixth four, where it takes a tangent.
const program = `
func.func @main(%arg0: tensor<2xf64>) -> tensor<2xf64> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %x = %arg0) : tensor<i32>, tensor<2xf64>
  cond {
    %n = stablehlo.constant dense<8> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1:2 = stablehlo.while(%k = %zero, %y = %x) : tensor<i32>, tensor<2xf64>
    cond {
      %n = stablehlo.constant dense<4> : tensor<i32>
      %2 = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %five = stablehlo.constant dense<5> : tensor<i32>
      %two = stablehlo.constant dense<2> : tensor<i32>
      %2 = stablehlo.compare EQ, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %3 = stablehlo.compare EQ, %k, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %4 = stablehlo.and %2, %3 : tensor<i1>
      %5 = "stablehlo.if"(%4) ({
        %half = stablehlo.constant dense<0.5> : tensor<2xf64>
        %8 = stablehlo.multiply %y, %half : tensor<2xf64>
        %curve = stablehlo.tanh %8 : tensor<2xf64>
        stablehlo.return %curve : tensor<2xf64>
      }, {
        %8 = stablehlo.add %y, %y : tensor<2xf64>
        stablehlo.return %8 : tensor<2xf64>
      }) : (tensor<i1>) -> tensor<2xf64>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %6 = stablehlo.add %k, %one : tensor<i32>
      stablehlo.return %6, %5 : tensor<i32>, tensor<2xf64>
    }
    %one = stablehlo.constant dense<1> : tensor<i32>
    %7 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %7, %1#1 : tensor<i32>, tensor<2xf64>
  }
  %9 = stablehlo.negate %0#1 : tensor<2xf64>
  return %9 : tensor<2xf64>
}
`

// engines runs m by the evaluator, with and without another op in the place of one kind.
func engines(t *testing.T, from, to ir.Kind) against.Runner {
	return func(m *ir.Module) (results [2][][]*ir.Literal, err error) {
		broken := m.Clone()
		broken.Main().Body.Walk(func(op *ir.Op) {
			if op.Kind == from {
				op.Kind = to
			}
		})
		x := ir.Floats64(ir.Tensor(ir.F64, 2), 0.25, 0.5)
		for i, m := range []*ir.Module{m, broken} {
			if results[i], err = eval.RunDevices(m, m.Main(), [][]*ir.Literal{{x}}, eval.Options{Context: t.Context()}); err != nil {
				return results, err
			}
		}
		return results, nil
	}
}

// The first value that differs is found in loops in loops and in the branch of a conditional, and none is where
// there is no difference.
func TestFind(t *testing.T) {
	m, err := mlir.Parse("program.mlir", []byte(program))
	if err != nil {
		t.Fatal(err)
	}
	if d, err := against.Find(m, engines(t, ir.Tanh, ir.Tanh)); d != nil || err != nil {
		t.Errorf("%v, %v where there is no difference", d, err)
	}
	for _, c := range []struct {
		from, to   ir.Kind
		want       string
		iterations []int
	}{
		{ir.Tanh, ir.Sine, "curve, by stablehlo.tanh", []int{5, 2}},
		{ir.Negate, ir.Abs, "by stablehlo.negate at program.mlir:38:8", nil},
	} {
		d, err := against.Find(m, engines(t, c.from, c.to))
		if err != nil || d == nil {
			t.Fatalf("%v, %v, want a difference of %s", d, err, c.want)
		}
		text := d.Text(m, [2]string{"one", "other"})
		if len(d.Loops) != len(c.iterations) || !strings.Contains(text, c.want) {
			t.Errorf("%s\nwant %s, in %d loops", text, c.want, len(c.iterations))
			continue
		}
		for i, n := range c.iterations {
			if d.Loops[i].N != n {
				t.Errorf("iteration %d of loop %d, want %d", d.Loops[i].N, i, n)
			}
		}
	}
}
