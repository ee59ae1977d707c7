"""The pass `stablehlo-to-iree-input`, op by op."""

from __future__ import annotations

import pytest

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.targets.iree.passes.stablehlo_to_iree_input import StablehloToIreeInput
from tfconvert.converter.targets.iree.rewrites.rules import RULES
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import stablehlo
from tfconvert.schema.dialects.parsing import IRParser

SIZE = """%n = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (TYPE) -> tensor<i32>
      %v = "stablehlo.reshape"(%n) : (tensor<i32>) -> tensor<1xi32>"""


def _size(kind: str) -> str:
    return SIZE.replace("TYPE", kind)


TEXTS = {
    "a dimension is split": f"""
    // CHECK: %[[N:.*]] = "tensor.dim"(%x, %{{{{.*}}}})
    // CHECK: "tensor.expand_shape"(%x, %[[N]])
    // CHECK-SAME: reassociation = {{{{.*}}}}0 : i64], [1 : i64, 2 : i64]]
    // CHECK-NOT: dynamic_reshape
    func.func @main(%x: tensor<?x6xf32>) -> tensor<?x2x3xf32> {{
      {_size("tensor<?x6xf32>")}
      %c = stablehlo.constant dense<[2, 3]> : tensor<2xi32>
      %s = "stablehlo.concatenate"(%v, %c) <{{dimension = 0 : i64}}> : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
      %0 = "stablehlo.dynamic_reshape"(%x, %s) : (tensor<?x6xf32>, tensor<3xi32>) -> tensor<?x2x3xf32>
      func.return %0 : tensor<?x2x3xf32>
    }}""",
    "a shape that is an input": """
    // CHECK: "tensor.extract"(%s, %{{.*}})
    // CHECK: "flow.tensor.reshape"(%x, %{{.*}}, %{{.*}}, %{{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 2>}>
    func.func @main(%x: tensor<?x6xf32>, %s: tensor<2xi32>) -> tensor<?x?xf32> {
      %0 = "stablehlo.dynamic_reshape"(%x, %s) : (tensor<?x6xf32>, tensor<2xi32>) -> tensor<?x?xf32>
      func.return %0 : tensor<?x?xf32>
    }""",
    "bounds that are inputs are checked": """
    // CHECK: "cf.assert"(%{{.*}}) <{msg = "a slice reaches out of its operand"}>
    // CHECK: "cf.assert"
    // CHECK: "tensor.extract_slice"
    func.func @main(%x: tensor<?xf32>, %from: tensor<1xi32>, %to: tensor<1xi32>) -> tensor<?xf32> {
      %c = stablehlo.constant dense<2> : tensor<1xi32>
      %0 = "stablehlo.real_dynamic_slice"(%x, %from, %to, %c)
        : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
      func.return %0 : tensor<?xf32>
    }""",
    "bounds that are sizes need no check": f"""
    // CHECK-NOT: cf.assert
    // CHECK: "tensor.extract_slice"
    // CHECK-SAME: static_strides = array<i64: 2>
    // CHECK-NOT: cf.assert
    func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {{
      {_size("tensor<?xf32>")}
      %z = stablehlo.constant dense<0> : tensor<1xi32>
      %c = stablehlo.constant dense<2> : tensor<1xi32>
      %0 = "stablehlo.real_dynamic_slice"(%x, %z, %v, %c)
        : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
      func.return %0 : tensor<?xf32>
    }}""",
    "the start of an update is moved inside": """
    // CHECK: arith.maxsi
    // CHECK: arith.minsi
    // CHECK: "tensor.insert_slice"(%u, %x,
    func.func @main(%x: tensor<?xf32>, %u: tensor<2xf32>, %i: tensor<i32>) -> tensor<?xf32> {
      %0 = "stablehlo.dynamic_update_slice"(%x, %u, %i) : (tensor<?xf32>, tensor<2xf32>, tensor<i32>) -> tensor<?xf32>
      func.return %0 : tensor<?xf32>
    }""",
    "amounts of padding that are inputs": """
    // CHECK: "tensor.pad"(%{{.*}}) <{static_low = array<i64: -9223372036854775808>
    // CHECK: "tensor.yield"
    func.func @main(%x: tensor<4xf32>, %c: tensor<f32>, %low: tensor<1xi32>) -> tensor<?xf32> {
      %z = stablehlo.constant dense<0> : tensor<1xi32>
      %0 = "stablehlo.dynamic_pad"(%x, %c, %low, %z, %z)
        : (tensor<4xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
      func.return %0 : tensor<?xf32>
    }""",
    "a size that may be 1": """
    // CHECK: "cf.assert"(%{{.*}}) <{msg = "a size is neither 1 nor that which it is broadcast to"}>
    // CHECK: "linalg.generic"
    // CHECK: "arith.select"
    // CHECK: "tensor.extract"(%x, %{{.*}})
    func.func @main(%x: tensor<?xf32>, %s: tensor<1xi32>) -> tensor<?xf32> {
      %0 = "stablehlo.dynamic_broadcast_in_dim"(%x, %s) <{broadcast_dimensions = array<i64: 0>}>
        : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>
      func.return %0 : tensor<?xf32>
    }""",
    "a product of three free dimensions": """
    // CHECK: "linalg.fill"
    // CHECK: "linalg.generic"
    // CHECK-SAME: affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d3, d2)>
    // CHECK: arith.mulf
    // CHECK: arith.addf
    func.func @main(%x: tensor<?x5x4xf32>, %w: tensor<4x3xf32>) -> tensor<?x5x3xf32> {
      %0 = "stablehlo.dot_general"(%x, %w) <{dot_dimension_numbers =
        #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}>
        : (tensor<?x5x4xf32>, tensor<4x3xf32>) -> tensor<?x5x3xf32>
      func.return %0 : tensor<?x5x3xf32>
    }""",
    "a product of matrices stays": """
    // CHECK: stablehlo.dot_general
    func.func @main(%x: tensor<?x4xf32>, %w: tensor<4x3xf32>) -> tensor<?x3xf32> {
      %0 = "stablehlo.dot_general"(%x, %w) <{dot_dimension_numbers =
        #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}>
        : (tensor<?x4xf32>, tensor<4x3xf32>) -> tensor<?x3xf32>
      func.return %0 : tensor<?x3xf32>
    }""",
    "a convolution of an open image": """
    // CHECK: "stablehlo.pad"(%x
    // CHECK-SAME: edge_padding_high = array<i64: 0, 1, 1, 0>
    // CHECK: "linalg.conv_2d_nhwc_hwcf"
    // CHECK-SAME: strides = dense<[2, 1]>
    func.func @main(%x: tensor<?x?x?x3xf32>, %w: tensor<3x3x3x4xf32>) -> tensor<?x?x?x4xf32> {
      %0 = "stablehlo.convolution"(%x, %w) <{window_strides = array<i64: 2, 1>, padding = dense<1> : tensor<2x2xi64>,
        dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,
        feature_group_count = 1 : i64, batch_group_count = 1 : i64}>
        : (tensor<?x?x?x3xf32>, tensor<3x3x3x4xf32>) -> tensor<?x?x?x4xf32>
      func.return %0 : tensor<?x?x?x4xf32>
    }""",
    "a convolution of each channel": """
    // CHECK: "linalg.depthwise_conv_2d_nhwc_hwc"
    func.func @main(%x: tensor<?x8x8x3xf32>, %w: tensor<3x3x1x3xf32>) -> tensor<?x6x6x3xf32> {
      %0 = "stablehlo.convolution"(%x, %w) <{
        dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,
        feature_group_count = 3 : i64, batch_group_count = 1 : i64}>
        : (tensor<?x8x8x3xf32>, tensor<3x3x1x3xf32>) -> tensor<?x6x6x3xf32>
      func.return %0 : tensor<?x6x6x3xf32>
    }""",
    "a convolution of groups, channels first": """
    // CHECK: "tensor.expand_shape"(%x
    // CHECK: "linalg.generic"
    // CHECK-SAME: (d0, d1, d7, d3 * 1 + d5 * 1, d4 * 1 + d6 * 1)
    // CHECK: "tensor.collapse_shape"
    func.func @main(%x: tensor<?x4x8x8xf32>, %w: tensor<3x3x2x6xf32>) -> tensor<?x6x6x6xf32> {
      %0 = "stablehlo.convolution"(%x, %w) <{
        dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[0, 1, i, o]->[b, f, 0, 1]>,
        feature_group_count = 2 : i64, batch_group_count = 1 : i64}>
        : (tensor<?x4x8x8xf32>, tensor<3x3x2x6xf32>) -> tensor<?x6x6x6xf32>
      func.return %0 : tensor<?x6x6x6xf32>
    }""",
    "a running sum": """
    // CHECK: "iree_linalg_ext.scan"
    // CHECK-SAME: dimension = 1 : i64, inclusive = true
    // CHECK: arith.addf
    func.func @main(%x: tensor<?x4xf32>, %z: tensor<f32>) -> tensor<?x4xf32> {
      %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 4>,
        padding = dense<[[0, 0], [3, 0]]> : tensor<2x2xi64>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%1) : (tensor<f32>) -> ()
      }) : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
      func.return %0 : tensor<?x4xf32>
    }""",
    "maxima of windows": """
    // CHECK: "stablehlo.pad"
    // CHECK: "linalg.generic"
    // CHECK-SAME: affine_map<(d0, d1, d2) -> (d0, d1 * 2 + d2 * 1)>, affine_map<(d0, d1, d2) -> (d2)>
    // CHECK: arith.maximumf
    func.func @main(%x: tensor<?x4xf32>, %z: tensor<f32>) -> tensor<?x2xf32> {
      %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>,
        padding = dense<[[0, 0], [0, 1]]> : tensor<2x2xi64>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = "stablehlo.maximum"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%1) : (tensor<f32>) -> ()
      }) : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x2xf32>
      func.return %0 : tensor<?x2xf32>
    }""",
    "slices of an open size are looked up": """
    // CHECK: "linalg.generic"
    // CHECK: arith.maxsi
    // CHECK: arith.minsi
    // CHECK: "tensor.extract"(%x
    func.func @main(%x: tensor<6x?xf32>, %i: tensor<?xi32>, %s: tensor<2xi32>) -> tensor<?x?xf32> {
      %0 = "stablehlo.dynamic_gather"(%x, %i, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
        collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}>
        : (tensor<6x?xf32>, tensor<?xi32>, tensor<2xi32>) -> tensor<?x?xf32>
      func.return %0 : tensor<?x?xf32>
    }""",
    "several operands are sorted as one": """
    // CHECK: stablehlo.shift_left
    // CHECK: "stablehlo.sort"(%{{[0-9]+}}) <
    // CHECK: "tensor.extract"(%x
    // CHECK: "tensor.extract"(%y
    func.func @main(%x: tensor<?xf32>, %y: tensor<?xi32>) -> (tensor<?xf32>, tensor<?xi32>) {
      %0:2 = "stablehlo.sort"(%x, %y) <{dimension = 0 : i64, is_stable = true}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
        %1 = "stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction LT>}>
          : (tensor<f32>, tensor<f32>) -> tensor<i1>
        "stablehlo.return"(%1) : (tensor<i1>) -> ()
      }) : (tensor<?xf32>, tensor<?xi32>) -> (tensor<?xf32>, tensor<?xi32>)
      func.return %0#0, %0#1 : tensor<?xf32>, tensor<?xi32>
    }""",
    "long integers are sorted by their lower halves first": """
    // CHECK: %[[FLIPPED:.*]] = "stablehlo.xor"(%x,
    // CHECK: %[[HIGH:.*]] = "stablehlo.shift_right_arithmetic"(%x,
    // CHECK: "stablehlo.convert"(%[[FLIPPED]])
    // CHECK: "stablehlo.convert"(%[[HIGH]])
    // CHECK-COUNT-2: "stablehlo.sort"(%{{[0-9]+}}) <
    // CHECK-NOT: "stablehlo.sort"
    // CHECK: "tensor.extract"(%x
    func.func @main(%x: tensor<?xi64>, %y: tensor<?xf32>) -> (tensor<?xi64>, tensor<?xf32>) {
      %0:2 = "stablehlo.sort"(%x, %y) <{dimension = 0 : i64, is_stable = true}> ({
      ^bb0(%a: tensor<i64>, %b: tensor<i64>, %c: tensor<f32>, %d: tensor<f32>):
        %1 = "stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction LT>}>
          : (tensor<i64>, tensor<i64>) -> tensor<i1>
        "stablehlo.return"(%1) : (tensor<i1>) -> ()
      }) : (tensor<?xi64>, tensor<?xf32>) -> (tensor<?xi64>, tensor<?xf32>)
      func.return %0#0, %0#1 : tensor<?xi64>, tensor<?xf32>
    }""",
    "columns are chosen from": """
    // CHECK: "tensor.collapse_shape"(%x)
    // CHECK: "tensor.collapse_shape"(%y)
    // CHECK: "linalg.generic"
    // CHECK: "linalg.index"() <{dim = 1 : i64}>
    // CHECK: "arith.select"
    // CHECK-NOT: stablehlo.concatenate
    func.func @main(%x: tensor<?x1xi32>, %y: tensor<?x1xi32>) -> tensor<?x2xi32> {
      %0 = "stablehlo.concatenate"(%x, %y) <{dimension = 1 : i64}>
        : (tensor<?x1xi32>, tensor<?x1xi32>) -> tensor<?x2xi32>
      func.return %0 : tensor<?x2xi32>
    }""",
    "vectors are padded to the length of all": """
    // CHECK-COUNT-2: "tensor.pad"
    // CHECK: "linalg.generic"
    // CHECK: "arith.select"
    // CHECK-NOT: stablehlo.concatenate
    func.func @main(%x: tensor<?xi64>, %y: tensor<?xi64>) -> tensor<?xi64> {
      %0 = "stablehlo.concatenate"(%x, %y) <{dimension = 0 : i64}> : (tensor<?xi64>, tensor<?xi64>) -> tensor<?xi64>
      func.return %0 : tensor<?xi64>
    }""",
    "what is computed from sizes stays on the host": """
    // CHECK: %[[N:.*]] = "tensor.dim"(%x
    // CHECK: %[[M:.*]] = arith.minsi %{{.*}}, %[[N]]
    // CHECK: %[[I:.*]] = "arith.index_cast"(%[[M]]) : (index) -> i32
    // CHECK: %[[T:.*]] = "tensor.from_elements"(%[[I]]) : (i32) -> tensor<i32>
    // CHECK-NOT: stablehlo.minimum
    // CHECK: func.return %[[T]]
    func.func @main(%x: tensor<?xf32>) -> tensor<i32> {
      %c = stablehlo.constant dense<9> : tensor<i32>
      %n = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
      %0 = "stablehlo.minimum"(%c, %n) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      func.return %0 : tensor<i32>
    }""",
    "what is left of a product of sizes is a known one": """
    // CHECK: %[[ZERO:.*]] = arith.constant 0 : index
    // CHECK: %[[N:.*]] = "tensor.dim"(%x, %[[ZERO]])
    // CHECK-NOT: arith.divsi
    // CHECK: "arith.index_cast"(%[[N]]) : (index) -> i32
    func.func @main(%x: tensor<?x?xf32>) -> tensor<i32> {
      %n = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?x?xf32>) -> tensor<i32>
      %m = "stablehlo.get_dimension_size"(%x) <{dimension = 1 : i64}> : (tensor<?x?xf32>) -> tensor<i32>
      %0 = "stablehlo.multiply"(%n, %m) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %1 = "stablehlo.divide"(%0, %m) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %2 = "stablehlo.reshape"(%1) : (tensor<i32>) -> tensor<1xi32>
      %3 = "stablehlo.dynamic_iota"(%2) <{iota_dimension = 0 : i64}> : (tensor<1xi32>) -> tensor<?xf32>
      %4 = "stablehlo.get_dimension_size"(%3) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
      func.return %4 : tensor<i32>
    }""",
    "sizes are numbers": f"""
    // CHECK: %[[N:.*]] = "tensor.dim"(%x
    // CHECK: %[[S:.*]] = "tensor.from_elements"(%[[N]]) : (index) -> tensor<1xindex>
    // CHECK: "stablehlo.dynamic_iota"(%[[S]])
    func.func @main(%x: tensor<?xf32>) -> tensor<?xi32> {{
      {_size("tensor<?xf32>")}
      %0 = "stablehlo.dynamic_iota"(%v) <{{iota_dimension = 0 : i64}}> : (tensor<1xi32>) -> tensor<?xi32>
      func.return %0 : tensor<?xi32>
    }}""",
    "broader parts are joined as they are": """
    // CHECK: "stablehlo.concatenate"(%x, %y)
    func.func @main(%x: tensor<?x1xi32>, %y: tensor<?x2xi32>) -> tensor<?x3xi32> {
      %0 = "stablehlo.concatenate"(%x, %y) <{dimension = 1 : i64}>
        : (tensor<?x1xi32>, tensor<?x2xi32>) -> tensor<?x3xi32>
      func.return %0 : tensor<?x3xi32>
    }""",
    "an assertion about sizes": """
    // CHECK: "arith.cmpi"
    // CHECK: "cf.assert"(%{{.*}}) <{msg = "the batches differ"}>
    // CHECK-NOT: custom_call
    func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
      %0 = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
      %1 = "stablehlo.get_dimension_size"(%y) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
      %2 = "stablehlo.compare"(%0, %1) <{comparison_direction = #stablehlo<comparison_direction EQ>}>
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.custom_call"(%2) <{call_target_name = "shape_assertion", has_side_effect = true}>
        {error_message = "the batches differ"} : (tensor<i1>) -> ()
      func.return %x : tensor<?xf32>
    }""",
    "barriers are gone": """
    // CHECK-NOT: barrier
    // CHECK: func.return %x
    func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      %0 = "stablehlo.optimization_barrier"(%x) : (tensor<?xf32>) -> tensor<?xf32>
      func.return %0 : tensor<?xf32>
    }""",
    "a transform is two products": """
    // CHECK-COUNT-2: "linalg.generic"(%x, %{{.*}}, %{{.*}})
    // CHECK: "stablehlo.complex"
    // CHECK-NOT: stablehlo.fft
    func.func @main(%x: tensor<?x6xf32>) -> tensor<?x4xcomplex<f32>> {
      %0 = "stablehlo.fft"(%x) <{fft_length = array<i64: 6>, fft_type = #stablehlo<fft_type RFFT>}>
        : (tensor<?x6xf32>) -> tensor<?x4xcomplex<f32>>
      func.return %0 : tensor<?x4xcomplex<f32>>
    }""",
    "IREE has some transforms": """
    // CHECK: "stablehlo.fft"(%x)
    func.func @main(%x: tensor<3x8xf32>) -> tensor<3x5xcomplex<f32>> {
      %0 = "stablehlo.fft"(%x) <{fft_length = array<i64: 8>, fft_type = #stablehlo<fft_type RFFT>}>
        : (tensor<3x8xf32>) -> tensor<3x5xcomplex<f32>>
      func.return %0 : tensor<3x5xcomplex<f32>>
    }""",
    "bytes are moved without their sign": """
    // CHECK: %[[BITS:.*]] = "stablehlo.bitcast_convert"(%x) : (tensor<?x6xui8>) -> tensor<?x6xi8>
    // CHECK: %[[ALL:.*]] = "tensor.collapse_shape"(%[[BITS]])
    // CHECK: "stablehlo.bitcast_convert"(%[[ALL]]) : (tensor<?xi8>) -> tensor<?xui8>
    func.func @main(%x: tensor<?x6xui8>) -> tensor<?xui8> {
      %n = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?x6xui8>) -> tensor<i32>
      %c = stablehlo.constant dense<6> : tensor<i32>
      %m = "stablehlo.multiply"(%n, %c) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %v = "stablehlo.reshape"(%m) : (tensor<i32>) -> tensor<1xi32>
      %0 = "stablehlo.dynamic_reshape"(%x, %v) : (tensor<?x6xui8>, tensor<1xi32>) -> tensor<?xui8>
      func.return %0 : tensor<?xui8>
    }""",
    "checks stand before a step's other ops": """
    // CHECK: "stablehlo.while"
    // CHECK: "stablehlo.return"
    // CHECK: "cf.assert"
    // CHECK: "stablehlo.tanh"
    // CHECK: "tensor.extract_slice"
    func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
      %c = stablehlo.constant dense<0> : tensor<i32>
      %r:2 = "stablehlo.while"(%c, %x) ({
      ^bb0(%i: tensor<i32>, %a: tensor<?xf32>):
        %d = stablehlo.constant dense<4> : tensor<i32>
        %t = "stablehlo.compare"(%i, %d) <{comparison_direction = #stablehlo<comparison_direction LT>}>
          : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "stablehlo.return"(%t) : (tensor<i1>) -> ()
      }, {
      ^bb0(%i: tensor<i32>, %a: tensor<?xf32>):
        %n = "stablehlo.get_dimension_size"(%y) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
        %v = "stablehlo.reshape"(%n) : (tensor<i32>) -> tensor<1xi32>
        %b = "stablehlo.tanh"(%a) : (tensor<?xf32>) -> tensor<?xf32>
        %z = stablehlo.constant dense<0> : tensor<1xi32>
        %o = stablehlo.constant dense<1> : tensor<1xi32>
        %0 = "stablehlo.real_dynamic_slice"(%b, %z, %v, %o)
          : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
        %e = stablehlo.constant dense<1> : tensor<i32>
        %j = "stablehlo.add"(%i, %e) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        "stablehlo.return"(%j, %0) : (tensor<i32>, tensor<?xf32>) -> ()
      }) : (tensor<i32>, tensor<?xf32>) -> (tensor<i32>, tensor<?xf32>)
      func.return %r#1 : tensor<?xf32>
    }""",
}


