"""Operators that are computed like TensorFlow's ops give what LiteRT gives."""

from __future__ import annotations

import re
import zlib
from typing import Any

import numpy as np
import pytest

from tests.converter.executor.litert_cases import CASES, Case
from tests.ops.comparison import compare, operand
from tests.support.litert import RunTFLite
from tests.support.run_text import Array, parse
from tfconvert.converter.executor import litert_ops
from tfconvert.converter.executor.executor import Executor
from tfconvert.exporters.tflite.model import export
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.types import FunctionType
from tfconvert.schema.ir.values import Value

TOLERANCE = 5e-6
ELEMENTS = {"c64": np.complex64, "f32": np.float32, "i1": np.bool_, "i32": np.int32, "i64": np.int64}


def tensor(spec: str) -> Attribute:
    """Returns the type of `f32[2,3]`."""
    match = re.match(r"(\w+)\[([-\d,]*)\]", spec)
    assert match is not None
    element = types.from_dtype(np.dtype(ELEMENTS[match[1]])).mlir
    return types.tensor(element, tuple(map(int, filter(None, match[2].split(",")))))


def module_of(case: Case) -> ModuleOp:
    """Returns a function of nothing but the operator."""
    block = Block(arg_types=[tensor(each) for each in case.operands if isinstance(each, str)])
    arguments = iter(block.args)

    def value(each: Any) -> Value:
        if isinstance(each, str):
            return next(arguments)
        array = np.array(each, np.int32) if isinstance(each, list) else np.asarray(each)
        op = tfl.no_value() if each is None else tfl.constant(tensor_data.of_array(array))
        block.add_op(op)
        return op.results[0]

    operands = [value(each) for each in case.operands]
    op = tfl.build(case.name, operands, [tensor(each) for each in case.results.split()], case.options)
    block.add_op(op)
    block.add_op(ReturnOp.of(op.results))
    kinds = FunctionType.get([each.type for each in block.args], [each.type for each in op.results])
    module = ModuleOp.of([FuncOp.of("main", kinds, Region(block))])
    verify(module)
    return module


def inputs_of(case: Case) -> list[Array]:
    seed = zlib.crc32(case.name.encode())
    specs = [each for each in case.operands if isinstance(each, str)]
    return [operand(each, seed + index) for index, each in enumerate(specs)]


@pytest.mark.parametrize("case", CASES, ids=[f"{index}-{case.name}" for index, case in enumerate(CASES)])
def test_the_executor_computes_what_litert_does(case: Case, run_tflite: RunTFLite) -> None:
    module, inputs = module_of(case), inputs_of(case)
    results = Executor(module).run("main", inputs)
    expected = run_tflite(export(module).to_bytes(), inputs)
    assert len(results) == len(expected) > 0
    for got, wanted in zip(results, expected, strict=True):
        compare(got, wanted, TOLERANCE if wanted.dtype.kind in "fc" else None)


def test_every_row_is_tried() -> None:
    assert {case.name for case in CASES} == set(litert_ops.KERNELS)


HANDLE = "tensor<!tf_type.resource<tensor<2xf32>>>"
READS = f"""
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{
  "tfl.call_once"() <{{session_init_function = @init}}> : () -> ()
  %v = "tfl.var_handle"() <{{container = "", shared_name = "v"}}> : () -> {HANDLE}
  %r = "tfl.read_variable"(%v) : ({HANDLE}) -> tensor<2xf32>
  %s = "tfl.add"(%r, %x) <{{fused_activation_function = "NONE"}}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  "tfl.assign_variable"(%v, %s) : ({HANDLE}, tensor<2xf32>) -> ()
  func.return %s : tensor<2xf32>
}}
func.func private @init() {{
  %v = "tfl.var_handle"() <{{container = "", shared_name = "v"}}> : () -> {HANDLE}
  %c = "tfl.pseudo_const"() <{{value = dense<[1.0, -2.0]> : tensor<2xf32>}}> : () -> tensor<2xf32>
  "tfl.assign_variable"(%v, %c) : ({HANDLE}, tensor<2xf32>) -> ()
  func.return
}}
"""


def test_variables(run_tflite: RunTFLite) -> None:
    module, x = parse(READS), np.array([0.5, 3], np.float32)
    executor = Executor(module)
    first, second = (executor.run("main", [x])[0] for _ in range(2))
    compare(first, run_tflite(export(module).to_bytes(), [x])[0])
    compare(second, first + x)


