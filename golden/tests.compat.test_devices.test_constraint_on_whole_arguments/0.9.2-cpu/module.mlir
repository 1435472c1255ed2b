#loc1 = loc("x")
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=4]> loc(#loc)
  func.func public @main(%arg0: tensor<4x2xf32> loc("x")) -> (tensor<4x2xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.sine %arg0 : tensor<4x2xf32> loc(#loc2)
    %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}, {}]> : tensor<4x2xf32> loc(#loc3)
    return %1 : tensor<4x2xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(<lambda>)/sin")
#loc3 = loc("jit(<lambda>)/sharding_constraint")
