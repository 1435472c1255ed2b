#loc1 = loc("image")
#loc2 = loc("kernel")
#loc5 = loc("reduce_window_max")
#loc7 = loc("reduce_window_max:"(#loc5))
module @jit_convolve attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x8x8x3xf32> loc("image"), %arg1: tensor<3x3x3x4xf32> loc("kernel")) -> (tensor<2x3x3x4xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32> loc(#loc3)
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 1], [0, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x4x4x4xf32> loc(#loc4)
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32> loc(#loc3)
    %2 = "stablehlo.reduce_window"(%0, %1) <{window_dimensions = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg2: tensor<f32> loc("reduce_window_max:"(#loc5)), %arg3: tensor<f32> loc("reduce_window_max:"(#loc5))):
      %3 = stablehlo.maximum %arg2, %arg3 : tensor<f32> loc(#loc3)
      stablehlo.return %3 : tensor<f32> loc(#loc3)
    }) : (tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<2x3x3x4xf32> loc(#loc3)
    return %2 : tensor<2x3x3x4xf32> loc(#loc6)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("jit(convolve)/reduce_window_max")
#loc4 = loc("jit(convolve)/conv_general_dilated")
#loc6 = loc("jit(convolve)")
