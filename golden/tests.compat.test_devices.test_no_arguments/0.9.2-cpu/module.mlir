module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=4]> loc(#loc)
  func.func public @main() -> (tensor<8xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.iota dim = 0 : tensor<8xf32> loc(#loc1)
    %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}]> : tensor<8xf32> loc(#loc2)
    return %1 : tensor<8xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc1 = loc("jit(<lambda>)/iota")
#loc2 = loc("jit(<lambda>)/sharding_constraint")
