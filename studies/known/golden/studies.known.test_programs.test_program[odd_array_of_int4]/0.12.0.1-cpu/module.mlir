#loc1 = loc("x")
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3xi8> loc("x")) -> (tensor<3xi8> {jax.result_info = "result"}) {
    %0 = stablehlo.convert %arg0 : (tensor<3xi8>) -> tensor<3xi4> loc(#loc2)
    %1 = stablehlo.reverse %0, dims = [0] : tensor<3xi4> loc(#loc3)
    %2 = stablehlo.convert %1 : (tensor<3xi4>) -> tensor<3xi8> loc(#loc2)
    return %2 : tensor<3xi8> loc(#loc4)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(<lambda>)/convert_element_type")
#loc3 = loc("jit(<lambda>)/rev")
#loc4 = loc("jit(<lambda>)")
