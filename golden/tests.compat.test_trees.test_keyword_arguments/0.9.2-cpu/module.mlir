#loc1 = loc("x")
#loc2 = loc("factor['by']")
#loc3 = loc("shift")
module @jit_scaled attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3xf32> loc("x"), %arg1: tensor<1xf32> loc("factor['by']"), %arg2: tensor<3xf32> loc("shift")) -> (tensor<3xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [0] : (tensor<1xf32>) -> tensor<3xf32> loc(#loc4)
    %1 = stablehlo.multiply %arg0, %0 : tensor<3xf32> loc(#loc4)
    %2 = stablehlo.add %1, %arg2 : tensor<3xf32> loc(#loc5)
    return %2 : tensor<3xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc4 = loc("jit(scaled)/mul")
#loc5 = loc("jit(scaled)/add")
