#loc = loc(unknown)
#loc4 = loc("x")
module @jit__lambda attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<i32> {jax.global_constant = "_platform_index"} loc(unknown), %arg1: tensor<?x4xf32> loc(unknown)) -> (tensor<?xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<1> : tensor<i32> loc(#loc)
    %0 = stablehlo.get_dimension_size %arg1, dim = 0 : (tensor<?x4xf32>) -> tensor<i32> loc(#loc1)
    %1 = stablehlo.compare GE, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> loc(#loc2)
    stablehlo.custom_call @shape_assertion(%1, %0) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Expected value >= 1 for dimension variable 'b'. Using the following polymorphic shapes specifications: args[0].shape = (b, 4). Obtained dimension variables: 'b' = {0} from specification 'b' for dimension args[0].shape[0] (= {0}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> () loc(#loc3)
    %2 = call @_wrapped_jax_export_main(%arg0, %0, %arg1) : (tensor<i32>, tensor<i32>, tensor<?x4xf32>) -> tensor<?xf32> loc(#loc)
    return %2 : tensor<?xf32> loc(#loc)
  } loc(#loc)
  func.func private @_wrapped_jax_export_main(%arg0: tensor<i32> {jax.global_constant = "_platform_index"} loc(unknown), %arg1: tensor<i32> {jax.global_constant = "b"} loc(unknown), %arg2: tensor<?x4xf32> loc("x")) -> (tensor<?xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc5)
    %c = stablehlo.constant dense<0> : tensor<i32> loc(#loc)
    %c_0 = stablehlo.constant dense<1> : tensor<i32> loc(#loc)
    %0 = stablehlo.transpose %arg2, dims = [1, 0] : (tensor<?x4xf32>) -> tensor<4x?xf32> loc(#loc6)
    %1 = "stablehlo.case"(%arg0) ({
      stablehlo.return %c_0 : tensor<i32> loc(#loc7)
    }, {
      stablehlo.return %c_0 : tensor<i32> loc(#loc7)
    }, {
      stablehlo.return %c : tensor<i32> loc(#loc7)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc7)
    %2 = "stablehlo.case"(%1) ({
      %5 = stablehlo.dot_general %arg2, %0, contracting_dims = [1] x [0] : (tensor<?x4xf32>, tensor<4x?xf32>) -> tensor<?x?xf32> loc(#loc7)
      stablehlo.return %5 : tensor<?x?xf32> loc(#loc7)
    }, {
      %5 = stablehlo.dot_general %arg2, %0, contracting_dims = [1] x [0] : (tensor<?x4xf32>, tensor<4x?xf32>) -> tensor<?x?xf32> loc(#loc7)
      stablehlo.return %5 : tensor<?x?xf32> loc(#loc7)
    }) : (tensor<i32>) -> tensor<?x?xf32> loc(#loc7)
    %3 = stablehlo.tanh %2 : tensor<?x?xf32> loc(#loc8)
    %4 = stablehlo.reduce(%3 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32> loc(#loc5)
    return %4 : tensor<?xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc1 = loc("dimension_size")
#loc2 = loc("ge")
#loc3 = loc("shape_assertion")
#loc5 = loc("jit(<lambda>)/reduce_sum")
#loc6 = loc("jit(<lambda>)/transpose")
#loc7 = loc("jit(<lambda>)/dot_general")
#loc8 = loc("jit(<lambda>)/tanh")
