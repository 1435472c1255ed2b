#loc = loc(unknown)
#loc1 = loc("matrix")
module @jit__lambda_ attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<i32> {jax.global_constant = "_platform_index"} loc(unknown), %arg1: tensor<5x3xf32> loc("matrix")) -> (tensor<5x3xf32> {jax.result_info = "result[0]"}, tensor<3x3xf32> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc)
    %c = stablehlo.constant dense<-1> : tensor<i32> loc(#loc)
    %c_0 = stablehlo.constant dense<2> : tensor<i32> loc(#loc)
    %c_1 = stablehlo.constant dense<1> : tensor<i32> loc(#loc)
    %c_2 = stablehlo.constant dense<0> : tensor<i32> loc(#loc)
    %0 = "stablehlo.case"(%arg0) ({
      stablehlo.return %c_2 : tensor<i32> loc(#loc4)
    }, {
      stablehlo.return %c_1 : tensor<i32> loc(#loc4)
    }, {
      stablehlo.return %c_0 : tensor<i32> loc(#loc4)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc4)
    %1:2 = "stablehlo.case"(%0) ({
      %12:2 = stablehlo.custom_call @cusolver_geqrf_ffi(%arg1) {mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>]} : (tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<3xf32>) loc(#loc4)
      stablehlo.return %12#0, %12#1 : tensor<5x3xf32>, tensor<3xf32> loc(#loc4)
    }, {
      %12:2 = stablehlo.custom_call @hipsolver_geqrf_ffi(%arg1) {mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>]} : (tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<3xf32>) loc(#loc4)
      stablehlo.return %12#0, %12#1 : tensor<5x3xf32>, tensor<3xf32> loc(#loc4)
    }, {
      %12:2 = stablehlo.custom_call @Qr(%arg1) : (tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<3xf32>) loc(#loc4)
      stablehlo.return %12#0, %12#1 : tensor<5x3xf32>, tensor<3xf32> loc(#loc4)
    }) : (tensor<i32>) -> (tensor<5x3xf32>, tensor<3xf32>) loc(#loc4)
    %2 = "stablehlo.case"(%arg0) ({
      stablehlo.return %c_2 : tensor<i32> loc(#loc5)
    }, {
      stablehlo.return %c_1 : tensor<i32> loc(#loc5)
    }, {
      stablehlo.return %c_0 : tensor<i32> loc(#loc5)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc5)
    %3 = "stablehlo.case"(%2) ({
      %12 = stablehlo.custom_call @cusolver_orgqr_ffi(%1#0, %1#1) {mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<5x3xf32>, tensor<3xf32>) -> tensor<5x3xf32> loc(#loc5)
      stablehlo.return %12 : tensor<5x3xf32> loc(#loc5)
    }, {
      %12 = stablehlo.custom_call @hipsolver_orgqr_ffi(%1#0, %1#1) {mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<5x3xf32>, tensor<3xf32>) -> tensor<5x3xf32> loc(#loc5)
      stablehlo.return %12 : tensor<5x3xf32> loc(#loc5)
    }, {
      %12 = stablehlo.custom_call @ProductOfElementaryHouseholderReflectors(%1#0, %1#1) : (tensor<5x3xf32>, tensor<3xf32>) -> tensor<5x3xf32> loc(#loc5)
      stablehlo.return %12 : tensor<5x3xf32> loc(#loc5)
    }) : (tensor<i32>) -> tensor<5x3xf32> loc(#loc5)
    %4 = stablehlo.slice %1#0 [0:3, 0:3] : (tensor<5x3xf32>) -> tensor<3x3xf32> loc(#loc6)
    %5 = stablehlo.iota dim = 0 : tensor<3x3xi32> loc(#loc7)
    %6 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<3x3xi32> loc(#loc8)
    %7 = stablehlo.add %5, %6 : tensor<3x3xi32> loc(#loc8)
    %8 = stablehlo.iota dim = 1 : tensor<3x3xi32> loc(#loc7)
    %9 = stablehlo.compare  GE, %7, %8,  SIGNED : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1> loc(#loc9)
    %10 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x3xf32> loc(#loc10)
    %11 = stablehlo.select %9, %10, %4 : tensor<3x3xi1>, tensor<3x3xf32> loc(#loc11)
    return %3, %11 : tensor<5x3xf32>, tensor<3x3xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc2 = loc("-":38:47 to :89)
#loc3 = loc("test_qr.<locals>.<lambda>"(#loc2))
#loc4 = loc("jit(<lambda>)/jit(main)/geqrf"(#loc3))
#loc5 = loc("jit(<lambda>)/jit(main)/householder_product"(#loc3))
#loc6 = loc("jit(<lambda>)/jit(main)/slice"(#loc3))
#loc7 = loc("jit(<lambda>)/jit(main)/iota"(#loc3))
#loc8 = loc("jit(<lambda>)/jit(main)/add"(#loc3))
#loc9 = loc("jit(<lambda>)/jit(main)/ge"(#loc3))
#loc10 = loc("jit(<lambda>)/jit(main)/broadcast_in_dim"(#loc3))
#loc11 = loc("jit(<lambda>)/jit(main)/select_n"(#loc3))
