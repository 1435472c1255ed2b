#loc1 = loc("psum_invariant")
#loc2 = loc("x")
#loc4 = loc("shard_map")
#loc7 = loc("shard_map:"(#loc4))
#loc8 = loc("psum_invariant:"(#loc1))
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 2 : i64}, {name = "y", size = 2 : i64}]}} loc(#loc)
  sdy.mesh @mesh_0 = <["x"=2, "y"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 2 : i64}, {name = "y", size = 2 : i64}]}} loc(#loc1)
  func.func public @main(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>} loc("x")) -> (tensor<2x4xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{}, {"y"}]>] manual_axes={"x", "y"} (%arg1: tensor<2x2xf32> loc("shard_map:"(#loc4))) {
      %1 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh_0, axes = [#stablehlo.axis_ref<name = "x">]>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32> loc("psum_invariant:"(#loc1)), %arg3: tensor<f32> loc("psum_invariant:"(#loc1))):
        %2 = stablehlo.add %arg2, %arg3 : tensor<f32> loc(#loc5)
        stablehlo.return %2 : tensor<f32> loc(#loc1)
      }) : (tensor<2x2xf32>) -> tensor<2x2xf32> loc(#loc1)
      sdy.return %1 : tensor<2x2xf32> loc(#loc7)
    } : (tensor<4x4xf32>) -> tensor<2x4xf32> loc(#loc3)
    return %0 : tensor<2x4xf32> loc(#loc6)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("jit(<lambda>)/shard_map")
#loc5 = loc("add")
#loc6 = loc("jit(<lambda>)")
