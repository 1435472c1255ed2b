#loc1 = loc("point.x")
#loc2 = loc("point.y")
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32> loc("point.x"), %arg1: tensor<2xf32> loc("point.y")) -> (tensor<2xf32> {jax.result_info = "result['product']"}) {
    %0 = stablehlo.multiply %arg0, %arg1 : tensor<2xf32> loc(#loc3)
    return %0 : tensor<2xf32> loc(#loc4)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("jit(<lambda>)/mul")
#loc4 = loc("jit(<lambda>)")
