"""The pieces of MLIR's own dialects: text both ways, and what the verifier refuses."""

from __future__ import annotations

import pytest

from tests.mlir import oracle
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects import upstream
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.dialects.upstream import AffineMapAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.errors import ParseError, VerifyError

TEXTS = {
    "shapes": """
    func.func @main(%x: tensor<?x4xf32>, %n: index) -> (tensor<?xf32>, tensor<?x2x2xf32>, tensor<?x?xf32>) {
      %0 = arith.constant 0 : index
      %1 = "tensor.dim"(%x, %0) : (tensor<?x4xf32>, index) -> index
      %2 = "tensor.collapse_shape"(%x) <{reassociation = [[0 : i64, 1 : i64]]}> : (tensor<?x4xf32>) -> tensor<?xf32>
      %3 = "tensor.expand_shape"(%x, %1) <{reassociation = [[0 : i64], [1 : i64, 2 : i64]],
        static_output_shape = array<i64: -9223372036854775808, 2, 2>}> : (tensor<?x4xf32>, index) -> tensor<?x2x2xf32>
      %4 = "flow.tensor.reshape"(%x, %1, %1, %n) <{operandSegmentSizes = array<i32: 1, 1, 2>}>
        : (tensor<?x4xf32>, index, index, index) -> tensor<?x?xf32>
      func.return %2, %3, %4 : tensor<?xf32>, tensor<?x2x2xf32>, tensor<?x?xf32>
    }""",
    "numbers": """
    func.func @main(%x: tensor<i32>) -> tensor<2xindex> {
      %0 = "tensor.extract"(%x) : (tensor<i32>) -> i32
      %1 = "arith.index_cast"(%0) : (i32) -> index
      %2 = arith.constant 3 : index
      %3 = arith.addi %1, %2 : index
      %4 = "arith.cmpi"(%1, %3) <{predicate = 2 : i64}> : (index, index) -> i1
      %5 = "arith.select"(%4, %1, %3) : (i1, index, index) -> index
      %6 = "tensor.from_elements"(%3, %5) : (index, index) -> tensor<2xindex>
      func.return %6 : tensor<2xindex>
    }""",
    "padding": """
    func.func @main(%x: tensor<?xf32>, %n: index, %c: f32) -> tensor<?xf32> {
      %0 = "tensor.pad"(%x, %n) <{static_low = array<i64: 1>, static_high = array<i64: -9223372036854775808>,
        operandSegmentSizes = array<i32: 1, 0, 1>}> ({
      ^bb0(%i: index):
        "tensor.yield"(%c) : (f32) -> ()
      }) : (tensor<?xf32>, index) -> tensor<?xf32>
      func.return %0 : tensor<?xf32>
    }""",
    "loops": """
    func.func @main(%x: tensor<4x5xf32>, %to: tensor<5x4xf32>) -> tensor<5x4xf32> {
      %0 = "linalg.generic"(%x, %to) <{indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>,
        affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>,
        #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>}> ({
      ^bb0(%a: f32, %b: f32):
        %1 = "linalg.index"() <{dim = 1 : i64}> : () -> index
        %2 = arith.addf %a, %a : f32
        "linalg.yield"(%2) : (f32) -> ()
      }) : (tensor<4x5xf32>, tensor<5x4xf32>) -> tensor<5x4xf32>
      func.return %0 : tensor<5x4xf32>
    }""",
    "weights": """
    "util.global"() <{sym_name = "w", type = tensor<4xf32>, sym_visibility = "private",
      initial_value = #flow.parameter.named<"model"::"layer/w"> : tensor<4xf32>}> : () -> ()
    func.func @main() -> tensor<4xf32> {
      %0 = "util.global.load"() <{global = @w}> : () -> tensor<4xf32>
      func.return %0 : tensor<4xf32>
    }""",
}

BROKEN = {
    "no segments": (
        '%1 = "tensor.insert_slice"(%x, %x) <{static_offsets = array<i64: 0>, static_sizes = array<i64: 2>,'
        " static_strides = array<i64: 1>}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>",
        "needs the property 'operandSegmentSizes'",
    ),
    "another element type": (
        '%1 = "tensor.collapse_shape"(%x) <{reassociation = [[0 : i64]]}> : (tensor<2xf32>) -> tensor<2xf64>',
        "must have one element type",
    ),
    "another end": (
        '%1 = "linalg.generic"(%x) <{indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types ='
        " [#linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 0, 1>}> ({\n^bb0(%a: f32):\n"
        '"stablehlo.return"(%x) : (tensor<2xf32>) -> ()\n}) : (tensor<2xf32>) -> tensor<2xf32>',
        "must be one block that ends in linalg.yield",
    ),
    "another kind of loop": (
        '%1 = "stablehlo.abs"(%x) {a = #linalg.iterator_type<serial>} : (tensor<2xf32>) -> tensor<2xf32>',
        "'serial' is not a kind of loop",
    ),
    "a map of nothing": (
        '%1 = "stablehlo.abs"(%x) {a = affine_map<d0>} : (tensor<2xf32>) -> tensor<2xf32>',
        "expected an affine map",
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


@pytest.mark.parametrize("name", BROKEN)
def test_ops_that_contradict_the_table_are_rejected(name: str) -> None:
    op, message = BROKEN[name]
    with pytest.raises((ParseError, VerifyError)) as refused:
        verify(parse(f"func.func @main(%x: tensor<2xf32>) {{\n{op}\nfunc.return\n}}"))
    assert message in str(refused.value)


def test_maps_are_made_of_numbers_and_expressions() -> None:
    assert str(AffineMapAttr.of(2, [1, "d0 * 2"])) == "affine_map<(d0, d1) -> (d1, d0 * 2)>"


def test_every_kind_in_the_table_is_checked() -> None:
    tables = [upstream.class_of(name) for name in upstream.definitions()]
    for each in tables:
        assert each is not None
        assert {prop.kind for prop in each.DEFINITION.properties.values()} <= set(each.TABLE.checks)
