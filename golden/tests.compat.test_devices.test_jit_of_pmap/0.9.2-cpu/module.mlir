#loc = loc(unknown)
#loc1 = loc("x")
#loc4 = loc("shard_map")
#loc6 = loc("psum")
#loc11 = loc("shard_map:"(#loc4))
#loc12 = loc("psum:"(#loc6))
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["i"=4]> loc(#loc)
  func.func public @main(%arg0: tensor<4x3xf32> loc("x")) -> (tensor<4x3xf32> {jax.result_info = "result"}) {
    %0 = call @_fun(%arg0) : (tensor<4x3xf32>) -> tensor<4x3xf32> loc(#loc2)
    return %0 : tensor<4x3xf32> loc(#loc)
  } loc(#loc)
  func.func private @_fun(%arg0: tensor<4x3xf32> loc(unknown)) -> tensor<4x3xf32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"i"}, {}]>] out_shardings=[<@mesh, [{"i"}, {}]>] manual_axes={"i"} (%arg1: tensor<1x3xf32> loc("shard_map:"(#loc4))) {
      %1 = stablehlo.reshape %arg1 : (tensor<1x3xf32>) -> tensor<3xf32> loc(#loc5)
      %2 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32> loc("psum:"(#loc6)), %arg3: tensor<f32> loc("psum:"(#loc6))):
        %5 = stablehlo.add %arg2, %arg3 : tensor<f32> loc(#loc7)
        stablehlo.return %5 : tensor<f32> loc(#loc6)
      }) : (tensor<3xf32>) -> tensor<3xf32> loc(#loc6)
      %3 = stablehlo.divide %1, %2 : tensor<3xf32> loc(#loc8)
      %4 = stablehlo.broadcast_in_dim %3, dims = [1] : (tensor<3xf32>) -> tensor<1x3xf32> loc(#loc9)
      sdy.return %4 : tensor<1x3xf32> loc(#loc11)
    } : (tensor<4x3xf32>) -> tensor<4x3xf32> loc(#loc4)
    return %0 : tensor<4x3xf32> loc(#loc10)
  } loc(#loc10)
} loc(#loc)
#loc2 = loc("jit(<lambda>)/jit(_fun)")
#loc3 = loc("jit(<lambda>)/jit")
#loc5 = loc("squeeze")
#loc7 = loc("add")
#loc8 = loc("div")
#loc9 = loc("broadcast_in_dim")
#loc10 = loc("jit:"(#loc3))
