// A comment is a unit that passes.

// -----

func.func @main() {
  %a = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %b = stablehlo.add %a, %a : tensor<2xi32>
  check.expect_eq_const %b, dense<[2, 4]> : tensor<2xi32>
  return
}

// -----

func.func @main() {
  %a = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %b = stablehlo.add %a, %a : tensor<2xi32>
  check.expect_eq_const %b, dense<[2, 5]> : tensor<2xi32>
  return
}

// -----

func.func @main() {
  %a = "own.unheard_of"() : () -> tensor<2xi32>
  check.expect_eq_const %a, dense<[2, 5]> : tensor<2xi32>
  return
}

// -----

func.func @main() {
  %a = "own.typed"() : () -> !own.type
  return
}

// -----

func.func @main() {
  %a = stablehlo.constant dense<0.25> : tensor<2xf32>
  %b = stablehlo.sine %a : tensor<2xf32>
  check.expect_close %b, %a, max_ulp_difference = 1 : tensor<2xf32>, tensor<2xf32>
  return
}

// -----

func.func @main() {
  %a = stablehlo.constant dense<0.25> : tensor<2xf32>
  %p = interpreter.probe %a, probe_id = "p" : tensor<2xf32>
  %b = stablehlo.add %p, %p : tensor<2xf32>
  check.expect_serialized_eq %a, probe_id = "p" : tensor<2xf32>
  "check.expect_almost_eq_const"(%b) {value = dense<0.5> : tensor<2xf32>} : (tensor<2xf32>) -> ()
  return
}
