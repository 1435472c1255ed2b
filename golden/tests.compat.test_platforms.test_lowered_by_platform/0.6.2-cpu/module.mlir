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
      stablehlo.return %c_2 : tensor<i32> loc(#loc10)
    }, {
      stablehlo.return %c_1 : tensor<i32> loc(#loc10)
    }, {
      stablehlo.return %c_1 : tensor<i32> loc(#loc10)
    }, {
      stablehlo.return %c : tensor<i32> loc(#loc10)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc10)
    %1 = "stablehlo.case"(%0) ({
      stablehlo.return %c_2 : tensor<i32> loc(#loc10)
    }, {
      stablehlo.return %c : tensor<i32> loc(#loc10)
    }, {
      stablehlo.return %c_1 : tensor<i32> loc(#loc10)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc10)
    %2 = "stablehlo.case"(%1) ({
      stablehlo.return %c_2 : tensor<i32> loc(#loc11)
    }, {
      stablehlo.return %c_1 : tensor<i32> loc(#loc11)
    }, {
      stablehlo.return %c : tensor<i32> loc(#loc11)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc11)
    %3 = "stablehlo.case"(%2) ({
      %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4xf32> loc(#loc12)
      %5 = stablehlo.add %arg1, %4 : tensor<4xf32> loc(#loc12)
      stablehlo.return %5 : tensor<4xf32> loc(#loc11)
    }, {
      %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4xf32> loc(#loc13)
      %5 = stablehlo.subtract %arg1, %4 : tensor<4xf32> loc(#loc13)
      stablehlo.return %5 : tensor<4xf32> loc(#loc11)
    }, {
      %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32> loc(#loc14)
      %5 = stablehlo.multiply %arg1, %4 : tensor<4xf32> loc(#loc14)
      stablehlo.return %5 : tensor<4xf32> loc(#loc11)
    }) : (tensor<i32>) -> tensor<4xf32> loc(#loc11)
    return %3 : tensor<4xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc2 = loc("-":26:15 to :107)
#loc3 = loc("-":26:55 to :60)
#loc4 = loc("-":26:101 to :106)
#loc5 = loc("-":26:76 to :81)
#loc6 = loc("test_lowered_by_platform.<locals>.shifted"(#loc2))
#loc7 = loc("test_lowered_by_platform.<locals>.shifted.<locals>.<lambda>"(#loc3))
#loc8 = loc("test_lowered_by_platform.<locals>.shifted.<locals>.<lambda>"(#loc4))
#loc9 = loc("test_lowered_by_platform.<locals>.shifted.<locals>.<lambda>"(#loc5))
#loc10 = loc("jit(shifted)/jit(main)/platform_index"(#loc6))
#loc11 = loc("jit(shifted)/jit(main)/cond"(#loc6))
#loc12 = loc("jit(shifted)/jit(main)/cond/branch_0_fun/add"(#loc7))
#loc13 = loc("jit(shifted)/jit(main)/cond/branch_1_fun/sub"(#loc8))
#loc14 = loc("jit(shifted)/jit(main)/cond/branch_2_fun/mul"(#loc9))
