package runtime_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"ppc/ir/mlir"
	"ppc/runtime"
)

// The evaluators call routines of LAPACK for each matrix of a batch alike.
func TestLAPACK(t *testing.T) {
	m, err := mlir.Parse("lapack.mlir", []byte(`
func.func @main(%a: tensor<2x4x3xf32>, %b: tensor<3x3xf64>, %c: tensor<2x3x4xcomplex<f32>>) -> (tensor<2x4x3xf32>, tensor<2x3xi32>, tensor<2xi32>, tensor<2x4x3xf32>, tensor<3x3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3x3xcomplex<f64>>, tensor<2x3x4xcomplex<f32>>, tensor<2x3xi32>, tensor<2x3xf32>) {
  %lu:3 = stablehlo.custom_call @lapack_sgetrf_ffi(%a) {mhlo.backend_config = {}} : (tensor<2x4x3xf32>) -> (tensor<2x4x3xf32>, tensor<2x3xi32>, tensor<2xi32>)
  %qr:2 = stablehlo.custom_call @lapack_sgeqrf_ffi(%a) {mhlo.backend_config = {}} : (tensor<2x4x3xf32>) -> (tensor<2x4x3xf32>, tensor<2x3xf32>)
  %q = stablehlo.custom_call @lapack_sorgqr_ffi(%qr#0, %qr#1) {mhlo.backend_config = {}} : (tensor<2x4x3xf32>, tensor<2x3xf32>) -> tensor<2x4x3xf32>
  %e:3 = stablehlo.custom_call @lapack_dsyevd_ffi(%b) {mhlo.backend_config = {mode = 86 : ui8, uplo = 76 : ui8}} : (tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3xf64>, tensor<i32>)
  %v:5 = stablehlo.custom_call @lapack_dgeev_ffi(%b) {mhlo.backend_config = {compute_left = 78 : ui8, compute_right = 86 : ui8}} : (tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3xf64>, tensor<3x3xcomplex<f64>>, tensor<3x3xcomplex<f64>>, tensor<i32>)
  %clu:3 = stablehlo.custom_call @lapack_cgetrf_ffi(%c) {mhlo.backend_config = {}} : (tensor<2x3x4xcomplex<f32>>) -> (tensor<2x3x4xcomplex<f32>>, tensor<2x3xi32>, tensor<2xi32>)
  %s:5 = stablehlo.custom_call @lapack_cgesdd_ffi(%c) {mhlo.backend_config = {mode = 78 : ui8}} : (tensor<2x3x4xcomplex<f32>>) -> (tensor<2x3x4xcomplex<f32>>, tensor<2x3xf32>, tensor<2x3x3xcomplex<f32>>, tensor<2x4x4xcomplex<f32>>, tensor<2xi32>)
  return %lu#0, %lu#1, %lu#2, %q, %e#0, %e#1, %v#0, %v#1, %v#3, %clu#0, %clu#1, %s#1 : tensor<2x4x3xf32>, tensor<2x3xi32>, tensor<2xi32>, tensor<2x4x3xf32>, tensor<3x3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3x3xcomplex<f64>>, tensor<2x3x4xcomplex<f32>>, tensor<2x3xi32>, tensor<2x3xf32>
}
`))
	if err != nil {
		t.Fatal(err)
	}
	agreeOn(t, "lapack", nil, m, randomArgs(rand.New(rand.NewPCG(5, 6)), m, 1))
}

// A routine for numbers of one precision takes no others.
func TestLAPACKPrecision(t *testing.T) {
	for elem, want := range map[string]string{"f64": "", "f32": "of f64", "complex<f64>": "of f64"} {
		m, err := mlir.Parse("lapack.mlir", []byte(strings.ReplaceAll(`
func.func @main(%a: tensor<3x3xT>) -> tensor<3x3xT> {
  %lu:3 = stablehlo.custom_call @lapack_dgetrf_ffi(%a) {mhlo.backend_config = {}} : (tensor<3x3xT>) -> (tensor<3x3xT>, tensor<3xi32>, tensor<i32>)
  return %lu#0 : tensor<3x3xT>
}
`, "T", elem)))
		if err != nil {
			t.Fatal(err)
		}
		if err := runtime.Check(m); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", elem, err, want)
		}
	}
}
