#loc1 = loc("x")
#loc2 = loc("y")
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x4000xbf16> loc("x"), %arg1: tensor<4000x4xbf16> loc("y")) -> (tensor<4x4xbf16> {jax.result_info = "result"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<4x4000xbf16>, tensor<4000x4xbf16>) -> tensor<4x4xbf16> loc(#loc3)
    return %0 : tensor<4x4xbf16> loc(#loc4)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("jit(<lambda>)/dot_general")
#loc4 = loc("jit(<lambda>)")
