#loc1 = loc("z")
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3xcomplex<f32>> loc("z")) -> (tensor<3xcomplex<f32>> {jax.result_info = "result[0]"}, tensor<3xf32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<3xcomplex<f32>> loc(#loc2)
    %1 = stablehlo.abs %arg0 : (tensor<3xcomplex<f32>>) -> tensor<3xf32> loc(#loc3)
    return %0, %1 : tensor<3xcomplex<f32>>, tensor<3xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(<lambda>)/mul")
#loc3 = loc("jit(<lambda>)/abs")
