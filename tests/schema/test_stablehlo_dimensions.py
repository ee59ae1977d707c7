"""StableHLO ops whose dimensions aren't those of their operands and results are refused before anything reads them."""

from __future__ import annotations

import pytest

from tests.converter.from_stablehlo.programs import program
from tfconvert.importers.mlir import import_mlir
from tfconvert.schema.diagnostics import ConversionError

_PRODUCT = "#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
_ROWS = "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 3"
_LAYOUTS = "#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>"
_EQUAL = "#stablehlo<comparison_direction EQ>"

# An op, its properties, its operands, their types, and that of its result.
BROKEN: dict[str, tuple[str, str, str, list[str], str]] = {
    "axes": ("reverse", "dimensions = array<i64: 2>", "%a", ["2x3xf32"], "2x3xf32"),
    "axis of a size": ("get_dimension_size", "dimension = 2 : i64", "%a", ["?x3xf32"], "i32"),
    "axis of numbers": ("iota", "iota_dimension = 1 : i64", "", [], "3xi32"),
    "batch normalization": (
        "batch_norm_inference",
        "epsilon = 1.0 : f32, feature_index = 2 : i64",
        "%a, %b, %b, %b, %b",
        ["2x3xf32", "3xf32"],
        "2x3xf32",
    ),
    "bits": ("reduce_precision", "exponent_bits = 0 : i32, mantissa_bits = 3 : i32", "%a", ["2xf32"], "2xf32"),
    "booleans and floats": ("and", "", "%a, %a", ["2xf32"], "2xf32"),
    "bytes and floats": ("popcnt", "", "%a", ["2xf32"], "2xf32"),
    "clamp": ("clamp", "", "%a, %b, %a", ["2xf32", "3xf32"], "3xf32"),
    "comparison": ("compare", f"comparison_direction = {_EQUAL}", "%a, %a", ["2xf32"], "3xi1"),
    "concatenated sizes": ("concatenate", "dimension = 0 : i64", "%a, %b", ["2xf32", "3xf32"], "4xf32"),
    "contracted sizes": (
        "dot_general",
        f"dot_dimension_numbers = {_PRODUCT}",
        "%a, %b",
        ["2x3xf32", "4x5xf32"],
        "2x5xf32",
    ),
    "conversion": ("convert", "", "%a", ["2xf32"], "3xi32"),
    "elements": ("reshape", "", "%a", ["2x3xf32"], "5xf32"),
    "groups": (
        "convolution",
        f"dimension_numbers = {_LAYOUTS}, feature_group_count = 2 : i64, batch_group_count = 1 : i64",
        "%a, %b",
        ["1x4x3xf32", "2x3x4xf32"],
        "1x3x4xf32",
    ),
    "index vector": (
        "gather",
        f"dimension_numbers = #stablehlo.gather<{_ROWS}>, slice_sizes = array<i64: 1, 3>",
        "%a, %b",
        ["4x3xf32", "2x1xi32"],
        "2x3xf32",
    ),
    "lengths": (
        "fft",
        "fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 8>",
        "%a",
        ["2x8xf32"],
        "2x8xcomplex<f32>",
    ),
    "limits": (
        "slice",
        "start_indices = array<i64: 0>, limit_indices = array<i64: 68719476737>, strides = array<i64: 1>",
        "%a",
        ["4xf32"],
        "4xf32",
    ),
    "length of a slice": (
        "slice",
        "start_indices = array<i64: 1>, limit_indices = array<i64: 4>, strides = array<i64: 2>",
        "%a",
        ["4xf32"],
        "3xf32",
    ),
    "matrices": ("cholesky", "lower = true", "%a", ["2x3xf32"], "2x3xf32"),
    "order": ("transpose", "permutation = array<i64: 0, 0>", "%a", ["2x3xf32"], "2x2xf32"),
    "other rank": ("broadcast_in_dim", "broadcast_dimensions = array<i64: 0, 2>", "%a", ["2x3xf32"], "2x3xf32"),
    "other size": ("broadcast_in_dim", "broadcast_dimensions = array<i64: 1>", "%a", ["2xf32"], "4x3xf32"),
    "padding of 32 bits": (
        "convolution",
        f"dimension_numbers = {_LAYOUTS}, padding = dense<0> : tensor<1x2xi32>, feature_group_count = 1 : i64, "
        "batch_group_count = 1 : i64",
        "%a, %b",
        ["1x4x3xf32", "2x3x4xf32"],
        "1x3x4xf32",
    ),
    "paddings": (
        "pad",
        "edge_padding_low = array<i64: 1>, edge_padding_high = array<i64: 0>, interior_padding = array<i64: 0>",
        "%a, %b",
        ["2xf32", "f32"],
        "5xf32",
    ),
    "paddings that take away more than there is": (
        "pad",
        "edge_padding_low = array<i64: -5>, edge_padding_high = array<i64: 0>, interior_padding = array<i64: 0>",
        "%a, %b",
        ["3xf32", "f32"],
        "7xf32",
    ),
    "paddings that take away all of a batch": (
        "pad",
        "edge_padding_low = array<i64: 0, -2>, edge_padding_high = array<i64: 0, -2>, "
        "interior_padding = array<i64: 0, 0>",
        "%a, %b",
        ["?x3xf32", "f32"],
        "?x?xf32",
    ),
    "numbers of the same bits": ("bitcast_convert", "", "%a", ["2x4xi8"], "2x4xf32"),
    "other numbers of the same bits": ("bitcast_convert", "", "%a", ["2xf32"], "3xi32"),
    "product": ("dot", "", "%a, %b", ["2x3xf32", "2x3xf32"], "2x3xf32"),
    "rank of a product": ("dot", "", "%a, %b", ["2x3xf32", "3x4xf32"], "2xf32"),
    "selection": ("select", "", "%a, %b, %b", ["3xi1", "2xf32"], "2xf32"),
    "scalar of a size": ("get_dimension_size", "dimension = 0 : i64", "%a", ["?x3xf32"], "1xi32"),
    "shape": ("dynamic_reshape", "", "%a, %b", ["?xf32", "3xi32"], "?x2xf32"),
    "slice sizes": ("dynamic_slice", "slice_sizes = array<i64: 5>", "%a, %b", ["4xf32", "i32"], "5xf32"),
    "gathered sizes": (
        "gather",
        f"dimension_numbers = #stablehlo.gather<{_ROWS.replace('= 3', '= 1')}>, slice_sizes = array<i64: 1, 3>",
        "%a, %b",
        ["4x3xf32", "2x1xi32"],
        "2x4xf32",
    ),
    "gathered rows": (
        "gather",
        f"dimension_numbers = #stablehlo.gather<{_ROWS.replace('= 3', '= 1')}>, slice_sizes = array<i64: 1, 3>",
        "%a, %b",
        ["4x3xf32", "2x1xi32"],
        "3x3xf32",
    ),
    "windows": (
        "convolution",
        f"dimension_numbers = {_LAYOUTS}, feature_group_count = 1 : i64, batch_group_count = 1 : i64",
        "%a, %b",
        ["1x4x3xf32", "2x3x4xf32"],
        "1x4x4xf32",
    ),
    "windows of another batch": (
        "convolution",
        f"dimension_numbers = {_LAYOUTS}, feature_group_count = 1 : i64, batch_group_count = 1 : i64",
        "%a, %b",
        ["1x4x3xf32", "2x3x4xf32"],
        "2x3x4xf32",
    ),
    "starts": ("dynamic_update_slice", "", "%a, %b", ["4xf32", "2xf32"], "4xf32"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_contradictions_are_refused(name: str) -> None:
    op, properties, operands, given, result = BROKEN[name]
    kinds, returned = [f"tensor<{each}>" for each in given], f"tensor<{result}>"
    types = ", ".join(kinds["ab".index(each[1])] for each in operands.split(", ") if each)
    properties = f" <{{{properties}}}>" if properties else ""
    call = f'"stablehlo.{op}"({operands}){properties} : ({types}) -> {returned}'
    with pytest.raises(ConversionError, match=r"do not fit its operands and results|must be|can't be"):
        import_mlir(program(f"    %0 = {call}\n    return %0 : {returned}", kinds, [returned]), "model.mlir")


def test_sizes_that_a_constant_holds_are_those_of_the_result() -> None:
    shape, kind = "%s = stablehlo.constant dense<[3, 2]> : tensor<2xi32>", "tensor<2x3xf32>"
    call = f"stablehlo.dynamic_reshape %a, %s : (tensor<6xf32>, tensor<2xi32>) -> {kind}"
    with pytest.raises(ConversionError, match=r"the sizes of stablehlo\.dynamic_reshape do not fit"):
        import_mlir(
            program(f"    {shape}\n    %0 = {call}\n    return %0 : {kind}", ["tensor<6xf32>"], [kind]), "m.mlir"
        )


_BODY = """ ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    })"""

# The properties of a reduction of windows, its operand, and the result that it has.
_WINDOWS = [
    ("window_dimensions = array<i64: 3>", "9xf32", 7),
    ("window_dimensions = array<i64: 3>, window_strides = array<i64: 4>", "9xf32", 2),
    ("window_dimensions = array<i64: 3>, base_dilations = array<i64: 2>", "9xf32", 15),
    ("window_dimensions = array<i64: 3>, window_dilations = array<i64: 2>", "9xf32", 5),
    ("window_dimensions = array<i64: 3>, padding = dense<[[1, -2]]> : tensor<1x2xi64>", "9xf32", 6),
    ("window_dimensions = array<i64: 3>", "2xf32", 0),
]


@pytest.mark.parametrize(("properties", "operand", "size"), _WINDOWS)
def test_a_reduction_of_windows_has_a_result_for_each(properties: str, operand: str, size: int) -> None:
    for result in (size, size + 1):
        kind = f"tensor<{result}xf32>"
        types = f"(tensor<{operand}>, tensor<f32>) -> {kind}"
        call = f'"stablehlo.reduce_window"(%a, %b) <{{{properties}}}>{_BODY} : {types}'
        text = program(f"    %0 = {call}\n    return %0 : {kind}", [f"tensor<{operand}>", "tensor<f32>"], [kind])
        if result == size:
            import_mlir(text, "model.mlir")
        else:
            with pytest.raises(ConversionError, match=r"the sizes of stablehlo\.reduce_window do not fit"):
                import_mlir(text, "model.mlir")
