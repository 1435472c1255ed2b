#loc = loc(unknown)
#loc1 = loc("a")
module @jit_rfft attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<6xf32> loc("a")) -> (tensor<4xcomplex<f32>> {jax.result_info = "result"}) {
    %0 = call @fft(%arg0) : (tensor<6xf32>) -> tensor<4xcomplex<f32>> loc(#loc2)
    return %0 : tensor<4xcomplex<f32>> loc(#loc3)
  } loc(#loc)
  func.func private @fft(%arg0: tensor<6xf32> loc(unknown)) -> tensor<4xcomplex<f32>> {
    %0 = stablehlo.fft %arg0, type = RFFT, length = [6] : (tensor<6xf32>) -> tensor<4xcomplex<f32>> loc(#loc5)
    return %0 : tensor<4xcomplex<f32>> loc(#loc)
  } loc(#loc6)
} loc(#loc)
#loc2 = loc("jit(rfft)/jit(fft)")
#loc3 = loc("jit(rfft)")
#loc4 = loc("jit(rfft)/jit")
#loc5 = loc("fft")
#loc6 = loc("jit:"(#loc4))
