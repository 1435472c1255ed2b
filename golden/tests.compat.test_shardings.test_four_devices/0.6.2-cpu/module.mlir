#loc1 = loc("a")
#loc2 = loc("b")
module @jit_matmul attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x3xf32> {mhlo.sharding = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"} loc("a"), %arg1: tensor<3x2xf32> {mhlo.sharding = "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}"} loc("b")) -> (tensor<4x2xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32> loc(#loc5)
    return %0 : tensor<4x2xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("-":94:44 to :87)
#loc4 = loc("produce"(#loc3))
#loc5 = loc("jit(matmul)/jit(main)/dot_general"(#loc4))
