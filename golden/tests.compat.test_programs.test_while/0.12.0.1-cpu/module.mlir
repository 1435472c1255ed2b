#loc1 = loc("x")
module @jit_halve_until_small attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32> loc("x")) -> (tensor<2xf32> {jax.result_info = "result[0]"}, tensor<i32> {jax.result_info = "result[1]"}) {
    %c = stablehlo.constant dense<1> : tensor<i32> loc(#loc)
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32> loc(#loc)
    %cst_0 = stablehlo.constant dense<1.000000e-01> : tensor<f32> loc(#loc)
    %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32> loc(#loc)
    %c_2 = stablehlo.constant dense<0> : tensor<i32> loc(#loc2)
    %0:2 = stablehlo.while(%iterArg = %arg0, %iterArg_3 = %c_2) : tensor<2xf32>, tensor<i32>
    cond {
      %1 = stablehlo.reduce(%iterArg init: %cst_1) applies stablehlo.maximum across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32> loc(#loc4)
      %2 = stablehlo.compare GT, %1, %cst_0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(#loc5)
      stablehlo.return %2 : tensor<i1> loc(#loc3)
    } do {
      %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2xf32> loc(#loc6)
      %2 = stablehlo.divide %iterArg, %1 : tensor<2xf32> loc(#loc6)
      %3 = stablehlo.add %iterArg_3, %c : tensor<i32> loc(#loc7)
      stablehlo.return %2, %3 : tensor<2xf32>, tensor<i32> loc(#loc3)
    } loc(#loc3)
    return %0#0, %0#1 : tensor<2xf32>, tensor<i32> loc(#loc2)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(halve_until_small)")
#loc3 = loc("jit(halve_until_small)/while")
#loc4 = loc("jit(halve_until_small)/while/cond/reduce_max")
#loc5 = loc("jit(halve_until_small)/while/cond/gt")
#loc6 = loc("jit(halve_until_small)/while/body/div")
#loc7 = loc("jit(halve_until_small)/while/body/add")
