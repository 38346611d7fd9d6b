package eval

import (
	"strings"
	"testing"

	"ppc/ir"
	"ppc/ir/mlir"
)

// Ops without a Kind, and types that are not known before the program runs: each
// program checks its own results.
func TestReferences(t *testing.T) {
	for name, body := range map[string]string{
		"sizes follow from those of operands": `
  %c = stablehlo.constant dense<[2, 2]> : tensor<2xi32>
  %x = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %0 = stablehlo.dynamic_reshape %x, %c : (tensor<4xi32>, tensor<2xi32>) -> tensor<?x?xi32>
  %1 = stablehlo.add %0, %0 : tensor<?x?xi32>
  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<?x?xi32>) -> tensor<?x?xi32>
  %3 = stablehlo.convert %2 : (tensor<?x?xi32>) -> tensor<?x?xi64>
  %4 = stablehlo.convert %3 : (tensor<?x?xi64>) -> tensor<2x2xi64>
  "check.expect_eq_const"(%4) {value = dense<[[2, 6], [4, 8]]> : tensor<2x2xi64>} : (tensor<2x2xi64>) -> ()`,
		"a size is set and read": `
  %n = stablehlo.constant dense<2> : tensor<i32>
  %x = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<3xi32>, tensor<i32>) -> tensor<?xi32, #stablehlo.bounds<3>>
  %1 = stablehlo.get_dimension_size %0, dim = 0 : (tensor<?xi32, #stablehlo.bounds<3>>) -> tensor<i32>
  "check.expect_eq_const"(%1) {value = dense<2> : tensor<i32>} : (tensor<i32>) -> ()`,
		"a slice with computed bounds": `
  %x = stablehlo.constant dense<[1, 2, 3, 4, 5]> : tensor<5xi32>
  %a = stablehlo.constant dense<1> : tensor<1xi32>
  %b = stablehlo.constant dense<5> : tensor<1xi32>
  %s = stablehlo.constant dense<2> : tensor<1xi32>
  %0 = stablehlo.real_dynamic_slice %x, %a, %b, %s : (tensor<5xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  "check.expect_eq_const"(%0) {value = dense<[2, 4]> : tensor<2xi32>} : (tensor<2xi32>) -> ()`,
		"map with a region that is not elementwise": `
  %x = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %0 = "stablehlo.map"(%x, %x) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.reshape %a : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.reshape %1 : (tensor<1xi32>) -> tensor<i32>
    %3 = stablehlo.multiply %2, %b : tensor<i32>
    stablehlo.return %3 : tensor<i32>
  }) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
  "check.expect_eq_const"(%0) {value = dense<[1, 4, 9]> : tensor<3xi32>} : (tensor<3xi32>) -> ()`,
		"statistics of a batch": `
  %x = stablehlo.constant dense<[[1.0, 2.0], [3.0, 6.0]]> : tensor<2x2xf64>
  %g = stablehlo.constant dense<[[1.0, 0.0], [2.0, 5.0]]> : tensor<2x2xf64>
  %s = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf64>
  %o = stablehlo.constant dense<[0.5, 1.0]> : tensor<2xf64>
  %0:3 = "stablehlo.batch_norm_training"(%x, %s, %o) <{epsilon = 0.0 : f32, feature_index = 1 : i64}> : (tensor<2x2xf64>, tensor<2xf64>, tensor<2xf64>) -> (tensor<2x2xf64>, tensor<2xf64>, tensor<2xf64>)
  "check.expect_eq_const"(%0#0) {value = dense<[[-0.5, -1.0], [1.5, 3.0]]> : tensor<2x2xf64>} : (tensor<2x2xf64>) -> ()
  "check.expect_eq_const"(%0#1) {value = dense<[2.0, 4.0]> : tensor<2xf64>} : (tensor<2xf64>) -> ()
  "check.expect_eq_const"(%0#2) {value = dense<[1.0, 4.0]> : tensor<2xf64>} : (tensor<2xf64>) -> ()
  %1 = "stablehlo.batch_norm_inference"(%x, %s, %o, %0#1, %0#2) <{epsilon = 0.0 : f32, feature_index = 1 : i64}> : (tensor<2x2xf64>, tensor<2xf64>, tensor<2xf64>, tensor<2xf64>, tensor<2xf64>) -> tensor<2x2xf64>
  "check.expect_eq"(%1, %0#0) : (tensor<2x2xf64>, tensor<2x2xf64>) -> ()
  %2:3 = "stablehlo.batch_norm_grad"(%x, %s, %0#1, %0#2, %g) <{epsilon = 0.0 : f32, feature_index = 1 : i64}> : (tensor<2x2xf64>, tensor<2xf64>, tensor<2xf64>, tensor<2xf64>, tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<2xf64>, tensor<2xf64>)
  "check.expect_eq_const"(%2#0) {value = dense<0.0> : tensor<2x2xf64>} : (tensor<2x2xf64>) -> ()
  "check.expect_eq_const"(%2#1) {value = dense<[1.0, 5.0]> : tensor<2xf64>} : (tensor<2xf64>) -> ()
  "check.expect_eq_const"(%2#2) {value = dense<[3.0, 5.0]> : tensor<2xf64>} : (tensor<2xf64>) -> ()`,
		"the upper half of a product": `
  %x = stablehlo.constant dense<[-9223372036854775808, -1, 4611686018427387904]> : tensor<3xi64>
  %y = stablehlo.constant dense<[2, 3, 4]> : tensor<3xi64>
  %0 = chlo.mulhi %x, %y : tensor<3xi64>, tensor<3xi64> -> tensor<3xi64>
  "check.expect_eq_const"(%0) {value = dense<[-1, -1, 1]> : tensor<3xi64>} : (tensor<3xi64>) -> ()
  %u = stablehlo.constant dense<4294967295> : tensor<2xui32>
  %1 = chlo.mulhi %u, %u : tensor<2xui32>, tensor<2xui32> -> tensor<2xui32>
  "check.expect_eq_const"(%1) {value = dense<4294967294> : tensor<2xui32>} : (tensor<2xui32>) -> ()`,
		"an async slice": `
  %x = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %0 = "stablehlo.async_start"(%x) ({
  ^bb0(%a: tensor<3xi32>):
    %1 = stablehlo.slice %a [1:3] : (tensor<3xi32>) -> tensor<2xi32>
    stablehlo.return %1 : tensor<2xi32>
  }) : (tensor<3xi32>) -> !stablehlo.future<tensor<2xi32>>
  %2 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<2xi32>>) -> tensor<2xi32>
  "check.expect_eq_const"(%2) {value = dense<[2, 3]> : tensor<2xi32>} : (tensor<2xi32>) -> ()`,
		"ops on quantized tensors": `
  %x = stablehlo.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  %w = stablehlo.constant dense<[[3.0], [4.0]]> : tensor<2x1xf32>
  %qx = stablehlo.uniform_quantize %x : (tensor<1x2xf32>) -> tensor<1x2x!quant.uniform<i8:f32, 5.000000e-01:1>>
  %qw = stablehlo.uniform_quantize %w : (tensor<2x1xf32>) -> tensor<2x1x!quant.uniform<i8:f32, 1.000000e+00>>
  %0 = stablehlo.dot_general %qx, %qw, contracting_dims = [1] x [0] : (tensor<1x2x!quant.uniform<i8:f32, 5.000000e-01:1>>, tensor<2x1x!quant.uniform<i8:f32, 1.000000e+00>>) -> tensor<1x1x!quant.uniform<i32:f32, 5.000000e-01>>
  %1 = stablehlo.bitcast_convert %0 : (tensor<1x1x!quant.uniform<i32:f32, 5.000000e-01>>) -> tensor<1x1xi32>
  "check.expect_eq_const"(%1) {value = dense<22> : tensor<1x1xi32>} : (tensor<1x1xi32>) -> ()
  %2 = stablehlo.transpose %qx, dims = [1, 0] : (tensor<1x2x!quant.uniform<i8:f32, 5.000000e-01:1>>) -> tensor<2x1x!quant.uniform<i8:f32, 5.000000e-01:1>>
  %3 = stablehlo.uniform_dequantize %2 : (tensor<2x1x!quant.uniform<i8:f32, 5.000000e-01:1>>) -> tensor<2x1xf32>
  "check.expect_eq_const"(%3) {value = dense<[[1.0], [2.0]]> : tensor<2x1xf32>} : (tensor<2x1xf32>) -> ()`,
		"groups along a contracted dimension": `
  %x = stablehlo.constant dense<[[1, 2, 3]]> : tensor<1x3xi32>
  %y = stablehlo.constant dense<[[1], [1], [1]]> : tensor<3x1xi32>
  %g = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %0 = "chlo.ragged_dot"(%x, %y, %g) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0], lhs_ragged_dimensions = [1]>} : (tensor<1x3xi32>, tensor<3x1xi32>, tensor<2xi32>) -> tensor<2x1x1xi32>
  "check.expect_eq_const"(%0) {value = dense<[[[1]], [[5]]]> : tensor<2x1x1xi32>} : (tensor<2x1x1xi32>) -> ()`,
		"a Bessel function": `
  %x = stablehlo.constant dense<[0.0, -1.0, 29.0, 31.0, 1.0e300]> : tensor<5xf64>
  %0 = chlo.bessel_i1e %x : tensor<5xf64> -> tensor<5xf64>
  "check.expect_close"(%0, %y) {max_ulp_difference = 2 : ui64} : (tensor<5xf64>, tensor<5xf64>) -> ()`,
		"the zeta function": `
  %x = stablehlo.constant dense<[2.0, 3.0, 1.5, 30.0, 1.0, 2.0, 3.0, 0.5]> : tensor<8xf64>
  %q = stablehlo.constant dense<[1.0, 0.5, 1.0, 1.0, 4.0, -3.0, -3.0, 1.0]> : tensor<8xf64>
  %0 = chlo.zeta %x, %q : tensor<8xf64>, tensor<8xf64> -> tensor<8xf64>
  %1 = stablehlo.constant dense<[1.6449340668482264, 8.414398322117160, 2.612375348685488, 1.0000000009313274, 0x7FF0000000000000, 0x7FF0000000000000, 0x7FF8000000000000, 0x7FF8000000000000]> : tensor<8xf64>
  "check.expect_close"(%0, %1) {max_ulp_difference = 2 : ui64} : (tensor<8xf64>, tensor<8xf64>) -> ()`,
		"the polygamma function": `
  %n = stablehlo.constant dense<[0.0, 1.0, 2.0, 3.0, 1.0, -1.0, 0.5]> : tensor<7xf64>
  %x = stablehlo.constant dense<[0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0]> : tensor<7xf64>
  %0 = chlo.polygamma %n, %x : tensor<7xf64>, tensor<7xf64> -> tensor<7xf64>
  %1 = stablehlo.constant dense<[0xFFF0000000000000, 1.6449340668482264, -2.4041138063191886, 6.493939402266829, 0x7FF0000000000000, 0x7FF8000000000000, 0x7FF8000000000000]> : tensor<7xf64>
  "check.expect_close"(%0, %1) {max_ulp_difference = 2 : ui64} : (tensor<7xf64>, tensor<7xf64>) -> ()`,
	} {
		t.Run(name, func(t *testing.T) {
			y := "  %y = stablehlo.constant dense<[0.0, -0.20791041534970844, 0.07311311793938836, 0.07077639283438568, 3.989422804014327e-151]> : tensor<5xf64>\n"
			if !strings.Contains(body, "%y)") {
				y = ""
			}
			m, err := mlir.Parse("in.mlir", []byte("func.func @main() {\n"+y+strings.TrimPrefix(body, "\n")+"\n  return\n}\n"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Run(m, m.Main(), nil, Options{}.WithChecks()); err != nil {
				t.Error(err)
			}
		})
	}
}

// What cannot be evaluated says so.
func TestReferencesFail(t *testing.T) {
	for body, want := range map[string]string{
		`
  %token = stablehlo.create_token : !stablehlo.token
  %0:2 = "stablehlo.infeed"(%token) : (!stablehlo.token) -> (tensor<i32>, !stablehlo.token)`: "the host hands nothing in",
		`
  %c = stablehlo.constant dense<[1099511627776, 1099511627776]> : tensor<2xi64>
  %0 = stablehlo.dynamic_iota %c, dim = 0 : (tensor<2xi64>) -> tensor<?x?xi32>`: "GiB",
		`
  %c = stablehlo.constant dense<3> : tensor<1xi32>
  %n = stablehlo.constant dense<1> : tensor<1xi32>
  %d = stablehlo.add %c, %n : tensor<1xi32>
  %0 = stablehlo.dynamic_reshape %c, %d : (tensor<1xi32>, tensor<1xi32>) -> tensor<?xi32>`: "1 elements become tensor<4xi32>",
	} {
		m, err := mlir.Parse("in.mlir", []byte("func.func @main() {"+body+"\n  return\n}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Run(m, m.Main(), nil, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A parameter of unknown size takes what it is given.
func TestOpenParameter(t *testing.T) {
	m, err := mlir.Parse("in.mlir", []byte("func.func @main(%x: tensor<?xi32>) -> tensor<?xi32> {\n  %0 = stablehlo.add %x, %x : tensor<?xi32>\n  return %0 : tensor<?xi32>\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := Run(m, m.Main(), []*ir.Literal{ints([]int{3}, 1, 2, 3)}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, out[0], ints([]int{3}, 2, 4, 6))
}
