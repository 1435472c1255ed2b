#loc1 = loc("point.x")
#loc2 = loc("point.y")
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32> loc("point.x"), %arg1: tensor<3xf32> loc("point.y")) -> (tensor<3xf32> {jax.result_info = "result.x"}, tensor<2xf32> {jax.result_info = "result.y"}) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32> loc(#loc)
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2xf32> loc(#loc3)
    %1 = stablehlo.add %arg0, %0 : tensor<2xf32> loc(#loc3)
    return %arg1, %1 : tensor<3xf32>, tensor<2xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("jit(<lambda>)/add")
