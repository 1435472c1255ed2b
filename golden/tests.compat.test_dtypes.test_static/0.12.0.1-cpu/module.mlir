#loc1 = loc("x")
module @jit_chosen attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32> loc("x")) -> (tensor<f32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<3.000000e+00> : tensor<f32> loc(#loc2)
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc3)
    %0 = stablehlo.reduce(%arg0 init: %cst_0) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32> loc(#loc3)
    %1 = stablehlo.multiply %0, %cst : tensor<f32> loc(#loc4)
    return %1 : tensor<f32> loc(#loc2)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(chosen)")
#loc3 = loc("jit(chosen)/reduce_sum")
#loc4 = loc("jit(chosen)/mul")
