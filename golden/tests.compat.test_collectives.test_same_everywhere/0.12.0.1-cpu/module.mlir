#loc1 = loc("pmax")
#loc2 = loc("x")
#loc4 = loc("shard_map")
#loc6 = loc("pmin")
#loc10 = loc("shard_map:"(#loc4))
#loc11 = loc("pmax:"(#loc1))
#loc12 = loc("pmin:"(#loc6))
module @jit_f attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["devices"=4]> {stablehlo.mesh = {axes = [{name = "devices", size = 4 : i64}]}} loc(#loc)
  sdy.mesh @mesh_0 = <["devices"=4]> {stablehlo.mesh = {axes = [{name = "devices", size = 4 : i64}]}} loc(#loc1)
  func.func public @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"devices"}, {}]>} loc("x")) -> (tensor<2x4xf32> {jax.result_info = "result[0]"}, tensor<2x4xf32> {jax.result_info = "result[1]"}, tensor<8x4xf32> {jax.result_info = "result[2][0]"}) {
    %0:3 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"devices"}, {}]>] out_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>, <@mesh, [{}, {}]>] manual_axes={"devices"} (%arg1: tensor<2x4xf32> loc("shard_map:"(#loc4))) {
      %1 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh_0, axes = [#stablehlo.axis_ref<name = "devices">]>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32> loc("pmax:"(#loc1)), %arg3: tensor<f32> loc("pmax:"(#loc1))):
        %4 = stablehlo.maximum %arg2, %arg3 : tensor<f32> loc(#loc5)
        stablehlo.return %4 : tensor<f32> loc(#loc1)
      }) : (tensor<2x4xf32>) -> tensor<2x4xf32> loc(#loc1)
      %2 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh_0, axes = [#stablehlo.axis_ref<name = "devices">]>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32> loc("pmin:"(#loc6)), %arg3: tensor<f32> loc("pmin:"(#loc6))):
        %4 = stablehlo.minimum %arg2, %arg3 : tensor<f32> loc(#loc7)
        stablehlo.return %4 : tensor<f32> loc(#loc6)
      }) : (tensor<2x4xf32>) -> tensor<2x4xf32> loc(#loc6)
      %3 = "stablehlo.all_gather"(%arg1) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh_0, axes = [#stablehlo.axis_ref<name = "devices">]>, use_global_device_ids}> : (tensor<2x4xf32>) -> tensor<8x4xf32> loc(#loc8)
      sdy.return %1, %2, %3 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<8x4xf32> loc(#loc10)
    } : (tensor<8x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<8x4xf32>) loc(#loc3)
    return %0#0, %0#1, %0#2 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<8x4xf32> loc(#loc9)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("jit(f)/shard_map")
#loc5 = loc("max")
#loc7 = loc("min")
#loc8 = loc("all_gather_invariant")
#loc9 = loc("jit(f)")
