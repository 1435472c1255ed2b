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
      %2 = stablehlo.custom_call @__gpu$xla.gpu.triton(%arg0) {mhlo.backend_config = {debug = false, grid_x = 1 : i32, grid_y = 1 : i32, grid_z = 1 : i32, ir = "ML\EFR\0DMLIR21.0.0git\00\013\07\01\05\09\1D\01\03\0F\03\13\13\17\1B\1F#'+/3\05\097;?C\03i=\19\019\0F\0F\07\0F\0F\13\0B\0F\0B\13\0F\13\0F\13\0B\0F\0B\0B\0B\0F\1B\1F\0B\0F\1B\0B\0F\1B\05\05YY\01\17\0F\1B\1B\1B\07\13\17\17\1B\17\0B\03\035\02\16\03\1D35\1D%'\1F\11\01\01\11\01\05\11\01\02\04\05#\11\01!\05%#\01\01\01\1D-/\03\03\1D\1F\11\15\00\01\05\17\17\05'\11\01\81\0D\13\05)\05+\1D\0D)-\11\07\A5/C\13\09\10\00\00\00\10\05-\1D\0D1-\11\07\A5'C\05/\1D\0D7-\11\07\A5\09!#arith.overflow<none>\00#arith.fastmath<none>\00\01\02\02\1B\05!\02\04\01\1B\05!\02\04\17\1B\05!\02\04\09\0B\1B\03!\01\1B\05!\05\01\1B\03\02\04\01\1B\05\05\02\04\01\05\05\17\17\01\01\09!tt.ptr<f32>\00\04\9E\07\05\01P\05\01\07\04z\07\03\01\05\0FP\05\03\07\04N\07\03\7F\FF\05--\00\15B\05\05\03\01\15B\05\05\03\01\15B\05\07\03\01\17F\05\09\03\01\05\05\09\15B\05\0B\03\01\17F\05\09\03\01\05\07\0D\15B\05\05\03\01\15B\05\05\03\01\15B\05\07\03\01\17F\05\09\03\01\05\11\15\15B\05\0B\03\01\17F\05\09\03\01\05\13\19\15B\03\05\03\01\03\06\03\03\03\03\1D\05B\03\0D\03\0B\07F\03\0F\03\0D\03!\09\06\03\03\03\03#\03\06\03\03\03\03\0B\19F\03\09\03\03\05%'\15B\03\0B\03\01\03\06\03\03\03\03+\17F\03\09\03\03\05)-\19F\03\09\03\03\05\1F/\05B\03\11\03\0F\07F\03\05\03\11\033\09\06\03\03\03\035\03\06\03\03\03\03\0F\19F\03\09\03\03\0579\15B\03\0F\03\01\03\06\03\03\03\03=\17F\03\09\03\03\05;?\19F\03\09\03\03\051A\03\06\03\03\05\03\01\0B\06\03\03\05\05EC\0DF\03\13\03\07\03G\15B\15\15\03\09\03\06\15\03\07\03K\1BF\15\17\03\07\05MI\15B\01\05\03\01\03\06\01\03\03\03Q\05B\01\0D\03\0B\07F\01\0F\03\0D\03U\09\06\01\03\03\03W\03\06\01\03\03\03\17\19F\01\09\03\03\05Y[\15B\01\0B\03\01\03\06\01\03\03\03_\17F\01\09\03\03\05]a\19F\01\09\03\03\05Sc\05B\01\11\03\0F\07F\01\05\03\11\03g\09\06\01\03\03\03i\03\06\01\03\03\03\1B\19F\01\09\03\03\05km\15B\01\0F\03\01\03\06\01\03\03\03q\17F\01\09\03\03\05os\19F\01\09\03\03\05eu\03\06\01\03\05\03\03\0B\06\01\03\05\05yw\0DF\01\13\03\07\03{\11D\01\19\05{O\13\00\05\06\03\01\05\01\00\FE\021\0D\0B\0B\0F!\05\11\0B\0B\0B\13\0F\0D\0B\0B\0F\15\19\17\0D\0F\0D\07\11builtin\00tt\00arith\00module\00splat\00make_range\00expand_dims\00broadcast\00addptr\00load\00func\00store\00return\00constant\00muli\00addi\00mulf\00doubled\00-\00tt.divisibility\00public\00/get\00/mul\00/swap\00\08W\1B\05\1B\01\0B7!\01\0DG\03\07\03\0F\03s\03\0B\05\0F\07\03\09\05\0B\07\11'\13\133\01\07\01\03\03+\03w\07'\13\13", name = "doubled", num_stages = 3 : i32, num_warps = 4 : i32}, operand_layouts = [dense<[1, 0]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (tensor<8x128xf32>) -> tensor<8x128xf32> loc(#loc7)
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
