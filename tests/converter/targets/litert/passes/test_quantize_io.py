"""The pass `quantize-io`."""

from __future__ import annotations

import pytest

from tests.converter.pass_texts import FileCheck
from tests.support.run_text import parse
from tfconvert.converter.targets.litert.passes.quantize_io import QuantizeIo
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.settings.quantization import Quantize

INT8, UINT8 = QuantizeIo(Quantize("int8", io="int8")), QuantizeIo(Quantize("int8", io="uint8"))
INT16, FLOATS = QuantizeIo(Quantize("int16", io="int16")), QuantizeIo(Quantize("int8"))

X, Q, R = "tensor<4xf32>", "tensor<4x!quant.uniform<i8:f32, 0.5:3>>", "tensor<4x!quant.uniform<i8:f32, 0.25:-128>>"
SEEN = "attributes {tfl.ranges = array<f32: -1.0, 1.0>}"

RELU = f"""
    func.func @main(%x: {X}) -> {X} {SEEN} {{
      %0 = "tfl.quantize"(%x) : ({X}) -> {Q}
      %1 = "tfl.relu"(%0) {{tfl.ranges = array<f32: 0.0, 1.0>}} : ({Q}) -> {R}
      %2 = "tfl.dequantize"(%1) : ({R}) -> {X}
      func.return %2 : {X}
    }}
"""


def test_integers_without_a_sign_are_moved(filecheck: FileCheck) -> None:
    filecheck(
        UINT8,
        RELU
        + f"""
    // CHECK: func.func @main(%x: tensor<4x!quant.uniform<u8:f32, 0.5:131>>) -> tensor<4x!quant.uniform<u8:f32, 0.25>>
    // CHECK-NEXT: [[Q:%[0-9]+]] = "tfl.quantize"(%x){{{{.*}}}} -> {Q}
    // CHECK-NEXT: [[R:%[0-9]+]] = "tfl.relu"([[Q]])
    // CHECK-NEXT: [[U:%[0-9]+]] = "tfl.quantize"([[R]])
    // CHECK-NEXT: func.return [[U]]
    """,
    )


def test_floats_stay_by_default_but_not_the_ranges(filecheck: FileCheck) -> None:
    filecheck(
        FLOATS,
        RELU
        + f"""
    // CHECK: func.func @main(%x: {X}) -> {X}
    // CHECK-NOT: tfl.ranges
    """,
    )


def test_inputs_and_outputs_may_differ(filecheck: FileCheck) -> None:
    filecheck(
        QuantizeIo(Quantize("int8", io=("uint8", "float32"))),
        RELU
        + f"""
    // CHECK: func.func @main(%x: tensor<4x!quant.uniform<u8:f32, 0.5:131>>) -> {X}
    // CHECK-NEXT: [[Q:%[0-9]+]] = "tfl.quantize"(%x){{{{.*}}}} -> {Q}
    // CHECK-NEXT: [[R:%[0-9]+]] = "tfl.relu"([[Q]])
    // CHECK-NEXT: [[F:%[0-9]+]] = "tfl.dequantize"([[R]])
    // CHECK-NEXT: func.return [[F]] : {X}
    """,
    )
    filecheck(
        QuantizeIo(Quantize("int8", io=("float32", "int8"))),
        RELU
        + f"""
    // CHECK: func.func @main(%x: {X}) -> {R}
    // CHECK-NEXT: [[Q:%[0-9]+]] = "tfl.quantize"(%x) : ({X}) -> {Q}
    // CHECK-NEXT: [[R:%[0-9]+]] = "tfl.relu"([[Q]])
    // CHECK-NEXT: func.return [[R]]
    """,
    )


def test_an_input_that_is_an_output_may_change_its_type(filecheck: FileCheck) -> None:
    filecheck(
        QuantizeIo(Quantize("int8", io=("int8", "float32"))),
        f"""
    func.func @main(%x: {X}) -> {X} {SEEN} {{
      func.return %x : {X}
    }}
    // CHECK: func.func @main(%x: tensor<4x!quant.uniform<i8:f32, 0.007843138:-1>>) -> {X}
    // CHECK-NEXT: [[F:%[0-9]+]] = "tfl.dequantize"(%x)
    // CHECK-NEXT: func.return [[F]] : {X}
    """,
    )


def test_what_uses_floats_gets_them(filecheck: FileCheck) -> None:
    # The input has users of integers, of other integers and of floats; and is an output itself.
    filecheck(
        INT8,
        f"""
    func.func @main(%x: {X}) -> ({R}, {R}, {X}, {X}) {SEEN} {{
      %0 = "tfl.quantize"(%x) : ({X}) -> {Q}
      %1 = "tfl.relu"(%0) : ({Q}) -> {R}
      %2 = "tfl.quantize"(%x) : ({X}) -> {R}
      %3 = "tfl.sin"(%x) {{tfl.ranges = array<f32: -1.0, 1.0>}} : ({X}) -> {X}
      func.return %1, %2, %3, %x : {R}, {R}, {X}, {X}
    }}
    // CHECK: func.func @main(%x: {Q})
    // CHECK-NEXT: [[F:%[0-9]+]] = "tfl.dequantize"(%x)
    // CHECK-NEXT: [[A:%[0-9]+]] = "tfl.relu"(%x)
    // CHECK-NEXT: [[B:%[0-9]+]] = "tfl.quantize"(%x) : ({Q}) -> {R}
    // CHECK-NEXT: [[S:%[0-9]+]] = "tfl.sin"([[F]])
    // CHECK-NEXT: [[C:%[0-9]+]] = "tfl.quantize"([[S]])
    // CHECK-NEXT: func.return [[A]], [[B]], [[C]], %x
    """,
    )


