#loc = loc(unknown)
#loc1 = loc("x")
module @jit_summed attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<i32> {jax.global_constant = "_platform_index"} loc(unknown), %arg1: tensor<2x3xf32> loc("x")) -> (tensor<2xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc2)
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32> loc(#loc)
    %c = stablehlo.constant dense<0> : tensor<i32> loc(#loc)
    %c_1 = stablehlo.constant dense<1> : tensor<i32> loc(#loc)
    %0 = "stablehlo.case"(%arg0) ({
      stablehlo.return %c_1 : tensor<i32> loc(#loc3)
    }, {
      stablehlo.return %c : tensor<i32> loc(#loc3)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc3)
    %1 = "stablehlo.case"(%0) ({
      stablehlo.return %c : tensor<i32> loc(#loc3)
    }, {
      stablehlo.return %c_1 : tensor<i32> loc(#loc3)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc3)
    %2 = "stablehlo.case"(%1) ({
      stablehlo.return %c_1 : tensor<i32> loc(#loc4)
    }, {
      stablehlo.return %c : tensor<i32> loc(#loc4)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc4)
    %3 = "stablehlo.case"(%2) ({
      %5 = stablehlo.tanh %arg1 : tensor<2x3xf32> loc(#loc5)
      %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x3xf32> loc(#loc6)
      %7 = stablehlo.add %5, %6 : tensor<2x3xf32> loc(#loc6)
      stablehlo.return %7 : tensor<2x3xf32> loc(#loc4)
    }, {
      %5 = stablehlo.tanh %arg1 : tensor<2x3xf32> loc(#loc7)
      stablehlo.return %5 : tensor<2x3xf32> loc(#loc4)
    }) : (tensor<i32>) -> tensor<2x3xf32> loc(#loc4)
    %4 = stablehlo.reduce(%3 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32> loc(#loc2)
    return %4 : tensor<2xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc2 = loc("jit(summed)/reduce_sum")
#loc3 = loc("jit(summed)/platform_index")
#loc4 = loc("jit(summed)/cond")
#loc5 = loc("jit(summed)/cond/branch_0_fun/tanh")
#loc6 = loc("jit(summed)/cond/branch_0_fun/add")
#loc7 = loc("jit(summed)/cond/branch_1_fun/tanh")
