#loc1 = loc("x")
#loc3 = loc("shard_map")
#loc4 = loc("reduce_scatter")
#loc6 = loc("psum_invariant")
#loc8 = loc("shard_map:"(#loc3))
#loc9 = loc("reduce_scatter:"(#loc4))
#loc10 = loc("psum_invariant:"(#loc6))
module @jit_f attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["devices"=4]> loc(#loc)
  func.func public @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"devices"}, {}]>} loc("x")) -> (tensor<8x1xf32> {jax.result_info = "result[0]"}, tensor<2x4xf32> {jax.result_info = "result[1]"}) {
    %0:2 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"devices"}, {}]>] out_shardings=[<@mesh, [{"devices"}, {}]>, <@mesh, [{}, {}]>] manual_axes={"devices"} (%arg1: tensor<2x4xf32> loc("shard_map:"(#loc3))) {
      %cst = stablehlo.constant dense<4.000000e+00> : tensor<f32> loc(#loc8)
      %1 = "stablehlo.reduce_scatter"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, scatter_dimension = 1 : i64, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32> loc("reduce_scatter:"(#loc4)), %arg3: tensor<f32> loc("reduce_scatter:"(#loc4))):
        %5 = stablehlo.add %arg2, %arg3 : tensor<f32> loc(#loc5)
        stablehlo.return %5 : tensor<f32> loc(#loc4)
      }) : (tensor<2x4xf32>) -> tensor<2x1xf32> loc(#loc4)
      %2 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32> loc("psum_invariant:"(#loc6)), %arg3: tensor<f32> loc("psum_invariant:"(#loc6))):
        %5 = stablehlo.add %arg2, %arg3 : tensor<f32> loc(#loc5)
        stablehlo.return %5 : tensor<f32> loc(#loc6)
      }) : (tensor<2x4xf32>) -> tensor<2x4xf32> loc(#loc6)
      %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x4xf32> loc(#loc7)
      %4 = stablehlo.divide %2, %3 : tensor<2x4xf32> loc(#loc7)
      sdy.return %1, %4 : tensor<2x1xf32>, tensor<2x4xf32> loc(#loc8)
    } : (tensor<8x4xf32>) -> (tensor<8x1xf32>, tensor<2x4xf32>) loc(#loc2)
    return %0#0, %0#1 : tensor<8x1xf32>, tensor<2x4xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(f)/shard_map")
#loc5 = loc("add")
#loc7 = loc("div")
