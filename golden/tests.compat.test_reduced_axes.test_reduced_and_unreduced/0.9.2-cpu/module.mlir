#loc1 = loc("x")
#loc3 = loc("shard_map")
#loc6 = loc("psum_invariant")
#loc8 = loc("unreduced_reduce_scatter")
#loc9 = loc("unreduced_psum")
#loc11 = loc("shard_map:"(#loc3))
#loc12 = loc("psum_invariant:"(#loc6))
#loc13 = loc("unreduced_reduce_scatter:"(#loc8))
#loc14 = loc("unreduced_psum:"(#loc9))
module @jit_f attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=4]> loc(#loc)
  func.func public @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>} loc("x")) -> (tensor<32x4xf32> {jax.result_info = "result[0]", sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, tensor<8x4xf32> {jax.result_info = "result[1]", sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, tensor<4xf32> {jax.result_info = "result[2]", sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, tensor<8x4xf32> {jax.result_info = "result[3]", sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
    %0:4 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>, <@mesh, [{"a"}, {}]>, <@mesh, [{"a"}]>, <@mesh, [{"a"}, {}]>] manual_axes={"a"} (%arg1: tensor<2x4xf32> loc("shard_map:"(#loc3))) {
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc4)
      %1 = "stablehlo.all_gather"(%arg1) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<2x4xf32>) -> tensor<8x4xf32> loc(#loc5)
      %2 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32> loc("psum_invariant:"(#loc6)), %arg3: tensor<f32> loc("psum_invariant:"(#loc6))):
        %9 = stablehlo.add %arg2, %arg3 : tensor<f32> loc(#loc7)
        stablehlo.return %9 : tensor<f32> loc(#loc6)
      }) : (tensor<2x4xf32>) -> tensor<2x4xf32> loc(#loc6)
      %3 = stablehlo.reduce(%arg1 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<2x4xf32>, tensor<f32>) -> tensor<4xf32> loc(#loc4)
      %4 = "stablehlo.reduce_scatter"(%3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32> loc("unreduced_reduce_scatter:"(#loc8)), %arg3: tensor<f32> loc("unreduced_reduce_scatter:"(#loc8))):
        %9 = stablehlo.add %arg2, %arg3 : tensor<f32> loc(#loc7)
        stablehlo.return %9 : tensor<f32> loc(#loc8)
      }) : (tensor<4xf32>) -> tensor<1xf32> loc(#loc8)
      %5 = "stablehlo.all_reduce"(%3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32> loc("unreduced_psum:"(#loc9)), %arg3: tensor<f32> loc("unreduced_psum:"(#loc9))):
        %9 = stablehlo.add %arg2, %arg3 : tensor<f32> loc(#loc7)
        stablehlo.return %9 : tensor<f32> loc(#loc9)
      }) : (tensor<4xf32>) -> tensor<4xf32> loc(#loc9)
      %6 = stablehlo.broadcast_in_dim %5, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32> loc(#loc10)
      %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<2x4xf32> loc(#loc7)
      %8 = stablehlo.add %7, %arg1 : tensor<2x4xf32> loc(#loc7)
      sdy.return %1, %2, %4, %8 : tensor<8x4xf32>, tensor<2x4xf32>, tensor<1xf32>, tensor<2x4xf32> loc(#loc11)
    } : (tensor<8x4xf32>) -> (tensor<32x4xf32>, tensor<8x4xf32>, tensor<4xf32>, tensor<8x4xf32>) loc(#loc2)
    return %0#0, %0#1, %0#2, %0#3 : tensor<32x4xf32>, tensor<8x4xf32>, tensor<4xf32>, tensor<8x4xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(f)/shard_map")
#loc4 = loc("reduce_sum")
#loc5 = loc("all_gather_reduced")
#loc7 = loc("add")
#loc10 = loc("broadcast_in_dim")
