#loc1 = loc("x")
module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x128xf32> loc("x")) -> (tensor<8x128xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<0> : tensor<i32> loc(#loc)
    %0 = "stablehlo.case"(%c) ({
      stablehlo.return %c : tensor<i32> loc(#loc2)
    }, {
      stablehlo.return %c : tensor<i32> loc(#loc2)
    }) : (tensor<i32>) -> tensor<i32> loc(#loc2)
    %1 = "stablehlo.case"(%0) ({
      %2 = stablehlo.custom_call @__gpu$xla.gpu.triton(%arg0) {mhlo.backend_config = {debug = false, grid_x = 1 : i32, grid_y = 1 : i32, grid_z = 1 : i32, ir = "ML\EFR\0DMLIR23.0.0git\00\013\07\01\05\09\1D\01\03\0F\03\13\13\17\1B\1F#'+/3\05\097;?C\03e9\19\015\0F\0F\07\0F\0F\13\0F\0F\0B\13\0F\13\0B\0F\0B\0B\0B\0F\0B\1F\0B\0F\0B\0B\0F\0B\05\05YY\01\17\0F\1B\1B\1B\07\13\17\17\1B\17\0B\03\035\02\CE\02\1D/1\1D!#\1F\11\01\01\11\01\05\11\01\02\04\11\01!\1D)+\05#\03\03\19\1B\11\15\00\01\05\13\13\05%\11\01\81\0D\13\05'\05)\1D%\05\05+\13\09\10\00\00\00\10\05-\1D-\05\05/\051\1D3\05\053#arith.overflow<none>\00#arith.fastmath<none>\00\01\02\02\1B\05!\02\04\01\1B\05!\02\04\17\1B\05!\02\04\09\0B\1B\03!\01\1B\05!\05\01\1B\03\02\04\01\1B\05\05\02\04\01\05\05\17\17\01\01\09!tt.ptr<f32>\00\04\9E\07\05\01P\05\01\07\04z\07\03\01\05\0FP\05\03\07\04N\07\03\7F\FF\05--\00\15B\05\05\03\01\15B\05\05\03\01\15B\05\07\03\01\17F\05\09\03\01\05\05\09\15B\05\0B\03\01\17F\05\09\03\01\05\07\0D\15B\05\05\03\01\15B\05\05\03\01\15B\05\07\03\01\17F\05\09\03\01\05\11\15\15B\05\0B\03\01\17F\05\09\03\01\05\13\19\15B\03\05\03\01\03\06\03\03\03\03\1D\05B\03\0D\03\0B\07F\03\0F\03\0D\03!\09\06\03\03\03\03#\03\06\03\03\03\03\0B\19F\03\09\03\03\05%'\15B\03\0B\03\01\03\06\03\03\03\03+\17F\03\09\03\03\05)-\19F\03\09\03\03\05\1F/\05B\03\11\03\0F\07F\03\05\03\11\033\09\06\03\03\03\035\03\06\03\03\03\03\0F\19F\03\09\03\03\0579\15B\03\0F\03\01\03\06\03\03\03\03=\17F\03\09\03\03\05;?\19F\03\09\03\03\051A\03\06\03\03\05\03\01\0B\06\03\03\05\05EC\0DF\03\13\03\07\03G\15B\0F\15\03\09\03\06\0F\03\07\03K\1BF\0F\17\03\07\05MI\15B\01\05\03\01\03\06\01\03\03\03Q\05B\01\0D\03\0B\07F\01\0F\03\0D\03U\09\06\01\03\03\03W\03\06\01\03\03\03\17\19F\01\09\03\03\05Y[\15B\01\0B\03\01\03\06\01\03\03\03_\17F\01\09\03\03\05]a\19F\01\09\03\03\05Sc\05B\01\11\03\0F\07F\01\05\03\11\03g\09\06\01\03\03\03i\03\06\01\03\03\03\1B\19F\01\09\03\03\05km\15B\01\0F\03\01\03\06\01\03\03\03q\17F\01\09\03\03\05os\19F\01\09\03\03\05eu\03\06\01\03\05\03\03\0B\06\01\03\05\05yw\0DF\01\13\03\07\03{\11D\01\19\05{O\13\00\05\06\03\01\05\01\002\035\0B\0D\09\0B\09\0B\0F!\11\0B\0B\0B\13\0F\0D\0B\0B\0F\15\19\17\0D\0F\0D\07\11builtin\00tt\00arith\00module\00splat\00make_range\00expand_dims\00broadcast\00addptr\00load\00func\00store\00return\00constant\00muli\00addi\00mulf\00doubled\00tt.divisibility\00public\00get:\00get\00mul:\00mul\00swap:\00swap\00\08Q\1B\05#\01\0B/\1D\01\11?\03\07\03\0D\03k\03\0B\05\0D\07\03\09\05\0B\07\0D\13\13+\07\01\03\03'\03o\05\13\13", name = "doubled", num_stages = 3 : i32, num_warps = 4 : i32}, operand_layouts = [dense<[1, 0]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (tensor<8x128xf32>) -> tensor<8x128xf32> loc(#loc3)
      stablehlo.return %2 : tensor<8x128xf32> loc(#loc2)
    }) : (tensor<i32>) -> tensor<8x128xf32> loc(#loc2)
    return %1 : tensor<8x128xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(<lambda>)/cond")
#loc3 = loc("jit(<lambda>)/cond/branch_0_fun/pallas_call")
