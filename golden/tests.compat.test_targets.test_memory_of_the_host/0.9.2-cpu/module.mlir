#loc = loc(unknown)
#loc1 = loc("x")
module @jit_f attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<i32> {jax.global_constant = "_platform_index"} loc(unknown), %arg1: tensor<4xf32> loc("x")) -> (tensor<4xf32> {jax.result_info = "result", mhlo.memory_kind = "device"}) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32> loc(#loc)
    %c = stablehlo.constant dense<2> : tensor<i32> loc(#loc)
    %c_0 = stablehlo.constant dense<1> : tensor<i32> loc(#loc)
    %c_1 = stablehlo.constant dense<0> : tensor<i32> loc(#loc)
    %cst_2 = stablehlo.constant dense<2.000000e+00> : tensor<f32> loc(#loc)
    %0 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<4xf32> loc(#loc2)
    %1 = stablehlo.multiply %arg1, %0 : tensor<4xf32> loc(#loc2)
    %2 = "stablehlo.case"(%arg0) ({
      stablehlo.return %c_1 : tensor<i32> loc(#loc3)
    }, {
      stablehlo.return %c_0 : tensor<i32> loc(#loc3)
    }, {
      stablehlo.return %c : tensor<i32> loc(#loc3)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc3)
    %3 = "stablehlo.case"(%2) ({
      %8 = stablehlo.custom_call @annotate_device_placement(%1) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}} : (tensor<4xf32>) -> tensor<4xf32> loc(#loc3)
      stablehlo.return %8 : tensor<4xf32> loc(#loc3)
    }, {
      %8 = stablehlo.custom_call @annotate_device_placement(%1) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}} : (tensor<4xf32>) -> tensor<4xf32> loc(#loc3)
      stablehlo.return %8 : tensor<4xf32> loc(#loc3)
    }, {
      %8 = stablehlo.custom_call @annotate_device_placement(%1) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}} : (tensor<4xf32>) -> tensor<4xf32> loc(#loc3)
      stablehlo.return %8 : tensor<4xf32> loc(#loc3)
    }) : (tensor<i32>) -> tensor<4xf32> loc(#loc3)
    %4 = "stablehlo.case"(%arg0) ({
      stablehlo.return %c_1 : tensor<i32> loc(#loc3)
    }, {
      stablehlo.return %c_0 : tensor<i32> loc(#loc3)
    }, {
      stablehlo.return %c : tensor<i32> loc(#loc3)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc3)
    %5 = "stablehlo.case"(%4) ({
      %8 = stablehlo.custom_call @annotate_device_placement(%3) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "device"}} : (tensor<4xf32>) -> tensor<4xf32> loc(#loc3)
      stablehlo.return %8 : tensor<4xf32> loc(#loc3)
    }, {
      %8 = stablehlo.custom_call @annotate_device_placement(%3) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "device"}} : (tensor<4xf32>) -> tensor<4xf32> loc(#loc3)
      stablehlo.return %8 : tensor<4xf32> loc(#loc3)
    }, {
      %8 = stablehlo.custom_call @annotate_device_placement(%3) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "device"}} : (tensor<4xf32>) -> tensor<4xf32> loc(#loc3)
      stablehlo.return %8 : tensor<4xf32> loc(#loc3)
    }) : (tensor<i32>) -> tensor<4xf32> loc(#loc3)
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32> loc(#loc4)
    %7 = stablehlo.add %5, %6 : tensor<4xf32> loc(#loc4)
    return %7 : tensor<4xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc2 = loc("jit(f)/mul")
#loc3 = loc("jit(f)/device_put")
#loc4 = loc("jit(f)/add")
