#loc1 = loc("tree['a'][0]")
#loc2 = loc("pair[1]")
module @jit_regrouped attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32> loc("tree['a'][0]"), %arg1: tensor<2x2xf32> loc("pair[1]")) -> (tensor<2x2xf32> {jax.result_info = "result['a'][0]"}, tensor<2xf32> {jax.result_info = "result['b'][0]"}) {
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32> loc(#loc3)
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2xf32> loc(#loc4)
    %1 = stablehlo.multiply %arg0, %0 : tensor<2xf32> loc(#loc4)
    return %arg1, %1 : tensor<2x2xf32>, tensor<2xf32> loc(#loc3)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("jit(regrouped)")
#loc4 = loc("jit(regrouped)/mul")
