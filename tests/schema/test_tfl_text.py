"""Options of `tfl` ops in the spellings of TensorFlow's MLIR: however they are written, the file is the same."""

from __future__ import annotations

import pytest

from tfconvert.exporters.tflite.model import export
from tfconvert.importers.mlir import import_mlir
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.tfl import TFLOp


def module_of(op: str, signature: str) -> str:
    """Returns the text of a module of one op, whose operands are the function's arguments."""
    operands, _, result = signature.partition(" -> ")
    types = [part for part in operands.strip("()").split(", ") if part]
    arguments = ", ".join(f"%{index}: {kind}" for index, kind in enumerate(types))
    values = ", ".join(f"%{index}" for index in range(len(types)))
    name, _, options = op.partition(" ")
    body = f'%r = "tfl.{name}"({values}) {options} : {signature}'
    return f"func.func @main({arguments}) -> {result} {{ {body} func.return %r : {result} }}"


def op_of(text: str) -> TFLOp:
    (function,) = import_mlir(text).ops
    op = function.regions[0].block.first_op
    assert isinstance(op, TFLOp)
    return op


ADD = "(tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>"
ONE = "(tensor<2xf32>) -> tensor<2xf32>"
POOL = "(tensor<1x6x6x2xf32>) -> tensor<1x2x2x2xf32>"
POOL_OPTIONS = (
    'stride_h = 3 : i32, stride_w = 3 : i32, filter_height = 3 : i32, filter_width = 3 : i32, padding = "VALID"'
)


@pytest.mark.parametrize(
    ("name", "options", "signature", "expected"),
    [
        ("add", 'fused_activation_function = "RELU"', ADD, {"fused_activation_function": "RELU"}),
        ("leaky_relu", "alpha = 1.5 : f32", ONE, {"alpha": 1.5}),
        ("average_pool_2d", POOL_OPTIONS, POOL, {"stride_h": 3, "filter_width": 3, "padding": "VALID"}),
        ("bucketize", "boundaries = [0.5 : f32, 2.0 : f32]", ONE.replace("-> tensor<2xf32>", "-> tensor<2xi32>"),
         {"boundaries": (0.5, 2.0)}),
    ],
)  # fmt: skip
def test_options_in_braces_are_options(name: str, options: str, signature: str, expected: dict[str, object]) -> None:
    braces, angles = (module_of(f"{name} {form}", signature) for form in (f"{{{options}}}", f"<{{{options}}}>"))
    op = op_of(braces)
    assert not op.attributes
    assert {key: tfl.attribute(op, key) for key in expected} == expected
    assert export(import_mlir(braces)).to_bytes() == export(import_mlir(angles)).to_bytes()


def test_constants_and_custom_ops_in_braces() -> None:
    constant = op_of(module_of("pseudo_const {value = dense<[1, 2]> : tensor<2xi32>}", "() -> tensor<2xi32>"))
    assert set(constant.properties) == {"value"}
    options = '{custom_code = "Mine", custom_option = #tfl<const_bytes : "0x01">}'
    custom = op_of(module_of(f"custom {options}", ONE))
    assert tfl.attribute(custom, "custom_code") == "Mine"
    assert tfl.python_value(custom.properties["custom_option"]) == b"\1"


PAD = "(tensor<4xf32>, tensor<1x2xi32>) -> tensor<6xf32>"
TABLE = "() -> tensor<1x!tf_type.resource>"


@pytest.mark.parametrize(
    ("op", "signature", "option", "value"),
    [
        ("mirror_pad <{mode = #tfl<mirror_pad_attr SYMMETRIC>}>", PAD, "mode", "SYMMETRIC"),
        ("mirror_pad {mode = #tfl<mirror_pad_attr SYMMETRIC>}", PAD, "mode", "SYMMETRIC"),
        ("hashtable {key_dtype = !tf_type.string, value_dtype = i64}", TABLE, "key_dtype", "STRING"),
        ("squeeze {squeeze_dims = [1, -1 : i64]}", ONE, "squeeze_dims", (1, -1)),
        ("squeeze {squeeze_dims = array<i64: 1, -1>}", ONE, "squeeze_dims", (1, -1)),
        ("softmax {beta = 2.0}", ONE, "beta", 2.0),
        ("arg_max {output_type = 4 : i32}", "(tensor<2xf32>, tensor<i32>) -> tensor<i64>", "output_type", "INT64"),
        ("arg_max", "(tensor<2xf32>, tensor<i32>) -> tensor<i64>", "output_type", "INT64"),
        ("shape", "(tensor<2xf32>) -> tensor<1xi32>", "out_type", "INT32"),
    ],
)  # fmt: skip
def test_spellings_of_values(op: str, signature: str, option: str, value: object) -> None:
    parsed = op_of(module_of(op, signature))
    assert not parsed.attributes
    assert tfl.attribute(parsed, option) == value
    assert tfl.attribute(op_of(str(parsed.parent_op())), option) == value


def test_functions_are_named_by_strings_or_symbols() -> None:
    for name in ('"init"', "@init"):
        op = op_of(f'func.func @main() {{ "tfl.call_once"() {{session_init_function = {name}}} : () -> () return }}')
        assert tfl.attribute(op, "session_init_function") == "init"


@pytest.mark.parametrize(
    ("op", "signature", "message"),
    [
        ('add {fused_activation = "RELU"}', ADD, "tfl.add has no property 'fused_activation'"),
        ("pseudo_const {value = dense<1> : tensor<i32>, s_param = 1}", "() -> tensor<i32>", "no property 's_param'"),
        ("pseudo_const <{value = dense<1> : tensor<i32>, s_param = 1}>", "() -> tensor<i32>", "no property 's_param'"),
        ('custom {custom_code = "Mine", axis = 1}', ONE, "tfl.custom has no property 'axis'"),
        ('add {fused_activation_function = "RELU9"}', ADD, "can't be \"RELU9\""),
        ("add {fused_activation_function = 99 : i32}", ADD, "can't be 99"),
        ("mirror_pad {mode = #tfl<mirror_pad_attr SIDEWAYS>}", PAD, "can't be \"SIDEWAYS\""),
        ("average_pool_2d {stride_h = 4294967296 : i64}", POOL, "can't be 4294967296"),
        ("hashtable {key_dtype = index}", TABLE, "can't be index"),
        ('add <{fused_activation_function = "RELU"}> {fused_activation_function = "RELU6"}', ADD, "have one value"),
    ],
)  # fmt: skip
def test_what_is_not_an_option_is_refused(op: str, signature: str, message: str) -> None:
    with pytest.raises(ConversionError) as caught:
        import_mlir(module_of(op, signature))
    assert message in str(caught.value)


def test_attributes_of_dialects_stay() -> None:
    op = op_of(module_of('add {_tfl_quant_trait = "fully_quantizable", tfl.operator = {}}', ADD))
    assert set(op.attributes) == {"_tfl_quant_trait", "tfl.operator"}
