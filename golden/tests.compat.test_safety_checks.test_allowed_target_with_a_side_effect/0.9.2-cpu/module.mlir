#loc = loc(unknown)
#loc1 = loc("x")
module @jit__lambda attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<i32> {jax.global_constant = "_platform_index"} loc(unknown), %arg1: tensor<4xf32> loc("x")) -> (tensor<4xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<3.000000e+00> : tensor<f32> loc(#loc)
    %c = stablehlo.constant dense<0> : tensor<i32> loc(#loc)
    %c_0 = stablehlo.constant dense<1> : tensor<i32> loc(#loc)
    %0 = "stablehlo.case"(%arg0) ({
      stablehlo.return %c_0 : tensor<i32> loc(#loc2)
    }, {
      stablehlo.return %c : tensor<i32> loc(#loc2)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc2)
    %1 = "stablehlo.case"(%0) ({
      stablehlo.return %c : tensor<i32> loc(#loc2)
    }, {
      stablehlo.return %c_0 : tensor<i32> loc(#loc2)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc2)
    %2 = "stablehlo.case"(%1) ({
      stablehlo.return %c_0 : tensor<i32> loc(#loc3)
    }, {
      stablehlo.return %c : tensor<i32> loc(#loc3)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc3)
    %3 = "stablehlo.case"(%2) ({
      %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32> loc(#loc4)
      %5 = stablehlo.multiply %arg1, %4 : tensor<4xf32> loc(#loc4)
      stablehlo.return %5 : tensor<4xf32> loc(#loc3)
    }, {
      %4 = stablehlo.custom_call @pytest_jaxexport.scale(%arg1) {has_side_effect = true, mhlo.backend_config = {}, operand_layouts = [dense<0> : tensor<1xindex>], result_layouts = [dense<0> : tensor<1xindex>]} : (tensor<4xf32>) -> tensor<4xf32> loc(#loc5)
      stablehlo.return %4 : tensor<4xf32> loc(#loc3)
    }) : (tensor<i32>) -> tensor<4xf32> loc(#loc3)
    return %3 : tensor<4xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc2 = loc("jit(<lambda>)/platform_index")
#loc3 = loc("jit(<lambda>)/cond")
#loc4 = loc("jit(<lambda>)/cond/branch_0_fun/mul")
#loc5 = loc("jit(<lambda>)/cond/branch_1_fun/ffi_call")