@pytest.mark.parametrize("name", TEXTS)
def test_what_becomes_of_it(filecheck: FileCheck, name: str) -> None:
    filecheck(StablehloToIreeInput(), TEXTS[name])


def test_every_rule_is_about_an_op_that_there_is_and_says_why() -> None:
    assert set(RULES) <= set(stablehlo.definitions())
    assert all(rule.because for rule in RULES.values())


def test_what_iree_does_not_compile_is_told() -> None:
    text = """func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %0 = "stablehlo.cholesky"(%x) <{lower = true}> : (tensor<2x2xf32>) -> tensor<2x2xf32>
      %1 = "stablehlo.reduce_precision"(%0) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}>
        : (tensor<2x2xf32>) -> tensor<2x2xf32>
      func.return %1 : tensor<2x2xf32>
    }"""
    with pytest.raises(ConversionError) as refused:
        StablehloToIreeInput().apply(IRParser(text).parse_module())
    assert [each.op for each in refused.value.diagnostics] == ["stablehlo.cholesky", "stablehlo.reduce_precision"]
    assert refused.value.code == "unsupported-op"


def test_a_transform_that_is_too_long_is_told() -> None:
    text = """func.func @main(%x: tensor<?x8192xf32>) -> tensor<?x4097xcomplex<f32>> {
      %0 = "stablehlo.fft"(%x) <{fft_length = array<i64: 8192>, fft_type = #stablehlo<fft_type RFFT>}>
        : (tensor<?x8192xf32>) -> tensor<?x4097xcomplex<f32>>
      func.return %0 : tensor<?x4097xcomplex<f32>>
    }"""
    with pytest.raises(ConversionError, match="8192 is too long") as refused:
        StablehloToIreeInput().apply(IRParser(text).parse_module())
    assert refused.value.code == "unsupported-op"


