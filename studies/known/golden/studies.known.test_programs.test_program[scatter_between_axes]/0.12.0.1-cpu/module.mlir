#loc1 = loc("x")
#loc6 = loc("scatter")
#loc7 = loc("scatter:"(#loc6))
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3x4xf32> loc("x")) -> (tensor<2x3x4xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc2)
    %c = stablehlo.constant dense<1> : tensor<i32> loc(#loc2)
    %c_0 = stablehlo.constant dense<0> : tensor<i32> loc(#loc2)
    %0 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<1xi32> loc(#loc3)
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<1xi32> loc(#loc3)
    %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32> loc(#loc4)
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2xf32> loc(#loc3)
    %4 = "stablehlo.scatter"(%arg0, %2, %3) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1, 2], scatter_dims_to_operand_dims = [1, 2]>, unique_indices = true}> ({
    ^bb0(%arg1: tensor<f32> loc("scatter:"(#loc6)), %arg2: tensor<f32> loc("scatter:"(#loc6))):
      stablehlo.return %arg2 : tensor<f32> loc(#loc5)
    }) : (tensor<2x3x4xf32>, tensor<2xi32>, tensor<2xf32>) -> tensor<2x3x4xf32> loc(#loc5)
    return %4 : tensor<2x3x4xf32> loc(#loc2)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(<lambda>)")
#loc3 = loc("jit(<lambda>)/broadcast_in_dim")
#loc4 = loc("jit(<lambda>)/concatenate")
#loc5 = loc("jit(<lambda>)/scatter")
