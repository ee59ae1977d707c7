"""The pass `xla-to-stablehlo`: the ops of XLA that JAX wrote before `XlaCallModule` become StableHLO."""

from __future__ import annotations

import pytest

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.passes.xla_to_stablehlo import XlaToStablehlo
from tfconvert.importers.mlir import import_mlir
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.tensorflow.generated import xla_pb2 as pb


def escaped(message: pb.DotDimensionNumbers | pb.ConvolutionDimensionNumbers) -> str:
    return "".join(f"\\{byte:02X}" for byte in message.SerializeToString())


def text(op: str, operands: str, results: str, constants: str = "", functions: str = "") -> str:
    types = ", ".join(each.partition(": ")[2] for each in operands.split("; "))
    arguments = ", ".join(operands.split("; "))
    return f"""
    func.func @main({arguments}) -> {results} {{
      {constants}
      {op.replace("TYPES", types)} -> {results}
      func.return %r : {results}
    }}
    {functions}
    """


def test_products_have_the_dimensions_of_the_message(filecheck: FileCheck) -> None:
    numbers = escaped(pb.DotDimensionNumbers(lhs_contracting_dimensions=[1], rhs_contracting_dimensions=[0]))
    op = f'%r = "tf.XlaDotV2"(%x, %y) <{{dimension_numbers = "{numbers}", precision_config = ""}}> : (TYPES)'
    check = "// CHECK: #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>\n"
    filecheck(XlaToStablehlo(), check + text(op, "%x: tensor<2x3xf32>; %y: tensor<3x4xf32>", "tensor<2x4xf32>"))


def test_convolutions_have_the_layouts_of_the_message(filecheck: FileCheck) -> None:
    numbers = pb.ConvolutionDimensionNumbers(
        input_batch_dimension=0,
        input_feature_dimension=3,
        input_spatial_dimensions=[1, 2],
        kernel_input_feature_dimension=2,
        kernel_output_feature_dimension=3,
        kernel_spatial_dimensions=[0, 1],
        output_batch_dimension=0,
        output_feature_dimension=3,
        output_spatial_dimensions=[1, 2],
    )
    constants = """
      %two = "tf.Const"() <{value = dense<2> : tensor<2xi32>}> : () -> tensor<2xi32>
      %one = "tf.Const"() <{value = dense<1> : tensor<2xi32>}> : () -> tensor<2xi32>
      %pads = "tf.Const"() <{value = dense<[[0, 1], [1, 0]]> : tensor<2x2xi32>}> : () -> tensor<2x2xi32>
      %groups = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    """
    op = (
        f'%r = "tf.XlaConvV2"(%x, %k, %two, %pads, %one, %one, %groups) <{{dimension_numbers = "{escaped(numbers)}", '
        'precision_config = ""}> : (TYPES, tensor<2xi32>, tensor<2x2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<i32>)'
    )
    check = "// CHECK: #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>\n"
    operands = "%x: tensor<1x6x6x2xf32>; %k: tensor<3x3x2x4xf32>"
    filecheck(XlaToStablehlo(), check + text(op, operands, "tensor<1x3x3x4xf32>", constants))


@pytest.mark.parametrize(("reducer", "name"), [("AddV2", "add"), ("Maximum", "maximum"), ("Mul", "multiply")])
def test_functions_of_reductions_become_regions(filecheck: FileCheck, reducer: str, name: str) -> None:
    constants = '%zero = "tf.Const"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>'
    op = '%r = "tf.XlaReduce"(%x, %zero) <{dimensions_to_reduce = [1], reducer = @reduce}> : (TYPES, tensor<f32>)'
    function = f"""
    func.func private @reduce(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {{
      %0 = "tf.{reducer}"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      func.return %0 : tensor<f32>
    }}
    """
    check = f"// CHECK: stablehlo.{name}\n// CHECK-NOT: @reduce\n"
    filecheck(XlaToStablehlo(), check + text(op, "%x: tensor<2x3xf32>", "tensor<2xf32>", constants, function))


def test_what_is_not_constant_is_refused_by_name() -> None:
    op = '%r = "tf.XlaGather"(%x, %i, %s) <{dimension_numbers = "\\FF", indices_are_sorted = false}> : (TYPES)'
    module = import_mlir(
        text(op, "%x: tensor<4xf32>; %i: tensor<1xi32>; %s: tensor<1xi32>", "tensor<1xf32>"), "text.mlir"
    )
    with pytest.raises(ConversionError, match=r"tf\.XlaGather can't be converted: its dimension numbers are damaged"):
        XlaToStablehlo().apply(module)
