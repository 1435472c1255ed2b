#loc1 = loc("state.mean")
#loc2 = loc("state.variance")
#loc3 = loc("x")
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32> {tf.aliasing_output = 0 : i32} loc("state.mean"), %arg1: tensor<4xf32> {tf.aliasing_output = 1 : i32} loc("state.variance"), %arg2: tensor<4xf32> loc("x")) -> (tensor<4xf32> {jax.result_info = "result.mean"}, tensor<4xf32> {jax.result_info = "result.variance"}) {
    %0 = stablehlo.add %arg0, %arg2 : tensor<4xf32> loc(#loc4)
    return %0, %arg1 : tensor<4xf32>, tensor<4xf32> loc(#loc5)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc4 = loc("jit(<lambda>)/add")
#loc5 = loc("jit(<lambda>)")
