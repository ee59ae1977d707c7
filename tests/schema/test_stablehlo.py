"""The dialects of StableHLO: text both ways, what the verifier refuses, and what TensorFlow's MLIR says of our text."""

from __future__ import annotations

import pytest

from tests.mlir import oracle
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects import stablehlo
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.errors import ParseError, VerifyError

TEXTS = {
    "elementwise": """
    func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> (tensor<?xi1>, tensor<?xf32>) {
      %0 = "stablehlo.add"(%x, %y) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      %1 = "stablehlo.compare"(%0, %y) <{comparison_direction = #stablehlo<comparison_direction GT>,
        compare_type = #stablehlo<comparison_type FLOAT>}> : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xi1>
      %2 = "chlo.erf"(%x) : (tensor<?xf32>) -> tensor<?xf32>
      func.return %1, %2 : tensor<?xi1>, tensor<?xf32>
    }""",
    "sizes": """
    func.func @main(%x: tensor<?x4xf32>) -> tensor<?xf32> {
      %0 = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?x4xf32>) -> tensor<i32>
      %1 = stablehlo.constant dense<4> : tensor<i32>
      %2 = "stablehlo.multiply"(%0, %1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %3 = "stablehlo.reshape"(%2) : (tensor<i32>) -> tensor<1xi32>
      %4 = "stablehlo.dynamic_reshape"(%x, %3) : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<?xf32>
      %5 = stablehlo.constant dense<1.5> : tensor<f32>
      %6 = "stablehlo.dynamic_broadcast_in_dim"(%5, %3) <{broadcast_dimensions = array<i64>,
        known_expanding_dimensions = array<i64>, known_nonexpanding_dimensions = array<i64>}>
        : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
      %7 = "stablehlo.add"(%4, %6) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      func.return %7 : tensor<?xf32>
    }""",
    "products": """
    func.func @main(%x: tensor<2x8x8x3xf32>, %w: tensor<3x3x3x4xf32>, %a: tensor<2x3x4xf32>, %b: tensor<2x4x5xf32>)
        -> (tensor<2x8x8x4xf32>, tensor<2x3x5xf32>) {
      %0 = "stablehlo.convolution"(%x, %w) <{window_strides = array<i64: 1, 1>,
        padding = dense<1> : tensor<2x2xi64>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>,
        window_reversal = array<i1: false, false>,
        dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,
        feature_group_count = 1 : i64, batch_group_count = 1 : i64,
        precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision HIGHEST>]}>
        : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x8x8x4xf32>
      %1 = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0],
        rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}>
        : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
      func.return %0, %1 : tensor<2x8x8x4xf32>, tensor<2x3x5xf32>
    }""",
    "regions": """
    func.func @main(%x: tensor<4x5xf32>, %i: tensor<2x1xi32>, %n: tensor<i32>)
        -> (tensor<4xf32>, tensor<2x5xf32>, tensor<4x5xf32>, tensor<i32>) {
      %0 = stablehlo.constant dense<0.0> : tensor<f32>
      %1 = "stablehlo.reduce"(%x, %0) <{dimensions = array<i64: 1>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %7 = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%7) : (tensor<f32>) -> ()
      }) : (tensor<4x5xf32>, tensor<f32>) -> tensor<4xf32>
      %2 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
        collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 5>,
        indices_are_sorted = false}> : (tensor<4x5xf32>, tensor<2x1xi32>) -> tensor<2x5xf32>
      %3 = "stablehlo.scatter"(%x, %i, %2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
        inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>,
        indices_are_sorted = false, unique_indices = false}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        "stablehlo.return"(%b) : (tensor<f32>) -> ()
      }) : (tensor<4x5xf32>, tensor<2x1xi32>, tensor<2x5xf32>) -> tensor<4x5xf32>
      %4 = "stablehlo.while"(%n) ({
      ^bb0(%c: tensor<i32>):
        %7 = stablehlo.constant dense<10> : tensor<i32>
        %8 = "stablehlo.compare"(%c, %7) <{comparison_direction = #stablehlo<comparison_direction LT>}>
          : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "stablehlo.return"(%8) : (tensor<i1>) -> ()
      }, {
      ^bb0(%c: tensor<i32>):
        %7 = "stablehlo.add"(%c, %c) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        "stablehlo.return"(%7) : (tensor<i32>) -> ()
      }) : (tensor<i32>) -> tensor<i32>
      func.return %1, %2, %3, %4 : tensor<4xf32>, tensor<2x5xf32>, tensor<4x5xf32>, tensor<i32>
    }""",
    "state": """
    "ml_program.global"() <{sym_name = "count", type = tensor<i32>, is_mutable, value = dense<0> : tensor<i32>,
      sym_visibility = "private"}> : () -> ()
    func.func @main(%x: tensor<i32>, %c: i1) -> tensor<i32> {
      "cf.assert"(%c) <{msg = "sizes differ"}> : (i1) -> ()
      %0 = "ml_program.global_load"() <{global = @count}> : () -> tensor<i32>
      %1 = "stablehlo.add"(%0, %x) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "ml_program.global_store"(%1) <{global = @count}> : (tensor<i32>) -> ()
      func.return %1 : tensor<i32>
    }""",
}

