#loc1 = loc("x")
#loc3 = loc("shard_map")
#loc4 = loc("psum_invariant")
#loc6 = loc("shard_map:"(#loc3))
#loc7 = loc("psum_invariant:"(#loc4))
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=2]> loc(#loc)
  func.func public @main(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>} loc("x")) -> (tensor<2x4xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{}, {"y"}]>] manual_axes={"x", "y"} (%arg1: tensor<2x2xf32> loc("shard_map:"(#loc3))) {
      %1 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32> loc("psum_invariant:"(#loc4)), %arg3: tensor<f32> loc("psum_invariant:"(#loc4))):
        %2 = stablehlo.add %arg2, %arg3 : tensor<f32> loc(#loc5)
        stablehlo.return %2 : tensor<f32> loc(#loc4)
      }) : (tensor<2x2xf32>) -> tensor<2x2xf32> loc(#loc4)
      sdy.return %1 : tensor<2x2xf32> loc(#loc6)
    } : (tensor<4x4xf32>) -> tensor<2x4xf32> loc(#loc2)
    return %0 : tensor<2x4xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(<lambda>)/shard_map")
#loc5 = loc("add")
