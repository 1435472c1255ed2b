#loc = loc(unknown)
#loc1 = loc("x")
module @jit_shifted attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<i32> {jax.global_constant = "_platform_index"} loc(unknown), %arg1: tensor<4xf32> loc("x")) -> (tensor<4xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32> loc(#loc)
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32> loc(#loc)
    %c = stablehlo.constant dense<1> : tensor<i32> loc(#loc)
    %c_1 = stablehlo.constant dense<2> : tensor<i32> loc(#loc)
    %c_2 = stablehlo.constant dense<0> : tensor<i32> loc(#loc)
    %0 = "stablehlo.case"(%arg0) ({
      stablehlo.return %c_2 : tensor<i32> loc(#loc2)
    }, {
      stablehlo.return %c_1 : tensor<i32> loc(#loc2)
    }, {
      stablehlo.return %c_1 : tensor<i32> loc(#loc2)
    }, {
      stablehlo.return %c : tensor<i32> loc(#loc2)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc2)
    %1 = "stablehlo.case"(%0) ({
      stablehlo.return %c_2 : tensor<i32> loc(#loc2)
    }, {
      stablehlo.return %c : tensor<i32> loc(#loc2)
    }, {
      stablehlo.return %c_1 : tensor<i32> loc(#loc2)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc2)
    %2 = "stablehlo.case"(%1) ({
      stablehlo.return %c_2 : tensor<i32> loc(#loc3)
    }, {
      stablehlo.return %c_1 : tensor<i32> loc(#loc3)
    }, {
      stablehlo.return %c : tensor<i32> loc(#loc3)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc3)
    %3 = "stablehlo.case"(%2) ({
      %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4xf32> loc(#loc4)
      %5 = stablehlo.add %arg1, %4 : tensor<4xf32> loc(#loc4)
      stablehlo.return %5 : tensor<4xf32> loc(#loc3)
    }, {
      %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4xf32> loc(#loc5)
      %5 = stablehlo.subtract %arg1, %4 : tensor<4xf32> loc(#loc5)
      stablehlo.return %5 : tensor<4xf32> loc(#loc3)
    }, {
      %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32> loc(#loc6)
      %5 = stablehlo.multiply %arg1, %4 : tensor<4xf32> loc(#loc6)
      stablehlo.return %5 : tensor<4xf32> loc(#loc3)
    }) : (tensor<i32>) -> tensor<4xf32> loc(#loc3)
    return %3 : tensor<4xf32> loc(#loc7)
  } loc(#loc)
} loc(#loc)
#loc2 = loc("jit(shifted)/platform_index")
#loc3 = loc("jit(shifted)/cond")
#loc4 = loc("jit(shifted)/cond/branch_0_fun/add")
#loc5 = loc("jit(shifted)/cond/branch_1_fun/sub")
#loc6 = loc("jit(shifted)/cond/branch_2_fun/mul")
#loc7 = loc("jit(shifted)")
