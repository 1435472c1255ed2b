#loc1 = loc("a")
#loc2 = loc("b")
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<f32> loc("a"), %arg1: tensor<f32> loc("b")) -> (tensor<64xi1> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<64> : tensor<1xi64> loc(#loc3)
    %0 = stablehlo.rng %arg0, %arg1, %c, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<64xf32> loc(#loc3)
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<64xf32> loc(#loc4)
    %2 = stablehlo.compare LT, %0, %1, FLOAT : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1> loc(#loc4)
    return %2 : tensor<64xi1> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("jit(<lambda>)/rng_uniform")
#loc4 = loc("jit(<lambda>)/lt")