CONTROL = """
func.func @main(%n: tensor<i32>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0:2 = "tfl.while"(%n, %x) <{cond = @cond, body = @body}>
      : (tensor<i32>, tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>)
  func.return %0#1 : tensor<2xf32>
}
func.func private @cond(%n: tensor<i32>, %x: tensor<2xf32>) -> tensor<i1> {
  %c = "tfl.pseudo_const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
  %0 = "tfl.greater"(%n, %c) : (tensor<i32>, tensor<i32>) -> tensor<i1>
  func.return %0 : tensor<i1>
}
func.func private @body(%n: tensor<i32>, %x: tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>) {
  %one = "tfl.pseudo_const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
  %two = "tfl.pseudo_const"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
  %0 = "tfl.sub"(%n, %one) <{fused_activation_function = "NONE"}> : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %1 = "tfl.less"(%0, %two) : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %2 = "tfl.if"(%1, %x) <{then_branch = @square, else_branch = @negate}>
      : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
  func.return %0, %2 : tensor<i32>, tensor<2xf32>
}
func.func private @square(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "tfl.square"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
func.func private @negate(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "tfl.neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
"""


@pytest.mark.parametrize("count", [0, 1, 4])
def test_loops_and_branches(count: int, run_tflite: RunTFLite) -> None:
    module, inputs = parse(CONTROL), [np.array(count, np.int32), np.array([0.5, 3], np.float32)]
    compare(Executor(module).run("main", inputs)[0], run_tflite(export(module).to_bytes(), inputs)[0])


def test_numbers_that_integers_represent(run_tflite: RunTFLite) -> None:
    kinds = [f"tensor<2x3x!quant.uniform<{each}>>" for each in ("i8:f32, 0.05:3", "u8:f32, 0.02:100")]
    module = parse(f"""
    func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {{
      %0 = "tfl.quantize"(%x) : (tensor<2x3xf32>) -> {kinds[0]}
      %1 = "tfl.quantize"(%0) : ({kinds[0]}) -> {kinds[1]}
      %2 = "tfl.dequantize"(%0) : ({kinds[0]}) -> tensor<2x3xf32>
      %3 = "tfl.dequantize"(%1) : ({kinds[1]}) -> tensor<2x3xf32>
      func.return %2, %3 : tensor<2x3xf32>, tensor<2x3xf32>
    }}""")
    x = np.array([[0, 0.05, -0.07], [3.1, -9, 99]], np.float32)
    for got, wanted in zip(Executor(module).run("main", [x]), run_tflite(export(module).to_bytes(), [x]), strict=True):
        compare(got, wanted, TOLERANCE)


def test_constants_that_are_stored_as_less(run_tflite: RunTFLite) -> None:
    stored = "tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>"
    module = parse(f"""
    func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {{
      %q = "tfl.pseudo_qconst"() <{{qtype = {stored}, value = dense<[[1, -2, 3], [4, 5, -6]]> : tensor<2x3xi8>}}>
          : () -> {stored}
      %h = "tfl.pseudo_const"() <{{value = dense<[1.5, 2.5, 3.5]> : tensor<3xf16>}}> : () -> tensor<3xf16>
      %0 = "tfl.dequantize"(%q) : ({stored}) -> tensor<2x3xf32>
      %1 = "tfl.dequantize"(%h) : (tensor<3xf16>) -> tensor<3xf32>
      %2 = "tfl.mul"(%0, %1) <{{fused_activation_function = "NONE"}}>
          : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
      %3 = "tfl.add"(%2, %x) <{{fused_activation_function = "NONE"}}>
          : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
      func.return %3 : tensor<2x3xf32>
    }}""")
    x = np.ones((2, 3), np.float32)
    compare(Executor(module).run("main", [x])[0], run_tflite(export(module).to_bytes(), [x])[0])


def test_what_has_no_kernel() -> None:
    kind = "tensor<2x!quant.uniform<i8:f32, 0.05:3>>"
    for text in (
        f'%0 = "tfl.add"(%x, %x) <{{fused_activation_function = "NONE"}}> : ({kind}, {kind}) -> {kind}',
        f'%0 = "tfl.custom"(%x) <{{custom_code = "Mine"}}> : ({kind}) -> {kind}',
    ):
        module = parse(f"func.func @main(%x: {kind}) -> {kind} {{\n {text}\n func.return %0 : {kind}\n}}")
        with pytest.raises(ConversionError) as caught:
            Executor(module).run("main", [np.zeros(2, np.int8)])
        assert caught.value.code == "no-reference-kernel"
