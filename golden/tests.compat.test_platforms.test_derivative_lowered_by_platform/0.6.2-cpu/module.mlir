#loc = loc(unknown)
#loc1 = loc("x")
module @jit_summed attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<i32> {jax.global_constant = "_platform_index"} loc(unknown), %arg1: tensor<2x3xf32> loc("x")) -> (tensor<2xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc)
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32> loc(#loc)
    %c = stablehlo.constant dense<0> : tensor<i32> loc(#loc)
    %c_1 = stablehlo.constant dense<1> : tensor<i32> loc(#loc)
    %0 = "stablehlo.case"(%arg0) ({
      stablehlo.return %c_1 : tensor<i32> loc(#loc10)
    }, {
      stablehlo.return %c : tensor<i32> loc(#loc10)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc10)
    %1 = "stablehlo.case"(%0) ({
      stablehlo.return %c : tensor<i32> loc(#loc10)
    }, {
      stablehlo.return %c_1 : tensor<i32> loc(#loc10)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc10)
    %2 = "stablehlo.case"(%1) ({
      stablehlo.return %c_1 : tensor<i32> loc(#loc11)
    }, {
      stablehlo.return %c : tensor<i32> loc(#loc11)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc11)
    %3 = "stablehlo.case"(%2) ({
      %5 = stablehlo.tanh %arg1 : tensor<2x3xf32> loc(#loc12)
      %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x3xf32> loc(#loc13)
      %7 = stablehlo.add %5, %6 : tensor<2x3xf32> loc(#loc13)
      stablehlo.return %7 : tensor<2x3xf32> loc(#loc11)
    }, {
      %5 = stablehlo.tanh %arg1 : tensor<2x3xf32> loc(#loc14)
      stablehlo.return %5 : tensor<2x3xf32> loc(#loc11)
    }) : (tensor<i32>) -> tensor<2x3xf32> loc(#loc11)
    %4 = stablehlo.reduce(%3 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32> loc(#loc15)
    return %4 : tensor<2xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc2 = loc("-":19:15 to :89)
#loc3 = loc("-":19:73 to :84)
#loc4 = loc("-":19:73 to :88)
#loc5 = loc("-":19:15 to :96)
#loc6 = loc("test_derivative_lowered_by_platform.<locals>.summed"(#loc2))
#loc7 = loc("test_derivative_lowered_by_platform.<locals>.summed.<locals>.<lambda>"(#loc3))
#loc8 = loc("test_derivative_lowered_by_platform.<locals>.summed.<locals>.<lambda>"(#loc4))
#loc9 = loc("test_derivative_lowered_by_platform.<locals>.summed"(#loc5))
#loc10 = loc("jit(summed)/jit(main)/platform_index"(#loc6))
#loc11 = loc("jit(summed)/jit(main)/cond"(#loc6))
#loc12 = loc("jit(summed)/jit(main)/cond/branch_0_fun/tanh"(#loc7))
#loc13 = loc("jit(summed)/jit(main)/cond/branch_0_fun/add"(#loc8))
#loc14 = loc("jit(summed)/jit(main)/cond/branch_1_fun/tanh"(#loc6))
#loc15 = loc("jit(summed)/jit(main)/reduce_sum"(#loc9))
