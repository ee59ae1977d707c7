"""Gathers, slices and scatters with places that are computed, inside and outside: LiteRT against our own executor."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tfconvert
from tests.converter.from_stablehlo.programs import convert, operators, program, type_of
from tests.support.litert import run
from tfconvert.converter.executor import executor
from tfconvert.schema.dialects.parsing import IRParser

Array = np.ndarray[Any, Any]
X = np.round(np.random.default_rng(1).normal(size=(5, 7)), 2).astype(np.float32)
CUBE = np.round(np.random.default_rng(2).normal(size=(3, 4, 5)), 2).astype(np.float32)
NOT_WRAPPED = {"MAXIMUM": 1, "MINIMUM": 1, "GATHER": 1}


def ints(*numbers: int, shape: Sequence[int] | None = None, dtype: str = "int32") -> Array:
    return np.array(numbers, dtype).reshape(shape or (len(numbers),))


def check(text: str, inputs: Sequence[Array], wanted: dict[str, int] | None = None) -> None:
    """Compares LiteRT's results with the executor's; and the operators, where some are wanted."""
    content = convert(text)
    expected = executor.run(IRParser(text).parse_module(), "main", inputs)
    for found, result in zip(run(content, inputs), expected, strict=True):
        np.testing.assert_allclose(found, result, rtol=1e-6, atol=1e-7)
        assert found.dtype == result.dtype
    if wanted is not None:
        assert operators(content) == wanted


class Gather(NamedTuple):
    """A gather: its dimension numbers, the slices' shape, the result's shape, operands, and operators if they count."""

    dims: str
    sizes: Sequence[int]
    shape: Sequence[int]
    x: Array
    starts: Array
    operators: dict[str, int] | None = None


GATHERS = {
    "rows": Gather(
        "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1",
        (1, 7),
        (4, 7),
        X,
        ints(0, 4, -1, 9, shape=(4, 1)),
        {**NOT_WRAPPED, "RESHAPE": 1},
    ),
    "columns": Gather(
        "offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1",
        (5, 1),
        (5, 3),
        X,
        ints(6, 7, -2, shape=(3,)),
        NOT_WRAPPED,
    ),
    "indices of i64": Gather(
        "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1",
        (1, 7),
        (2, 7),
        X,
        ints(3, 1 << 40, shape=(2,), dtype="int64"),
        NOT_WRAPPED,
    ),
    "unsigned indices": Gather(
        "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1",
        (1, 7),
        (2, 7),
        X,
        np.array([3, (1 << 32) - 1], np.uint32),
    ),
    "points": Gather(
        "collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1",
        (1, 1),
        (3,),
        X,
        ints(0, 6, 4, -2, 9, 9, shape=(3, 2)),
    ),
    "points, last axis first": Gather(
        "collapsed_slice_dims = [0, 1], start_index_map = [1, 0], index_vector_dim = 0",
        (1, 1),
        (3,),
        X,
        ints(0, 6, 4, 2, 9, 1, shape=(2, 3)),
    ),
    "one of each row": Gather(
        "collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], "
        "start_index_map = [1], index_vector_dim = 2",
        (1, 1),
        (5, 2),
        X,
        ints(*range(-2, 8), shape=(5, 2, 1)),
    ),
    "one of each column": Gather(
        "collapsed_slice_dims = [0], operand_batching_dims = [1], start_indices_batching_dims = [1], "
        "start_index_map = [0], index_vector_dim = 2",
        (1, 1),
        (2, 7),
        X,
        ints(*range(-3, 11), shape=(2, 7, 1)),
    ),
    "windows": Gather(
        "offset_dims = [1], start_index_map = [0], collapsed_slice_dims = [1], index_vector_dim = 1",
        (3, 1),
        (3, 3),
        X,
        ints(-1, 1, 4, shape=(3, 1)),
    ),
    "windows along two axes": Gather(
        "offset_dims = [1, 2], start_index_map = [0, 1], index_vector_dim = 1",
        (2, 3),
        (2, 2, 3),
        X,
        ints(1, 1, 9, -1, shape=(2, 2)),
    ),
    "middle axis": Gather(
        "offset_dims = [0, 2], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1",
        (3, 1, 5),
        (3, 2, 5),
        CUBE,
        ints(3, 0, shape=(2, 1)),
    ),
    "points of the last axes": Gather(
        "offset_dims = [0], collapsed_slice_dims = [1, 2], start_index_map = [1, 2], index_vector_dim = 1",
        (3, 1, 1),
        (3, 2),
        CUBE,
        ints(3, 0, 9, 2, shape=(2, 2)),
    ),
    "points of rows": Gather(
        "collapsed_slice_dims = [1, 2], operand_batching_dims = [0], start_indices_batching_dims = [0], "
        "start_index_map = [1, 2], index_vector_dim = 1",
        (1, 1, 1),
        (3,),
        CUBE,
        ints(3, 0, 9, 2, -1, 4, shape=(3, 2)),
    ),
    "a point, last axis first": Gather(
        "collapsed_slice_dims = [0, 1], start_index_map = [1, 0]", (1, 1), (), X, ints(6, 2)
    ),
    "the whole for each index": Gather(
        "offset_dims = [1, 2], start_index_map = [0], index_vector_dim = 1",
        (5, 7),
        (2, 5, 7),
        X,
        ints(3, 0, shape=(2, 1)),
    ),
    "one slice": Gather("offset_dims = [0, 1], start_index_map = [0, 1]", (2, 3), (2, 3), X, ints(4, -2)),
    "part of an axis that is not indexed": Gather(
        "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1",
        (1, 4),
        (2, 4),
        X,
        ints(3, 5, shape=(2, 1)),
    ),
    "words": Gather(
        "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1",
        (1, 7),
        (2, 7),
        (X * 100).astype(np.int32).astype(np.uint32),
        ints(3, 5, shape=(2, 1)),
    ),
}


def _gather(case: Gather, starts: str, operands: Sequence[str]) -> str:
    kind = type_of(np.zeros(case.shape, case.x.dtype))
    return program(
        f"""{starts}
    %0 = "stablehlo.gather"(%a, %b) <{{dimension_numbers = #stablehlo.gather<{case.dims}>,
        slice_sizes = array<i64: {", ".join(map(str, case.sizes))}>}}>
        : ({type_of(case.x)}, {type_of(case.starts)}) -> {kind}
    return %0 : {kind}""",
        operands,
        [kind],
    )


@pytest.mark.parametrize("name", GATHERS)
def test_gathers(name: str) -> None:
    case = GATHERS[name]
    text = _gather(case, "", [type_of(case.x), type_of(case.starts)])
    check(text, [case.x, case.starts], case.operators)


@pytest.mark.parametrize("name", [name for name, case in GATHERS.items() if case.starts.dtype == np.int32])
def test_gathers_at_constants_do_not_clamp(name: str) -> None:
    case = GATHERS[name]
    numbers = str(case.starts.tolist())
    constant = f'    %b = "stablehlo.constant"() <{{value = dense<{numbers}> : {type_of(case.starts)}}}>'
    text = _gather(case, f"{constant} : () -> {type_of(case.starts)}", [type_of(case.x)])
    check(text, [case.x])
    assert not {"MAXIMUM", "MINIMUM"} & set(operators(convert(text)))


WRAPPED = """    %n = "stablehlo.constant"() <{{value = dense<5> : tensor<i32>}}> : () -> tensor<i32>
    %z = "stablehlo.constant"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
    %bn = "stablehlo.broadcast_in_dim"(%n) <{{broadcast_dimensions = array<i64>}}> : (tensor<i32>) -> tensor<4xi32>
    %bz = "stablehlo.broadcast_in_dim"(%z) <{{broadcast_dimensions = array<i64>}}> : (tensor<i32>) -> tensor<4xi32>
    %less = "stablehlo.compare"({index}, %bz) <{{comparison_direction = #stablehlo<comparison_direction LT>}}>
        : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %sum = "stablehlo.add"({index}, %bn) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %w = "stablehlo.select"(%less, %sum, {index})
        : (tensor<4xi1>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %i = "stablehlo.reshape"(%w) : (tensor<4xi32>) -> tensor<4x1xi32>
    %r = "stablehlo.gather"(%a, %i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
        collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 7>}}>
        : (tensor<5x7xf32>, tensor<4x1xi32>) -> tensor<4x7xf32>
    return %r : tensor<4x7xf32>"""


@pytest.mark.parametrize("numbers", [(0, 4, -1, -5), (5, 9, -6, -9), (2**31 - 1, -(2**31), 1, 2)], ids=str)
def test_indices_from_the_end_are_remainders(numbers: tuple[int, ...]) -> None:
    text = program(WRAPPED.format(index="%b"), ["tensor<5x7xf32>", "tensor<4xi32>"], ["tensor<4x7xf32>"])
    check(text, [X, ints(*numbers)], {"MAXIMUM": 1, "MINIMUM": 1, "FLOOR_MOD": 1, "GATHER": 1})


def test_indices_that_are_limited_are_inside() -> None:
    """They need neither further limits nor the choice for negative ones."""
    body = """    %z0 = "stablehlo.constant"() <{value = dense<0> : tensor<4xi32>}> : () -> tensor<4xi32>
    %four = "stablehlo.constant"() <{value = dense<4> : tensor<4xi32>}> : () -> tensor<4xi32>
    %m = "stablehlo.maximum"(%b, %z0) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %p = "stablehlo.minimum"(%m, %four) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
""" + WRAPPED.format(index="%p")
    text = program(body, ["tensor<5x7xf32>", "tensor<4xi32>"], ["tensor<4x7xf32>"])
    check(text, [X, ints(-3, 2, 9, 4)], NOT_WRAPPED)


@pytest.mark.parametrize("starts", [(2, 1), (4, 9), (-3, 0)], ids=str)
def test_dynamic_slices_are_moved_inside(starts: tuple[int, int]) -> None:
    text = program(
        """    %0 = "stablehlo.dynamic_slice"(%a, %b, %c) <{slice_sizes = array<i64: 2, 3>}>
        : (tensor<5x7xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
    return %0 : tensor<2x3xf32>""",
        ["tensor<5x7xf32>", "tensor<i32>", "tensor<i32>"],
        ["tensor<2x3xf32>"],
    )
    check(text, [X, *(np.array(start, np.int32) for start in starts)])


@pytest.mark.parametrize("starts", [(2, 1), (4, 9), (-3, 0)], ids=str)
def test_dynamic_updates_are_moved_inside(starts: tuple[int, int]) -> None:
    text = program(
        """    %0 = "stablehlo.dynamic_update_slice"(%a, %b, %c, %d)
        : (tensor<5x7xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<5x7xf32>
    return %0 : tensor<5x7xf32>""",
        ["tensor<5x7xf32>", "tensor<2x3xf32>", "tensor<i32>", "tensor<i32>"],
        ["tensor<5x7xf32>"],
    )
    check(text, [X, X[:2, :3] + 1, *(np.array(start, np.int32) for start in starts)])


def test_the_last_row_of_an_open_batch() -> None:
    text = program(
        """    %size = "stablehlo.get_dimension_size"(%a) <{dimension = 0 : i64}> : (tensor<?x7xf32>) -> tensor<i32>
    %m = "stablehlo.constant"() <{value = dense<-1> : tensor<i32>}> : () -> tensor<i32>
    %z = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %i = "stablehlo.add"(%m, %size) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %0 = "stablehlo.dynamic_slice"(%a, %i, %z) <{slice_sizes = array<i64: 1, 7>}>
        : (tensor<?x7xf32>, tensor<i32>, tensor<i32>) -> tensor<1x7xf32>
    return %0 : tensor<1x7xf32>""",
        ["tensor<?x7xf32>"],
        ["tensor<1x7xf32>"],
    )
    check(text, [X], {"STRIDED_SLICE": 1})


class Scatter(NamedTuple):
    """A scatter: its dimension numbers, body, operands, and operators if they count."""

    dims: str
    body: str
    x: Array
    indices: Array
    updates: Array
    operators: dict[str, int] | None = None


ROWS = "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
PLACES = ints(0, 3, 3, 9, -1, shape=(5, 1))
SUM = {"LESS": 1, "SELECT_V2": 1, "RESHAPE": 1, "UNSORTED_SEGMENT_SUM": 1, "ADD": 1}

SCATTERS = {
    "set": Scatter(ROWS, "", X, PLACES, X + 1),
    "add": Scatter(ROWS, "add", X, PLACES, X + 1, SUM),
    "multiply": Scatter(ROWS, "multiply", X, PLACES, X + 1),
    "maximum": Scatter(ROWS, "maximum", X, PLACES, X + 1),
    "minimum": Scatter(ROWS, "minimum", X, PLACES, X + 1),
    "subtract": Scatter(ROWS, "subtract", X, PLACES, X + 1),
    "add integers": Scatter(ROWS, "add", (X * 9).astype(np.int32), PLACES, (X * 5).astype(np.int32), SUM),
    "add words": Scatter(ROWS, "add", (X * 9).astype(np.int32).astype(np.uint32), PLACES, X.view(np.uint32)),
    "add octets": Scatter(ROWS, "add", (X * 9).astype(np.int8), PLACES, (X * 90).astype(np.int8)),
    "set booleans": Scatter(ROWS, "", X > 0, PLACES, X < 0),
    "or": Scatter(ROWS, "or", X > 0, PLACES, X < 0),
    "and": Scatter(ROWS, "and", X > 0, PLACES, X < 0),
    "points": Scatter(
        "inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1",
        "add",
        X,
        ints(0, 6, 4, -1, 4, 3, 4, 3, shape=(4, 2)),
        ints(1, 2, 3, 4).astype(np.float32),
    ),
    "columns": Scatter(
        "update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], "
        "index_vector_dim = 1",
        "",
        X,
        ints(6, 1, 7, shape=(3, 1)),
        X[:, :3] + 1,
    ),
    "one of each row": Scatter(
        "inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], "
        "scatter_dims_to_operand_dims = [1], index_vector_dim = 1",
        "add",
        X,
        ints(0, 6, -1, 7, 3, shape=(5, 1)),
        X[:, 0],
        {"EQUAL": 1, "RESHAPE": 1, "ADD": 1, "SELECT_V2": 1},
    ),
    "one row of each matrix": Scatter(
        "update_window_dims = [1], inserted_window_dims = [1], input_batching_dims = [0], "
        "scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1",
        "",
        CUBE,
        ints(3, -1, 4, shape=(3, 1)),
        CUBE[:, 0] + 1,
        {"EQUAL": 1, "RESHAPE": 2, "SELECT_V2": 1},
    ),
    "one of each column of matrices, batch turned": Scatter(
        "inserted_window_dims = [1], input_batching_dims = [0, 2], scatter_indices_batching_dims = [1, 0], "
        "scatter_dims_to_operand_dims = [1], index_vector_dim = 2",
        "maximum",
        CUBE,
        ints(*range(-1, 14), shape=(5, 3, 1)) % 6 - 1,
        CUBE[:, 0].T + 1,
    ),
    "a part of each row": Scatter(
        "update_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], "
        "scatter_dims_to_operand_dims = [1], index_vector_dim = 1",
        "add",
        X,
        ints(2, 2, 2, 2, 2, shape=(5, 1)),
        X[:, :1] + 1,
    ),
    "one row": Scatter(
        "update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]",
        "",
        X,
        ints(3),
        X[0] + 1,
    ),
    "one row outside": Scatter(
        "update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]",
        "multiply",
        X,
        ints(-1),
        X[0] + 1,
    ),
}


def _scatter(case: Scatter, indices: str, operands: Sequence[str]) -> str:
    element = type_of(np.zeros((), case.x.dtype))
    kind = type_of(case.x)
    result, line = "%n", ""
    if case.body:
        result, line = "%s", f'\n      %s = "stablehlo.{case.body}"(%o, %n) : ({element}, {element}) -> {element}'
    names = "%a, %i, %b" if indices else "%a, %b, %c"
    return program(
        f"""{indices}
    %0 = "stablehlo.scatter"({names})
        <{{scatter_dimension_numbers = #stablehlo.scatter<{case.dims}>}}> ({{
    ^bb0(%o: {element}, %n: {element}):{line}
      "stablehlo.return"({result}) : ({element}) -> ()
    }}) : ({kind}, {type_of(case.indices)}, {type_of(case.updates)}) -> {kind}
    return %0 : {kind}""",
        operands,
        [kind],
    )


@pytest.mark.parametrize("name", SCATTERS)
def test_scatters(name: str) -> None:
    case = SCATTERS[name]
    text = _scatter(case, "", [type_of(each) for each in (case.x, case.indices, case.updates)])
    check(text, [case.x, case.indices, case.updates], case.operators)


@pytest.mark.parametrize("name", SCATTERS)
def test_scatters_at_constants(name: str) -> None:
    case = SCATTERS[name]
    kind = type_of(case.indices)
    constant = f'    %i = "stablehlo.constant"() <{{value = dense<{case.indices.tolist()}> : {kind}}}> : () -> {kind}'
    text = _scatter(case, constant, [type_of(case.x), type_of(case.updates)])
    check(text, [case.x, case.updates])
    assert not {"LESS", "EQUAL"} & set(operators(convert(text))) or case.body in ("maximum", "minimum")


# Tensors that are large beside the updates, some of which are outside, negative, or of one place.
_LONG = np.random.default_rng(3).normal(size=9000).astype(np.float32)
_WIDE = np.random.default_rng(4).normal(size=(90, 80)).astype(np.float32)
_MASSES = np.random.default_rng(5).normal(size=(4000, 3)).astype(np.float32)
_LINES = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
_POINTS = "inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1"
_TURNED = "inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 1"
_SPOTS = ints(0, 8999, 3, 3, -1, -9000, 9000, shape=(7, 1))
_PAIRS = ints(0, 79, 89, 0, 5, 5, 5, 5, -1, 3, 90, 3, 3, 80, shape=(7, 2))
_SOME = np.random.default_rng(6).normal(size=7).astype(np.float32)

LARGE = {
    **{
        f"{body or 'set'} of {name}": Scatter(dims, body, x, places, _SOME)
        for body in ("", "multiply", "maximum", "minimum")
        for name, dims, x, places in (
            ("elements", _LINES, _LONG, _SPOTS),
            ("points", _POINTS, _WIDE, _PAIRS),
            ("points, turned", _TURNED, _WIDE.T.copy(), _PAIRS),
        )
    },
    "set of integers": Scatter(_POINTS, "", (_WIDE * 9).astype(np.int32), _PAIRS, (_SOME * 9).astype(np.int32)),
    "set of octets": Scatter(_LINES, "", (_LONG * 9).astype(np.int8), _SPOTS, (_SOME * 9).astype(np.int8)),
    "set of booleans": Scatter(_LINES, "", _LONG > 0, _SPOTS, _SOME > 0),
    "set of rows": Scatter(ROWS, "", _MASSES, ints(0, 3999, 4000, -1, 7, 7, shape=(6, 1)), _MASSES[:6] + 1),
    "maximum of integers": Scatter(
        _LINES, "maximum", (_LONG * 9).astype(np.int32), _SPOTS, (_SOME * 9).astype("int32")
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_few_updates_of_large_tensors(name: str) -> None:
    case = LARGE[name]
    text = _scatter(case, "", [type_of(each) for each in (case.x, case.indices, case.updates)])
    check(text, [case.x, case.indices, case.updates])
    assert operators(convert(text))["STABLEHLO_SCATTER"] == 1
    for_gpu = convert(text, target=tfconvert.LiteRT(accelerator=["gpu"]))
    assert "STABLEHLO_SCATTER" not in operators(for_gpu)
    for_old = convert(text, target=tfconvert.LiteRT(target_runtime="2.15"))
    assert "STABLEHLO_SCATTER" not in operators(for_old)


@pytest.mark.parametrize("name", LARGE)
def test_few_updates_of_large_tensors_at_constants(name: str) -> None:
    case = LARGE[name]
    kind = type_of(case.indices)
    constant = f'    %i = "stablehlo.constant"() <{{value = dense<{case.indices.tolist()}> : {kind}}}> : () -> {kind}'
    text = _scatter(case, constant, [type_of(case.x), type_of(case.updates)])
    check(text, [case.x, case.updates])


@pytest.mark.parametrize("body", ["add", "subtract"])
@pytest.mark.parametrize("dims", [_LINES, _POINTS])
def test_sums_of_updates(body: str, dims: str) -> None:
    x, places = (_LONG, _SPOTS) if dims == _LINES else (_WIDE, _PAIRS)
    case = Scatter(dims, body, x, places, _SOME)
    text = _scatter(case, "", [type_of(each) for each in (case.x, case.indices, case.updates)])
    check(text, [case.x, case.indices, case.updates])
    found = operators(convert(text))
    assert "UNSORTED_SEGMENT_SUM" not in found
    assert found.get("SCATTER_ND") == 1 or found.get("STABLEHLO_SCATTER") == 1


def test_nan_is_reported() -> None:
    case = LARGE["maximum of elements"]
    text = _scatter(case, "", [type_of(each) for each in (case.x, case.indices, case.updates)])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.mlir")
        path.write_text(text, "utf-8")
        report = tfconvert.convert(str(path)).report
    assert any("STABLEHLO_MAXIMUM: NaN may be lost" in note.message for note in report.notes)


def test_starts_that_are_limited_together() -> None:
    """A slice that is updated for each row of a batch, as JAX writes it."""
    x, starts, updates = _WIDE[:5, :64].reshape(5, 8, 8).copy(), ints(-3, 0, 2, 7, 99), _SOME[:5].reshape(5, 1, 1)
    body = """    %z = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %l = "stablehlo.constant"() <{value = dense<[7, 7]> : tensor<2xi32>}> : () -> tensor<2xi32>
    %r = "stablehlo.reshape"(%b) : (tensor<5xi32>) -> tensor<5x1xi32>
    %i = "stablehlo.concatenate"(%r, %r) <{dimension = 1 : i64}>
        : (tensor<5x1xi32>, tensor<5x1xi32>) -> tensor<5x2xi32>
    %h = "stablehlo.broadcast_in_dim"(%l) <{broadcast_dimensions = array<i64: 1>}> : (tensor<2xi32>) -> tensor<5x2xi32>
    %w = "stablehlo.broadcast_in_dim"(%z) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<5x2xi32>
    %j = "stablehlo.clamp"(%w, %i, %h) : (tensor<5x2xi32>, tensor<5x2xi32>, tensor<5x2xi32>) -> tensor<5x2xi32>
    %0 = "stablehlo.scatter"(%a, %j, %c) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2],
        input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1, 2],
        index_vector_dim = 1>}> ({
    ^bb0(%o: tensor<f32>, %n: tensor<f32>):
      "stablehlo.return"(%n) : (tensor<f32>) -> ()
    }) : (tensor<5x8x8xf32>, tensor<5x2xi32>, tensor<5x1x1xf32>) -> tensor<5x8x8xf32>
    return %0 : tensor<5x8x8xf32>"""
    kinds = [type_of(each) for each in (x, starts, updates)]
    check(program(body, kinds, kinds[:1]), [x, starts, updates])


COMPLEX = {
    "scatter": (
        """%0 = "stablehlo.scatter"(%z, %b, %z) <{scatter_dimension_numbers = #stablehlo.scatter<
            inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
        ^bb0(%o: tensor<complex<f32>>, %n: tensor<complex<f32>>):
          %s = "stablehlo.add"(%o, %n) : (tensor<complex<f32>>, tensor<complex<f32>>) -> tensor<complex<f32>>
          "stablehlo.return"(%s) : (tensor<complex<f32>>) -> ()
        }) : (tensor<4xcomplex<f32>>, tensor<4xi32>, tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>""",
        4,
    ),
    "gather": (
        """%0 = "stablehlo.gather"(%z, %b) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
            start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}>
            : (tensor<4xcomplex<f32>>, tensor<4xi32>) -> tensor<4xcomplex<f32>>""",
        4,
    ),
    "pad": (
        """%v = "stablehlo.constant"() <{value = dense<(2.0, -1.0)> : tensor<complex<f32>>}>
            : () -> tensor<complex<f32>>
        %0 = "stablehlo.pad"(%z, %v) <{edge_padding_low = array<i64: 1>, edge_padding_high = array<i64: 2>,
            interior_padding = array<i64: 0>}>
            : (tensor<4xcomplex<f32>>, tensor<complex<f32>>) -> tensor<7xcomplex<f32>>""",
        7,
    ),
    "reverse": (
        """%0 = "stablehlo.reverse"(%z) <{dimensions = array<i64: 0>}>
            : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>""",
        4,
    ),
    "sign": ('%0 = "stablehlo.sign"(%z) : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>', 4),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers_are_moved_by_their_parts(name: str) -> None:
    op, size = COMPLEX[name]
    kind = f"tensor<{size}xcomplex<f32>>"
    body = f"""    %z = "stablehlo.complex"(%a, %c) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
    {op}
    %r = "stablehlo.real"(%0) : ({kind}) -> tensor<{size}xf32>
    %i = "stablehlo.imag"(%0) : ({kind}) -> tensor<{size}xf32>
    return %r, %i : tensor<{size}xf32>, tensor<{size}xf32>"""
    text = program(body, ["tensor<4xf32>", "tensor<4xi32>", "tensor<4xf32>"], [f"tensor<{size}xf32>"] * 2)
    check(text, [_SOME[:4], ints(3, 1, 1, 0), np.array([0.5, 0, -2, 1], np.float32)])
    assert "RFFT2D" not in operators(convert(text))


def test_a_body_that_is_not_known_is_refused() -> None:
    case = SCATTERS["add"]
    text = _scatter(case._replace(body="atan2"), "", [type_of(each) for each in (case.x, case.indices, case.updates)])
    with pytest.raises(Exception, match=r"stablehlo\.scatter can't be converted: its body isn't a known one"):
        convert(text)
