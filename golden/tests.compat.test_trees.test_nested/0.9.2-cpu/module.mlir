#loc1 = loc("tree['nodes'][0][0].x")
#loc2 = loc("tree['nodes'][0][1][0]")
module @jit_inner_out attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32> loc("tree['nodes'][0][0].x"), %arg1: tensor<1xf32> loc("tree['nodes'][0][1][0]")) -> (tensor<2xf32> {jax.result_info = "result.x"}, tensor<1xf32> {jax.result_info = "result.y['rest'][0][0][0]"}) {
    return %arg0, %arg1 : tensor<2xf32>, tensor<1xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
