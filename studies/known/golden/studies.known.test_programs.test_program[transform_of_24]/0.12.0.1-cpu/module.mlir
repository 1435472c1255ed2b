#loc = loc(unknown)
#loc1 = loc("a")
module @jit_fft attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<24xcomplex<f32>> loc("a")) -> (tensor<24xcomplex<f32>> {jax.result_info = "result"}) {
    %0 = call @fft(%arg0) : (tensor<24xcomplex<f32>>) -> tensor<24xcomplex<f32>> loc(#loc2)
    return %0 : tensor<24xcomplex<f32>> loc(#loc3)
  } loc(#loc)
  func.func private @fft(%arg0: tensor<24xcomplex<f32>> loc(unknown)) -> tensor<24xcomplex<f32>> {
    %0 = stablehlo.fft %arg0, type = FFT, length = [24] : (tensor<24xcomplex<f32>>) -> tensor<24xcomplex<f32>> loc(#loc5)
    return %0 : tensor<24xcomplex<f32>> loc(#loc)
  } loc(#loc6)
} loc(#loc)
#loc2 = loc("jit(fft)/jit(fft)")
#loc3 = loc("jit(fft)")
#loc4 = loc("jit(fft)/jit")
#loc5 = loc("fft")
#loc6 = loc("jit:"(#loc4))
