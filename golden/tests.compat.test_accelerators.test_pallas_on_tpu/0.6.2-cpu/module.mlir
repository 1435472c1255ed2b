#loc1 = loc("x")
module @jit__lambda_ attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x128xf32> loc("x")) -> (tensor<8x128xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<0> : tensor<i32> loc(#loc)
    %0 = "stablehlo.case"(%c) ({
      stablehlo.return %c : tensor<i32> loc(#loc6)
    }, {
      stablehlo.return %c : tensor<i32> loc(#loc6)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc6)
    %1 = "stablehlo.case"(%0) ({
      %2 = stablehlo.custom_call @tpu_custom_call(%arg0) {backend_config = "{\22custom_call_config\22: {\22body\22: \22TUzvUgFNTElSMjEuMC4wZ2l0AAEjCQEDBQcBAwkDDwsNDxETFRcDeVcPAVMHCxMPDwsPCw8LGwsPMwsLCwuFCwsLDwsPGxMfCw8bEwsLDxsbC1MLEwUDYQcDWQEPByMHGw8PFwL+Ax8FGQMDEy0dQ0UdLzEFGx05OwUdEQkBBR8DBRcZDwMFIREJDQMLHR8hIycRKREPKwUjAQEFJQ0NYWZmaW5lX21hcDwoZDAsIGQxKSAtPiAoZDAsIGQxKT4ABScFKQUrEQEBBS0dAzMtCwelL0MDAxM3EwUQAAAAEAUvHQM9LQsHpSdDAwNBVQUxBTMdA0ctCwelCSEDBUtNT1EFNSMLCSEBAAAAAQAAAAIAAAAAAAAABTcjCwEBI3RwdS5tZW1vcnlfc3BhY2U8dm1lbT4AI2FyaXRoLmZhc3RtYXRoPG5vbmU+AAMXUwUhAgQFJQsnBSECBAUBAgQBAgIFBQMDAQTFBQERARUHAwEFBxEBGwcDFy8FAwEDAQMDCQUDAQMDCQUDAQUGCQMHBwEFBwMDDTUDBQkGDQMHAwsLBw0/AwcFDQkDAwcFAwEDAwcFAwEFBgcDBwcDERMNBQdJCQ8DERMPAAEGAwEFAQA6BTkRKQ0TCwsLIyEdKS0NEwURGSMXIxUZHw8NCR0RYnVpbHRpbgBzdGFibGVfbW9zYWljAHRwdQBhcml0aABtb2R1bGUAYXJpdGguY29uc3RhbnQAdmVjdG9yLmxvYWQAZnVuYy5mdW5jAHZlY3Rvci5icm9hZGNhc3QAYXJpdGgubXVsZgB0cHUudmVjdG9yX3N0b3JlAGZ1bmMucmV0dXJuAGRvdWJsZWQALQBzeW1fbmFtZQB2YWx1ZQBzdGFibGVfbW9zYWljLnZlcnNpb24AZGltZW5zaW9uX3NlbWFudGljcwBmdW5jdGlvbl90eXBlAHNjYWxhcl9wcmVmZXRjaABzY3JhdGNoX29wZXJhbmRzAG1haW4AL2dldAAvbXVsAGZhc3RtYXRoAC9zd2FwAG9wZXJhbmRTZWdtZW50U2l6ZXMAc3RyaWRlcwA=\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}", kernel_name = "doubled", operand_layouts = [dense<[1, 0]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (tensor<8x128xf32>) -> tensor<8x128xf32> loc(#loc7)
      stablehlo.return %2 : tensor<8x128xf32> loc(#loc6)
    }) : (tensor<i32>) -> tensor<8x128xf32> loc(#loc6)
    return %1 : tensor<8x128xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("-":92:29 to :99)
#loc3 = loc("-":90:15 to :106)
#loc4 = loc("kernel_on.<locals>.<lambda>"(#loc2))
#loc5 = loc("kernel_on.<locals>.call"(#loc3))
#loc6 = loc("jit(<lambda>)/jit(main)/cond"(#loc4))
#loc7 = loc("jit(<lambda>)/jit(main)/cond/branch_0_fun/pallas_call"(#loc5))
