package runtime_test

import (
	"math/rand/v2"
	"testing"

	"ppc/ir"
	"ppc/ir/mlir"
	"ppc/runtime"
)

// What a loop computes of constants alone is computed once, and has the bits that it has op by op.
func TestFolded(t *testing.T) {
	m, err := mlir.Parse("in.mlir", []byte(`
func.func @main(%x: tensor<8x32xf32>, %n: tensor<i32>) -> (tensor<8x32xf32>, tensor<32xi32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %none = stablehlo.constant dense<0> : tensor<32xi32>
  %end, %y, %places = stablehlo.while(%i = %zero, %a = %x, %p = %none) : tensor<i32>, tensor<8x32xf32>, tensor<32xi32>
  cond {
    %more = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %angle = stablehlo.iota dim = 0 : tensor<32xf32>
    %sin = stablehlo.sine %angle : tensor<32xf32>
    %rows = stablehlo.iota dim = 0 : tensor<8x32xi32>
    %cols = stablehlo.iota dim = 1 : tensor<8x32xi32>
    %mask = stablehlo.compare GE, %rows, %cols, SIGNED : (tensor<8x32xi32>, tensor<8x32xi32>) -> tensor<8x32xi1>
    %odd = stablehlo.remainder %i, %n : tensor<i32>
    %is = stablehlo.compare EQ, %odd, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %b = "stablehlo.if"(%is) ({
      %cos = stablehlo.cosine %angle : tensor<32xf32>
      %wide = stablehlo.broadcast_in_dim %cos, dims = [1] : (tensor<32xf32>) -> tensor<8x32xf32>
      %s = stablehlo.multiply %a, %wide : tensor<8x32xf32>
      stablehlo.return %s : tensor<8x32xf32>
    }, {
      %wide = stablehlo.broadcast_in_dim %sin, dims = [1] : (tensor<32xf32>) -> tensor<8x32xf32>
      %s = stablehlo.select %mask, %wide, %a : tensor<8x32xi1>, tensor<8x32xf32>
      stablehlo.return %s : tensor<8x32xf32>
    }) : (tensor<i1>) -> tensor<8x32xf32>
    %q = stablehlo.iota dim = 0 : tensor<32xi32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %b, %q : tensor<i32>, tensor<8x32xf32>, tensor<32xi32>
  }
  return %y, %places : tensor<8x32xf32>, tensor<32xi32>
}`))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(21, 0))
	args := []*ir.Literal{random(rng, m.Main().Params()[0].Type, false), ir.Ints64(ir.Tensor(ir.I32), 5)}
	want := results(t, m, args, runtime.Unfused())
	exe := load(t, m)
	for range 2 {
		var p runtime.Profile
		out, err := exe.Run(t.Context(), [][]*ir.Literal{args}, runtime.WithProfile(&p))
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if !sameBits(out[0][i], want[i]) {
				t.Errorf("result %d differs from that of the ops one by one", i)
			}
		}
		for _, o := range p.Ops {
			switch o.Op.Kind {
			case ir.Iota, ir.Sine, ir.Cosine:
				t.Errorf("%s is computed in a run", o.Op.Name())
			case ir.Compare:
				if o.Op.Result().Type.Rank() > 0 {
					t.Errorf("the mask is computed in a run")
				}
			}
		}
	}
}
