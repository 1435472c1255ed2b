#loc1 = loc("x")
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @empty_mesh = <[]> loc(#loc)
  func.func public @main(%arg0: tensor<4x2xf32> {mhlo.memory_kind = "pinned_host", sdy.sharding = #sdy.sharding<@empty_mesh, [{}, {}]>} loc("x")) -> (tensor<4x2xf32> {jax.result_info = "result", mhlo.memory_kind = "pinned_host"}) {
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32> loc(#loc)
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x2xf32> loc(#loc2)
    %1 = stablehlo.multiply %arg0, %0 : tensor<4x2xf32> loc(#loc2)
    return %1 : tensor<4x2xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(<lambda>)/mul")
