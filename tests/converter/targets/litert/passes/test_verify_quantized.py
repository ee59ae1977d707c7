"""The pass `verify-quantized`."""

from __future__ import annotations

import pytest

from tests.converter.pass_texts import FileCheck
from tests.support.run_text import parse
from tfconvert.converter.targets.litert.passes.verify_quantized import VerifyQuantized
from tfconvert.schema.diagnostics import ConversionError

I8, WIDE, U8 = "!quant.uniform<i8:f32, 0.5:3>", "!quant.uniform<i8:f32, 0.75:3>", "!quant.uniform<u8:f32, 0.5:3>"
I16, WIDE_16 = "!quant.uniform<i16:f32, 0.5>", "!quant.uniform<i16:f32, 0.75>"
SOFTMAX = "!quant.uniform<i8:f32, 0.00390625:-128>"
W, W_OFFSET = "!quant.uniform<i8:f32, 0.25>", "!quant.uniform<i8:f32, 0.25:1>"
W_CHANNELS = "!quant.uniform<i8:f32:0, {0.25,0.125}>"
B, B_CHANNELS = "!quant.uniform<i32:f32, 0.125>", "!quant.uniform<i32:f32:0, {0.125,0.0625}>"
B_OTHER, B_64 = "!quant.uniform<i32:f32, 0.5>", "!quant.uniform<i64:f32, 0.125>"

CONV = 'padding = "SAME", stride_w = 1 : i32, stride_h = 1 : i32'


def _qconst(name: str, shape: str, element: str) -> str:
    """Returns a quantized constant."""
    storage = element.partition("<")[2].partition(":")[0].replace("u8", "ui8")
    stored, kind = f"{shape}x{storage}", f"tensor<{shape}x{element}>"
    return f'{name} = "tfl.pseudo_qconst"() <{{qtype = {kind}, value = dense<1> : tensor<{stored}>}}> : () -> {kind}\n'


def _unary(name: str, operand: str, result: str, options: str = "") -> str:
    """Returns a function with an op of one operand."""
    x, y = f"tensor<2x4x{operand}>", f"tensor<2x4x{result}>"
    properties = f" <{{{options}}}>" if options else ""
    return f"""func.func @main(%x: {x}) -> {y} {{
      %y = "tfl.{name}"(%x){properties} : ({x}) -> {y}
      func.return %y : {y}
    }}"""


def _binary(name: str, one: str, other: str, result: str, options: str = "") -> str:
    """Returns a function with an op of two operands."""
    x, y, z = (f"tensor<2x4x{element}>" for element in (one, other, result))
    properties = f" <{{{options}}}>" if options else ""
    return f"""func.func @main(%x: {x}, %y: {y}) -> {z} {{
      %z = "tfl.{name}"(%x, %y){properties} : ({x}, {y}) -> {z}
      func.return %z : {z}
    }}"""


def _product(name: str, x: str, w: str, bias: str, result: str, options: str = CONV, w_shape: str = "2x1x1x4") -> str:
    """Returns a function with an image, constant weights and a constant bias, which is absent if it is empty."""
    operand, filters, y = f"tensor<1x3x3x4x{x}>", f"tensor<{w_shape}x{w}>", f"tensor<1x3x3x2x{result}>"
    size = w_shape[-1] if name == "depthwise_conv_2d" else "2"
    kind = f"tensor<{size}x{bias}>" if bias else "none"
    offsets = '%b = "tfl.no_value"() <{value}> : () -> none\n'
    if bias == "f32":
        offsets = f'%b = "tfl.pseudo_const"() <{{value = dense<1.0> : {kind}}}> : () -> {kind}\n'
    elif bias:
        offsets = _qconst("%b", size, bias)
    return f"""func.func @main(%x: {operand}) -> {y} {{
      {_qconst("%w", w_shape, w)}
      {offsets}
      %y = "tfl.{name}"(%x, %w, %b) <{{{options}}}> : ({operand}, {filters}, {kind}) -> {y}
      func.return %y : {y}
    }}"""


DEPTHWISE = f"{CONV}, depth_multiplier = 1 : i32"
DENSE = 'fused_activation_function = "NONE"'
SAME = "the scales and zero points are not all equal"
JOINED = 'axis = 0 : i32, fused_activation_function = "NONE"'
RESHAPED = "new_shape = [2 : i32, 4 : i32]"


