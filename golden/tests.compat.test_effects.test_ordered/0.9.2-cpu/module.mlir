#loc = loc(unknown)
#loc1 = loc("x")
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: !stablehlo.token {jax.token = true} loc(unknown), %arg1: tensor<3xf32> loc(unknown)) -> (!stablehlo.token {jax.token = true}, tensor<3xf32> {jax.result_info = "result"}) {
    %0:2 = call @_wrapped_jax_export_main(%arg0, %arg1) : (!stablehlo.token, tensor<3xf32>) -> (!stablehlo.token, tensor<3xf32>) loc(#loc)
    return %0#0, %0#1 : !stablehlo.token, tensor<3xf32> loc(#loc)
  } loc(#loc)
  func.func private @_wrapped_jax_export_main(%arg0: !stablehlo.token {jax.token = true} loc(unknown), %arg1: tensor<3xf32> loc("x")) -> (!stablehlo.token {jax.token = true}, tensor<3xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.after_all %arg0 : !stablehlo.token loc(#loc2)
    %1 = stablehlo.add %arg1, %arg1 : tensor<3xf32> loc(#loc2)
    %2 = stablehlo.sine %1 : tensor<3xf32> loc(#loc3)
    %3 = stablehlo.after_all %0 : !stablehlo.token loc(#loc2)
    %4 = stablehlo.add %2, %2 : tensor<3xf32> loc(#loc2)
    return %3, %4 : !stablehlo.token, tensor<3xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc2 = loc("jit(<lambda>)/noted")
#loc3 = loc("jit(<lambda>)/sin")
