#loc = loc(unknown)
#loc1 = loc("x")
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x16xf32> loc("x")) -> (tensor<3x16xcomplex<f32>> {jax.result_info = "result[0]"}, tensor<3x16xf32> {jax.result_info = "result[1]"}) {
    %0 = call @fft(%arg0) : (tensor<3x16xf32>) -> tensor<3x16xcomplex<f32>> loc(#loc2)
    %1 = call @fft_0(%arg0) : (tensor<3x16xf32>) -> tensor<3x9xcomplex<f32>> loc(#loc2)
    %2 = call @fft_1(%1) : (tensor<3x9xcomplex<f32>>) -> tensor<3x16xf32> loc(#loc2)
    return %0, %2 : tensor<3x16xcomplex<f32>>, tensor<3x16xf32> loc(#loc3)
  } loc(#loc)
  func.func private @fft(%arg0: tensor<3x16xf32> loc(unknown)) -> tensor<3x16xcomplex<f32>> {
    %0 = stablehlo.convert %arg0 : (tensor<3x16xf32>) -> tensor<3x16xcomplex<f32>> loc(#loc5)
    %1 = stablehlo.fft %0, type = FFT, length = [16] : (tensor<3x16xcomplex<f32>>) -> tensor<3x16xcomplex<f32>> loc(#loc6)
    return %1 : tensor<3x16xcomplex<f32>> loc(#loc)
  } loc(#loc7)
  func.func private @fft_0(%arg0: tensor<3x16xf32> loc(unknown)) -> tensor<3x9xcomplex<f32>> {
    %0 = stablehlo.fft %arg0, type = RFFT, length = [16] : (tensor<3x16xf32>) -> tensor<3x9xcomplex<f32>> loc(#loc6)
    return %0 : tensor<3x9xcomplex<f32>> loc(#loc)
  } loc(#loc7)
  func.func private @fft_1(%arg0: tensor<3x9xcomplex<f32>> loc(unknown)) -> tensor<3x16xf32> {
    %0 = stablehlo.fft %arg0, type = IRFFT, length = [16] : (tensor<3x9xcomplex<f32>>) -> tensor<3x16xf32> loc(#loc6)
    return %0 : tensor<3x16xf32> loc(#loc)
  } loc(#loc7)
} loc(#loc)
#loc2 = loc("jit(<lambda>)/jit(fft)")
#loc3 = loc("jit(<lambda>)")
#loc4 = loc("jit(<lambda>)/jit")
#loc5 = loc("convert_element_type")
#loc6 = loc("fft")
#loc7 = loc("jit:"(#loc4))
