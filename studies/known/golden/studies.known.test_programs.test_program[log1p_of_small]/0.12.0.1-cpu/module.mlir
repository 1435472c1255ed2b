#loc1 = loc("x")
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32> loc("x")) -> (tensor<2xf32> {jax.result_info = "result[0]"}, tensor<2xf32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.log_plus_one %arg0 : tensor<2xf32> loc(#loc2)
    %1 = stablehlo.exponential_minus_one %arg0 : tensor<2xf32> loc(#loc3)
    return %0, %1 : tensor<2xf32>, tensor<2xf32> loc(#loc4)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(<lambda>)/log1p")
#loc3 = loc("jit(<lambda>)/expm1")
#loc4 = loc("jit(<lambda>)")
