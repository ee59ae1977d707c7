"""StableHLO texts that artifacts are made of, by name; jaxlib serializes them."""

from __future__ import annotations

from collections.abc import Mapping

ELEMENTWISE = """
func.func @main(%x: tensor<2x3xf32> loc("x"), %i: tensor<4xi32>, %u: tensor<4xui8>, %b: tensor<4xi1>)
    -> (tensor<2x3xf32> {jax.result_info = "y"}, tensor<4xi32>, tensor<4xi1>) {
  %0 = "stablehlo.abs"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "stablehlo.add"(%0, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32> loc("jit(f)/add"("f.py":3:4))
  %2 = "stablehlo.tanh"(%1) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = "stablehlo.exponential"(%2) {mhlo.note = "kept", count = 3 : i8} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = "stablehlo.logistic"(%3) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    loc("jit(f)/logistic"(callsite("g"("g.py":7:8) at "f"("f.py":9:1))))
  %5 = "stablehlo.clamp"(%4, %3, %2) : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %6 = "stablehlo.compare"(%i, %i) {comparison_direction = #stablehlo<comparison_direction LE>,
    compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  %7 = "stablehlo.select"(%6, %i, %i) : (tensor<4xi1>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %8 = "stablehlo.and"(%6, %b) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %9 = "stablehlo.convert"(%u) : (tensor<4xui8>) -> tensor<4xi32>
  %10 = "stablehlo.shift_right_logical"(%7, %9) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %11 = "stablehlo.reduce_precision"(%5) {exponent_bits = 5 : i32, mantissa_bits = 10 : i32}
    : (tensor<2x3xf32>) -> tensor<2x3xf32>
  "func.return"(%11, %10, %8) : (tensor<2x3xf32>, tensor<4xi32>, tensor<4xi1>) -> ()
}
"""

CONSTANTS = """
func.func @main() -> tensor<2xf32> {
  %0 = "stablehlo.constant"() {value = dense<[1.5, -0.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %1 = "stablehlo.constant"() {value = dense<7> : tensor<1000x1000xi32>} : () -> tensor<1000x1000xi32>
  %2 = "stablehlo.constant"() {value = dense<[true, false, true, true, false, false, true, false, true]> : tensor<9xi1>}
    : () -> tensor<9xi1>
  %3 = "stablehlo.constant"() {value = dense<[true, false, true]> : tensor<3xi1>} : () -> tensor<3xi1>
  %4 = "stablehlo.constant"() {value = dense<true> : tensor<2x50xi1>} : () -> tensor<2x50xi1>
  %5 = "stablehlo.constant"() {value = dense<false> : tensor<i1>} : () -> tensor<i1>
  %6 = "stablehlo.constant"() {value = dense<[-8, 7, 0]> : tensor<3xi4>} : () -> tensor<3xi4>
  %7 = "stablehlo.constant"() {value = dense<[(1.0, -2.0), (0.5, 0.25)]> : tensor<2xcomplex<f32>>}
    : () -> tensor<2xcomplex<f32>>
  %8 = "stablehlo.constant"() {value = dense<[1.0, 65504.0]> : tensor<2xf16>} : () -> tensor<2xf16>
  %9 = "stablehlo.constant"() {value = dense<> : tensor<0x3xi64>} : () -> tensor<0x3xi64>
  %10 = "stablehlo.constant"() {value = dense<[18446744073709551615, 1]> : tensor<2xui64>} : () -> tensor<2xui64>
  %11 = "stablehlo.constant"() {value = dense<-1.5> : tensor<f64>} : () -> tensor<f64>
  %12 = "stablehlo.constant"() {value = dense<[0.5, 3.0]> : tensor<2xbf16>} : () -> tensor<2xbf16>
  "func.return"(%0) : (tensor<2xf32>) -> ()
}
"""

