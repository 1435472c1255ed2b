#loc1 = loc("x")
module @jit_softplus attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32> loc("x")) -> (tensor<4xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.exponential %arg0 : tensor<4xf32> loc(#loc2)
    %1 = stablehlo.log_plus_one %0 : tensor<4xf32> loc(#loc3)
    return %1 : tensor<4xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(softplus)/exp")
#loc3 = loc("jit(softplus)/log1p")
