#loc1 = loc("x")
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xui8> loc("x")) -> (tensor<2xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.bitcast_convert %arg0 : (tensor<2xui8>) -> tensor<2xf8E4M3FN> loc(#loc2)
    %1 = stablehlo.convert %0 : (tensor<2xf8E4M3FN>) -> tensor<2xf32> loc(#loc3)
    return %1 : tensor<2xf32> loc(#loc4)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(<lambda>)/bitcast_convert_type")
#loc3 = loc("jit(<lambda>)/convert_element_type")
#loc4 = loc("jit(<lambda>)")
