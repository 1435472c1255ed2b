#loc1 = loc("flag")
#loc2 = loc("x")
module @jit_choose attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<i1> loc("flag"), %arg1: tensor<4xf32> loc("x")) -> (tensor<4xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.convert %arg0 : (tensor<i1>) -> tensor<i32> loc(#loc3)
    %1 = "stablehlo.case"(%0) ({
      %2 = stablehlo.cosine %arg1 : tensor<4xf32> loc(#loc5)
      stablehlo.return %2 : tensor<4xf32> loc(#loc4)
    }, {
      %2 = stablehlo.sine %arg1 : tensor<4xf32> loc(#loc6)
      stablehlo.return %2 : tensor<4xf32> loc(#loc4)
    }) : (tensor<i32>) -> tensor<4xf32> loc(#loc4)
    return %1 : tensor<4xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("jit(choose)/convert_element_type")
#loc4 = loc("jit(choose)/cond")
#loc5 = loc("jit(choose)/cond/branch_0_fun/cos")
#loc6 = loc("jit(choose)/cond/branch_1_fun/sin")
