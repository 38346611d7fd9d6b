package runtime_test

import (
	"math/rand/v2"
	"testing"

	"ppc/ir/mlir"
)

// The evaluators call routines of LAPACK for each matrix of a batch alike.
func TestLAPACK(t *testing.T) {
	m, err := mlir.Parse("lapack.mlir", []byte(`
func.func @main(%a: tensor<2x4x3xf32>, %b: tensor<3x3xf64>) -> (tensor<2x4x3xf32>, tensor<2x3xi32>, tensor<2xi32>, tensor<2x4x3xf32>, tensor<3x3xf64>, tensor<3xf64>) {
  %lu:3 = stablehlo.custom_call @lapack_sgetrf_ffi(%a) {mhlo.backend_config = {}} : (tensor<2x4x3xf32>) -> (tensor<2x4x3xf32>, tensor<2x3xi32>, tensor<2xi32>)
  %qr:2 = stablehlo.custom_call @lapack_sgeqrf_ffi(%a) {mhlo.backend_config = {}} : (tensor<2x4x3xf32>) -> (tensor<2x4x3xf32>, tensor<2x3xf32>)
  %q = stablehlo.custom_call @lapack_sorgqr_ffi(%qr#0, %qr#1) {mhlo.backend_config = {}} : (tensor<2x4x3xf32>, tensor<2x3xf32>) -> tensor<2x4x3xf32>
  %e:3 = stablehlo.custom_call @lapack_dsyevd_ffi(%b) {mhlo.backend_config = {mode = 86 : ui8, uplo = 76 : ui8}} : (tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3xf64>, tensor<i32>)
  return %lu#0, %lu#1, %lu#2, %q, %e#0, %e#1 : tensor<2x4x3xf32>, tensor<2x3xi32>, tensor<2xi32>, tensor<2x4x3xf32>, tensor<3x3xf64>, tensor<3xf64>
}
`))
	if err != nil {
		t.Fatal(err)
	}
	agreeOn(t, "lapack", nil, m, randomArgs(rand.New(rand.NewPCG(5, 6)), m, 1))
}