def test_a_check_that_iree_would_not_wait_for_is_told() -> None:
    text = """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      %c = stablehlo.constant dense<0> : tensor<i32>
      %r:2 = "stablehlo.while"(%c, %x) ({
      ^bb0(%i: tensor<i32>, %a: tensor<?xf32>):
        %d = stablehlo.constant dense<4> : tensor<i32>
        %t = "stablehlo.compare"(%i, %d) <{comparison_direction = #stablehlo<comparison_direction LT>}>
          : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "stablehlo.return"(%t) : (tensor<i1>) -> ()
      }, {
      ^bb0(%i: tensor<i32>, %a: tensor<?xf32>):
        %b = "stablehlo.tanh"(%a) : (tensor<?xf32>) -> tensor<?xf32>
        %s = "stablehlo.convert"(%b) : (tensor<?xf32>) -> tensor<?xi32>
        %z = stablehlo.constant dense<0> : tensor<1xi32>
        %o = stablehlo.constant dense<1> : tensor<1xi32>
        %e = "stablehlo.add"(%i, %i) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %v = "stablehlo.reshape"(%e) : (tensor<i32>) -> tensor<1xi32>
        %0 = "stablehlo.real_dynamic_slice"(%b, %z, %v, %o)
          : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
        "stablehlo.return"(%e, %0) : (tensor<i32>, tensor<?xf32>) -> ()
      }) : (tensor<i32>, tensor<?xf32>) -> (tensor<i32>, tensor<?xf32>)
      func.return %r#1 : tensor<?xf32>
    }"""
    with pytest.raises(ConversionError, match="a slice reaches out of its operand") as refused:
        StablehloToIreeInput().apply(IRParser(text).parse_module())
    assert refused.value.code == "unsupported-op"
