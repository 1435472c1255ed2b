#loc1 = loc("x")
#loc2 = loc("jit(<lambda>)/top_k")
#loc4 = loc("sort")
#loc7 = loc("sort:"(#loc4))
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3xi32> loc("x")) -> (tensor<2xi32> {jax.result_info = "result[0][0]"}, tensor<2xi32> {jax.result_info = "result[0][1]"}, tensor<3xi32> {jax.result_info = "result[1]"}) {
    %0:2 = stablehlo.composite "chlo.top_k" %arg0 {composite_attributes = {is_stable = true, k = 2 : i64}, decomposition = @chlo.top_k.impl, version = 1 : i32} : (tensor<3xi32>) -> (tensor<2xi32>, tensor<2xi32>) loc(#loc2)
    %1 = "stablehlo.sort"(%arg0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<i32> loc("sort:"(#loc4)), %arg2: tensor<i32> loc("sort:"(#loc4))):
      %2 = stablehlo.compare LT, %arg1, %arg2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> loc(#loc5)
      stablehlo.return %2 : tensor<i1> loc(#loc3)
    }) : (tensor<3xi32>) -> tensor<3xi32> loc(#loc3)
    return %0#0, %0#1, %1 : tensor<2xi32>, tensor<2xi32>, tensor<3xi32> loc(#loc6)
  } loc(#loc)
  func.func private @chlo.top_k.impl(%arg0: tensor<3xi32> loc("jit(<lambda>)/top_k")) -> (tensor<2xi32>, tensor<2xi32>) {
    %0 = stablehlo.iota dim = 0 : tensor<3xi32> loc(#loc2)
    %1:2 = "stablehlo.sort"(%arg0, %0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<i32> loc("jit(<lambda>)/top_k"), %arg2: tensor<i32> loc("jit(<lambda>)/top_k"), %arg3: tensor<i32> loc("jit(<lambda>)/top_k"), %arg4: tensor<i32> loc("jit(<lambda>)/top_k")):
      %4 = stablehlo.compare GT, %arg1, %arg2 : (tensor<i32>, tensor<i32>) -> tensor<i1> loc(#loc2)
      stablehlo.return %4 : tensor<i1> loc(#loc2)
    }) : (tensor<3xi32>, tensor<3xi32>) -> (tensor<3xi32>, tensor<3xi32>) loc(#loc2)
    %2 = stablehlo.slice %1#0 [0:2] : (tensor<3xi32>) -> tensor<2xi32> loc(#loc2)
    %3 = stablehlo.slice %1#1 [0:2] : (tensor<3xi32>) -> tensor<2xi32> loc(#loc2)
    return %2, %3 : tensor<2xi32>, tensor<2xi32> loc(#loc2)
  } loc(#loc2)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("jit(<lambda>)/sort")
#loc5 = loc("jit(<lambda>)/lt_to")
#loc6 = loc("jit(<lambda>)")
