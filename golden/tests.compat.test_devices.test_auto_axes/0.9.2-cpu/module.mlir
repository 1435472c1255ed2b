#loc = loc(unknown)
#loc1 = loc("x")
#loc5 = loc("reduce_window_sum")
#loc7 = loc("reduce_window_sum:"(#loc5))
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=4]> loc(#loc)
  func.func public @main(%arg0: tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>} loc("x")) -> (tensor<8x2xf32> {jax.result_info = "result", sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
    %0 = call @cumsum(%arg0) : (tensor<8x2xf32>) -> tensor<8x2xf32> loc(#loc2)
    %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}, {}]> : tensor<8x2xf32> loc(#loc3)
    return %1 : tensor<8x2xf32> loc(#loc)
  } loc(#loc)
  func.func private @cumsum(%arg0: tensor<8x2xf32> loc(unknown)) -> tensor<8x2xf32> {
    %0 = call @cumsum_0(%arg0) : (tensor<8x2xf32>) -> tensor<8x2xf32> loc(#loc)
    return %0 : tensor<8x2xf32> loc(#loc6)
  } loc(#loc6)
  func.func private @cumsum_0(%arg0: tensor<8x2xf32> loc(unknown)) -> tensor<8x2xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc5)
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32> loc(#loc5)
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{padding = dense<[[7, 0], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 8, 1>}> ({
    ^bb0(%arg1: tensor<f32> loc("reduce_window_sum:"(#loc5)), %arg2: tensor<f32> loc("reduce_window_sum:"(#loc5))):
      %2 = stablehlo.add %arg1, %arg2 : tensor<f32> loc(#loc5)
      stablehlo.return %2 : tensor<f32> loc(#loc5)
    }) : (tensor<8x2xf32>, tensor<f32>) -> tensor<8x2xf32> loc(#loc5)
    return %1 : tensor<8x2xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc2 = loc("jit(<lambda>)/jit(cumsum)")
#loc3 = loc("jit(<lambda>)/reshard")
#loc4 = loc("jit(<lambda>)/jit")
#loc6 = loc("jit:"(#loc4))
