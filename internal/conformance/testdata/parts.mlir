// A global program and what holds it to the same program on one device.

//--- part1.mlir

sdy.mesh @mesh = <["x"=2]>

func.func @parallel_double(%a: tensor<4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %b = stablehlo.add %a, %a : tensor<4xi32>
  return %b : tensor<4xi32>
}

//--- part2.mlir

func.func @main() {
  %a = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %a0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %a1 = stablehlo.constant dense<[3, 4]> : tensor<2xi32>
  %p:2 = "interpreter.run_parallel"(%a0, %a1) {
    programs = [[@parallel_double, @parallel_double]]
  } : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>)
  %s = func.call @sequential_double(%a) : (tensor<4xi32>) -> tensor<4xi32>
  %b = stablehlo.concatenate %p#0, %p#1, dim = 0 : (tensor<2xi32>, tensor<2xi32>) -> tensor<4xi32>
  check.expect_eq %b, %s : tensor<4xi32>
  return
}
