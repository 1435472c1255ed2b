#loc = loc(unknown)
#loc1 = loc("matrix")
module @jit__lambda attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<i32> {jax.global_constant = "_platform_index"} loc(unknown), %arg1: tensor<5x3xf32> loc("matrix")) -> (tensor<5x3xf32> {jax.result_info = "result[0]"}, tensor<3x3xf32> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc2)
    %c = stablehlo.constant dense<-1> : tensor<i32> loc(#loc2)
    %c_0 = stablehlo.constant dense<2> : tensor<i32> loc(#loc)
    %c_1 = stablehlo.constant dense<1> : tensor<i32> loc(#loc)
    %c_2 = stablehlo.constant dense<0> : tensor<i32> loc(#loc)
    %0 = "stablehlo.case"(%arg0) ({
      stablehlo.return %c_2 : tensor<i32> loc(#loc3)
    }, {
      stablehlo.return %c_1 : tensor<i32> loc(#loc3)
    }, {
      stablehlo.return %c_0 : tensor<i32> loc(#loc3)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc3)
    %1:2 = "stablehlo.case"(%0) ({
      %12:2 = stablehlo.custom_call @cusolver_geqrf_ffi(%arg1) {mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], [m]) {i=5, j=3, k=5, l=3, m=3}, custom>} : (tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<3xf32>) loc(#loc3)
      stablehlo.return %12#0, %12#1 : tensor<5x3xf32>, tensor<3xf32> loc(#loc3)
    }, {
      %12:2 = stablehlo.custom_call @hipsolver_geqrf_ffi(%arg1) {mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], [m]) {i=5, j=3, k=5, l=3, m=3}, custom>} : (tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<3xf32>) loc(#loc3)
      stablehlo.return %12#0, %12#1 : tensor<5x3xf32>, tensor<3xf32> loc(#loc3)
    }, {
      %12:2 = stablehlo.custom_call @Qr(%arg1) : (tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<3xf32>) loc(#loc3)
      stablehlo.return %12#0, %12#1 : tensor<5x3xf32>, tensor<3xf32> loc(#loc3)
    }) : (tensor<i32>) -> (tensor<5x3xf32>, tensor<3xf32>) loc(#loc3)
    %2 = "stablehlo.case"(%arg0) ({
      stablehlo.return %c_2 : tensor<i32> loc(#loc4)
    }, {
      stablehlo.return %c_1 : tensor<i32> loc(#loc4)
    }, {
      stablehlo.return %c_0 : tensor<i32> loc(#loc4)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc4)
    %3 = "stablehlo.case"(%2) ({
      %12 = stablehlo.custom_call @cusolver_orgqr_ffi(%1#0, %1#1) {mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k])->([l, m]) {i=5, j=3, k=3, l=5, m=3}, custom>} : (tensor<5x3xf32>, tensor<3xf32>) -> tensor<5x3xf32> loc(#loc4)
      stablehlo.return %12 : tensor<5x3xf32> loc(#loc4)
    }, {
      %12 = stablehlo.custom_call @hipsolver_orgqr_ffi(%1#0, %1#1) {mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k])->([l, m]) {i=5, j=3, k=3, l=5, m=3}, custom>} : (tensor<5x3xf32>, tensor<3xf32>) -> tensor<5x3xf32> loc(#loc4)
      stablehlo.return %12 : tensor<5x3xf32> loc(#loc4)
    }, {
      %12 = stablehlo.custom_call @ProductOfElementaryHouseholderReflectors(%1#0, %1#1) : (tensor<5x3xf32>, tensor<3xf32>) -> tensor<5x3xf32> loc(#loc4)
      stablehlo.return %12 : tensor<5x3xf32> loc(#loc4)
    }) : (tensor<i32>) -> tensor<5x3xf32> loc(#loc4)
    %4 = stablehlo.slice %1#0 [0:3, 0:3] : (tensor<5x3xf32>) -> tensor<3x3xf32> loc(#loc5)
    %5 = stablehlo.iota dim = 0 : tensor<3x3xi32> loc(#loc6)
    %6 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<3x3xi32> loc(#loc7)
    %7 = stablehlo.add %5, %6 : tensor<3x3xi32> loc(#loc7)
    %8 = stablehlo.iota dim = 1 : tensor<3x3xi32> loc(#loc6)
    %9 = stablehlo.compare GE, %7, %8, SIGNED : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1> loc(#loc8)
    %10 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x3xf32> loc(#loc9)
    %11 = stablehlo.select %9, %10, %4 : tensor<3x3xi1>, tensor<3x3xf32> loc(#loc10)
    return %3, %11 : tensor<5x3xf32>, tensor<3x3xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc2 = loc("jit(<lambda>)/qr")
#loc3 = loc("jit(<lambda>)/geqrf")
#loc4 = loc("jit(<lambda>)/householder_product")
#loc5 = loc("jit(<lambda>)/slice")
#loc6 = loc("jit(<lambda>)/iota")
#loc7 = loc("jit(<lambda>)/add")
#loc8 = loc("jit(<lambda>)/ge")
#loc9 = loc("jit(<lambda>)/broadcast_in_dim")
#loc10 = loc("jit(<lambda>)/select_n")
