#loc = loc(unknown)
#loc1 = loc("x")
#loc7 = loc("sort")
#loc13 = loc("sort:"(#loc7))
module @jit__lambda attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<i32> {jax.global_constant = "_platform_index"} loc(unknown), %arg1: tensor<3x4xf32> loc("x")) -> (tensor<3x3xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<1> : tensor<i32> loc(#loc)
    %c_0 = stablehlo.constant dense<2> : tensor<i32> loc(#loc)
    %c_1 = stablehlo.constant dense<0> : tensor<i32> loc(#loc)
    %0 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32> loc(#loc2)
    %1 = "stablehlo.case"(%arg0) ({
      stablehlo.return %c_1 : tensor<i32> loc(#loc3)
    }, {
      stablehlo.return %c_0 : tensor<i32> loc(#loc3)
    }, {
      stablehlo.return %c_0 : tensor<i32> loc(#loc3)
    }, {
      stablehlo.return %c : tensor<i32> loc(#loc3)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc3)
    %2 = "stablehlo.case"(%1) ({
      %5 = stablehlo.dot_general %arg1, %0, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x3xf32>) -> tensor<3x3xf32> loc(#loc3)
      stablehlo.return %5 : tensor<3x3xf32> loc(#loc3)
    }, {
      %5 = stablehlo.dot_general %arg1, %0, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x3xf32>) -> tensor<3x3xf32> loc(#loc3)
      stablehlo.return %5 : tensor<3x3xf32> loc(#loc3)
    }, {
      %5 = stablehlo.dot_general %arg1, %0, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x3xf32>) -> tensor<3x3xf32> loc(#loc3)
      stablehlo.return %5 : tensor<3x3xf32> loc(#loc3)
    }) : (tensor<i32>) -> tensor<3x3xf32> loc(#loc3)
    %3 = stablehlo.cosine %2 : tensor<3x3xf32> loc(#loc4)
    %4 = call @sort(%arg0, %3) : (tensor<i32>, tensor<3x3xf32>) -> tensor<3x3xf32> loc(#loc5)
    return %4 : tensor<3x3xf32> loc(#loc)
  } loc(#loc)
  func.func private @sort(%arg0: tensor<i32> {jax.global_constant = "_platform_index"} loc(unknown), %arg1: tensor<3x3xf32> loc(unknown)) -> tensor<3x3xf32> {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32> loc(#loc)
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc)
    %0 = "stablehlo.sort"(%arg1) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg2: tensor<f32> loc("sort:"(#loc7)), %arg3: tensor<f32> loc("sort:"(#loc7))):
      %1 = stablehlo.compare EQ, %arg2, %cst_0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(#loc8)
      %2 = stablehlo.select %1, %cst_0, %arg2 : tensor<i1>, tensor<f32> loc(#loc9)
      %3 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(#loc10)
      %4 = stablehlo.select %3, %cst, %2 : tensor<i1>, tensor<f32> loc(#loc9)
      %5 = stablehlo.compare EQ, %arg3, %cst_0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(#loc8)
      %6 = stablehlo.select %5, %cst_0, %arg3 : tensor<i1>, tensor<f32> loc(#loc9)
      %7 = stablehlo.compare NE, %arg3, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(#loc10)
      %8 = stablehlo.select %7, %cst, %6 : tensor<i1>, tensor<f32> loc(#loc9)
      %9 = stablehlo.compare LT, %4, %8, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(#loc11)
      stablehlo.return %9 : tensor<i1> loc(#loc7)
    }) : (tensor<3x3xf32>) -> tensor<3x3xf32> loc(#loc7)
    return %0 : tensor<3x3xf32> loc(#loc12)
  } loc(#loc12)
} loc(#loc)
#loc2 = loc("jit(<lambda>)/transpose")
#loc3 = loc("jit(<lambda>)/dot_general")
#loc4 = loc("jit(<lambda>)/cos")
#loc5 = loc("jit(<lambda>)/jit(sort)")
#loc6 = loc("jit(<lambda>)/jit")
#loc8 = loc("eq")
#loc9 = loc("select_n")
#loc10 = loc("ne")
#loc11 = loc("lt_to")
#loc12 = loc("jit:"(#loc6))
