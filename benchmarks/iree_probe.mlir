// One program for each form of an op that tfconvert rewrites for IREE or refuses, in the form that the rewrite avoids.
// `inputs` are the arguments of the program: `f32[3,4]` counts up, `i32=[7]` is a literal. A program that needs other
// rewrites to compile says so.

// op: chlo.top_k
// form: equal integers
// inputs: i32=[[3,1,3,1,3,2,2,1]]
func.func @main(%x: tensor<1x8xi32>) -> tensor<1x4xi32> {
  %values, %places = "chlo.top_k"(%x) <{k = 4 : i64}> : (tensor<1x8xi32>) -> (tensor<1x4xi32>, tensor<1x4xi32>)
  func.return %places : tensor<1x4xi32>
}
// -----
// op: stablehlo.concatenate
// form: computed columns of an open size
// inputs: i32=[3,1,2]
func.func @main(%x: tensor<?xi32>) -> tensor<?x2xi32> {
  %n = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?xi32>) -> tensor<i32>
  %n1 = "stablehlo.reshape"(%n) : (tensor<i32>) -> tensor<1xi32>
  %one = stablehlo.constant dense<1> : tensor<1xi32>
  %s = "stablehlo.concatenate"(%n1, %one) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %0 = "stablehlo.multiply"(%x, %x) : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
  %1 = "stablehlo.add"(%0, %x) : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
  %2 = "stablehlo.convert"(%0) : (tensor<?xi32>) -> tensor<?xi64>
  %3 = "stablehlo.convert"(%1) : (tensor<?xi32>) -> tensor<?xi64>
  %a = "stablehlo.dynamic_broadcast_in_dim"(%2, %s) <{
    broadcast_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 0>
  }> : (tensor<?xi64>, tensor<2xi32>) -> tensor<?x1xi64>
  %b = "stablehlo.dynamic_broadcast_in_dim"(%3, %s) <{
    broadcast_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 0>
  }> : (tensor<?xi64>, tensor<2xi32>) -> tensor<?x1xi64>
  %c = "stablehlo.concatenate"(%a, %b) <{dimension = 1 : i64}>
    : (tensor<?x1xi64>, tensor<?x1xi64>) -> tensor<?x2xi64>
  %4 = "stablehlo.convert"(%c) : (tensor<?x2xi64>) -> tensor<?x2xi32>
  func.return %4 : tensor<?x2xi32>
}
// -----
// op: stablehlo.convolution
// form: an open image
// inputs: f32[1,6,5,3] f32[3,3,3,4]
func.func @main(%x: tensor<?x?x?x3xf32>, %w: tensor<3x3x3x4xf32>) -> tensor<?x?x?x4xf32> {
  %0 = "stablehlo.convolution"(%x, %w) <{window_strides = array<i64: 2, 1>, padding = dense<1> : tensor<2x2xi64>,
    dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,
    feature_group_count = 1 : i64, batch_group_count = 1 : i64}>
    : (tensor<?x?x?x3xf32>, tensor<3x3x3x4xf32>) -> tensor<?x?x?x4xf32>
  func.return %0 : tensor<?x?x?x4xf32>
}
// -----
// op: stablehlo.convolution
// form: groups and an open batch
// inputs: f32[2,8,8,4] f32[3,3,2,6]
func.func @main(%x: tensor<?x8x8x4xf32>, %w: tensor<3x3x2x6xf32>) -> tensor<?x6x6x6xf32> {
  %0 = "stablehlo.convolution"(%x, %w) <{
    dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,
    feature_group_count = 2 : i64, batch_group_count = 1 : i64}>
    : (tensor<?x8x8x4xf32>, tensor<3x3x2x6xf32>) -> tensor<?x6x6x6xf32>
  func.return %0 : tensor<?x6x6x6xf32>
}
// -----
// op: stablehlo.custom_call
// form: an assertion that does not hold
// inputs: i32=5
func.func @main(%x: tensor<i32>) -> tensor<i32> {
  %c = stablehlo.constant dense<4> : tensor<i32>
  %ok = "stablehlo.compare"(%x, %c) <{comparison_direction = #stablehlo<comparison_direction EQ>}>
    : (tensor<i32>, tensor<i32>) -> tensor<i1>
  "stablehlo.custom_call"(%ok) <{call_target_name = "shape_assertion", has_side_effect = true}>
    {error_message = "it is not 4"} : (tensor<i1>) -> ()
  func.return %x : tensor<i32>
}
// -----
// op: stablehlo.custom_call
// form: a function of another engine
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%x) <{call_target_name = "engine_of_others"}> : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// -----
// op: stablehlo.dot_general
// form: three free dimensions, one open
// inputs: f32[2,5,4] f32[4,3]
func.func @main(%x: tensor<?x5x4xf32>, %w: tensor<4x3xf32>) -> tensor<?x5x3xf32> {
  %0 = "stablehlo.dot_general"(%x, %w) <{dot_dimension_numbers =
    #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}>
    : (tensor<?x5x4xf32>, tensor<4x3xf32>) -> tensor<?x5x3xf32>
  func.return %0 : tensor<?x5x3xf32>
}
// -----
// op: stablehlo.dot_general
// form: two open free dimensions
// inputs: f32[2,5,4] f32[4,3]
func.func @main(%x: tensor<?x?x4xf32>, %w: tensor<4x3xf32>) -> tensor<?x?x3xf32> {
  %0 = "stablehlo.dot_general"(%x, %w) <{dot_dimension_numbers =
    #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}>
    : (tensor<?x?x4xf32>, tensor<4x3xf32>) -> tensor<?x?x3xf32>
  func.return %0 : tensor<?x?x3xf32>
}
// -----
// op: stablehlo.dynamic_broadcast_in_dim
// form: a size that may be 1
// inputs: f32[1] i32=[4]
func.func @main(%x: tensor<?xf32>, %s: tensor<1xi32>) -> tensor<?xf32> {
  %0 = "stablehlo.dynamic_broadcast_in_dim"(%x, %s) <{broadcast_dimensions = array<i64: 0>}>
    : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>
  func.return %0 : tensor<?xf32>
}
// -----
// op: stablehlo.dynamic_conv
// form: padding that is computed
// inputs: f32[1,6,5,3] f32[3,3,3,4] i32=[[0,1],[1,1]]
func.func @main(%x: tensor<1x6x5x3xf32>, %w: tensor<3x3x3x4xf32>, %p: tensor<2x2xi32>) -> tensor<1x?x?x4xf32> {
  %0 = "stablehlo.dynamic_conv"(%x, %w, %p) <{
    dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,
    feature_group_count = 1 : i64, batch_group_count = 1 : i64}>
    : (tensor<1x6x5x3xf32>, tensor<3x3x3x4xf32>, tensor<2x2xi32>) -> tensor<1x?x?x4xf32>
  func.return %0 : tensor<1x?x?x4xf32>
}
// -----
// op: stablehlo.dynamic_gather
// form: slices of a computed size
// inputs: f32[6,4] i32=[2,0] i32=[1,4]
func.func @main(%x: tensor<6x4xf32>, %i: tensor<2xi32>, %s: tensor<2xi32>) -> tensor<2x?xf32> {
  %0 = "stablehlo.dynamic_gather"(%x, %i, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false}>
    : (tensor<6x4xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x?xf32>
  func.return %0 : tensor<2x?xf32>
}
// -----
// op: stablehlo.dynamic_iota
// form: a size that a loop carries
// inputs: f32[5]
func.func @main(%x: tensor<?xf32>) -> tensor<f32> {
  %c = stablehlo.constant dense<1> : tensor<i32>
  %n = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
  %v = "stablehlo.reshape"(%n) : (tensor<i32>) -> tensor<1xi32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0:2 = "stablehlo.while"(%c, %x) ({
  ^bb0(%i: tensor<i32>, %a: tensor<?xf32>):
    %s = "stablehlo.reduce"(%a, %z) <{dimensions = array<i64: 0>}> ({
    ^bb1(%d: tensor<f32>, %e: tensor<f32>):
      %f = "stablehlo.add"(%d, %e) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%f) : (tensor<f32>) -> ()
    }) : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
    %m = stablehlo.constant dense<1.0e3> : tensor<f32>
    %l = "stablehlo.compare"(%s, %m) <{comparison_direction = #stablehlo<comparison_direction LT>}>
      : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %o = stablehlo.constant dense<9> : tensor<i32>
    %p = "stablehlo.compare"(%i, %o) <{comparison_direction = #stablehlo<comparison_direction LT>}>
      : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %q = "stablehlo.and"(%l, %p) : (tensor<i1>, tensor<i1>) -> tensor<i1>
    "stablehlo.return"(%q) : (tensor<i1>) -> ()
  }, {
  ^bb0(%i: tensor<i32>, %a: tensor<?xf32>):
    %h = "stablehlo.dynamic_iota"(%v) <{iota_dimension = 0 : i64}> : (tensor<1xi32>) -> tensor<?xf32>
    %g = "stablehlo.add"(%h, %h) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %j = "stablehlo.add"(%i, %i) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    "stablehlo.return"(%j, %g) : (tensor<i32>, tensor<?xf32>) -> ()
  }) : (tensor<i32>, tensor<?xf32>) -> (tensor<i32>, tensor<?xf32>)
  %1 = "stablehlo.reduce"(%0#1, %z) <{dimensions = array<i64: 0>}> ({
  ^bb0(%d: tensor<f32>, %e: tensor<f32>):
    %f = "stablehlo.add"(%d, %e) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%f) : (tensor<f32>) -> ()
  }) : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
  func.return %1 : tensor<f32>
}
// -----
// op: stablehlo.dynamic_pad
// form: amounts that are computed
// inputs: f32[4] f32[] i32=[2]
func.func @main(%x: tensor<4xf32>, %c: tensor<f32>, %low: tensor<1xi32>) -> tensor<?xf32> {
  %z = stablehlo.constant dense<0> : tensor<1xi32>
  %0 = "stablehlo.dynamic_pad"(%x, %c, %low, %z, %z)
    : (tensor<4xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  func.return %0 : tensor<?xf32>
}
// -----
// op: stablehlo.dynamic_pad
// form: computed amounts between elements
// inputs: f32[4] f32[] i32=[2]
func.func @main(%x: tensor<4xf32>, %c: tensor<f32>, %between: tensor<1xi32>) -> tensor<?xf32> {
  %z = stablehlo.constant dense<0> : tensor<1xi32>
  %0 = "stablehlo.dynamic_pad"(%x, %c, %z, %z, %between)
    : (tensor<4xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  func.return %0 : tensor<?xf32>
}
// -----
// op: stablehlo.dynamic_reshape
// form: an open dimension is split
// inputs: f32[3,6]
func.func @main(%x: tensor<?x6xf32>) -> tensor<?x2x3xf32> {
  %n = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?x6xf32>) -> tensor<i32>
  %v = "stablehlo.reshape"(%n) : (tensor<i32>) -> tensor<1xi32>
  %c = stablehlo.constant dense<[2, 3]> : tensor<2xi32>
  %s = "stablehlo.concatenate"(%v, %c) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
  %0 = "stablehlo.dynamic_reshape"(%x, %s) : (tensor<?x6xf32>, tensor<3xi32>) -> tensor<?x2x3xf32>
  func.return %0 : tensor<?x2x3xf32>
}
// -----
// op: stablehlo.dynamic_update_slice
// form: an open size
// inputs: f32[5] f32[2] i32=2
func.func @main(%x: tensor<?xf32>, %u: tensor<2xf32>, %i: tensor<i32>) -> tensor<?xf32> {
  %0 = "stablehlo.dynamic_update_slice"(%x, %u, %i) : (tensor<?xf32>, tensor<2xf32>, tensor<i32>) -> tensor<?xf32>
  func.return %0 : tensor<?xf32>
}
// -----
// op: stablehlo.fft
// form: a length that is no power of two
// inputs: f32[6]
func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<6xf32>
  %c = "stablehlo.complex"(%x, %z) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xcomplex<f32>>
  %t = "stablehlo.fft"(%c) <{fft_type = #stablehlo<fft_type FFT>, fft_length = array<i64: 6>}>
    : (tensor<6xcomplex<f32>>) -> tensor<6xcomplex<f32>>
  %0 = "stablehlo.real"(%t) : (tensor<6xcomplex<f32>>) -> tensor<6xf32>
  func.return %0 : tensor<6xf32>
}
// -----
// op: stablehlo.gather
// form: indices of one number in a row each, a size open
// inputs: f32[6,4] i32=[[2],[0],[5]]
func.func @main(%x: tensor<6x4xf32>, %i: tensor<?x1xi32>) -> tensor<?x4xf32> {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 4>, indices_are_sorted = false}>
    : (tensor<6x4xf32>, tensor<?x1xi32>) -> tensor<?x4xf32>
  func.return %0 : tensor<?x4xf32>
}
// -----
// op: stablehlo.optimization_barrier
// form: an open size
// inputs: f32[5]
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %b = "stablehlo.optimization_barrier"(%x) : (tensor<?xf32>) -> tensor<?xf32>
  %0 = "stablehlo.add"(%b, %b) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  func.return %0 : tensor<?xf32>
}
// -----
// op: stablehlo.pad
// form: elements are taken away from an open size
// inputs: f32[5] f32[]
func.func @main(%x: tensor<?xf32>, %c: tensor<f32>) -> tensor<?xf32> {
  %0 = "stablehlo.pad"(%x, %c) <{edge_padding_low = array<i64: -1>, edge_padding_high = array<i64: 0>,
    interior_padding = array<i64: 0>}> : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  func.return %0 : tensor<?xf32>
}
// -----
// op: stablehlo.real_dynamic_slice
// form: past the end of the operand
// inputs: f32[6] i32=[4] i32=[9]
func.func @main(%x: tensor<?xf32>, %from: tensor<1xi32>, %to: tensor<1xi32>) -> tensor<?xf32> {
  %c = stablehlo.constant dense<1> : tensor<1xi32>
  %0 = "stablehlo.real_dynamic_slice"(%x, %from, %to, %c)
    : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  func.return %0 : tensor<?xf32>
}
// -----
// op: stablehlo.reduce_precision
// form: known sizes
// inputs: f32[4]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.reduce_precision"(%x) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}>
    : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// -----
// op: stablehlo.reduce_precision
// form: an open size
// inputs: f32[4]
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "stablehlo.reduce_precision"(%x) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}>
    : (tensor<?xf32>) -> tensor<?xf32>
  func.return %0 : tensor<?xf32>
}
// -----
// op: stablehlo.reduce_window
// form: padding, an open batch
// inputs: f32[2,6,6,3] f32[]
func.func @main(%x: tensor<?x6x6x3xf32>, %z: tensor<f32>) -> tensor<?x6x6x3xf32> {
  %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 3, 3, 1>,
    padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = "stablehlo.maximum"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<?x6x6x3xf32>, tensor<f32>) -> tensor<?x6x6x3xf32>
  func.return %0 : tensor<?x6x6x3xf32>
}
// -----
// op: stablehlo.reduce_window
// form: channels first, an open batch
// inputs: f32[2,3,6,6] f32[]
func.func @main(%x: tensor<?x3x6x6xf32>, %z: tensor<f32>) -> tensor<?x3x4x4xf32> {
  %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 1, 3, 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<?x3x6x6xf32>, tensor<f32>) -> tensor<?x3x4x4xf32>
  func.return %0 : tensor<?x3x4x4xf32>
}
// -----
// op: stablehlo.rng
// form: integers
func.func @main(%a: tensor<i32>, %b: tensor<i32>) -> tensor<4xi32> {
  %s = stablehlo.constant dense<4> : tensor<1xi64>
  %0 = "stablehlo.rng"(%a, %b, %s) <{rng_distribution = #stablehlo<rng_distribution UNIFORM>}>
    : (tensor<i32>, tensor<i32>, tensor<1xi64>) -> tensor<4xi32>
  func.return %0 : tensor<4xi32>
}
// -----
// op: stablehlo.scatter
// form: an index past the end of a row
// inputs: f32[4,4] i32=[[0,5]] f32=[9]
func.func @main(%x: tensor<4x4xf32>, %i: tensor<1x2xi32>, %u: tensor<1xf32>) -> tensor<4x4xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1],
    scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>, indices_are_sorted = false,
    unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    "stablehlo.return"(%b) : (tensor<f32>) -> ()
  }) : (tensor<4x4xf32>, tensor<1x2xi32>, tensor<1xf32>) -> tensor<4x4xf32>
  func.return %0 : tensor<4x4xf32>
}
// -----
// op: stablehlo.sort
// form: two operands of an open size
// inputs: f32[70000] i32[70000]
func.func @main(%x: tensor<?xf32>, %y: tensor<?xi32>) -> tensor<?xi32> {
  %0:2 = "stablehlo.sort"(%x, %y) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %l = "stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction LT>}>
      : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%l) : (tensor<i1>) -> ()
  }) : (tensor<?xf32>, tensor<?xi32>) -> (tensor<?xf32>, tensor<?xi32>)
  func.return %0#1 : tensor<?xi32>
}
// -----
// op: stablehlo.cholesky
// form: known sizes
// inputs: f32=[[4,2],[2,3]]
func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = "stablehlo.cholesky"(%x) <{lower = true}> : (tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %0 : tensor<2x2xf32>
}
// -----
// op: stablehlo.triangular_solve
// form: known sizes
// inputs: f32=[[4,0],[2,3]] f32=[[1],[2]]
func.func @main(%x: tensor<2x2xf32>, %y: tensor<2x1xf32>) -> tensor<2x1xf32> {
  %0 = "stablehlo.triangular_solve"(%x, %y) <{left_side = true, lower = true, unit_diagonal = false,
    transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  func.return %0 : tensor<2x1xf32>
}
// -----
// op: stablehlo.while
// form: a scan of a scan, whose distances double, of an open size
// first: all other rewrites
// inputs: f32[9]
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = "stablehlo.while"(%one, %x) ({
  ^bb0(%d: tensor<i32>, %v: tensor<?xf32>):
    %n = "stablehlo.get_dimension_size"(%v) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
    %l = "stablehlo.compare"(%d, %n) <{comparison_direction = #stablehlo<comparison_direction LT>}>
      : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.return"(%l) : (tensor<i1>) -> ()
  }, {
  ^bb0(%d: tensor<i32>, %v: tensor<?xf32>):
    %n = "stablehlo.get_dimension_size"(%v) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
    %two = stablehlo.constant dense<2> : tensor<i32>
    %n1 = "stablehlo.reshape"(%n) : (tensor<i32>) -> tensor<1xi32>
    %far = "stablehlo.dynamic_broadcast_in_dim"(%d, %n1) <{broadcast_dimensions = array<i64>}>
      : (tensor<i32>, tensor<1xi32>) -> tensor<?xi32>
    %i = "stablehlo.dynamic_iota"(%n1) <{iota_dimension = 0 : i64}> : (tensor<1xi32>) -> tensor<?xi32>
    %from = "stablehlo.subtract"(%i, %far) : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
    %s = "stablehlo.gather"(%v, %from) <{
      dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
      indices_are_sorted = false, slice_sizes = array<i64: 1>
    }> : (tensor<?xf32>, tensor<?xi32>) -> tensor<?xf32>
    %dd = "stablehlo.multiply"(%d, %two) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %sum = "stablehlo.add"(%s, %v) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    "stablehlo.return"(%dd, %sum) : (tensor<i32>, tensor<?xf32>) -> ()
  }) : (tensor<i32>, tensor<?xf32>) -> (tensor<i32>, tensor<?xf32>)
  %y = "stablehlo.multiply"(%0#1, %0#1) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %1:2 = "stablehlo.while"(%one, %y) ({
  ^bb0(%d: tensor<i32>, %v: tensor<?xf32>):
    %n = "stablehlo.get_dimension_size"(%v) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
    %l = "stablehlo.compare"(%d, %n) <{comparison_direction = #stablehlo<comparison_direction LT>}>
      : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.return"(%l) : (tensor<i1>) -> ()
  }, {
  ^bb0(%d: tensor<i32>, %v: tensor<?xf32>):
    %n = "stablehlo.get_dimension_size"(%v) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
    %two = stablehlo.constant dense<2> : tensor<i32>
    %n1 = "stablehlo.reshape"(%n) : (tensor<i32>) -> tensor<1xi32>
    %far = "stablehlo.dynamic_broadcast_in_dim"(%d, %n1) <{broadcast_dimensions = array<i64>}>
      : (tensor<i32>, tensor<1xi32>) -> tensor<?xi32>
    %i = "stablehlo.dynamic_iota"(%n1) <{iota_dimension = 0 : i64}> : (tensor<1xi32>) -> tensor<?xi32>
    %from = "stablehlo.subtract"(%i, %far) : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
    %s = "stablehlo.gather"(%v, %from) <{
      dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
      indices_are_sorted = false, slice_sizes = array<i64: 1>
    }> : (tensor<?xf32>, tensor<?xi32>) -> tensor<?xf32>
    %dd = "stablehlo.multiply"(%d, %two) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %sum = "stablehlo.add"(%s, %v) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    "stablehlo.return"(%dd, %sum) : (tensor<i32>, tensor<?xf32>) -> ()
  }) : (tensor<i32>, tensor<?xf32>) -> (tensor<i32>, tensor<?xf32>)
  func.return %1#1 : tensor<?xf32>
}
// -----
// op: stablehlo.while
// form: a step that does not read what it carries
// inputs: f32[4]
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c = stablehlo.constant dense<1.0> : tensor<4xf32>
  %n = "stablehlo.negate"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %0:2 = "stablehlo.while"(%x, %n) ({
  ^bb0(%h: tensor<4xf32>, %y: tensor<4xf32>):
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %s = "stablehlo.reduce"(%h, %z) <{dimensions = array<i64: 0>}> ({
    ^bb1(%d: tensor<f32>, %e: tensor<f32>):
      %f = "stablehlo.add"(%d, %e) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%f) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %m = stablehlo.constant dense<1.0e3> : tensor<f32>
    %p = "stablehlo.compare"(%s, %m) <{comparison_direction = #stablehlo<comparison_direction LT>}>
      : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%p) : (tensor<i1>) -> ()
  }, {
  ^bb0(%h: tensor<4xf32>, %y: tensor<4xf32>):
    %i = "stablehlo.tanh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %a = "stablehlo.add"(%h, %h) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %b = "stablehlo.add"(%a, %i) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "stablehlo.return"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  func.return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
}
// -----
// op: stablehlo.while
// form: a step that carries a constant
// inputs: f32[4]
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c = stablehlo.constant dense<1.0> : tensor<4xf32>
  %n = "stablehlo.negate"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %0:2 = "stablehlo.while"(%x, %n) ({
  ^bb0(%h: tensor<4xf32>, %y: tensor<4xf32>):
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %s = "stablehlo.reduce"(%h, %z) <{dimensions = array<i64: 0>}> ({
    ^bb1(%d: tensor<f32>, %e: tensor<f32>):
      %f = "stablehlo.add"(%d, %e) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%f) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %m = stablehlo.constant dense<1.0e3> : tensor<f32>
    %p = "stablehlo.compare"(%s, %m) <{comparison_direction = #stablehlo<comparison_direction LT>}>
      : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%p) : (tensor<i1>) -> ()
  }, {
  ^bb0(%h: tensor<4xf32>, %y: tensor<4xf32>):
    %i = "stablehlo.tanh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %a = "stablehlo.add"(%h, %h) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %k = "stablehlo.add"(%a, %i) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %b = "stablehlo.add"(%k, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "stablehlo.return"(%b, %c) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  func.return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
}
// -----
// op: stablehlo.while
// form: a step that carries a value twice
// inputs: f32[4]
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c = stablehlo.constant dense<1.0> : tensor<4xf32>
  %n = "stablehlo.negate"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %0:2 = "stablehlo.while"(%x, %n) ({
  ^bb0(%h: tensor<4xf32>, %y: tensor<4xf32>):
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %s = "stablehlo.reduce"(%h, %z) <{dimensions = array<i64: 0>}> ({
    ^bb1(%d: tensor<f32>, %e: tensor<f32>):
      %f = "stablehlo.add"(%d, %e) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%f) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %m = stablehlo.constant dense<1.0e3> : tensor<f32>
    %p = "stablehlo.compare"(%s, %m) <{comparison_direction = #stablehlo<comparison_direction LT>}>
      : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%p) : (tensor<i1>) -> ()
  }, {
  ^bb0(%h: tensor<4xf32>, %y: tensor<4xf32>):
    %i = "stablehlo.tanh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %a = "stablehlo.add"(%h, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %k = "stablehlo.add"(%a, %i) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %b = "stablehlo.add"(%k, %c) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "stablehlo.return"(%b, %b) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  func.return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
}
// -----
// op: stablehlo.while
// form: two tensors of open sizes, in another order in each step
// inputs: f32[2,1,4] i32=3
func.func @main(%x: tensor<?x?x4xf32>, %n: tensor<i32>) -> (tensor<?x?x4xf32>, tensor<?xf32>) {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c1 = stablehlo.constant dense<1> : tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %y = "stablehlo.negate"(%x) : (tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %r = "stablehlo.reduce"(%y, %z) <{dimensions = array<i64: 1, 2>}> ({
  ^bb0(%d: tensor<f32>, %e: tensor<f32>):
    %s = "stablehlo.add"(%d, %e) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<?x?x4xf32>, tensor<f32>) -> tensor<?xf32>
  %0:3 = "stablehlo.while"(%c0, %y, %r) ({
  ^bb0(%i: tensor<i32>, %a: tensor<?x?x4xf32>, %b: tensor<?xf32>):
    %p = "stablehlo.compare"(%i, %n) <{comparison_direction = #stablehlo<comparison_direction LT>}>
      : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.return"(%p) : (tensor<i1>) -> ()
  }, {
  ^bb0(%i: tensor<i32>, %a: tensor<?x?x4xf32>, %b: tensor<?xf32>):
    %j = "stablehlo.add"(%i, %c1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %g = "stablehlo.add"(%b, %b) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %m = "stablehlo.reduce"(%g, %z) <{dimensions = array<i64: 0>}> ({
    ^bb1(%d: tensor<f32>, %e: tensor<f32>):
      %s = "stablehlo.add"(%d, %e) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%s) : (tensor<f32>) -> ()
    }) : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
    %n0 = "stablehlo.get_dimension_size"(%a) <{dimension = 0 : i64}> : (tensor<?x?x4xf32>) -> tensor<i32>
    %n1 = "stablehlo.get_dimension_size"(%a) <{dimension = 1 : i64}> : (tensor<?x?x4xf32>) -> tensor<i32>
    %v0 = "stablehlo.reshape"(%n0) : (tensor<i32>) -> tensor<1xi32>
    %v1 = "stablehlo.reshape"(%n1) : (tensor<i32>) -> tensor<1xi32>
    %v2 = stablehlo.constant dense<4> : tensor<1xi32>
    %v = "stablehlo.concatenate"(%v0, %v1, %v2) <{dimension = 0 : i64}>
      : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %w = "stablehlo.dynamic_broadcast_in_dim"(%m, %v) <{broadcast_dimensions = array<i64>}>
      : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x4xf32>
    %f = "stablehlo.subtract"(%a, %w) : (tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
    "stablehlo.return"(%j, %f, %g) : (tensor<i32>, tensor<?x?x4xf32>, tensor<?xf32>) -> ()
  }) : (tensor<i32>, tensor<?x?x4xf32>, tensor<?xf32>) -> (tensor<i32>, tensor<?x?x4xf32>, tensor<?xf32>)
  func.return %0#1, %0#2 : tensor<?x?x4xf32>, tensor<?xf32>
}
// -----
// op: stablehlo.while
// form: two variables that a loop begins with
// inputs: f32[4]
"ml_program.global"() <{sym_name = "state", sym_visibility = "private", type = tensor<4xf32>, is_mutable,
  value = dense<1.0> : tensor<4xf32>}> : () -> ()
"ml_program.global"() <{sym_name = "other", sym_visibility = "private", type = tensor<4xf32>, is_mutable,
  value = dense<1.0> : tensor<4xf32>}> : () -> ()
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %v = "ml_program.global_load"() <{global = @state}> : () -> tensor<4xf32>
  %u = "ml_program.global_load"() <{global = @other}> : () -> tensor<4xf32>
  %0:2 = "stablehlo.while"(%u, %v) ({
  ^bb0(%h: tensor<4xf32>, %y: tensor<4xf32>):
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %s = "stablehlo.reduce"(%h, %z) <{dimensions = array<i64: 0>}> ({
    ^bb1(%d: tensor<f32>, %e: tensor<f32>):
      %f = "stablehlo.add"(%d, %e) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%f) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %m = stablehlo.constant dense<1.0e3> : tensor<f32>
    %p = "stablehlo.compare"(%s, %m) <{comparison_direction = #stablehlo<comparison_direction LT>}>
      : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%p) : (tensor<i1>) -> ()
  }, {
  ^bb0(%h: tensor<4xf32>, %y: tensor<4xf32>):
    %i = "stablehlo.tanh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %a = "stablehlo.add"(%h, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %b = "stablehlo.add"(%y, %i) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "stablehlo.return"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  "ml_program.global_store"(%0#1) <{global = @state}> : (tensor<4xf32>) -> ()
  "ml_program.global_store"(%0#0) <{global = @other}> : (tensor<4xf32>) -> ()
  func.return %0#0 : tensor<4xf32>
}