BROKEN = {
    "an operand too many": (
        '%1 = "stablehlo.negate"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>',
        "can't have 2 operands",
    ),
    "no dimension": (
        '%1 = "stablehlo.concatenate"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>',
        "needs the property 'dimension'",
    ),
    "another kind of property": (
        '%1 = "stablehlo.transpose"(%x) <{permutation = 0 : i64}> : (tensor<2xf32>) -> tensor<2xf32>',
        "the property 'permutation' of stablehlo.transpose can't be 0 : i64",
    ),
    "another element type": (
        '%1 = "stablehlo.abs"(%x) : (tensor<2xf32>) -> tensor<2xf32>\n'
        '%2 = "stablehlo.tanh"(%x) : (tensor<2xf32>) -> tensor<2xf64>',
        "must have one element type",
    ),
    "another shape": ('%1 = "stablehlo.tanh"(%x) : (tensor<2xf32>) -> tensor<3xf32>', "must have one shape"),
    "no booleans": (
        '%1 = "stablehlo.compare"(%x, %x) <{comparison_direction = #stablehlo<comparison_direction EQ>}>'
        " : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>",
        "must be booleans",
    ),
    "an unknown direction": (
        '%1 = "stablehlo.compare"(%x, %x) <{comparison_direction = #stablehlo<comparison_direction UP>}>'
        " : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>",
        "'UP' is not a comparison_direction",
    ),
    "an unknown role": (
        '%1 = "stablehlo.dot_general"(%x, %x) <{dot_dimension_numbers = #stablehlo.dot<lhs = [0]>}>'
        " : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>",
        "'lhs' is not one of the dimensions of #stablehlo.dot",
    ),
    "a layout without a batch": (
        '%1 = "stablehlo.abs"(%x) {a = #stablehlo.conv<[0, f]x[i, o]->[b, f]>} : (tensor<2xf32>) -> tensor<2xf32>',
        "a layout should have b, f",
    ),
    "an op that there is not": ('%1 = "stablehlo.frobnicate"(%x) : (tensor<2xf32>) -> tensor<2xf32>', "frobnicate"),
    "another number of regions": (
        '%1 = "stablehlo.reduce"(%x, %x) <{dimensions = array<i64: 0>}>'
        " : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>",
        "can't have 0 regions",
    ),
}


def parse(text: str) -> ModuleOp:
    """Returns a text's module."""
    return IRParser(text).parse_module()


@pytest.mark.parametrize("name", TEXTS)
def test_text_is_read_and_printed_alike(name: str) -> None:
    module = parse(TEXTS[name])
    verify(module)
    text = oracle.whole_text(module)
    assert oracle.whole_text(parse(text)) == text


def test_tensorflow_reads_and_verifies_printed_text() -> None:
    assert oracle.problems({name: oracle.whole_text(parse(text)) for name, text in TEXTS.items()}) == {}


@pytest.mark.parametrize("name", BROKEN)
def test_ops_that_contradict_the_table_are_rejected(name: str) -> None:
    op, message = BROKEN[name]
    with pytest.raises((ParseError, VerifyError)) as refused:
        verify(parse(f"func.func @main(%x: tensor<2xf32>) {{\n{op}\nfunc.return\n}}"))
    assert message in str(refused.value)


def test_roles_and_layouts_are_read_in_any_order() -> None:
    text = "#stablehlo.gather<index_vector_dim = 2, start_index_map = [0, 1], offset_dims = []>"
    module = parse(f"func.func @main() attributes {{a = {text}}} {{ func.return }}")
    printed = str(next(iter(module.ops)).attributes["a"])
    assert printed == "#stablehlo.gather<start_index_map = [0, 1], index_vector_dim = 2>"


def test_every_kind_in_the_table_is_checked() -> None:
    kinds = {prop.kind for each in stablehlo.definitions().values() for prop in each.properties.values()}
    assert kinds == set(stablehlo.CHECKS) & kinds
    assert all(stablehlo.class_of(name) is stablehlo.class_of(name) for name in stablehlo.definitions())
