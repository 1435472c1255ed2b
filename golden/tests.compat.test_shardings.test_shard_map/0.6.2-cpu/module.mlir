#loc1 = loc("x")
#loc3 = loc("[('x',), ('y',)]")
#loc4 = loc("-":63:33 to :53)
#loc6 = loc("test_shard_map.<locals>.<lambda>"(#loc4))
#loc8 = loc("jit(<lambda>)/jit(main)/jit(shmap_body)/psum_invariant"(#loc6))
module @jit__lambda_ attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x4xf32> {mhlo.sharding = "{devices=[2,2]<=[4]}"} loc("x")) -> (tensor<2x4xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.custom_call @Sharding(%arg0) {mhlo.sharding = "{devices=[2,2]<=[4]}"} : (tensor<4x4xf32>) -> tensor<4x4xf32> loc(#loc7)
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"} : (tensor<4x4xf32>) -> tensor<2x2xf32> loc(#loc7)
    %2 = call @shmap_body(%1) : (tensor<2x2xf32>) -> tensor<2x2xf32> loc(#loc7)
    %3 = stablehlo.custom_call @Sharding(%2) {mhlo.sharding = "{manual}"} : (tensor<2x2xf32>) -> tensor<2x2xf32> loc(#loc7)
    %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {mhlo.sharding = "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}"} : (tensor<2x2xf32>) -> tensor<2x4xf32> loc(#loc7)
    return %4 : tensor<2x4xf32> loc(#loc)
  } loc(#loc)
  func.func private @shmap_body(%arg0: tensor<2x2xf32> loc("[('x',), ('y',)]")) -> (tensor<2x2xf32> {jax.result_info = "[None, ('y',)]"}) {
    %0 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%arg1: tensor<f32> loc("jit(<lambda>)/jit(main)/jit(shmap_body)/psum_invariant"(#loc6)), %arg2: tensor<f32> loc("jit(<lambda>)/jit(main)/jit(shmap_body)/psum_invariant"(#loc6))):
      %1 = stablehlo.add %arg1, %arg2 : tensor<f32> loc(#loc9)
      stablehlo.return %1 : tensor<f32> loc(#loc8)
    }) : (tensor<2x2xf32>) -> tensor<2x2xf32> loc(#loc8)
    return %0 : tensor<2x2xf32> loc(#loc7)
  } loc(#loc7)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("-":154:11 to :33)
#loc5 = loc("dynamic_tree"(#loc2))
#loc7 = loc("jit(<lambda>)/jit(main)/shard_map"(#loc5))
#loc9 = loc("jit(<lambda>)/jit(main)/jit(shmap_body)/add"(#loc6))
