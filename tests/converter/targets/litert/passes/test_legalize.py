"""The pass `legalize`."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from flatbuffers import flexbuffers

from tests.converter.pass_texts import FileCheck
from tests.support.run_text import parse
from tfconvert.converter.executor import executor
from tfconvert.converter.targets.litert.passes.legalize import Legalize
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tfl


def test_ops_and_constants(filecheck: FileCheck) -> None:
    filecheck(
        Legalize(),
        """
    // CHECK: [[AXES:%[0-9a-z_]+]] = "tfl.pseudo_const"() <{value = dense<[0, 1]> : tensor<2xi32>}>
    // CHECK: [[X:%[0-9a-z_]+]] = "tfl.relu"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    // CHECK: "tfl.sum"([[X]], [[AXES]]) <{keep_dims = false}>
    func.func @main(%x: tensor<2x3xf32>) -> tensor<f32> {
      %0 = "tf.Const"() <{value = dense<[0, 1]> : tensor<2xi32>}> : () -> tensor<2xi32>
      %1 = "tf.Relu"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
      %2 = "tf.Sum"(%1, %0) <{keep_dims = false}> : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<f32>
      func.return %2 : tensor<f32>
    }
    """,
    )


@pytest.mark.parametrize("allow_custom_ops", [False, True])
def test_a_constant_that_was_left_out_is_missed(allow_custom_ops: bool) -> None:
    module = parse("""
    func.func @main() -> tensor<2000xf32> {
      %0 = "tf.Const"() <{value = dense_resource<__elided__> : tensor<2000xf32>}> : () -> tensor<2000xf32>
      func.return %0 : tensor<2000xf32>
    }""")
    with pytest.raises(ConversionError, match="its value is missing"):
        Legalize(allow_custom_ops=allow_custom_ops).apply(module)
    with pytest.raises(ConversionError, match="left out"):
        executor.run(module, "main", [])


@pytest.mark.parametrize(
    ("constants", "last"),
    [
        (
            ["[1, 2, 0]", "[0, 9, 1]"],
            """
         %0 = "tf.Transpose"(%x, %c0) : (tensor<2x3x4xf32>, tensor<3xi32>) -> tensor<3x4x2xf32>
         %r = "tf.Transpose"(%0, %c1) : (tensor<3x4x2xf32>, tensor<3xi32>) -> tensor<*xf32>""",
        ),
        (
            ["[0, 0]", "[1]"],
            """
         %r = "tf.StridedSlice"(%x, %c0, %c0, %c1)
           : (tensor<2x3x4xf32>, tensor<2xi32>, tensor<2xi32>, tensor<1xi32>) -> tensor<*xf32>""",
        ),
        (
            ["[]"],
            """
         %r = "tf.ConcatV2"(%x, %x, %c0)
           : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<0xi32>) -> tensor<*xf32>""",
        ),
    ],
    ids=["no permutation", "bounds of several lengths", "no axis"],
)
def test_nonsense_is_refused_or_left_alone(constants: list[str], last: str) -> None:
    made = "\n".join(
        f'%c{number} = "tf.Const"() <{{value = dense<{value}> : {kind}}}> : () -> {kind}'
        for number, value in enumerate(constants)
        for kind in [f"tensor<{len(json.loads(value))}xi32>"]
    )
    body = f"{made}{last}\n  func.return %r : tensor<*xf32>"
    module = parse(f"func.func @main(%x: tensor<2x3x4xf32>) -> tensor<*xf32> {{\n{body}\n}}", with_relations=False)
    with suppress(ConversionError):
        Legalize().apply(module)
        verify(module, with_relations=False)


def test_wide_axes_are_narrowed(filecheck: FileCheck) -> None:
    filecheck(
        Legalize(),
        """
    // CHECK: "tfl.pseudo_const"() <{value = dense<1> : tensor<1xi32>}>
    // CHECK-NEXT: "tfl.reduce_max"
    func.func @main(%x: tensor<2x3xf32>) -> tensor<2xf32> {
      %0 = "tf.Const"() <{value = dense<1> : tensor<1xi64>}> : () -> tensor<1xi64>
      %1 = "tf.Max"(%x, %0) : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }
    """,
    )


def test_transposes_that_undo_each_other_go(filecheck: FileCheck) -> None:
    filecheck(
        Legalize(),
        """
    // CHECK: func.func @main(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
    // CHECK-NEXT: func.return %x
    func.func @main(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
      %0 = "tf.Const"() <{value = dense<[1, 2, 0]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %1 = "tf.Const"() <{value = dense<[2, 0, 1]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %2 = "tf.Transpose"(%x, %0) : (tensor<2x3x4xf32>, tensor<3xi32>) -> tensor<3x4x2xf32>
      %3 = "tf.Transpose"(%2, %1) : (tensor<3x4x2xf32>, tensor<3xi32>) -> tensor<2x3x4xf32>
      func.return %3 : tensor<2x3x4xf32>
    }
    """,
    )


_UNSUPPORTED = """
    // CHECK: "tfl.custom"(%x) <{custom_code = "Frobnicate", custom_option = {{.*}}
    func.func @main(%x: tensor<2xf32>, %y: tensor<2xcomplex<f32>>) -> (tensor<2xf32>, tensor<2xcomplex<f32>>) {
      %0 = "tf.Frobnicate"(%x) <{rate = 2.5 : f32, T = i64, sizes = [1, 2]}> : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.Frobnicate"(%0) : (tensor<2xf32>) -> tensor<2xf32>
      %2 = "tf.Exp"(%y) : (tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>>
      "tf.NoOp"() : () -> ()
      func.return %1, %2 : tensor<2xf32>, tensor<2xcomplex<f32>>
    }
    """


def test_all_unsupported_ops_are_told_at_once(filecheck: FileCheck) -> None:
    with pytest.raises(ConversionError) as caught:
        filecheck(Legalize(), _UNSUPPORTED)
    first, second = caught.value.diagnostics
    assert (first.code, first.op) == ("unsupported-op", "tf.Frobnicate")
    assert "2 times" in first.message
    assert second.op == "tf.Exp"
    assert "for f32, f16, bf16, not for complex<f32>" in second.message


def test_unsupported_ops_can_become_custom_ops(filecheck: FileCheck) -> None:
    module = filecheck(Legalize(allow_custom_ops=True), _UNSUPPORTED)
    custom = next(op for op in module.walk() if op.name == "tfl.custom")
    option = custom.properties["custom_option"]
    assert isinstance(option, tfl.ConstBytesAttr)
    assert flexbuffers.Loads(option.data) == {"T": 9, "rate": 2.5, "sizes": [1, 2]}
