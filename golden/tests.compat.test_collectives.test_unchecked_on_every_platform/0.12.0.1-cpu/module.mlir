#loc = loc(unknown)
#loc1 = loc("psum")
#loc2 = loc("x")
#loc4 = loc("shard_map")
#loc8 = loc("shard_map:"(#loc4))
#loc9 = loc("psum:"(#loc1))
module @jit_f attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["devices"=4]> {stablehlo.mesh = {axes = [{name = "devices", size = 4 : i64}]}} loc(#loc)
  sdy.mesh @mesh_0 = <["devices"=4]> {stablehlo.mesh = {axes = [{name = "devices", size = 4 : i64}]}} loc(#loc1)
  func.func public @main(%arg0: tensor<i32> {jax.global_constant = "_platform_index"} loc(unknown), %arg1: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"devices"}, {}]>} loc("x")) -> (tensor<2x4xf32> {jax.result_info = "result[0]"}, tensor<8x16xf32> {jax.result_info = "result[1]"}, tensor<2x4xf32> {jax.result_info = "result[2]"}) {
    %0:3 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, []>, <@mesh, [{"devices"}, {}]>] out_shardings=[<@mesh, [{}, {}]>, <@mesh, [{"devices"}, {}]>, <@mesh, [{}, {}]>] manual_axes={"devices"} (%arg2: tensor<i32> loc("shard_map:"(#loc4)), %arg3: tensor<2x4xf32> loc("shard_map:"(#loc4))) {
      %c = stablehlo.constant dense<2> : tensor<i32> loc(#loc)
      %c_0 = stablehlo.constant dense<1> : tensor<i32> loc(#loc)
      %c_1 = stablehlo.constant dense<0> : tensor<i32> loc(#loc)
      %c_2 = stablehlo.constant dense<3> : tensor<i32> loc(#loc)
      %1 = "stablehlo.all_reduce"(%arg3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh_0, axes = [#stablehlo.axis_ref<name = "devices">]>, use_global_device_ids}> ({
      ^bb0(%arg4: tensor<f32> loc("psum:"(#loc1)), %arg5: tensor<f32> loc("psum:"(#loc1))):
        %5 = stablehlo.add %arg4, %arg5 : tensor<f32> loc(#loc5)
        stablehlo.return %5 : tensor<f32> loc(#loc1)
      }) : (tensor<2x4xf32>) -> tensor<2x4xf32> loc(#loc1)
      %2 = "stablehlo.case"(%arg2) ({
        stablehlo.return %c_2 : tensor<i32> loc(#loc6)
      }, {
        stablehlo.return %c_1 : tensor<i32> loc(#loc6)
      }, {
        stablehlo.return %c_0 : tensor<i32> loc(#loc6)
      }, {
        stablehlo.return %c : tensor<i32> loc(#loc6)
      }) : (tensor<i32>) -> tensor<i32> loc(#loc6)
      %3 = "stablehlo.case"(%2) ({
        %5 = "stablehlo.all_gather"(%arg3) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh_0, axes = [#stablehlo.axis_ref<name = "devices">]>, use_global_device_ids}> : (tensor<2x4xf32>) -> tensor<2x16xf32> loc(#loc6)
        stablehlo.return %5 : tensor<2x16xf32> loc(#loc6)
      }, {
        %5 = "stablehlo.all_gather"(%arg3) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh_0, axes = [#stablehlo.axis_ref<name = "devices">]>, use_global_device_ids}> : (tensor<2x4xf32>) -> tensor<2x16xf32> loc(#loc6)
        stablehlo.return %5 : tensor<2x16xf32> loc(#loc6)
      }, {
        %5 = "stablehlo.all_gather"(%arg3) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh_0, axes = [#stablehlo.axis_ref<name = "devices">]>, use_global_device_ids}> : (tensor<2x4xf32>) -> tensor<2x16xf32> loc(#loc6)
        stablehlo.return %5 : tensor<2x16xf32> loc(#loc6)
      }, {
        %5 = "stablehlo.all_gather"(%arg3) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh_0, axes = [#stablehlo.axis_ref<name = "devices">]>, use_global_device_ids}> : (tensor<2x4xf32>) -> tensor<2x16xf32> loc(#loc6)
        stablehlo.return %5 : tensor<2x16xf32> loc(#loc6)
      }) : (tensor<i32>) -> tensor<2x16xf32> loc(#loc6)
      %4 = "stablehlo.all_reduce"(%arg3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh_0, axes = [#stablehlo.axis_ref<name = "devices">]>, use_global_device_ids}> ({
      ^bb0(%arg4: tensor<f32> loc("psum:"(#loc1)), %arg5: tensor<f32> loc("psum:"(#loc1))):
        %5 = stablehlo.add %arg4, %arg5 : tensor<f32> loc(#loc5)
        stablehlo.return %5 : tensor<f32> loc(#loc1)
      }) : (tensor<2x4xf32>) -> tensor<2x4xf32> loc(#loc1)
      sdy.return %1, %3, %4 : tensor<2x4xf32>, tensor<2x16xf32>, tensor<2x4xf32> loc(#loc8)
    } : (tensor<i32>, tensor<8x4xf32>) -> (tensor<2x4xf32>, tensor<8x16xf32>, tensor<2x4xf32>) loc(#loc3)
    return %0#0, %0#1, %0#2 : tensor<2x4xf32>, tensor<8x16xf32>, tensor<2x4xf32> loc(#loc7)
  } loc(#loc)
} loc(#loc)
#loc3 = loc("jit(f)/shard_map")
#loc5 = loc("add")
#loc6 = loc("all_gather")
#loc7 = loc("jit(f)")