DIMENSIONS = """
func.func @main(%x: tensor<2x8x8x3xf32>, %w: tensor<3x3x3x4xf32>, %a: tensor<2x3x4xf32>, %b: tensor<2x4x5xf32>,
    %i: tensor<2x1xi32>) -> tensor<2x8x8x4xf32> {
  %0 = "stablehlo.convolution"(%x, %w) {window_strides = array<i64: 1, 1>, padding = dense<1> : tensor<2x2xi64>,
    lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, true>,
    dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64,
    batch_group_count = 1 : i64,
    precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision HIGHEST>]}
    : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x8x8x4xf32>
  %1 = "stablehlo.dot_general"(%a, %b) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0],
    rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>,
    precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
    : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  %2 = "stablehlo.gather"(%1, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1, 2],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3, 5>,
    indices_are_sorted = true} : (tensor<2x3x5xf32>, tensor<2x1xi32>) -> tensor<2x3x5xf32>
  %3 = "stablehlo.scatter"(%1, %i, %2) ({
  ^bb0(%c: tensor<f32>, %d: tensor<f32>):
    %9 = "stablehlo.add"(%c, %d) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%9) : (tensor<f32>) -> ()
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [0],
    scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = true}
    : (tensor<2x3x5xf32>, tensor<2x1xi32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %4 = "stablehlo.transpose"(%3) {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x5xf32>) -> tensor<5x2x3xf32>
  %5 = "stablehlo.slice"(%4) {start_indices = array<i64: 0, 0, 1>, limit_indices = array<i64: 4, 2, 3>,
    strides = array<i64: 2, 1, 1>} : (tensor<5x2x3xf32>) -> tensor<2x2x2xf32>
  %6 = "stablehlo.broadcast_in_dim"(%5) {broadcast_dimensions = array<i64: 1, 2, 3>}
    : (tensor<2x2x2xf32>) -> tensor<7x2x2x2xf32>
  %7 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<2x3xi32>
  "func.return"(%0) : (tensor<2x8x8x4xf32>) -> ()
}
"""

REGIONS = """
module @named attributes {mhlo.num_partitions = 1 : i32, jax.uses_shape_polymorphism = true} {
  func.func public @main(%x: tensor<?x5xf32> {jax.global_constant = "b"}, %n: tensor<i32>, %p: tensor<i1>)
      -> (tensor<?xf32>, tensor<i32>) {
    %0 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %1 = "stablehlo.reduce"(%x, %0) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %7 = "stablehlo.maximum"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%7) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<?x5xf32>, tensor<f32>) -> tensor<?xf32>
    %2:2 = "stablehlo.while"(%n, %n) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %7 = "stablehlo.compare"(%a, %n) {comparison_direction = #stablehlo<comparison_direction LT>}
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%7) : (tensor<i1>) -> ()
    }, {
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %7 = "stablehlo.if"(%p) ({
        %8 = "stablehlo.add"(%a, %b) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        "stablehlo.return"(%8) : (tensor<i32>) -> ()
      }, {
        "stablehlo.return"(%n) : (tensor<i32>) -> ()
      }) : (tensor<i1>) -> tensor<i32>
      "stablehlo.return"(%7, %b) : (tensor<i32>, tensor<i32>) -> ()
    }) : (tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>)
    %3 = "func.call"(%2#1) {callee = @inner} : (tensor<i32>) -> tensor<i32>
    %4:2 = "stablehlo.sort"(%1, %1) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
      %7 = "stablehlo.compare"(%a, %b) {comparison_direction = #stablehlo<comparison_direction LT>,
        compare_type = #stablehlo<comparison_type TOTALORDER>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%7) : (tensor<i1>) -> ()
    }) {dimension = 0 : i64, is_stable = true} : (tensor<?xf32>, tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
    "stablehlo.custom_call"(%p, %n) {call_target_name = "shape_assertion", api_version = 2 : i32,
      has_side_effect = true, error_message = "{0} is not 1"} : (tensor<i1>, tensor<i32>) -> ()
    "func.return"(%4#0, %3) : (tensor<?xf32>, tensor<i32>) -> ()
  }
  func.func private @inner(%n: tensor<i32>) -> tensor<i32> {
    "func.return"(%n) : (tensor<i32>) -> ()
  }
}
"""

DYNAMIC = """
func.func @main(%x: tensor<?x4xf32>, %s: tensor<2xi32>) -> tensor<?x4xf32> {
  %0 = "stablehlo.get_dimension_size"(%x) {dimension = 0 : i64} : (tensor<?x4xf32>) -> tensor<i32>
  %1 = "stablehlo.reshape"(%0) : (tensor<i32>) -> tensor<1xi32>
  %2 = "stablehlo.constant"() {value = dense<4> : tensor<1xi32>} : () -> tensor<1xi32>
  %3 = "stablehlo.concatenate"(%1, %2) {dimension = 0 : i64} : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %4 = "stablehlo.dynamic_reshape"(%x, %3) : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<?x4xf32>
  %5 = "stablehlo.dynamic_broadcast_in_dim"(%4, %3) {broadcast_dimensions = array<i64: 0, 1>,
    known_expanding_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 1>}
    : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<?x4xf32>
  %6 = "stablehlo.dynamic_iota"(%s) {iota_dimension = 1 : i64} : (tensor<2xi32>) -> tensor<?x4xf32>
  %7 = "stablehlo.real_dynamic_slice"(%6, %s, %s, %s)
    : (tensor<?x4xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x4xf32>
  %8 = "stablehlo.set_dimension_size"(%7, %0) {dimension = 0 : i64}
    : (tensor<?x4xf32>, tensor<i32>) -> tensor<?x4xf32, #stablehlo.bounds<9, ?>>
  "func.return"(%7) : (tensor<?x4xf32>) -> ()
}
"""

