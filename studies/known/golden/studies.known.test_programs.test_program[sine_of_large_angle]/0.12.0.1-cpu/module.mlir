#loc1 = loc("x")
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32> loc("x")) -> (tensor<2xf32> {jax.result_info = "result[0]"}, tensor<2xf32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.sine %arg0 : tensor<2xf32> loc(#loc2)
    %1 = stablehlo.cosine %arg0 : tensor<2xf32> loc(#loc3)
    return %0, %1 : tensor<2xf32>, tensor<2xf32> loc(#loc4)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(<lambda>)/sin")
#loc3 = loc("jit(<lambda>)/cos")
#loc4 = loc("jit(<lambda>)")
