#loc = loc(unknown)
#loc1 = loc("x")
#loc4 = loc("scatter")
#loc5 = loc("scatter:"(#loc4))
module @jit__lambda attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<i32> {jax.global_constant = "_platform_index"} loc(unknown), %arg1: tensor<4xf32> loc("x")) -> (tensor<4xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc)
    %c = stablehlo.constant dense<2> : tensor<i32> loc(#loc)
    %c_0 = stablehlo.constant dense<1> : tensor<i32> loc(#loc)
    %c_1 = stablehlo.constant dense<0> : tensor<i32> loc(#loc)
    %c_2 = stablehlo.constant dense<3> : tensor<i32> loc(#loc)
    %c_3 = stablehlo.constant dense<> : tensor<0xi32> loc(#loc)
    %0 = "stablehlo.case"(%arg0) ({
      stablehlo.return %c_2 : tensor<i32> loc(#loc2)
    }, {
      stablehlo.return %c_1 : tensor<i32> loc(#loc2)
    }, {
      stablehlo.return %c_0 : tensor<i32> loc(#loc2)
    }, {
      stablehlo.return %c : tensor<i32> loc(#loc2)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc2)
    %1 = "stablehlo.case"(%0) ({
      %3 = stablehlo.custom_call @AllocateBuffer() : () -> tensor<4xf32> loc(#loc2)
      stablehlo.return %3 : tensor<4xf32> loc(#loc2)
    }, {
      %3 = stablehlo.custom_call @AllocateBuffer() : () -> tensor<4xf32> loc(#loc2)
      stablehlo.return %3 : tensor<4xf32> loc(#loc2)
    }, {
      %3 = stablehlo.custom_call @AllocateBuffer() : () -> tensor<4xf32> loc(#loc2)
      stablehlo.return %3 : tensor<4xf32> loc(#loc2)
    }, {
      %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32> loc(#loc2)
      stablehlo.return %3 : tensor<4xf32> loc(#loc2)
    }) : (tensor<i32>) -> tensor<4xf32> loc(#loc2)
    %2 = "stablehlo.scatter"(%1, %c_3, %arg1) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg2: tensor<f32> loc("scatter:"(#loc4)), %arg3: tensor<f32> loc("scatter:"(#loc4))):
      stablehlo.return %arg3 : tensor<f32> loc(#loc3)
    }) : (tensor<4xf32>, tensor<0xi32>, tensor<4xf32>) -> tensor<4xf32> loc(#loc3)
    return %2 : tensor<4xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc2 = loc("jit(<lambda>)/empty")
#loc3 = loc("jit(<lambda>)/scatter")
