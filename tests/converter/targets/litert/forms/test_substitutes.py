"""Rewrites for microcontrollers and NPUs: operators as formulas, repetitions, many parts; with equal numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.converter.targets.litert.optimize.graph import Graph, f32, i32, random
from tests.support.litert import RunTFLite
from tfconvert.converter.targets.litert.accelerator_check import check
from tfconvert.converter.targets.litert.passes.fit_accelerators import FitAccelerators
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.quant import Uniform, UniformType
from tfconvert.settings.quantization import INT8

X = random(2, 3, 4, seed=1, scale=3)


class Case(NamedTuple):
    """A graph, its inputs, the accelerator, and the operators afterwards."""

    graph: Callable[[], Graph]
    accelerator: str
    names: str
    inputs: Sequence[np.ndarray] = (X,)
    tolerance: float = 1e-6


def _unary(name: str, **options: Any) -> Callable[[], Graph]:
    def build() -> Graph:
        graph = Graph(X.shape)
        return graph.returns(graph.op(name, *graph.inputs, **options))

    return build


def _power(exponent: float) -> Callable[[], Graph]:
    def build() -> Graph:
        graph = Graph(X.shape)
        return graph.returns(graph.op("pow", graph.inputs[0], exponent))

    return build


def _reduced(name: str, axes: list[int], shape: tuple[int, ...], element: Any = types.F32) -> Callable[[], Graph]:
    def build() -> Graph:
        graph = Graph(X.shape)
        value = graph.inputs[0]
        if element == types.I1:
            value = graph.op("greater", value, 3.0, element=types.I1, shape=X.shape)
        return graph.returns(graph.op(name, value, axes, shape=shape, keep_dims=False))

    return build


def _one_hot(axis: int, shape: tuple[int, ...]) -> Callable[[], Graph]:
    def build() -> Graph:
        graph = Graph((2, 3), element=types.I32)
        operands = (graph.inputs[0], np.array(5, np.int32), 1.0, 0.0)
        return graph.returns(graph.op("one_hot", *operands, shape=shape, element=types.F32, axis=axis))

    return build


def _chosen(name: str, element: Any = types.F32) -> Callable[[], Graph]:
    def build() -> Graph:
        graph = Graph((2, 3), (2, 3), element=element)
        x, y = graph.inputs
        zero = np.array(0, np.float32 if element == types.F32 else np.int32)
        mask = graph.op("greater", x, zero, element=types.I1, shape=(2, 3))
        return graph.returns(graph.op(name, mask, x, y, shape=(2, 3), element=element))

    return build


def _rows() -> Graph:
    graph = Graph((2, 3), (2, 3))
    x, y = graph.inputs
    return graph.returns(graph.op("select", np.array([True, False]), x, y, shape=(2, 3), element=types.F32))


def _tiled(shape: tuple[int, ...], multiples: list[int]) -> Callable[[], Graph]:
    def build() -> Graph:
        graph = Graph(shape)
        result = tuple(np.multiply(shape, multiples).tolist())
        return graph.returns(graph.op("tile", graph.inputs[0], multiples, shape=result))

    return build


def _joined() -> Graph:
    graph = Graph((1, 2))
    parts: list[Any] = [graph.inputs[0], *(f32([[number, 1]]) for number in range(13))]
    return graph.returns(graph.op("concatenation", *parts, shape=(14, 2), axis=0))


INDICES = i32([[0, 4, 2], [-1, 5, 1]])
PAIR = (i32([[1, -2, 3], [2**31 - 1, -(2**31), -5]]), i32([[-(2**31), 5, 6], [-7, 8, 9]]))
FLOATS = (f32([[1, -2, 3], [4, -5, 6]]), f32([[7, 8, 9], [1, 2, 3]]))
HALVES = np.r_[np.arange(-3, 3, 0.5), 0.49999997, -0.49999997, 2.3, -7.8].astype(np.float32)[:12]
HALVES = np.r_[HALVES, HALVES + f32(0.1)].reshape(2, 3, 4).astype(np.float32)
POSITIVE = np.abs(X) + f32(0.1)

CASES = {
    "gelu": Case(_unary("gelu", approximate=True), "micro", "mul mul add mul logistic mul"),
    "gelu-exact": Case(_unary("gelu", approximate=False), "micro", "mul mul add mul logistic mul", (X,), 2e-4),
    "relu-n1-to-1": Case(_unary("relu_n1_to_1"), "micro", "maximum minimum"),
    "relu6": Case(_unary("relu6"), "npu", "relu minimum"),
    "neg": Case(_unary("neg"), "npu", "mul"),
    "sign": Case(_unary("sign"), "micro", "greater cast less cast sub"),
    "elu": Case(_unary("elu"), "npu", "minimum exp sub relu add"),
    "floor": Case(_unary("floor"), "npu", "floor_div", (HALVES,)),
    "ceil": Case(_unary("ceil"), "npu", "mul floor_div mul", (HALVES,)),
    "round": Case(_unary("round"), "npu", "add floor_div equal cast floor_mod mul sub", (HALVES,)),
    "pow-2": Case(_power(2.0), "micro", "mul"),
    "pow-5": Case(_power(5.0), "micro", "mul mul mul"),
    "pow-minus-3": Case(_power(-3.0), "micro", "mul mul div"),
    "pow-half": Case(_power(0.5), "micro", "sqrt", (POSITIVE,)),
    "pow-minus-half": Case(_power(-0.5), "micro", "rsqrt", (POSITIVE,)),
    "pow-1.7": Case(_power(1.7), "micro", "log mul exp", (POSITIVE,)),
    "minimum": Case(_reduced("reduce_min", [1], (2, 4)), "npu", "mul reduce_max mul"),
    "any": Case(_reduced("reduce_any", [2], (2, 3), types.I1), "micro", "greater logical_not reduce_all logical_not"),
    "prod": Case(
        _reduced("reduce_prod", [1], (2, 4)), "micro", "slice slice slice mul concatenation slice slice mul reshape"
    ),
    "one-hot": Case(_one_hot(-1, (2, 3, 5)), "micro", "reshape equal cast reshape", (INDICES,)),
    "one-hot-axis": Case(_one_hot(1, (2, 5, 3)), "micro", "reshape equal cast reshape", (INDICES,)),
    "select": Case(_chosen("select"), "micro", "greater select_v2", FLOATS),
    "select-integers": Case(_chosen("select_v2", types.I32), "micro", "greater cast sub mul add", PAIR),
    "select-rows": Case(_rows, "micro", "select_v2", FLOATS),
    "tile": Case(_tiled((2, 3, 4), [2, 1, 3]), "micro", "concatenation concatenation"),
    "tile-many": Case(_tiled((2, 3, 4), [1, 23, 1]), "micro", "concatenation " * 4),
    "repeat": Case(_tiled((2, 3, 1, 4), [1, 1, 3, 1]), "micro", "reshape resize_nearest_neighbor reshape"),
    "many-parts": Case(_joined, "micro", "concatenation concatenation concatenation"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_form_is_taken_and_has_the_same_numbers(name: str, run_tflite: RunTFLite) -> None:
    case = CASES[name]
    graph = case.graph()
    shapes = [value.shape or () for value in graph.inputs]
    inputs = [
        each.reshape(-1)[: int(np.prod(shape))] for each, shape in zip(_inputs(case, shapes), shapes, strict=True)
    ]
    inputs = [each.reshape(shape) for each, shape in zip(inputs, shapes, strict=True)]
    before = graph.run(run_tflite, inputs)
    assert not check(graph.module, case.accelerator).is_whole
    assert FitAccelerators([case.accelerator]).apply(graph.module).counts
    verify(graph.module, with_relations=False)
    assert graph.names == case.names.split()
    assert check(graph.module, case.accelerator).is_whole
    for old, new in zip(before, graph.run(run_tflite, inputs), strict=True):
        if old.dtype == np.float32:
            np.testing.assert_allclose(new, old, rtol=case.tolerance, atol=case.tolerance * np.abs(old).max())
        else:
            np.testing.assert_array_equal(new, old)


def _inputs(case: Case, shapes: Sequence[Sequence[int]]) -> Sequence[np.ndarray]:
    sizes = [int(np.prod(shape)) for shape in shapes]
    if all(each.size >= size for each, size in zip(case.inputs, sizes, strict=True)):
        return case.inputs
    return [random(size, seed=2) for size in sizes]


@pytest.mark.parametrize("exponent", [0.0, 65.0, 2.5e9])
def test_powers_with_large_exponents_stay(exponent: float) -> None:
    graph = _power(exponent)()
    assert not FitAccelerators(["micro"]).apply(graph.module).counts
    assert graph.names == ["pow"]


def test_integers_without_a_kernel_are_floats_in_between() -> None:
    graph = Graph(X.shape)
    uniform = Uniform(types.I8, (0.125,), (0,))
    value = graph.op("quantize", graph.inputs[0], element=UniformType.get(uniform), shape=X.shape)
    value = graph.op("exp", value, element=UniformType.get(uniform), shape=X.shape)
    graph.returns(graph.op("dequantize", value, element=types.F32, shape=X.shape))
    assert FitAccelerators(["micro"]).apply(graph.module).counts
    assert graph.names == ["quantize", "dequantize", "exp", "quantize", "dequantize"]
    assert check(graph.module, "micro").is_whole


def test_means_of_rows_and_of_these(run_tflite: RunTFLite) -> None:
    graph = Graph((1, 4, 3, 2, 5))
    graph.returns(graph.op("mean", graph.inputs[0], [1, 2, 4], shape=(1, 1, 1, 2, 1), keep_dims=True))
    data = random(1, 4, 3, 2, 5, seed=3)
    (before,) = graph.run(run_tflite, [data])
    assert FitAccelerators(["ethos-u"], INT8).apply(graph.module).counts
    assert graph.names == ["reshape", "mean", "reshape", "mean", "reshape"]
    np.testing.assert_allclose(graph.run(run_tflite, [data])[0], before, rtol=1e-5, atol=1e-6)


def test_what_becomes_integers_counts_as_such() -> None:
    def graph() -> Graph:
        made = Graph(X.shape)
        return made.returns(made.op("relu6", *made.inputs))

    assert not FitAccelerators(["ethos-u"], INT8).apply(graph().module).counts
