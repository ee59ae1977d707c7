"""The table of rewrites: each is found by the operator that it starts at, and is tried where it is due."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from tests.converter.targets.litert.optimize.graph import Graph, random
from tests.support.litert import RunTFLite
from tfconvert.converter.targets.litert import make_rewrite_index
from tfconvert.converter.targets.litert.accelerator_check import check
from tfconvert.converter.targets.litert.forms import tables
from tfconvert.converter.targets.litert.forms.form import Rewrite
from tfconvert.converter.targets.litert.passes.fit_accelerators import FitAccelerators
from tfconvert.converter.targets.litert.passes.portable_forms import PortableForms
from tfconvert.converter.targets.litert.rewrite_index import BY_DEFAULT
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.values import Value


def _rows(name: str) -> tuple[Rewrite, ...]:
    rows = import_module(f"{tables.__package__}.{name}").REWRITES
    assert isinstance(rows, tuple)
    return rows


def test_the_index_is_current() -> None:
    written = make_rewrite_index.INDEX.read_text()
    assert written == make_rewrite_index.index(), f"run: python -m {make_rewrite_index.__name__}"


@pytest.mark.parametrize("name", BY_DEFAULT)
def test_a_module_is_loaded_for_the_operators_of_its_rewrites(name: str) -> None:
    rows = _rows(name)
    assert bool(BY_DEFAULT[name]) == any(row.default and row.only_for != "gpu" for row in rows)
    assert all(row.default for row in rows if row.adds)


def test_names_are_unique() -> None:
    names = [row.name for name in BY_DEFAULT for row in _rows(name)]
    assert len(names) == len(set(names))


def _normalized(g: Graph, x: Value, groups: int, factor: bool = False) -> Value:
    """Normalizes groups of channels."""
    batch, *size, depth = x.shape or ()
    apart, one = (batch, *size, groups, depth // groups), (batch, *[1] * len(size), groups, 1)
    axes = [*range(1, len(size) + 1), len(size) + 2]
    y = g.op("reshape", x, list(apart), shape=apart, new_shape=apart)
    mean = g.op("mean", y, axes, shape=one, keep_dims=True)
    spread = g.op("mean", g.op("squared_difference", y, mean, shape=apart), axes, shape=one, keep_dims=True)
    y = g.op("mul", g.op("sub", y, mean, shape=apart), g.op("rsqrt", spread, shape=one), shape=apart)
    if factor:
        y = g.op("mul", y, random(1, *[1] * len(size), groups, depth // groups), shape=apart)
    shape = x.shape or ()
    return g.op("reshape", y, list(shape), shape=shape, new_shape=shape)


@pytest.mark.parametrize("factor", [False, True])
@pytest.mark.parametrize(("shape", "groups"), [((1, 4, 6, 8), 4), ((3, 4, 6, 8), 2), ((-1, 4, 6, 8), 8)])
def test_a_normalization_of_groups_is_done_in_rank_4(
    shape: tuple[int, ...], groups: int, factor: bool, run_tflite: RunTFLite
) -> None:
    graph = Graph(shape)
    graph.returns(_normalized(graph, graph.inputs[0], groups, factor))
    x = random(*(3 if dim < 0 else dim for dim in shape))
    (before,), names = graph.run(run_tflite, [x]), graph.names
    PortableForms().apply(graph.module)
    verify(graph.module, with_relations=False)
    assert graph.names == names
    assert not check(graph.module, "gpu").obstacles
    np_after = graph.run(run_tflite, [x])[0]
    assert np_after.shape == before.shape
    assert abs(np_after - before).max() < 1e-5


def test_a_region_with_an_operator_of_another_kind_stays() -> None:
    graph = Graph((1, 4, 6, 8))
    shape = (1, 4, 6, 4, 2)
    y = graph.op("reshape", graph.inputs[0], list(shape), shape=shape, new_shape=shape)
    y = graph.op("rsqrt", y, shape=shape)
    graph.returns(graph.op("reverse_v2", y, [1], shape=shape))
    PortableForms().apply(graph.module)
    assert [op.results[0].shape for op in graph.module.walk() if op.name == "tfl.rsqrt"] == [shape]


def _is_negative_zero(g: Graph, x: Value, number: float = 0.0, bits: int = 0) -> Value:
    """Tests for the number -0 as Keras does before `argmax`: for 0, and for a set sign bit."""
    shape = x.shape or ()
    is_zero = g.op("equal", x, np.array(number, np.float32), shape=shape, element=types.I1)
    as_integer = g.op("bitcast", x, shape=shape, element=types.I32)
    is_negative = g.op("less", as_integer, np.array(bits, np.int32), shape=shape, element=types.I1)
    return g.op("logical_and", is_zero, is_negative, shape=shape)


def test_negative_zero_is_told_from_all_other_floats(run_tflite: RunTFLite) -> None:
    # Without subnormal numbers: XNNPACK takes them for 0, as TensorFlow does.
    numbers = np.array([0, 1.2e-38, 1e-7, 1, 3.4e38, np.inf, np.nan], np.float32)
    graph = Graph((2, len(numbers)))
    graph.returns(_is_negative_zero(graph, graph.inputs[0]))
    x = np.stack([numbers, -numbers])
    (before,) = graph.run(run_tflite, [x])
    PortableForms().apply(graph.module)
    verify(graph.module, with_relations=False)
    assert graph.names == ["div", "less"]
    assert not check(graph.module, "gpu").obstacles
    (after,) = graph.run(run_tflite, [x])
    assert before.sum() == 1
    assert np.array_equal(before, after)


@pytest.mark.parametrize(("number", "bits"), [(1.0, 0), (0.0, 5)])
def test_tests_for_other_numbers_stay(number: float, bits: int) -> None:
    graph = Graph((2, 3))
    graph.returns(_is_negative_zero(graph, graph.inputs[0], number, bits))
    PortableForms().apply(graph.module)
    assert sorted(graph.names) == ["bitcast", "equal", "less", "logical_and"]


@pytest.mark.parametrize("bias", [None, random(3)])
def test_products_of_constants_are_constants(bias: np.ndarray | None, run_tflite: RunTFLite) -> None:
    graph = Graph((2, 3))
    product = graph.op("fully_connected", random(2, 4), random(3, 4), bias, shape=(2, 3))
    graph.returns(graph.op("add", graph.inputs[0], product))
    x = random(2, 3)
    (before,) = graph.run(run_tflite, [x])
    assert check(graph.module, "gpu").obstacles[0].reason == "all its operands are constants"
    FitAccelerators(["gpu"]).apply(graph.module)
    verify(graph.module, with_relations=False)
    assert "fully_connected" not in graph.names
    assert not check(graph.module, "gpu").obstacles
    (after,) = graph.run(run_tflite, [x])
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)
