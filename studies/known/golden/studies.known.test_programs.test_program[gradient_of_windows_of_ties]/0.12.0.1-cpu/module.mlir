#loc1 = loc("x")
#loc8 = loc("select_and_scatter")
#loc12 = loc("select_and_scatter:"(#loc8))
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<6xi32> loc("x")) -> (tensor<6xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc2)
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32> loc(#loc2)
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32> loc(#loc3)
    %0 = stablehlo.convert %arg0 : (tensor<6xi32>) -> tensor<6xf32> loc(#loc4)
    %1 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<3xf32> loc(#loc5)
    %2 = stablehlo.pad %0, %cst_0, low = [0], high = [0], interior = [0] : (tensor<6xf32>, tensor<f32>) -> tensor<6xf32> loc(#loc6)
    %3 = "stablehlo.select_and_scatter"(%2, %1, %cst) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
    ^bb0(%arg1: tensor<f32> loc("select_and_scatter:"(#loc8)), %arg2: tensor<f32> loc("select_and_scatter:"(#loc8))):
      %5 = stablehlo.compare GE, %arg1, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(#loc9)
      stablehlo.return %5 : tensor<i1> loc(#loc7)
    }, {
    ^bb0(%arg1: tensor<f32> loc("select_and_scatter:"(#loc8)), %arg2: tensor<f32> loc("select_and_scatter:"(#loc8))):
      %5 = stablehlo.add %arg1, %arg2 : tensor<f32> loc(#loc10)
      stablehlo.return %5 : tensor<f32> loc(#loc7)
    }) : (tensor<6xf32>, tensor<3xf32>, tensor<f32>) -> tensor<6xf32> loc(#loc7)
    %4 = stablehlo.slice %3 [0:6] : (tensor<6xf32>) -> tensor<6xf32> loc(#loc11)
    return %4 : tensor<6xf32> loc(#loc3)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(<lambda>)/transpose(jvp())/select_and_scatter_add")
#loc3 = loc("jit(<lambda>)")
#loc4 = loc("jit(<lambda>)/convert_element_type")
#loc5 = loc("jit(<lambda>)/transpose(jvp())/broadcast_in_dim")
#loc6 = loc("jit(<lambda>)/transpose(jvp())/pad")
#loc7 = loc("jit(<lambda>)/transpose(jvp())/select_and_scatter")
#loc9 = loc("jit(<lambda>)/transpose(jvp())/ge")
#loc10 = loc("jit(<lambda>)/transpose(jvp())/add")
#loc11 = loc("jit(<lambda>)/transpose(jvp())/slice")
