#loc1 = loc("x")
module @jit_sqrt attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32> loc("x")) -> (tensor<2xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.sqrt %arg0 : tensor<2xf32> loc(#loc2)
    return %0 : tensor<2xf32> loc(#loc3)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(sqrt)/sqrt")
#loc3 = loc("jit(sqrt)")