RARE = """
func.func private @target(%x: tensor<f32>) -> tensor<f32> {
  "func.return"(%x) : (tensor<f32>) -> ()
}
func.func @main(%x: tensor<f32>, %t: !stablehlo.token, %q: tensor<2x!quant.uniform<i8:f32, 0.5:3>>,
    %z: tensor<4x2x!quant.uniform<u8:f32:1, {0.5:3, 0.25}>>, %c: tensor<16xcomplex<f32>>) -> !stablehlo.token {
  %0 = "stablehlo.composite"(%x) {name = "chlo.erf", decomposition = @target, version = 1 : i32,
    composite_attributes = {k = 3 : i64, name = "n", list = [1.5 : f32, true]}} : (tensor<f32>) -> tensor<f32>
  %1 = "stablehlo.custom_call"(%0) {call_target_name = "foo", backend_config = "\\00\\FFab", api_version = 1 : i32,
    called_computations = [@target], operand_layouts = [dense<> : tensor<0xindex>],
    result_layouts = [dense<> : tensor<0xindex>]} : (tensor<f32>) -> tensor<f32>
  %2 = "stablehlo.custom_call"(%1) {call_target_name = "bar", backend_config = {a = 1 : i32, b = [2.0 : f32]},
    api_version = 4 : i32, mhlo.frontend_attributes = {x = "y"}} : (tensor<f32>) -> tensor<f32>
  %3 = "stablehlo.after_all"(%t, %t) : (!stablehlo.token, !stablehlo.token) -> !stablehlo.token
  %4 = "stablehlo.tuple"(%2, %3) : (tensor<f32>, !stablehlo.token) -> tuple<tensor<f32>, !stablehlo.token>
  %5 = "stablehlo.get_tuple_element"(%4) {index = 1 : i32}
    : (tuple<tensor<f32>, !stablehlo.token>) -> !stablehlo.token
  %6 = "stablehlo.uniform_dequantize"(%q) : (tensor<2x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<2xf32>
  %7 = "stablehlo.fft"(%c) {fft_type = #stablehlo<fft_type IFFT>, fft_length = array<i64: 16>}
    : (tensor<16xcomplex<f32>>) -> tensor<16xcomplex<f32>>
  %8 = "stablehlo.all_reduce"(%6) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %20 = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%20) : (tensor<f32>) -> ()
  }) {replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids,
    channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>} : (tensor<2xf32>) -> tensor<2xf32>
  %9 = "stablehlo.collective_permute"(%8) {source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}
    : (tensor<2xf32>) -> tensor<2xf32>
  %10 = "stablehlo.send"(%9, %5) {channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>,
    is_host_transfer = true} : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
  %11 = "stablehlo.partition_id"() : () -> tensor<ui32>
  "func.return"(%10) : (!stablehlo.token) -> ()
}
"""

NEW = """
func.func @main(%x: tensor<8x16xf32>, %y: tensor<16x8xf32>, %e: tensor<2xf8E4M3FN>, %i: tensor<2x3x1xi32>,
    %o: tensor<2x4x5xf32>) -> tensor<8x8xf32> {
  %0 = "stablehlo.dot_general"(%x, %y) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1],
    rhs_contracting_dimensions = [0]>, algorithm = #stablehlo.dot_algorithm<lhs_precision_type = tf32,
    rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1,
    num_primitive_operations = 1, allow_imprecise_accumulation = false>}
    : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = "stablehlo.exponential"(%0) {result_accuracy = #stablehlo.result_accuracy<atol = 1.000000e-05, ulps = 1,
    mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = "stablehlo.gather"(%o, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [2],
    collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0],
    start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 5>, indices_are_sorted = false}
    : (tensor<2x4x5xf32>, tensor<2x3x1xi32>) -> tensor<2x3x5xf32>
  %3 = "stablehlo.tan"(%1) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  "func.return"(%3) : (tensor<8x8xf32>) -> ()
}
"""

TEXTS: Mapping[str, str] = {
    "elementwise": ELEMENTWISE,
    "constants": CONSTANTS,
    "dimensions": DIMENSIONS,
    "regions": REGIONS,
    "dynamic": DYNAMIC,
    "rare": RARE,
    "new": NEW,
}
"""All of them; `rare` and `new` have ops that old versions lack."""