@pytest.mark.parametrize(
    "text",
    [
        _unary("softmax", I8, SOFTMAX, "beta = 1.0 : f32"),
        _unary("relu", I8, WIDE),
        _unary("sin", "f32", "f32"),
        _unary("dequantize", I8, "f32"),
        _unary("dequantize", "f16", "f32"),
        _unary("cast", I8, "f32"),
        _binary("mul", I8, WIDE, WIDE),
        _binary("maximum", I8, I8, I8),
        _binary("concatenation", U8, "!quant.uniform<u8:f32, 0.25>", U8, JOINED),
        _product("conv_2d", I8, W, B, I8),
        _product("conv_2d", I8, W_CHANNELS, B_CHANNELS, I8),
        _product("conv_2d", "f32", W, "f32", "f32"),
        _product("conv_2d", "f32", W_CHANNELS, "f32", "f32", w_shape="2x1x1x2"),
        _product("conv_2d", I16, W, B_64, I16),
        _product("fully_connected", I8, W, "", I8, DENSE, "2x4"),
    ],
)
def test_what_the_kernels_take_passes_unchanged(filecheck: FileCheck, text: str) -> None:
    module = filecheck(VerifyQuantized(), text + "\n// CHECK: func.func")
    assert str(module) == str(parse(text, with_relations=False))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Same-scale operators.
        (_binary("maximum", I8, WIDE, I8), "LiteRT computes nonsense from i8, i8 -> i8: " + SAME),
        (_unary("reshape", I8, WIDE, RESHAPED), "LiteRT computes nonsense from i8 -> i8: " + SAME),
        (_binary("concatenation", I16, WIDE_16, I16, JOINED), "LiteRT computes nonsense from i16 -> i16: " + SAME),
        (_binary("concatenation", I8, WIDE, I8, JOINED), "LiteRT refuses i8 -> i8: " + SAME),
        (
            _unary("space_to_depth", I8, WIDE, "block_size = 1 : i32"),
            "LiteRT's own kernels compute nonsense from i8 -> i8, and XNNPACK refuses it: " + SAME,
        ),
        # Results of a fixed scale.
        (
            _unary("softmax", I8, WIDE, "beta = 1.0 : f32"),
            "LiteRT refuses i8 -> i8: the result's scale must be 0.00390625 and its zero point -128",
        ),
        (
            _unary("tanh", I16, WIDE_16),
            "LiteRT refuses i16 -> i16: the result's scale must be 3.0517578125e-05 and its zero point 0",
        ),
        (
            _unary("logistic", I8, WIDE),
            "LiteRT's own kernels refuse i8 -> i8, and XNNPACK takes it: "
            "the result's scale must be 0.00390625 and its zero point -128",
        ),
        # Types that a kernel does not know, or believes to know.
        (_unary("sin", I8, I8), "LiteRT refuses i8 -> i8"),
        (_unary("rsqrt", I16, I16), "LiteRT computes nonsense from i16 -> i16"),
        (_unary("dequantize", "!quant.uniform<i32:f32, 0.5>", "f32"), "LiteRT refuses i32 -> f32"),
        # Weights.
        (
            _product("conv_2d", I8, W_OFFSET, B, I8),
            "LiteRT refuses i8, constant i8, constant i32 -> i8: a constant's zero point is not 0",
        ),
        (
            _product("conv_2d", "f32", W_OFFSET, "f32", "f32"),
            "LiteRT computes nonsense from f32, constant i8, f32 -> f32: a zero point is not 0",
        ),
        (
            _product("conv_2d", "f32", W, "f32", "f32", w_shape="2x1x1x2"),
            "LiteRT's own kernels refuse f32, constant i8, f32 -> f32, and XNNPACK takes it: "
            "the convolution is in groups",
        ),
        (
            _product("conv_2d", "f32", "!quant.uniform<u8:f32, 0.25:128>", "f32", "f32"),
            "LiteRT computes nonsense from f32, constant u8, f32 -> f32",
        ),
        (
            _product("depthwise_conv_2d", "f32", W, "f32", "f32", DEPTHWISE, "1x1x1x4"),
            "LiteRT computes nonsense from f32, constant i8, f32 -> f32",
        ),
        (
            _product("depthwise_conv_2d", I16, "!quant.uniform<i4:f32, 0.25>", B_64, I16, DEPTHWISE, "1x1x1x4"),
            "LiteRT computes nonsense from i16, constant i4, constant i64 -> i16",
        ),
        # Biases.
        (_product("conv_2d", I8, W, "", I8), "LiteRT refuses i8, constant i8, absent -> i8"),
        (_product("conv_2d", I16, W, B, I16), "LiteRT computes nonsense from i16, constant i8, constant i32 -> i16"),
        (
            _product("conv_2d", I8, W, B_OTHER, I8),
            "LiteRT computes nonsense from i8, constant i8, constant i32 -> i8: "
            "the bias's scale is not that of the operand times that of the weights",
        ),
        (
            _product("fully_connected", I8, W, B, I16, DENSE, "2x4"),
            "LiteRT computes nonsense from i8, constant i8, constant i32 -> i16",
        ),
    ],
)
def test_what_the_kernels_do_not_take_is_an_error(text: str, expected: str) -> None:
    with pytest.raises(ConversionError) as caught:
        VerifyQuantized().apply(parse(text, with_relations=False))
    (problem,) = caught.value.diagnostics
    assert problem.code == "quantized-kernel"
    assert problem.message == expected


