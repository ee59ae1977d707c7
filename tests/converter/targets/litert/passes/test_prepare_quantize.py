"""The pass `prepare-quantize`."""

from __future__ import annotations

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.targets.litert.passes.prepare_quantize import PrepareQuantize
from tfconvert.settings.quantization import Quantize


def _one(op: str, result: str = "tensor<4xf32>") -> str:
    return f"""
    func.func @main(%x: {result}, %y: {result}, %z: {result}) -> {result} {{
      %0 = {op} -> {result}
      func.return %0 : {result}
    }}
    """


def test_negation_is_a_product(filecheck: FileCheck) -> None:
    # LiteRT's kernel of integers ignores scales and zero points.
    filecheck(
        PrepareQuantize(),
        _one('"tfl.neg"(%x) : (tensor<4xf32>)')
        + """
    // CHECK: [[M:%[0-9]+]] = "tfl.pseudo_const"() <{value = dense<-1.000000e+00> : tensor<f32>}>
    // CHECK-NEXT: [[N:%[0-9]+]] = "tfl.mul"(%{{[a-z0-9]+}}, [[M]]) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    // CHECK-NEXT: func.return [[N]]
    """,
    )


def test_a_sum_of_one_is_that(filecheck: FileCheck) -> None:
    filecheck(
        PrepareQuantize(),
        _one('"tfl.add_n"(%x) : (tensor<4xf32>)')
        + """
    // CHECK: func.func @main
    // CHECK-NEXT: func.return
    """,
    )


def test_integers_stay(filecheck: FileCheck) -> None:
    filecheck(PrepareQuantize(), _one('"tfl.neg"(%x) : (tensor<4xi32>)', "tensor<4xi32>") + '// CHECK: "tfl.neg"')


def test_what_is_excluded_stays(filecheck: FileCheck) -> None:
    text = _one('"tfl.square"(%x) : (tensor<4xf32>)') + '// CHECK: "tfl.square"'
    filecheck(PrepareQuantize(Quantize("int8", exclude=["SQUARE"])), text)
