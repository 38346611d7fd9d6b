package driver

import (
	"math"
	"testing"

	"ppc/driver/binding"
)

// A reference on the kernels has the numbers of the one on the evaluator: in float64 up
// to the order of sums, in the program's own types up to their rounding.
func TestReferenceByKernels(t *testing.T) {
	for _, c := range []struct {
		name string
		src  *Source
		own  float64 // relative distance of values in the program's types
	}{
		{"training", &Source{File: "../examples/llama.pp", Set: []string{"axes.seq=8", "axes.embed=16", "axes.head=4", "axes.mlp=32", "axes.vocab=32", "train.steps=1"}}, 1e-2},
		{"experts", &Source{File: "../examples/llama_moe.pp", Set: []string{"axes.seq=8", "axes.embed=16", "axes.head=4", "axes.mlp=32", "axes.vocab=32", "train.steps=1"}}, 1e-2},
		{"f64", &Source{File: write(t, "f64.pp", tinyF64)}, 1e-5},
		{"a program of StableHLO", &Source{File: write(t, "in.mlir", tinyMLIR)}, 1e-2},
	} {
		t.Run(c.name, func(t *testing.T) {
			values := func(limit int) (exact, own []*binding.Named) {
				r := &runner{src: c.src, evaluator: limit, opts: RunOptions{Check: true}}
				if err := r.load(t.Context()); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(r.close)
				if err := r.p.compile(t.Context(), "", ""); err != nil {
					t.Fatal(err)
				}
				if _, err := r.prepare(t.Context(), goroutines{}); err != nil {
					t.Fatal(err)
				}
				ref, err := r.newReference(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if (ref.exact.kernels != nil) != (limit == 1) || (ref.own.kernels != nil) != (limit == 1) {
					t.Fatalf("with %d bytes for the evaluator: on the kernels: %v and %v", limit, ref.exact.kernels != nil, ref.own.kernels != nil)
				}
				if err := ref.run(t.Context(), 1); err != nil {
					t.Fatal(err)
				}
				return ref.exact.Values(), ref.own.Values()
			}
			exact, own := values(0)
			exactK, ownK := values(1)
			sameValues(t, exactK, exact, 1e-9)
			sameValues(t, ownK, own, c.own)
		})
	}
}

// sameValues demands that the distance of got and want is at most so much of want.
func sameValues(t *testing.T, got, want []*binding.Named, most float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d values, want %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		if g.Name != w.Name || g.Literal.Type.String() != w.Literal.Type.String() {
			t.Fatalf("value %d is %s of %s, want %s of %s", i, g.Name, g.Literal.Type, w.Name, w.Literal.Type)
		}
		n := w.Literal.Type.NumElements()
		far := norm(0, n, func(i int) float64 { return difference(g.Literal, w.Literal, i) })
		size := norm(0, n, func(i int) float64 { return binding.Number(w.Literal, i) })
		if far > most*size || math.IsNaN(far) {
			t.Errorf("%s is %g of its size away from the evaluator's", w.Name, far/size)
		}
	}
}

const tinyF64 = `
axes { batch = 8, embed = 16, mlp = 32 }
layer dense(x: f64[batch, embed]) {
  param w: f64[embed, mlp] = normal(0.2)
  param v: f64[mlp, embed] = normal(0.2)
  return x + dot(tanh(dot(x, w, over: embed)), v, over: mlp)
}
model f64s(x: f64[batch, embed]) { return pipeline(dense, layers: 2)(x) }
mesh { stage = 2 }
pipeline { microbatches = 2 }
`

const tinyMLIR = `module {
  func.func @main(%x: tensor<8x16xbf16>, %w: tensor<16x16xf32>) -> (tensor<8x16xf32>, tensor<f32>) {
    %zero = stablehlo.constant dense<0.1> : tensor<f32>
    %y = stablehlo.convert %x : (tensor<8x16xbf16>) -> tensor<8x16xf32>
    %p = stablehlo.reduce_precision %y, format = e5m10 : tensor<8x16xf32>
    %z = stablehlo.dot_general %p, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %s = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<f32>
    return %z, %s : tensor<8x16xf32>, tensor<f32>
  }
}
`
