#loc1 = loc("x")
module @jit__lambda_ attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x7xf32> loc("x")) -> (tensor<2x3xf32> {jax.result_info = "result[0]"}, tensor<2x3xi32> {jax.result_info = "result[1]"}) {
    %0:2 = stablehlo.custom_call @mhlo.topk(%arg0) {mhlo.attributes = {k = 3 : i64}, mhlo.version = 1 : i64} : (tensor<2x7xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>) loc(#loc4)
    return %0#0, %0#1 : tensor<2x3xf32>, tensor<2x3xi32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("-":48:42 to :57)
#loc3 = loc("test_top_k.<locals>.<lambda>"(#loc2))
#loc4 = loc("jit(<lambda>)/jit(main)/top_k"(#loc3))
