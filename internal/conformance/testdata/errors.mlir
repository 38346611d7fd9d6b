func.func @f(%a: tensor<2xi32>) -> tensor<3xi32> {
  // expected-error@+1 {{of the same shape}}
  %b = stablehlo.add %a, %a : (tensor<2xi32>, tensor<2xi32>) -> tensor<3xi32>
  return %b : tensor<3xi32>
}

// -----

func.func @f(%a: tensor<2xi32>) -> tensor<2xi32> {
  // expected-error@+1 {{nothing is wrong with it}}
  %b = stablehlo.add %a, %a : tensor<2xi32>
  return %b : tensor<2xi32>
}

// -----

func.func @f(%a: tensor<2xi32>) -> tensor<2xi32> {
  // expected-error@+1 {{an op that the verifier does not know}}
  %b = "own.unheard_of"(%a) : (tensor<2xi32>) -> tensor<2xi32>
  return %b : tensor<2xi32>
}

// -----

func.func @f(%a: tensor<2xi32>) -> tensor<2xi32> {
  %b = stablehlo.add %a, %a : tensor<2xi32>
  return %b : tensor<2xi32>
}
