#loc1 = loc("rows")
module @jit_embed attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x8xf32> loc("rows")) -> (tensor<3x4xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<[[-1.000000e+00, -0.935483872, -0.870967745, -0.806451618], [-0.741935492, -0.677419364, -0.612903237, -0.54838711], [-0.483870953, -0.419354826, -0.354838699, -0.290322572], [-0.225806445, -0.161290318, -0.0967741906, -0.0322580636], [0.0322580636, 0.0967741906, 0.161290318, 0.225806445], [0.290322572, 0.354838699, 0.419354826, 0.483870953], [0.54838711, 0.612903237, 0.677419364, 0.741935492], [0.806451618, 0.870967745, 0.935483872, 1.000000e+00]]> : tensor<8x4xf32> loc(#loc2)
    %0 = stablehlo.dot_general %arg0, %cst, contracting_dims = [1] x [0] : (tensor<3x8xf32>, tensor<8x4xf32>) -> tensor<3x4xf32> loc(#loc3)
    %1 = stablehlo.tanh %0 : tensor<3x4xf32> loc(#loc4)
    return %1 : tensor<3x4xf32> loc(#loc2)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(embed)")
#loc3 = loc("jit(embed)/dot_general")
#loc4 = loc("jit(embed)/tanh")
