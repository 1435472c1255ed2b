#loc1 = loc("x")
#loc4 = loc("sort")
#loc7 = loc("sort:"(#loc4))
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8xi32> loc("x")) -> (tensor<8xi32> {jax.result_info = "result"}) {
    %0 = stablehlo.iota dim = 0 : tensor<8xi32> loc(#loc2)
    %1:2 = "stablehlo.sort"(%arg0, %0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<i32> loc("sort:"(#loc4)), %arg2: tensor<i32> loc("sort:"(#loc4)), %arg3: tensor<i32> loc("sort:"(#loc4)), %arg4: tensor<i32> loc("sort:"(#loc4))):
      %2 = stablehlo.compare LT, %arg1, %arg2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> loc(#loc5)
      stablehlo.return %2 : tensor<i1> loc(#loc3)
    }) : (tensor<8xi32>, tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>) loc(#loc3)
    return %1#1 : tensor<8xi32> loc(#loc6)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(<lambda>)/iota")
#loc3 = loc("jit(<lambda>)/sort")
#loc5 = loc("jit(<lambda>)/lt_to")
#loc6 = loc("jit(<lambda>)")
