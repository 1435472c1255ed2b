#loc1 = loc("args[0]")
module @jit_bind attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xi32> loc("args[0]")) -> (tensor<4xi32> {jax.result_info = "result"}) {
    %0 = stablehlo.custom_call @cu_lu_pivots_to_permutation(%arg0) {mhlo.backend_config = {}, operand_layouts = [dense<0> : tensor<1xindex>], result_layouts = [dense<0> : tensor<1xindex>]} : (tensor<4xi32>) -> tensor<4xi32> loc(#loc2)
    return %0 : tensor<4xi32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(bind)/permuted")
