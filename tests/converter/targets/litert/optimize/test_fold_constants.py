"""LiteRT's operators of constants, as files and other patterns leave them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.converter.targets.litert.optimize.graph import Graph, check, f32, i32, random
from tests.support.litert import RunTFLite
from tests.support.run_text import parse
from tfconvert.converter.executor import litert_ops
from tfconvert.converter.targets.litert.optimize import fold_constants
from tfconvert.converter.targets.litert.passes.optimize import Optimize
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.func import FuncOp

FOLDED: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("gather", [f32([1, 2, 3]), i32([2, 0])], {"shape": (2,), "axis": 0, "batch_dims": 0}),
    ("greater", [f32([1, 2, 3]), f32([2, 2, 2])], {"element": types.I1, "shape": (3,)}),
    ("mul", [i32([1, 2, 3]), i32([4, 5, 6])], {"fused_activation_function": "NONE"}),
    ("add", [f32([1, -2, 3]), f32([0, 0, 1])], {"fused_activation_function": "RELU"}),
    ("transpose", [random(2, 3), i32([1, 0])], {"shape": (3, 2)}),
    ("concatenation", [random(2, 3), random(1, 3)], {"shape": (3, 3), "axis": 0, "fused_activation_function": "NONE"}),
    ("strided_slice", [random(4, 3), i32([1]), i32([4]), i32([2])], {"shape": (2, 3)}),
    ("cast", [f32([1.5, -2.5])], {"element": types.I32, "shape": (2,)}),
    ("reduce_max", [random(2, 3), i32([1])], {"shape": (2,), "keep_dims": False}),
    ("fill", [i32([2, 2]), f32(7)], {"element": types.F32, "shape": (2, 2)}),
    ("softmax", [random(2, 3)], {"beta": 2.0}),
    ("one_hot", [i32([1, 0]), i32(3), f32(1), f32(0)], {"element": types.F32, "shape": (2, 3), "axis": -1}),
    ("floor_mod", [i32([-7, 7]), i32([3, -3])], {}),
    ("arg_max", [random(2, 3), i32(1)], {"element": types.I32, "shape": (2,), "output_type": "INT32"}),
    ("pow", [f32([2, 3]), f32([3, 2])], {}),
]


@pytest.mark.parametrize(("name", "operands", "options"), FOLDED, ids=[row[0] for row in FOLDED])
def test_the_result_is_that_of_the_kernel(
    name: str, operands: list[Any], options: dict[str, Any], run_tflite: RunTFLite
) -> None:
    graph = Graph((1,))
    (value, *others) = (graph.constant(each) for each in operands)
    graph.returns(graph.inputs[0], graph.op(name, value, *others, **options))
    (*_, before) = graph.run(run_tflite, [f32([0])])
    graph.optimize()
    assert graph.names == []
    (*_, after) = graph.run(run_tflite, [f32([0])])
    assert after.dtype == before.dtype
    np.testing.assert_allclose(after, before, rtol=1e-6)


def test_several_results() -> None:
    module = parse("""
    func.func @main() -> (tensor<2xf32>, tensor<2xf32>) {
      %c = "tfl.pseudo_const"() <{value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>}> : () -> tensor<2x2xf32>
      %0:2 = "tfl.unpack"(%c) <{num = 2 : i32, axis = 1 : i32}> : (tensor<2x2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
      func.return %0#0, %0#1 : tensor<2xf32>, tensor<2xf32>
    }""")
    assert Optimize().apply(module).counts == {"computed-unpack": 1}
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    assert function.body.block.last_op is not None
    values = [tensor_data.constant_of(each) for each in function.body.block.last_op.operands]
    assert [tensor_data.to_array(value).tolist() for value in values if value is not None] == [[1, 3], [2, 4]]


def test_what_is_large_stays(run_tflite: RunTFLite) -> None:
    graph = Graph((1,))
    shape = (tensor_data.MAX_FOLDED_BYTES // 4, 2)
    graph.returns(graph.inputs[0], graph.op("fill", i32(list(shape)), f32(1), element=types.F32, shape=shape))
    check(graph, ["fill"], run_tflite, f32([0]))


def test_an_unknown_shape_stays() -> None:
    module = parse("""
    func.func @main() -> tensor<?xf32> {
      %n = "tfl.pseudo_const"() <{value = dense<3> : tensor<1xi32>}> : () -> tensor<1xi32>
      %c = "tfl.pseudo_const"() <{value = dense<1.0> : tensor<f32>}> : () -> tensor<f32>
      %0 = "tfl.fill"(%n, %c) : (tensor<1xi32>, tensor<f32>) -> tensor<?xf32>
      func.return %0 : tensor<?xf32>
    }""")
    assert not Optimize().apply(module).counts


def test_what_cannot_be_computed_stays() -> None:
    """An index that is out of range is an error where the model runs, not where it is converted."""
    module = parse("""
    func.func @main() -> tensor<1xf32> {
      %x = "tfl.pseudo_const"() <{value = dense<[1.0, 2.0]> : tensor<2xf32>}> : () -> tensor<2xf32>
      %i = "tfl.pseudo_const"() <{value = dense<5> : tensor<1xi32>}> : () -> tensor<1xi32>
      %0 = "tfl.gather"(%x, %i) <{axis = 0 : i32, batch_dims = 0 : i32}>
        : (tensor<2xf32>, tensor<1xi32>) -> tensor<1xf32>
      func.return %0 : tensor<1xf32>
    }""")
    assert not Optimize().apply(module).counts


def test_division_by_zero_stays() -> None:
    module = parse("""
    func.func @main() -> tensor<2xi32> {
      %x = "tfl.pseudo_const"() <{value = dense<[1, 2]> : tensor<2xi32>}> : () -> tensor<2xi32>
      %z = "tfl.pseudo_const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %0 = "tfl.floor_div"(%x, %z) : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
      func.return %0 : tensor<2xi32>
    }""")
    assert not Optimize().apply(module).counts


def test_every_folded_op_has_a_kernel() -> None:
    assert {f"tfl.{name}" for name in fold_constants.FOLDED} <= litert_ops.OPS.keys()
    assert len(set(fold_constants.FOLDED)) == len(fold_constants.FOLDED)


def test_weights_of_a_product(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 3, 4))
    graph.returns(graph.op("batch_matmul", graph.inputs[0], random(4, 5), shape=(2, 3, 5)))
    check(graph, ["fully_connected"], run_tflite)
    graph = Graph((3, 4))
    graph.returns(graph.op("batch_matmul", graph.inputs[0], random(5, 4), shape=(3, 5), adj_y=True))
    check(graph, ["fully_connected"], run_tflite)


@pytest.mark.parametrize(("weights", "options"), [((3, 5), {"adj_x": True}), ((1, 4, 5), {})])
def test_what_is_not_a_weight(weights: tuple[int, ...], options: dict[str, Any], run_tflite: RunTFLite) -> None:
    graph = Graph((2, 3, 4))
    shape = (2, 4, 5) if options else (2, 3, 5)
    graph.returns(graph.op("batch_matmul", graph.inputs[0], random(*weights), shape=shape, **options))
    check(graph, ["batch_matmul"], run_tflite)
