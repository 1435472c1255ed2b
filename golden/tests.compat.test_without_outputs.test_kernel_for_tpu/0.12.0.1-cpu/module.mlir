#loc1 = loc("x")
module @jit_kernel attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x128xf32> loc("x")) -> (tensor<8x128xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.custom_call @tpu_custom_call(%arg0) {backend_config = "{\22custom_call_config\22: {\22body\22: \22TUzvUgFNTElSMjQuMC4wZ2l0AAEjCQEDBQcBAwkDDwsNDxETFRcDh2MRAV0HEw8PDwsLDwsbCw87CwsLCwsLCwsPCw8LDwsPCxMfCw8LEwsLDwsjCw8LUwsTBQVhTQcDWQERByMHGw8PFwsC6gMfAwMRMx1JSx01Nx0/QQUZBRsRCQEFHQMFFRcLDQUfEQk9Aw0bHR8hJQ8nDwsNKV8FIQEBBSMNDS8RBSUFJwUpHS0BBSsdMQEFLREBAQUvHTkBBTEDAxE9EwUQAAAAEAUzHUMBBTUDA0dhBTcFOR1NAQU7AwdRU1VXWVsFPREPAAU/IwsJIQEAAAABAAAAAgAAAAAAAAAFQSMLAQEjdHB1Lm1lbW9yeV9zcGFjZTx2bWVtPgAjdHB1LmNvcmVfdHlwZTx0Yz4AI2FyaXRoLmZhc3RtYXRoPG5vbmU+AAMXXQUhAgQFIwsnBSECBAUBAgQBAgIFBQMDAQEJBMUFAREBEwcDAQUHEQEZBwMXLwUDKwMvAwMHAwMBAwMHAwMBBQYHAwcHAQUHAwMJOwMFCQYJAwcDCwsHCUUDBwUNCQMDBQMDAQMDBQMDAQUGBQMHBwMREw0FBU8JDwMREw8AAQYDAQUBAAoGQxEpCRUNEwkLEQsRDR0jIR0pLQ0RExkjFyMVGR8PDQkdEWJ1aWx0aW4Ac3RhYmxlX21vc2FpYwB0cHUAYXJpdGgAbW9kdWxlAGFyaXRoLmNvbnN0YW50AHZlY3Rvci5sb2FkAGZ1bmMuZnVuYwB2ZWN0b3IuYnJvYWRjYXN0AGFyaXRoLm11bGYAdHB1LnZlY3Rvcl9zdG9yZQBmdW5jLnJldHVybgBzeW1fbmFtZQBkb3VibGVkAHZhbHVlAHN0YWJsZV9tb3NhaWMudmVyc2lvbgBkaW1lbnNpb25fc2VtYW50aWNzAGZ1bmN0aW9uX3R5cGUAc2NhbGFyX3ByZWZldGNoAHNjcmF0Y2hfb3BlcmFuZHMAdHB1LmNvcmVfdHlwZQB4X3JlZgBvdXRfcmVmAGdldDoAZ2V0L2dldABtdWw6AG11bABmYXN0bWF0aABzd2FwOgBzd2FwL3N3YXAAYWRkAG9wZXJhbmRTZWdtZW50U2l6ZXMAc3RyaWRlcwA=\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}", kernel_name = "doubled", mhlo.frontend_attributes = {kernel_metadata = "{}"}, operand_layouts = [dense<[1, 0]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (tensor<8x128xf32>) -> tensor<8x128xf32> loc(#loc2)
    return %0 : tensor<8x128xf32> loc(#loc3)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(kernel)/pallas_call")
#loc3 = loc("jit(kernel)")
