package driver

import (
	"bytes"
	"path/filepath"
	"testing"

	"ppc/driver/binding"
	"ppc/internal/tensorfile"
	"ppc/ir/lang"
)

// uneven are programs whose shardings do not divide the sizes, as JAX exports
// them.
var uneven = map[string]string{
	"elementwise and sum": `module { sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<10x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<10x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, tensor<3xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %e = stablehlo.exponential %a : tensor<10x3xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<10x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %e, %s : tensor<10x3xf32>, tensor<3xf32>
} }`,
	"product over two axes": `module { sdy.mesh @mesh = <["x"=2, "y"=3]>
func.func @main(%a: tensor<5x7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %b: tensor<7x11xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) -> (tensor<5x11xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<5x7xf32>, tensor<7x11xf32>) -> tensor<5x11xf32>
  return %r : tensor<5x11xf32>
} }`,
	"fewer elements than devices": `module { sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %n: tensor<5xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, tensor<5xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %r = stablehlo.tanh %a : tensor<2xf32>
  %m = stablehlo.add %n, %n : tensor<5xi32>
  return %r, %m : tensor<2xf32>, tensor<5xi32>
} }`,
	"loop": `module { sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<7x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<7x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %c = %a) : tensor<i32>, tensor<7x2xf32> cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %d = stablehlo.sine %c : tensor<7x2xf32>
    stablehlo.return %j, %d : tensor<i32>, tensor<7x2xf32>
  }
  return %r#1 : tensor<7x2xf32>
} }`,
}

// Arguments whose sizes the axes do not divide are padded on their way to the
// devices, and results are sliced to their size: files have the sizes of the
// program, and the results are those of the program on one device. The same holds
// for the local program that was written in between.
func TestRunUneven(t *testing.T) {
	for name, text := range uneven {
		t.Run(name, func(t *testing.T) {
			src := &Source{File: write(t, "a.mlir", text)}
			dir := t.TempDir()
			made := filepath.Join(dir, "made.npz")
			if _, err := Run(t.Context(), src, RunOptions{Check: true, Out: made}); err != nil {
				t.Fatal(err)
			}
			m, err := src.load(t.Context(), lang.Options{})
			if err != nil {
				t.Fatal(err)
			}
			params, results := binding.Ports(m.m, binding.ByNumber)
			a, err := binding.Open("", 7, params)
			if err != nil {
				t.Fatal(err)
			}
			var arrays []tensorfile.Named
			for _, p := range params {
				l, err := a.FileValue(p)
				if err != nil {
					t.Fatal(err)
				}
				arrays = append(arrays, tensorfile.Named{Name: p.Name, Array: binding.ArrayOf(l)})
			}
			in, out, again := filepath.Join(dir, "in.npz"), filepath.Join(dir, "out.npz"), filepath.Join(dir, "again.npz")
			if err := writeArrays(t.Context(), in, arrays); err != nil {
				t.Fatal(err)
			}
			if _, err := Run(t.Context(), src, RunOptions{Check: true, Args: in, Out: out}); err != nil {
				t.Fatal(err)
			}
			local, err := Lower(t.Context(), src, LowerOptions{Emit: "ir"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Run(t.Context(), &Source{File: write(t, "b.mlir", local)}, RunOptions{Args: in, Out: again}); err != nil {
				t.Fatal(err)
			}
			got, same := openArrays(t, out), openArrays(t, again)
			for _, r := range results {
				x, y := readLiteral(t, got, r.Name), readLiteral(t, same, r.Name)
				if !x.Type.Equal(r.InFile) || !y.Type.Equal(x.Type) || !bytes.Equal(x.Data, y.Data) {
					t.Errorf("%s is %s, and %s of the program per device; want %s and the same bytes", r.Name, x.Type, y.Type, r.InFile)
				}
			}
		})
	}
}