def test_an_input_that_only_floats_use_becomes_integers(filecheck: FileCheck) -> None:
    filecheck(
        INT16,
        f"""
    func.func @main(%x: {X}) -> tensor<4xi32> {SEEN} {{
      %0 = "tfl.mul"(%x, %x) : ({X}, {X}) -> {X}
      %1 = "tfl.cast"(%0) : ({X}) -> tensor<4xi32>
      func.return %1 : tensor<4xi32>
    }}
    // CHECK: func.func @main(%x: tensor<4x!quant.uniform<i16:f32, 6.1035156e-05>>) -> tensor<4xi32>
    // CHECK-NEXT: [[F:%[0-9]+]] = "tfl.dequantize"(%x)
    // CHECK-NEXT: "tfl.mul"([[F]], [[F]])
    """,
    )


def test_ends_that_only_floats_use_may_stay_floats(filecheck: FileCheck) -> None:
    filecheck(
        QuantizeIo(Quantize("int8", io="int8", float_ends=True)),
        f"""
    func.func @main(%x: {X}, %y: {X}) -> ({X}, {X}) {SEEN} {{
      %0 = "tfl.ceil"(%x) : ({X}) -> {X}
      %1 = "tfl.quantize"(%y) : ({X}) -> tensor<4x!quant.uniform<i8:f32, 0.5>>
      %2 = "tfl.dequantize"(%1) : (tensor<4x!quant.uniform<i8:f32, 0.5>>) -> {X}
      func.return %0, %2 : {X}, {X}
    }}
    // CHECK: func.func @main(%x: tensor<4xf32>, %y: tensor<4x!quant.uniform<i8:f32, 0.5>>)
    // CHECK-NEXT: [[C:%[0-9]+]] = "tfl.ceil"(%x)
    // CHECK-NEXT: func.return [[C]], %y
    """,
    )


@pytest.mark.parametrize("quantize", [INT8, UINT8])
def test_an_output_may_be_returned_twice(filecheck: FileCheck, quantize: QuantizeIo) -> None:
    text = RELU.replace(f") -> {X} {SEEN}", f") -> ({X}, {X}) {SEEN}").replace(f"%2 : {X}\n", f"%2, %2 : {X}, {X}\n")
    filecheck(
        quantize,
        text
        + """
    // CHECK: func.func @main
    // CHECK-NOT: "tfl.dequantize"
    """,
    )


def test_a_constant_needs_no_sample(filecheck: FileCheck) -> None:
    filecheck(
        INT8,
        f"""
    func.func @main(%n: tensor<4xi32>) -> ({X}, tensor<4xi32>) {{
      %0 = "tfl.pseudo_const"() <{{value = dense<[0.0, 1.0, 2.0, 2.55]> : {X}}}> : () -> {X}
      func.return %0, %n : {X}, tensor<4xi32>
    }}
    // CHECK: func.func @main(%n: tensor<4xi32>) -> (tensor<4x!quant.uniform<i8:f32, 0.01:-128>>, tensor<4xi32>)
    // CHECK: dense<[-128, -28, 72, 127]> : tensor<4xi8>
    """,
    )


def test_only_what_can_be_called_changes(filecheck: FileCheck) -> None:
    filecheck(
        INT8,
        f"""
    func.func private @other(%x: {X}) -> {X} {{
      func.return %x : {X}
    }}
    func.func @main(%x: {X}) -> {X} {SEEN} {{
      func.return %x : {X}
    }}
    // CHECK: func.func private @other(%x: {X}) -> {X}
    // CHECK: func.func @main(%x: tensor<4x!quant.uniform<i8:f32, 0.007843138:-1>>) -> tensor<4x!quant
    // CHECK-NEXT: func.return %x
    """,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f'func.func @main(%x: {X}) {{\n "tfl.sin"(%x) : ({X}) -> {X}\n func.return\n }}', "an input of 'main'"),
        (
            f'func.func @main(%n: tensor<4xi32>) -> {X} {{\n %0 = "tfl.cast"(%n) : (tensor<4xi32>) -> {X}\n '
            f"func.return %0 : {X}\n }}",
            "an output of 'main'",
        ),
        (
            f"func.func @main() -> {X} {{\n "
            f'%0 = "tfl.pseudo_const"() <{{value = dense<0x7F800000> : {X}}}> : () -> {X}\n '
            f"func.return %0 : {X}\n }}",
            "elements that are not finite",
        ),
    ],
)
def test_ranges_must_be_known(text: str, message: str) -> None:
    with pytest.raises(ConversionError, match=message) as caught:
        INT8.apply(parse(text))
    assert caught.value.code == "unknown-range"
