#loc1 = loc("x")
#loc3 = loc("shard_map")
#loc7 = loc("shard_map:"(#loc3))
module @jit_f attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["devices"=4]> {stablehlo.mesh = {axes = [{name = "devices", size = 4 : i64}]}} loc(#loc)
  func.func public @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"devices"}, {}]>} loc("x")) -> (tensor<8x4xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"devices"}, {}]>] out_shardings=[<@mesh, [{"devices"}, {}]>] manual_axes={"devices"} (%arg1: tensor<2x4xf32> loc("shard_map:"(#loc3))) {
      %c = stablehlo.constant dense<0> : tensor<i32> loc(#loc)
      %1 = "stablehlo.case"(%c) ({
        stablehlo.return %c : tensor<i32> loc(#loc4)
      }, {
        stablehlo.return %c : tensor<i32> loc(#loc4)
      }) : (tensor<i32>) -> tensor<i32> loc(#loc4)
      %2 = "stablehlo.case"(%1) ({
        %3 = "stablehlo.collective_broadcast"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[2, 0, 1, 3]]> : tensor<1x4xi64>}> : (tensor<2x4xf32>) -> tensor<2x4xf32> loc(#loc5)
        stablehlo.return %3 : tensor<2x4xf32> loc(#loc4)
      }) : (tensor<i32>) -> tensor<2x4xf32> loc(#loc4)
      sdy.return %2 : tensor<2x4xf32> loc(#loc7)
    } : (tensor<8x4xf32>) -> tensor<8x4xf32> loc(#loc2)
    return %0 : tensor<8x4xf32> loc(#loc6)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(f)/shard_map")
#loc4 = loc("cond")
#loc5 = loc("cond/branch_0_fun/pbroadcast")
#loc6 = loc("jit(f)")
