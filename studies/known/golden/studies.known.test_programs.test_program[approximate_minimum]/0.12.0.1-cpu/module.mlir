#loc1 = loc("approx_top_k")
#loc2 = loc("x")
#loc5 = loc("approx_top_k:"(#loc1))
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @top_k_lt_f32_comparator(%arg0: tensor<f32> loc("approx_top_k:"(#loc1)), %arg1: tensor<f32> loc("approx_top_k:"(#loc1)), %arg2: tensor<i32> loc("approx_top_k:"(#loc1)), %arg3: tensor<i32> loc("approx_top_k:"(#loc1))) -> tensor<i1> {
    %0 = stablehlo.compare LT, %arg0, %arg1 : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(#loc5)
    return %0 : tensor<i1> loc(#loc5)
  } loc(#loc5)
  func.func public @main(%arg0: tensor<4xf32> loc("x")) -> (tensor<2xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0x7F800000> : tensor<f32> loc(#loc3)
    %c = stablehlo.constant dense<-1> : tensor<i32> loc(#loc3)
    %0 = stablehlo.iota dim = 0 : tensor<4xi32> loc(#loc3)
    %1:2 = stablehlo.custom_call @ApproxTopK(%arg0, %0, %cst, %c) {called_computations = [@top_k_lt_f32_comparator], mhlo.backend_config = {aggregate_to_topk = true, is_fallback = true, recall_target = 0.949999988 : f32, reduction_dim = 0 : i64, reduction_input_size_override = -1 : i64, top_k = 2 : i64}} : (tensor<4xf32>, tensor<4xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>) loc(#loc3)
    return %1#0 : tensor<2xf32> loc(#loc4)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("jit(<lambda>)/approx_top_k")
#loc4 = loc("jit(<lambda>)")
