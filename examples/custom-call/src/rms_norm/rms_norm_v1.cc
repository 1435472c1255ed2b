// rms_norm_v1: each row divided by its root mean square.
#include <cmath>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

static ffi::Error RmsNorm(float eps, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  const size_t columns = x.dimensions().back();
  for (size_t row = 0; row < x.element_count(); row += columns) {
    const float* in = x.typed_data() + row;
    float* out = y->typed_data() + row;
    float squares = 0;
    for (size_t i = 0; i < columns; ++i) squares += in[i] * in[i];
    const float scale = 1 / std::sqrt(squares / columns + eps);
    for (size_t i = 0; i < columns; ++i) out[i] = scale * in[i];
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    rms_norm_v1, RmsNorm,
    ffi::Ffi::Bind().Attr<float>("eps").Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