def test_a_gate_without_a_bias_is_an_error() -> None:
    """LiteRT's process would end."""
    call, state, cell = f"tensor<1x3x4x{I8}>", f"tensor<1x4x{I8}>", "tensor<1x4x!quant.uniform<i16:f32, 0.5>>"
    weights, bias = f"tensor<4x4x{W}>", f"tensor<4x{B}>"
    kinds = [call, *[weights] * 8, *["none"] * 3, "none", *[bias] * 3, "none", "none", state, cell, *["none"] * 4]
    names = ["%x", *["%w"] * 8, *["%n"] * 3, "%n", *["%b"] * 3, "%n", "%n", "%h", "%c", *["%n"] * 4]
    text = f"""func.func @main(%x: {call}, %h: {state}, %c: {cell}) -> {call} {{
      {_qconst("%w", "4x4", W)}
      {_qconst("%b", "4", B)}
      %n = "tfl.no_value"() : () -> none
      %y = "tfl.unidirectional_sequence_lstm"({", ".join(names)}) <{{fused_activation_function = "TANH",
          cell_clip = 0.0 : f32, proj_clip = 0.0 : f32, time_major = false}}> : ({", ".join(kinds)}) -> {call}
      func.return %y : {call}
    }}"""
    with pytest.raises(ConversionError) as caught:
        VerifyQuantized().apply(parse(text, with_relations=False))
    assert caught.value.diagnostics[0].message == (
        "LiteRT crashes on i8, constant i8, constant i32, i16 -> i8: a gate has no bias"
    )


def test_an_embedding_table_is_not_turned_to_floats_by_a_gather() -> None:
    ids = '%i = "tfl.pseudo_const"() <{value = dense<1> : tensor<3xi32>}> : () -> tensor<3xi32>'
    text = f"""func.func @main() -> tensor<3x4xf32> {{
      {_qconst("%t", "8x4", W)}
      {ids}
      %y = "tfl.gather"(%t, %i) <{{axis = 0 : i32, batch_dims = 0 : i32}}>
          : (tensor<8x4x{W}>, tensor<3xi32>) -> tensor<3x4xf32>
      func.return %y : tensor<3x4xf32>
    }}"""
    with pytest.raises(ConversionError) as caught:
        VerifyQuantized().apply(parse(text, with_relations=False))
    assert caught.value.diagnostics[0].message.startswith("LiteRT's own kernels refuse constant i8 -> f32, ")
    VerifyQuantized().apply(parse(text.replace("tensor<3x4xf32>", f"tensor<3x4x{W}>")))
    table = f"tensor<8x4x{W}>"
    lookup = text.replace("tfl.gather", "tfl.embedding_lookup").replace("(%t, %i)", "(%i, %t)")
    lookup = lookup.replace("<{axis = 0 : i32, batch_dims = 0 : i32}>", "")
    VerifyQuantized().apply(parse(lookup.replace(f"({table}, tensor<3xi32>)", f"(tensor<3xi32>, {table})")))


def test_all_problems_are_told_with_node_and_source_line() -> None:
    kind = f"tensor<2x4x{I8}>"
    text = f"""module {{
      func.func @main(%x: {kind}) -> {kind} {{
        %0 = "tfl.sin"(%x) : ({kind}) -> {kind} loc("layer/wave"("model.py":7:1))
        %1 = "tfl.relu"(%0) : ({kind}) -> {kind} loc("layer/relu")
        func.return %1 : {kind}
      }}
      func.func private @other(%x: {kind}) -> {kind} {{
        %0 = "tfl.cos"(%x) : ({kind}) -> {kind}
        func.return %0 : {kind}
      }}
    }}"""
    with pytest.raises(ConversionError) as caught:
        VerifyQuantized().apply(parse(text, with_relations=False))
    first, second = caught.value.diagnostics
    assert (first.op, first.node, first.location) == ("tfl.sin", "layer/wave", "model.py:7")
    assert "exclude=['layer/wave']" in first.hint
    assert (second.op, second.node) == ("tfl.cos", "")
    assert "exclude=['COS']" in second.hint
