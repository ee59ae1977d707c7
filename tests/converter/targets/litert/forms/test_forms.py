"""Each form: what it becomes, that the GPU takes it, and that the CPU computes the same, to the bit where it can."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.converter.targets.litert.optimize.graph import Graph, f32, i32, random
from tests.support.litert import RunTFLite
from tfconvert.converter.targets.litert.accelerator_check import check
from tfconvert.converter.targets.litert.passes.fast_forms import FastForms
from tfconvert.converter.targets.litert.passes.fit_accelerators import FitAccelerators
from tfconvert.converter.targets.litert.passes.portable_forms import PortableForms
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.values import Value
from tfconvert.settings.quantization import Quantize

MASK = np.tril(np.ones((8, 8), bool))


class Form(NamedTuple):
    """A graph of one input.

    Attributes:
        name: Its name.
        shape: The input's shape.
        make: Adds the ops.
        expected: The operators that they become.
    """

    name: str
    shape: Sequence[int]
    make: Callable[[Graph, Value], Value]
    expected: str


def _sliced(
    begin: list[int], end: list[int], strides: list[int], shape: Sequence[int], **masks: Any
) -> Callable[[Graph, Value], Value]:
    return lambda g, x: g.op("strided_slice", x, begin, end, strides, shape=shape, **masks)


def _rotated(g: Graph, x: Value, width: int = 4) -> Value:
    first, last = g.split(x, [2, 4], 1)
    return g.op("concatenation", last, first, shape=(1, 6, width), axis=1)


def _repeated(*axes: int, times: int = 2) -> Callable[[Graph, Value], Value]:
    """Repeats along one axis after the other; one reshape ends a repetition and begins the next one."""

    def make(g: Graph, x: Value) -> Value:
        dims = list(x.shape or ())
        for axis in axes:
            long = [*dims[: axis + 1], 1, *dims[axis + 1 :]]
            x = g.op("reshape", x, long, shape=long, new_shape=tuple(long))
            long[axis + 1] = times
            x = g.op("tile", x, [times if at == axis + 1 else 1 for at in range(len(long))], shape=long)
            dims[axis] *= times
        return g.op("reshape", x, dims, shape=dims, new_shape=tuple(dims))

    return make


def _windows(g: Graph, x: Value) -> Value:
    apart, moved, rows = (1, 2, 4, 2, 4, 8), (1, 2, 2, 4, 4, 8), (4, 16, 8)
    x = g.op("reshape", x, list(apart), shape=apart, new_shape=apart)
    x = g.op("transpose", x, [0, 1, 3, 2, 4, 5], shape=moved)
    return g.op("reshape", x, list(rows), shape=rows, new_shape=rows)


def _ids(g: Graph, x: Value) -> Value:
    return g.op("cast", x, element=types.I32, shape=x.shape)


def _compared(constant: np.ndarray, *shape: int) -> Callable[[Graph, Value], Value]:
    return lambda g, x: g.op("equal", _ids(g, x), constant, shape=shape, element=types.I1)


def _deconvolved(size: int) -> Callable[[Graph, Value], Value]:
    def make(g: Graph, x: Value) -> Value:
        options: dict[str, Any] = {"padding": "SAME", "stride_h": 2, "stride_w": 2, "fused_activation_function": "RELU"}
        operands = ([1, size, size, 3], random(3, 3, 3, 2), x, None)
        return g.op("transpose_conv", *operands, shape=(1, size, size, 3), **options)

    return make


FORMS = [
    Form(
        "shrink",
        (1, 8, 4),
        _sliced([0, -1, 0], [0, 0, 0], [1] * 3, (1, 4), begin_mask=5, end_mask=5, shrink_axis_mask=2),
        "reshape slice",
    ),
    Form(
        "shrink-strided",
        (1, 8, 4),
        _sliced([0, 1, 0], [0, 2, 4], [1, 1, 2], (1, 2), begin_mask=1, end_mask=1, shrink_axis_mask=2),
        "strided_slice reshape",
    ),
    Form(
        "shrink-open",
        (-1, 8, 4),
        _sliced([0, 3, 0], [0, 4, 0], [1] * 3, (-1, 4), begin_mask=5, end_mask=5, shrink_axis_mask=2),
        "slice reshape",
    ),
    Form(
        "backwards", (1, 8, 4), _sliced([0] * 3, [0] * 3, [1, -1, 1], (1, 8, 4), begin_mask=7, end_mask=7), "reverse_v2"
    ),
    Form(
        "channels-backwards",
        (1, 8, 6),
        lambda g, x: g.op("reverse_v2", x, i32([2]), shape=(1, 8, 6)),
        "reshape reverse_v2 reshape",
    ),
    Form("rotated", (1, 6, 4), _rotated, "slice slice concatenation"),
    Form(
        "places",
        (6, 4),
        lambda g, x: g.op("gather", x, i32([[1, 0], [3, 2]]), shape=(2, 2, 4), axis=0, batch_dims=0),
        "slice slice slice slice concatenation reshape",
    ),
    Form(
        "place", (1, 6, 4), lambda g, x: g.op("gather", x, i32(2), shape=(1, 4), axis=1, batch_dims=0), "slice reshape"
    ),
    Form(
        "mask",
        (1, 2, 8, 8),
        lambda g, x: g.op("select_v2", MASK, x, f32(-9), element=types.F32, shape=(1, 2, 8, 8)),
        "select_v2",
    ),
    Form(
        "choice",
        (1, 2, 8),
        lambda g, x: g.op(
            "select_v2",
            g.op("greater", x, f32(0), element=types.I1, shape=(1, 2, 8)),
            x,
            random(8),
            element=types.F32,
            shape=(1, 2, 8),
        ),
        "greater select_v2",
    ),
    Form("slopes", (1, 2, 2, 8), lambda g, x: g.op("prelu", x, f32(0.25)), "prelu"),
    Form("integers", (1, 2, 2, 4), _compared(i32([0, 1, 2, 3]), 1, 2, 2, 4), "cast equal"),
    Form("integers-in-full", (4, 1), _compared(i32([0, 1, 2, 3]), 4, 4), "cast equal"),
    Form("rows", (4, 8), lambda g, x: g.op("add", x, random(4, 1)), "reshape add reshape"),
    Form(
        "rows-of-batch", (2, 4, 8), lambda g, x: g.op("mul", random(2, 4, 8), x, shape=(2, 4, 8)), "reshape mul reshape"
    ),
    Form("number", (1, 4, 8), lambda g, x: g.op("sub", x, g.op("mean", x, [0, 1, 2], shape=())), "mean sub"),
    Form("itself", (1, 4, 8), lambda g, x: g.op("sub", x, x), "mul"),
    Form("pixels", (1, 3, 4, 64), _repeated(1, 2), "resize_nearest_neighbor"),
    Form("pixels-thrice", (1, 3, 4, 64), _repeated(2, 1, times=3), "resize_nearest_neighbor"),
    Form("small-pixels", (1, 3, 4, 6), _repeated(1, 2), "reshape tile reshape tile reshape"),
    Form("heads", (1, 3, 4, 6), _repeated(2), "reshape tile reshape"),
    Form("windows", (1, 8, 8, 8), _windows, "reshape transpose reshape"),
    Form(
        "packed",
        (1, 2, 4, 8),
        lambda g, x: g.op(
            "reduce_max",
            g.op("pack", x, g.op("abs", x), shape=(2, 1, 2, 4, 8), values_count=2, axis=0),
            [0],
            shape=(1, 2, 4, 8),
        ),
        "abs maximum",
    ),
    Form("vector", (8,), lambda g, x: g.op("softmax", x, beta=1.0), "reshape softmax reshape"),
    Form("negated", (1, 8), lambda g, x: g.op("neg", x), "mul"),
    Form("sum", (1, 8), lambda g, x: g.op("add_n", x, g.op("abs", x)), "abs add"),
    Form("broadcast", (1, 1, 4), lambda g, x: g.op("broadcast_to", x, [1, 3, 4], shape=(1, 3, 4)), "mul"),
    Form("broadcast-number", (), lambda g, x: g.op("broadcast_to", x, [3, 4], shape=(3, 4)), "reshape mul reshape"),
    Form("moved", (1, 6, 8), lambda g, x: _rotated(g, x, 8), "gather"),
    Form(
        "sums-back",
        (1, 6, 4),
        lambda g, x: g.op("cumsum", x, i32(1), reverse=True),
        "reshape reverse_v2 cumsum reverse_v2 reshape",
    ),
    Form("pad-rows", (2, 6), lambda g, x: g.op("pad", x, i32([[0, 0], [1, 2]]), shape=(2, 9)), "concatenation"),
    Form(
        "pad-batch",
        (2, 6, 4),
        lambda g, x: g.op("padv2", x, i32([[1, 0], [0, 0], [0, 0]]), f32(2), shape=(3, 6, 4)),
        "concatenation",
    ),
    Form(
        "symmetric",
        (1, 3, 4, 4),
        lambda g, x: g.op("mirror_pad", x, i32([[0, 0], [1, 2], [0, 1], [0, 0]]), shape=(1, 6, 5, 4), mode="SYMMETRIC"),
        "gather gather",
    ),
    Form("activation", (1, 4, 4, 2), _deconvolved(8), "transpose_conv relu"),
]


def _for_gpu(graph: Graph) -> None:
    PortableForms().apply(graph.module)
    FitAccelerators(["gpu"]).apply(graph.module)


@pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])
def test_forms(form: Form, run_tflite: RunTFLite) -> None:
    graph = Graph(form.shape)
    graph.returns(form.make(graph, graph.inputs[0]))
    x = random(*(3 if dim < 0 else dim for dim in form.shape), scale=3)
    (before,) = graph.run(run_tflite, [x])
    _for_gpu(graph)
    verify(graph.module, with_relations=False)
    assert " ".join(graph.names) == form.expected
    assert check(graph.module, "gpu").is_whole
    (after,) = graph.run(run_tflite, [x])
    assert after.dtype == before.dtype
    np.testing.assert_allclose(after, before, rtol=1e-6, atol=1e-6)
    assert not PortableForms().apply(graph.module).counts
    assert not FitAccelerators(["gpu"]).apply(graph.module).counts


@pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])
def test_no_operator_is_added_without_an_accelerator(form: Form, run_tflite: RunTFLite) -> None:
    graph = Graph(form.shape)
    graph.returns(form.make(graph, graph.inputs[0]))
    x = random(*(3 if dim < 0 else dim for dim in form.shape), scale=3)
    (before,), count = graph.run(run_tflite, [x]), len(graph.names)
    PortableForms().apply(graph.module)
    # Two GATHERs are faster than one MIRROR_PAD, and two SLICEs than a SPLIT_V.
    assert len(graph.names) <= count + (form.name in ("symmetric", "rotated"))
    np.testing.assert_allclose(graph.run(run_tflite, [x])[0], before, rtol=1e-6, atol=1e-6)


def _kept(graph: Graph, quantize: Quantize | None = None) -> list[str]:
    PortableForms(quantize).apply(graph.module)
    return graph.names


@pytest.mark.parametrize(("height", "is_hidden"), [(2, True), (1, False), (0, False)])
def test_an_infinite_border_becomes_the_smallest_number_where_no_result_shows_it(
    height: int, is_hidden: bool, run_tflite: RunTFLite
) -> None:
    graph = Graph((1, 2, 2, 1))
    pads = i32([[0, 0], [1, 0], [0, 0], [0, 0]])
    value = graph.op("padv2", graph.inputs[0], pads, f32(-np.inf), shape=(1, 3, 2, 1))
    if height:
        window: dict[str, Any] = {
            "filter_height": height,
            "filter_width": 1,
            "stride_h": 1,
            "stride_w": 1,
            "padding": "VALID",
        }
        value = graph.op("max_pool_2d", value, shape=(1, 4 - height, 2, 1), **window)
    graph.returns(value)
    x = random(1, 2, 2, 1)
    expected = graph.run(run_tflite, [x])
    changed = PortableForms(None).apply(graph.module).counts
    assert bool(changed) == is_hidden
    np.testing.assert_array_equal(graph.run(run_tflite, [x]), expected)


def _first(graph: Graph, x: Value, masks: dict[str, Any], shape: Sequence[int] = (1, 2)) -> Value:
    """Adds a slice of the first row."""
    return graph.op("strided_slice", x, [0, 0], [1, 2], [1, 1], shape=shape, **masks)


@pytest.mark.parametrize(
    ("name", "options"), [("slice", {}), ("odd", {}), ("body", {}), ("integers", {"quantize": Quantize("int8")})]
)
def test_what_keeps_its_form(name: str, options: dict[str, Quantize]) -> None:
    shape = (1, 7, 7, 2) if name == "odd" else (4, 8)
    graph = Graph(shape)
    (x,) = graph.inputs
    masks = {"begin_mask": 0, "end_mask": 0}
    made = {
        "slice": lambda: _first(graph, x, masks),
        "odd": lambda: _deconvolved(14)(graph, x),  # The GPU would compute it wrongly without its activation.
        "body": lambda: _first(graph, x, {**masks, "shrink_axis_mask": 1}, (2,)),
        "integers": lambda: graph.op("add", x, random(4, 1)),
    }[name]()
    graph.returns(made)
    if name == "body":
        for function in graph.module.ops:
            assert isinstance(function, FuncOp)
            function.sym_visibility = "private"
    before = graph.names
    assert _kept(graph, **options) == before


@pytest.mark.parametrize("name", ["batch_matmul", "pack"])
def test_an_operand_that_is_there_twice_is_copied(name: str, run_tflite: RunTFLite) -> None:
    graph = Graph((1, 4, 4))
    y = graph.op("abs", graph.inputs[0])
    shape = (1, 4, 4) if name == "batch_matmul" else (1, 2, 4, 4)
    options: dict[str, Any] = {"values_count": 2, "axis": 1} if name == "pack" else {}
    graph.returns(graph.op(name, y, y, shape=shape, **options))
    x = random(1, 4, 4)
    before = graph.run(run_tflite, [x])
    _for_gpu(graph)
    assert graph.names == ["abs", "reshape", name]
    np.testing.assert_allclose(graph.run(run_tflite, [x]), before, rtol=1e-6)


def _gathered(g: Graph, x: Value) -> Value:
    place = g.op("reduce_max", x, [0, 1], shape=(), element=types.F32, keep_dims=False)
    return g.op("gather", g.op("sum", x, [0], shape=(3,), keep_dims=False), place, shape=(3,), axis=0, batch_dims=0)


# Operators that contradict the shapes of their operands or results, as in damaged files.
DAMAGED: dict[str, Callable[[Graph, Value], Value]] = {
    "gather": _gathered,
    "slice": lambda g, x: g.op("slice", x, [0], [1], shape=(1, 3)),
    "strided_slice": _sliced([0] * 3, [1] * 3, [1] * 3, (1, 1), shrink_axis_mask=4),
    "strided_slice without a step": _sliced([0, 0], [1, 1], [0, 1], (1, 1)),
    "strided_slice of other lengths": _sliced([0], [1, 1], [1, 1], (1, 1)),
    "concatenation": lambda g, x: g._add(tfl.build("concatenation", [], [x.type], {"axis": 0})),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_operators_stay(name: str) -> None:
    graph = Graph((2, 3))
    graph.returns(DAMAGED[name](graph, graph.inputs[0]))
    assert not FastForms().apply(graph.module).counts
    assert not FitAccelerators(["gpu"]).apply(graph.module).counts


def test_blocks_are_moved_by_one_gather() -> None:
    graph = Graph((1, 6, 8))
    graph.returns(_rotated(graph, graph.inputs[0], 8))
    assert _kept(graph) == ["gather"]


def test_channels_are_reversed_by_places() -> None:
    graph = Graph((1, 8, 6))
    slice_ = _sliced([0] * 3, [0] * 3, [1, 1, -1], (1, 8, 6), begin_mask=7, end_mask=7)
    graph.returns(slice_(graph, graph.inputs[0]))
    assert _kept(graph) == ["gather"]
    assert check(graph.module, "gpu").is_whole


@pytest.mark.parametrize("batch", [1, 3, -1])
def test_a_product_takes_the_row_of_a_slice(batch: int, run_tflite: RunTFLite) -> None:
    graph = Graph((batch, 6, 8))
    slice_ = _sliced([0, -1, 0], [0, 0, 0], [1] * 3, (batch, 8), begin_mask=5, end_mask=5, shrink_axis_mask=2)
    row = slice_(graph, graph.inputs[0])
    graph.returns(graph.op("fully_connected", row, random(5, 8), random(5), shape=(batch, 5), keep_num_dims=False))
    x = random(3 if batch < 0 else batch, 6, 8)
    before = graph.run(run_tflite, [x])
    assert _kept(graph) == ["slice", "fully_connected"]
    assert check(graph.module, "gpu").is_whole
    np.testing.assert_allclose(graph.run(run_tflite, [x]), before, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("shape", "count"), [((3, 1, 1, 8), 1), ((-1, 1, 8), 1), ((1, 4, 8), 2)])
def test_a_product_takes_rows_with_dimensions_of_1(shape: Sequence[int], count: int, run_tflite: RunTFLite) -> None:
    graph = Graph(shape)
    batch = -1 if shape[0] < 0 else int(np.prod(shape[:-1]))
    rows = graph.op("reshape", graph.inputs[0], [-1, 8], shape=(batch, 8), new_shape=(-1, 8))
    graph.returns(graph.op("fully_connected", rows, random(5, 8), random(5), shape=(batch, 5), keep_num_dims=False))
    x = random(*(3 if dim < 0 else dim for dim in shape))
    before = graph.run(run_tflite, [x])
    assert len(_kept(graph)) == 2
    assert len(_kept(graph, Quantize("int8"))) == count
    np.testing.assert_allclose(graph.run(run_tflite, [x]), before, rtol=1e-6, atol=1e-6)


def test_pixels_of_integers_are_repeated_at_any_size() -> None:
    graph = Graph((1, 3, 4, 6))
    graph.returns(_repeated(1, 2)(graph, graph.inputs[0]))
    assert _kept(graph, Quantize("int8")) == ["resize_nearest_neighbor"]
