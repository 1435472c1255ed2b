#loc1 = loc("x")
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<6xf64> loc("x")) -> (tensor<6xf64> {jax.result_info = "result[0]"}, tensor<6xf64> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.reverse %arg0, dims = [0] : tensor<6xf64> loc(#loc2)
    %1 = stablehlo.multiply %arg0, %arg0 : tensor<6xf64> loc(#loc3)
    return %0, %1 : tensor<6xf64>, tensor<6xf64> loc(#loc4)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(<lambda>)/rev")
#loc3 = loc("jit(<lambda>)/mul")
#loc4 = loc("jit(<lambda>)")
