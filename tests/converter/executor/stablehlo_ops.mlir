// StableHLO ops and forms that our own texts rarely have. %x: floats, %k, %d: integers (with zeros and numbers beyond
// the width of a shift), %w: images, %s: floats that no integer can represent.
func.func @main(%x: tensor<4x6xf32>, %k: tensor<4x6xi32>, %d: tensor<4x6xi32>, %u: tensor<2x4x6xf32>,
                %w: tensor<2x6x6x4xf32>, %f: tensor<3x2x2x4xf32>, %i: tensor<3x2xi32>, %t: tensor<2x3xi32>,
                %a: tensor<3x3xf32>, %c: tensor<4x6xcomplex<f32>>, %s: tensor<6xf32>, %h: tensor<4x6xf16>)
    -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>,
        tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>,
        tensor<6xf32>, tensor<4xf32>, tensor<4xf16>, tensor<4x4xf32>, tensor<4x6xf32>, tensor<5x12xf32>,
        tensor<2x4x11x4xf32>, tensor<1x5x5x4xf32>, tensor<3x2x3xf32>, tensor<2x3x4xf32>, tensor<4x4xcomplex<f32>>,
        tensor<3x3xf32>, tensor<3x3xf32>, tensor<4x2xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>,
        tensor<6xi8>, tensor<6xi32>, tensor<4x6x4xui8>, tensor<4x6xf32>, tensor<2x4x6xf32>,
        tensor<4x6xf32>, tensor<4x6xi32>, tensor<4x6xf32>, tensor<4x6xi32>,
        tensor<2x4x6xf32>, tensor<4x6xf32>, tensor<2x3xf32>, tensor<4x6xf32>, tensor<4xi32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %half_zero = stablehlo.constant dense<0.0> : tensor<f16>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %nine = stablehlo.constant dense<9> : tensor<i32>
  %cbrt = "stablehlo.cbrt"(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %away = "stablehlo.round_nearest_afz"(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %sign = "stablehlo.sign"(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %leading = "stablehlo.count_leading_zeros"(%k) : (tensor<4x6xi32>) -> tensor<4x6xi32>
  %ones = "stablehlo.popcnt"(%k) : (tensor<4x6xi32>) -> tensor<4x6xi32>
  %quotient = "stablehlo.divide"(%k, %d) : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
  %rest = "stablehlo.remainder"(%k, %d) : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
  %left = "stablehlo.shift_left"(%k, %d) : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
  %arithmetic = "stablehlo.shift_right_arithmetic"(%k, %d) : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
  %logical = "stablehlo.shift_right_logical"(%k, %d) : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
  %power = "stablehlo.power"(%k, %d) : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
  %sum = "stablehlo.reduce"(%x, %zero) <{dimensions = array<i64: 0>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = "stablehlo.add"(%l, %r) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%0) : (tensor<f32>) -> ()
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<6xf32>
  %largest = "stablehlo.reduce"(%u, %zero) <{dimensions = array<i64: 0, 2>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = "stablehlo.abs"(%l) : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.abs"(%r) : (tensor<f32>) -> tensor<f32>
    %2 = "stablehlo.maximum"(%0, %1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%2) : (tensor<f32>) -> ()
  }) : (tensor<2x4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %half_sum = "stablehlo.reduce"(%h, %half_zero) <{dimensions = array<i64: 1>}> ({
  ^bb0(%l: tensor<f16>, %r: tensor<f16>):
    %0 = "stablehlo.maximum"(%l, %r) : (tensor<f16>, tensor<f16>) -> tensor<f16>
    "stablehlo.return"(%0) : (tensor<f16>) -> ()
  }) : (tensor<4x6xf16>, tensor<f16>) -> tensor<4xf16>
  %window = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 2, 3>,
      window_strides = array<i64: 2, 2>, base_dilations = array<i64: 2, 1>, window_dilations = array<i64: 1, 2>,
      padding = dense<[[0, 1], [3, 3]]> : tensor<2x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = "stablehlo.add"(%l, %r) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%0) : (tensor<f32>) -> ()
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x4xf32>
  %selected = "stablehlo.select_and_scatter"(%x, %a, %zero) <{window_dimensions = array<i64: 2, 2>,
      window_strides = array<i64: 2, 2>, padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = "stablehlo.compare"(%l, %r) <{comparison_direction = #stablehlo<comparison_direction GE>}>
      : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%0) : (tensor<i1>) -> ()
  }, {
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = "stablehlo.add"(%l, %r) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%0) : (tensor<f32>) -> ()
  }) : (tensor<4x6xf32>, tensor<3x3xf32>, tensor<f32>) -> tensor<4x6xf32>
  %padded = "stablehlo.pad"(%x, %zero) <{edge_padding_low = array<i64: 2, -1>, edge_padding_high = array<i64: -1, 2>,
      interior_padding = array<i64: 0, 1>}> : (tensor<4x6xf32>, tensor<f32>) -> tensor<5x12xf32>
  %convolved = "stablehlo.convolution"(%w, %f) <{
      dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, window_strides = array<i64: 2, 1>,
      padding = dense<[[1, 2], [1, 0]]> : tensor<2x2xi64>, lhs_dilation = array<i64: 1, 2>,
      rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: true, false>, feature_group_count = 2 : i64,
      batch_group_count = 1 : i64}> : (tensor<2x6x6x4xf32>, tensor<3x2x2x4xf32>) -> tensor<2x4x11x4xf32>
  %kernel = "stablehlo.reshape"(%f) : (tensor<3x2x2x4xf32>) -> tensor<2x2x3x4xf32>
  %images = "stablehlo.slice"(%w) <{start_indices = array<i64: 0, 0, 0, 1>, limit_indices = array<i64: 2, 6, 6, 4>,
      strides = array<i64: 1, 1, 1, 1>}> : (tensor<2x6x6x4xf32>) -> tensor<2x6x6x3xf32>
  %batches = "stablehlo.convolution"(%images, %kernel) <{
      dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64,
      batch_group_count = 2 : i64}> : (tensor<2x6x6x3xf32>, tensor<2x2x3x4xf32>) -> tensor<1x5x5x4xf32>
  %gathered = "stablehlo.gather"(%x, %i) <{slice_sizes = array<i64: 2, 3>, dimension_numbers = #stablehlo.gather<
      offset_dims = [1, 2], start_index_map = [0, 1], index_vector_dim = 1>}>
      : (tensor<4x6xf32>, tensor<3x2xi32>) -> tensor<3x2x3xf32>
  %batch_gathered = "stablehlo.gather"(%u, %t) <{slice_sizes = array<i64: 1, 4, 1>,
      dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [2], operand_batching_dims = [0],
      start_indices_batching_dims = [0], start_index_map = [2], index_vector_dim = 2>}>
      : (tensor<2x4x6xf32>, tensor<2x3xi32>) -> tensor<2x3x4xf32>
  %fourier = "stablehlo.fft"(%x) <{fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 6>}>
      : (tensor<4x6xf32>) -> tensor<4x4xcomplex<f32>>
  %triangle = "stablehlo.cholesky"(%a) <{lower = true}> : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %solved = "stablehlo.triangular_solve"(%a, %a) <{left_side = false, lower = true, unit_diagonal = true,
      transpose_a = #stablehlo<transpose TRANSPOSE>}> : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %product = "stablehlo.dot_general"(%u, %x) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [1],
      rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}>
      : (tensor<2x4x6xf32>, tensor<4x6xf32>) -> tensor<4x2xf32>
  %real = "stablehlo.real"(%c) : (tensor<4x6xcomplex<f32>>) -> tensor<4x6xf32>
  %size = "stablehlo.abs"(%c) : (tensor<4x6xcomplex<f32>>) -> tensor<4x6xf32>
  %narrow = "stablehlo.reduce_precision"(%x) <{exponent_bits = 5 : i32, mantissa_bits = 3 : i32}>
      : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %to_i8 = "stablehlo.convert"(%s) : (tensor<6xf32>) -> tensor<6xi8>
  %to_i32 = "stablehlo.convert"(%s) : (tensor<6xf32>) -> tensor<6xi32>
  %bits = "stablehlo.bitcast_convert"(%x) : (tensor<4x6xf32>) -> tensor<4x6x4xui8>
  %clamped = "stablehlo.clamp"(%zero, %x, %x) : (tensor<f32>, tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %reversed = "stablehlo.reverse"(%u) <{dimensions = array<i64: 0, 2>}> : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %places = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<4x6xi32>
  %sorted:2 = "stablehlo.sort"(%away, %places) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>, %m: tensor<i32>, %n: tensor<i32>):
    %0 = "stablehlo.compare"(%l, %r) <{comparison_direction = #stablehlo<comparison_direction GT>,
        compare_type = #stablehlo<comparison_type TOTALORDER>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%0) : (tensor<i1>) -> ()
  }) : (tensor<4x6xf32>, tensor<4x6xi32>) -> (tensor<4x6xf32>, tensor<4x6xi32>)
  %by_size:2 = "stablehlo.sort"(%away, %places) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>, %m: tensor<i32>, %n: tensor<i32>):
    %0 = "stablehlo.abs"(%l) : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.abs"(%r) : (tensor<f32>) -> tensor<f32>
    %2 = "stablehlo.compare"(%0, %1) <{comparison_direction = #stablehlo<comparison_direction LT>}>
      : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%2) : (tensor<i1>) -> ()
  }) : (tensor<4x6xf32>, tensor<4x6xi32>) -> (tensor<4x6xf32>, tensor<4x6xi32>)
  %columns = "stablehlo.transpose"(%u) <{permutation = array<i64: 0, 2, 1>}> : (tensor<2x4x6xf32>) -> tensor<2x6x4xf32>
  %updates = "stablehlo.slice"(%columns) <{start_indices = array<i64: 0, 1, 0>, limit_indices = array<i64: 2, 4, 4>,
      strides = array<i64: 1, 1, 1>}> : (tensor<2x6x4xf32>) -> tensor<2x3x4xf32>
  %batch_scattered = "stablehlo.scatter"(%u, %t, %updates) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [2], inserted_window_dims = [2], input_batching_dims = [0],
      scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [2], index_vector_dim = 2>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = "stablehlo.subtract"(%l, %r) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%0) : (tensor<f32>) -> ()
  }) : (tensor<2x4x6xf32>, tensor<2x3xi32>, tensor<2x3x4xf32>) -> tensor<2x4x6xf32>
  %rows = stablehlo.constant dense<[[1], [1], [7]]> : tensor<3x1xi32>
  %first = "stablehlo.slice"(%x) <{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 3, 6>,
      strides = array<i64: 1, 1>}> : (tensor<4x6xf32>) -> tensor<3x6xf32>
  %scattered = "stablehlo.scatter"(%x, %rows, %first) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 1>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = "stablehlo.add"(%l, %r) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%0) : (tensor<f32>) -> ()
  }) : (tensor<4x6xf32>, tensor<3x1xi32>, tensor<3x6xf32>) -> tensor<4x6xf32>
  %part = "stablehlo.dynamic_slice"(%x, %nine, %one) <{slice_sizes = array<i64: 2, 3>}>
      : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
  %put = "stablehlo.dynamic_update_slice"(%x, %part, %one, %nine)
      : (tensor<4x6xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x6xf32>
  %least:2 = "stablehlo.reduce"(%k, %places, %nine, %one) <{dimensions = array<i64: 1>}> ({
  ^bb0(%l: tensor<i32>, %m: tensor<i32>, %r: tensor<i32>, %n: tensor<i32>):
    %0 = "stablehlo.compare"(%l, %r) <{comparison_direction = #stablehlo<comparison_direction LE>}>
      : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %1 = "stablehlo.select"(%0, %l, %r) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %2 = "stablehlo.select"(%0, %m, %n) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    "stablehlo.return"(%1, %2) : (tensor<i32>, tensor<i32>) -> ()
  }) : (tensor<4x6xi32>, tensor<4x6xi32>, tensor<i32>, tensor<i32>) -> (tensor<4xi32>, tensor<4xi32>)
  func.return %cbrt, %away, %sign, %leading, %ones, %quotient, %rest, %left, %arithmetic, %logical, %power, %sum,
      %largest, %half_sum, %window, %selected, %padded, %convolved, %batches, %gathered, %batch_gathered, %fourier,
      %triangle, %solved, %product, %real, %size, %narrow, %to_i8, %to_i32, %bits, %clamped, %reversed, %sorted#0, %sorted#1, %by_size#0, %by_size#1, %batch_scattered, %scattered, %part, %put,
      %least#1
      : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>,
        tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>,
        tensor<6xf32>, tensor<4xf32>, tensor<4xf16>, tensor<4x4xf32>, tensor<4x6xf32>, tensor<5x12xf32>,
        tensor<2x4x11x4xf32>, tensor<1x5x5x4xf32>, tensor<3x2x3xf32>, tensor<2x3x4xf32>, tensor<4x4xcomplex<f32>>,
        tensor<3x3xf32>, tensor<3x3xf32>, tensor<4x2xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>,
        tensor<6xi8>, tensor<6xi32>, tensor<4x6x4xui8>, tensor<4x6xf32>, tensor<2x4x6xf32>,
        tensor<4x6xf32>, tensor<4x6xi32>, tensor<4x6xf32>, tensor<4x6xi32>,
        tensor<2x4x6xf32>, tensor<4x6xf32>, tensor<2x3xf32>, tensor<4x6xf32>, tensor<4xi32>
}
