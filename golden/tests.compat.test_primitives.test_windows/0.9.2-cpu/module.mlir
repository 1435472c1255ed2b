#loc1 = loc("x")
#loc4 = loc("reduce_window_max")
#loc10 = loc("select_and_scatter")
#loc15 = loc("reduce_window_sum")
#loc19 = loc("reduce_window")
#loc29 = loc("reduce_window_min")
#loc30 = loc("reduce_window_max:"(#loc4))
#loc31 = loc("select_and_scatter:"(#loc10))
#loc32 = loc("reduce_window_sum:"(#loc15))
#loc33 = loc("reduce_window:"(#loc19))
#loc34 = loc("reduce_window_min:"(#loc29))
module @jit_f attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x6xf32> loc("x")) -> (tensor<3x3xf32> {jax.result_info = "result[0]"}, tensor<3x3xf32> {jax.result_info = "result[1]"}, tensor<3x3xf32> {jax.result_info = "result[2]"}, tensor<4x6xf32> {jax.result_info = "result[3][0]"}, tensor<4x6xf32> {jax.result_info = "result[3][1]"}, tensor<3x3xf32> {jax.result_info = "result[4]"}, tensor<3x3xf32> {jax.result_info = "result[5]"}, tensor<4x6xf32> {jax.result_info = "result[6]"}) {
    %cst = stablehlo.constant dense<0x7F800000> : tensor<f32> loc(#loc2)
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc)
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32> loc(#loc)
    %cst_2 = stablehlo.constant dense<2.000000e+00> : tensor<f32> loc(#loc)
    %cst_3 = stablehlo.constant dense<0xFF800000> : tensor<f32> loc(#loc)
    %0 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<f32> loc(#loc3)
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1, 2>}> ({
    ^bb0(%arg1: tensor<f32> loc("reduce_window_max:"(#loc4)), %arg2: tensor<f32> loc("reduce_window_max:"(#loc4))):
      %30 = stablehlo.maximum %arg1, %arg2 : tensor<f32> loc(#loc3)
      stablehlo.return %30 : tensor<f32> loc(#loc3)
    }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<3x3xf32> loc(#loc3)
    %2 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<3x3xf32> loc(#loc5)
    %3 = stablehlo.multiply %2, %1 : tensor<3x3xf32> loc(#loc5)
    %4 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<3x3xf32> loc(#loc6)
    %5 = stablehlo.multiply %4, %3 : tensor<3x3xf32> loc(#loc7)
    %6 = stablehlo.pad %arg0, %cst_3, low = [0, 0], high = [0, 0], interior = [0, 0] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32> loc(#loc8)
    %7 = "stablehlo.select_and_scatter"(%6, %5, %cst_0) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1, 2>}> ({
    ^bb0(%arg1: tensor<f32> loc("select_and_scatter:"(#loc10)), %arg2: tensor<f32> loc("select_and_scatter:"(#loc10))):
      %30 = stablehlo.compare GE, %arg1, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(#loc11)
      stablehlo.return %30 : tensor<i1> loc(#loc9)
    }, {
    ^bb0(%arg1: tensor<f32> loc("select_and_scatter:"(#loc10)), %arg2: tensor<f32> loc("select_and_scatter:"(#loc10))):
      %30 = stablehlo.add %arg1, %arg2 : tensor<f32> loc(#loc12)
      stablehlo.return %30 : tensor<f32> loc(#loc9)
    }) : (tensor<4x6xf32>, tensor<3x3xf32>, tensor<f32>) -> tensor<4x6xf32> loc(#loc9)
    %8 = stablehlo.slice %7 [0:4, 0:6] : (tensor<4x6xf32>) -> tensor<4x6xf32> loc(#loc13)
    %9 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<f32> loc(#loc14)
    %10 = "stablehlo.reduce_window"(%arg0, %9) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1, 2>}> ({
    ^bb0(%arg1: tensor<f32> loc("reduce_window_sum:"(#loc15)), %arg2: tensor<f32> loc("reduce_window_sum:"(#loc15))):
      %30 = stablehlo.add %arg1, %arg2 : tensor<f32> loc(#loc14)
      stablehlo.return %30 : tensor<f32> loc(#loc14)
    }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<3x3xf32> loc(#loc14)
    %11 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<3x3xf32> loc(#loc5)
    %12 = stablehlo.multiply %11, %10 : tensor<3x3xf32> loc(#loc5)
    %13 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<3x3xf32> loc(#loc6)
    %14 = stablehlo.multiply %13, %12 : tensor<3x3xf32> loc(#loc7)
    %15 = stablehlo.pad %14, %cst_0, low = [1, 1], high = [1, 1], interior = [0, 1] : (tensor<3x3xf32>, tensor<f32>) -> tensor<5x7xf32> loc(#loc8)
    %16 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<f32> loc(#loc16)
    %17 = "stablehlo.reduce_window"(%15, %16) <{window_dimensions = array<i64: 2, 2>}> ({
    ^bb0(%arg1: tensor<f32> loc("reduce_window_sum:"(#loc15)), %arg2: tensor<f32> loc("reduce_window_sum:"(#loc15))):
      %30 = stablehlo.add %arg1, %arg2 : tensor<f32> loc(#loc16)
      stablehlo.return %30 : tensor<f32> loc(#loc16)
    }) : (tensor<5x7xf32>, tensor<f32>) -> tensor<4x6xf32> loc(#loc16)
    %18 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<4x6xf32> loc(#loc17)
    %19 = stablehlo.multiply %arg0, %18 : tensor<4x6xf32> loc(#loc17)
    %20:2 = "stablehlo.reduce_window"(%arg0, %19, %cst_3, %cst_0) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1, 2>}> ({
    ^bb0(%arg1: tensor<f32> loc("reduce_window:"(#loc19)), %arg2: tensor<f32> loc("reduce_window:"(#loc19)), %arg3: tensor<f32> loc("reduce_window:"(#loc19)), %arg4: tensor<f32> loc("reduce_window:"(#loc19))):
      %30 = stablehlo.compare GE, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(#loc20)
      %31 = stablehlo.select %30, %arg1, %arg3 : tensor<i1>, tensor<f32> loc(#loc21)
      %32 = stablehlo.select %30, %arg2, %arg4 : tensor<i1>, tensor<f32> loc(#loc21)
      stablehlo.return %31, %32 : tensor<f32>, tensor<f32> loc(#loc18)
    }) : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<f32>, tensor<f32>) -> (tensor<3x3xf32>, tensor<3x3xf32>) loc(#loc18)
    %21 = "stablehlo.reduce_window"(%arg0, %cst_1) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1, 2>}> ({
    ^bb0(%arg1: tensor<f32> loc("reduce_window:"(#loc19)), %arg2: tensor<f32> loc("reduce_window:"(#loc19))):
      %30 = stablehlo.multiply %arg1, %arg2 : tensor<f32> loc(#loc17)
      %31 = stablehlo.add %30, %arg2 : tensor<f32> loc(#loc23)
      stablehlo.return %31 : tensor<f32> loc(#loc22)
    }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<3x3xf32> loc(#loc22)
    %22 = stablehlo.slice %arg0 [1:4, 1:6] : (tensor<4x6xf32>) -> tensor<3x5xf32> loc(#loc24)
    %23 = "stablehlo.select_and_scatter"(%arg0, %22, %cst_0) <{window_dimensions = array<i64: 2, 2>}> ({
    ^bb0(%arg1: tensor<f32> loc("select_and_scatter:"(#loc10)), %arg2: tensor<f32> loc("select_and_scatter:"(#loc10))):
      %30 = stablehlo.compare GE, %arg1, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(#loc26)
      stablehlo.return %30 : tensor<i1> loc(#loc25)
    }, {
    ^bb0(%arg1: tensor<f32> loc("select_and_scatter:"(#loc10)), %arg2: tensor<f32> loc("select_and_scatter:"(#loc10))):
      %30 = stablehlo.add %arg1, %arg2 : tensor<f32> loc(#loc23)
      stablehlo.return %30 : tensor<f32> loc(#loc25)
    }) : (tensor<4x6xf32>, tensor<3x5xf32>, tensor<f32>) -> tensor<4x6xf32> loc(#loc25)
    %24 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<f32> loc(#loc27)
    %25 = "stablehlo.reduce_window"(%arg0, %24) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1, 2>}> ({
    ^bb0(%arg1: tensor<f32> loc("reduce_window_max:"(#loc4)), %arg2: tensor<f32> loc("reduce_window_max:"(#loc4))):
      %30 = stablehlo.maximum %arg1, %arg2 : tensor<f32> loc(#loc27)
      stablehlo.return %30 : tensor<f32> loc(#loc27)
    }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<3x3xf32> loc(#loc27)
    %26 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<f32> loc(#loc28)
    %27 = "stablehlo.reduce_window"(%arg0, %26) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1, 2>}> ({
    ^bb0(%arg1: tensor<f32> loc("reduce_window_sum:"(#loc15)), %arg2: tensor<f32> loc("reduce_window_sum:"(#loc15))):
      %30 = stablehlo.add %arg1, %arg2 : tensor<f32> loc(#loc28)
      stablehlo.return %30 : tensor<f32> loc(#loc28)
    }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<3x3xf32> loc(#loc28)
    %28 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32> loc(#loc2)
    %29 = "stablehlo.reduce_window"(%arg0, %28) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1, 2>}> ({
    ^bb0(%arg1: tensor<f32> loc("reduce_window_min:"(#loc29)), %arg2: tensor<f32> loc("reduce_window_min:"(#loc29))):
      %30 = stablehlo.minimum %arg1, %arg2 : tensor<f32> loc(#loc2)
      stablehlo.return %30 : tensor<f32> loc(#loc2)
    }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<3x3xf32> loc(#loc2)
    return %25, %27, %29, %8, %17, %20#1, %21, %23 : tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<3x3xf32>, tensor<3x3xf32>, tensor<4x6xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(f)/reduce_window_min")
#loc3 = loc("jit(f)/jvp()/reduce_window_max")
#loc5 = loc("jit(f)/jvp()/mul")
#loc6 = loc("jit(f)/transpose(jvp())/broadcast_in_dim")
#loc7 = loc("jit(f)/transpose(jvp())/mul")
#loc8 = loc("jit(f)/transpose(jvp())/pad")
#loc9 = loc("jit(f)/transpose(jvp())/select_and_scatter")
#loc11 = loc("jit(f)/transpose(jvp())/ge")
#loc12 = loc("jit(f)/transpose(jvp())/add")
#loc13 = loc("jit(f)/transpose(jvp())/slice")
#loc14 = loc("jit(f)/jvp()/reduce_window_sum")
#loc16 = loc("jit(f)/transpose(jvp())/reduce_window_sum")
#loc17 = loc("jit(f)/mul")
#loc18 = loc("jit(f)/jvp()/reduce_window")
#loc20 = loc("jit(f)/jvp()/ge")
#loc21 = loc("jit(f)/jvp()/select_n")
#loc22 = loc("jit(f)/reduce_window")
#loc23 = loc("jit(f)/add")
#loc24 = loc("jit(f)/slice")
#loc25 = loc("jit(f)/select_and_scatter")
#loc26 = loc("jit(f)/ge")
#loc27 = loc("jit(f)/reduce_window_max")
#loc28 = loc("jit(f)/reduce_window_sum")
