#loc1 = loc("x")
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x128xf32> loc("x")) -> (tensor<8x128xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.custom_call @tpu_custom_call(%arg0) {backend_config = "{\22custom_call_config\22: {\22body\22: \22TUzvUgFNTElSMjMuMC4wZ2l0AAEjCQEDBQcBAwkDDwsNDxETFRcDfVkRAVUHEw8PDwsPCxsLDwszCwsLC4ULCwsPCw8LEx8LDwsTCwsPCyMLDwtTCxMFA2EHA1kBEQcjBxsPDxcLAuoDHwMDDysdQUMdLS8dNzkFGREJAQUbAwUTFQsXBR0RCSUFHwMLGx0fISUNJw0LKQUhAQEFIw0NYWZmaW5lX21hcDwoZDAsIGQxKSAtPiAoZDAsIGQxKT4ABSUFJwUpEQEBBSsdMQEFLQMDDzUTBRAAAAAQBS8dOwEFMQMDP1cFMwU1HUUBBTcDB0lLTU9RUwU5EQ8ABTsjCwkhAQAAAAEAAAACAAAAAAAAAAU9IwsBASN0cHUubWVtb3J5X3NwYWNlPHZtZW0+ACNhcml0aC5mYXN0bWF0aDxub25lPgADF1UFIQIEBSMLJwUhAgQFAQIEAQICBQUDAwEBCQTFBQERAREHAwEFBxEBGQcDFy8FAwEDAQMDBwMDAQMDBwMDAQUGBwMHBwEFBwMDCTMDBQkGCQMHAwsLBwk9AwcFDQkDAwUDAwEDAwUDAwEFBgUDBwcDERMNBQVHCQ8DERMPAAEGAwEFAQCCBT8RKQkLDRMJCwkLCyMhHSkRLQ0TGSMXIxUZHw8NCR0RYnVpbHRpbgBzdGFibGVfbW9zYWljAHRwdQBhcml0aABtb2R1bGUAYXJpdGguY29uc3RhbnQAdmVjdG9yLmxvYWQAZnVuYy5mdW5jAHZlY3Rvci5icm9hZGNhc3QAYXJpdGgubXVsZgB0cHUudmVjdG9yX3N0b3JlAGZ1bmMucmV0dXJuAHN5bV9uYW1lAHZhbHVlAHN0YWJsZV9tb3NhaWMudmVyc2lvbgBkb3VibGVkAGRpbWVuc2lvbl9zZW1hbnRpY3MAZnVuY3Rpb25fdHlwZQBzY2FsYXJfcHJlZmV0Y2gAc2NyYXRjaF9vcGVyYW5kcwBtYWluAGdldDoAZ2V0AG11bDoAbXVsAGZhc3RtYXRoAHN3YXA6AHN3YXAAYWRkAG9wZXJhbmRTZWdtZW50U2l6ZXMAc3RyaWRlcwA=\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}", kernel_name = "doubled", mhlo.frontend_attributes = {kernel_metadata = "{}"}, operand_layouts = [dense<[1, 0]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (tensor<8x128xf32>) -> tensor<8x128xf32> loc(#loc2)
    %1 = stablehlo.sine %0 : tensor<8x128xf32> loc(#loc3)
    return %1 : tensor<8x128xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(<lambda>)/pallas_call")
#loc3 = loc("jit(<lambda>)/sin")
