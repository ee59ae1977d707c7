"""Images in other sizes: as LiteRT resizes them where that is the same, else by few products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.converter.from_stablehlo.against_executor import numbers
from tests.converter.from_stablehlo.programs import convert, operators, program, type_of
from tests.support.litert import run
from tfconvert.converter.executor import executor
from tfconvert.schema.dialects.parsing import IRParser

Array = np.ndarray[Any, Any]


def check(body: str, x: Array, shape: tuple[int, ...], wanted: dict[str, int], *, is_open: bool = False) -> None:
    result = type_of(np.empty(shape, np.float32), is_open=is_open)
    text = program(f"{body}\n    return %r : {result}", [type_of(x, is_open=is_open)], [result])
    content = convert(text)
    (expected,) = executor.run(IRParser(text).parse_module(), "main", [x])
    (found,) = run(content, [x])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert operators(content) == wanted


def bilinear(rows: int, size: int, span: float = 1) -> Array:
    """Returns weights as JAX computes them: the sums of each element's are 1."""
    at = (np.arange(rows) + 0.5) * size / rows - 0.5
    weights = np.maximum(0, 1 - np.abs(at[None] - np.arange(size)[:, None]) / span)
    return np.asarray(weights / weights.sum(0), np.float32)


def matrix(name: str, array: Array) -> str:
    rows = ", ".join(f"[{', '.join(f'{each:.9e}' for each in row)}]" for row in array)
    return f"    %{name} = stablehlo.constant dense<[{rows}]> : {type_of(array)}\n"


def product(height: Array, width: Array, *, is_open: bool) -> str:
    (h, m), (w, n), batch = height.shape, width.shape, "?" if is_open else "2"
    kinds = [type_of(height), type_of(width)]
    x, wide = f"tensor<{batch}x{h}x{w}x3xf32>", f"tensor<{n}x{batch}x{h}x3xf32>"
    turned, whole = f"tensor<{n}x{batch}x3x{m}xf32>", f"tensor<{batch}x{m}x{n}x3xf32>"
    dot = '"stablehlo.dot_general"({}) <{{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [{}], '
    dot += "rhs_contracting_dimensions = [{}]>}}> : ({}) -> {}\n"
    return (
        matrix("h", height)
        + matrix("w", width)
        + f"    %0 = {dot.format('%w, %a', 0, 2, f'{kinds[1]}, {x}', wide)}"
        + f"    %1 = {dot.format('%0, %h', 2, 0, f'{wide}, {kinds[0]}', turned)}"
        + f'    %r = "stablehlo.transpose"(%1) <{{permutation = array<i64: 1, 3, 0, 2>}}> : ({turned}) -> {whole}'
    )


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize(("height", "width"), [(8, 10), (4, 11), (2, 13), (7, 3)])
def test_bilinear_weights(height: int, width: int, is_open: bool) -> None:
    body = product(bilinear(height, 4), bilinear(width, 5), is_open=is_open)
    check(body, numbers(2, 4, 5, 3), (2, height, width, 3), {"RESIZE_BILINEAR": 1}, is_open=is_open)


@pytest.mark.parametrize("is_open", [False, True])
def test_other_weights(is_open: bool) -> None:
    body = product(bilinear(2, 6, 3), bilinear(3, 6, 2), is_open=is_open)
    check(body, numbers(2, 6, 6, 3), (2, 2, 3, 3), {"BATCH_MATMUL": 2, "RESHAPE": 2}, is_open=is_open)


def taken(name: str, of: str, axis: int, indices: list[int], before: list[int]) -> str:
    after = [len(indices) if each == axis else size for each, size in enumerate(before)]
    offsets = ", ".join(str(each) for each in range(4) if each != axis)
    slices = ", ".join("1" if each == axis else str(size) for each, size in enumerate(before))
    listed = ", ".join(f"[{index}]" for index in indices)
    kinds = [f"tensor<{'x'.join(map(str, sizes))}xf32>" for sizes in (before, after)]
    at = f"tensor<{len(indices)}x1xi32>"
    return (
        f"    %i{name} = stablehlo.constant dense<[{listed}]> : {at}\n"
        f'    %{name} = "stablehlo.gather"(%{of}, %i{name}) <{{dimension_numbers = #stablehlo.gather<'
        f"offset_dims = [{offsets}], collapsed_slice_dims = [{axis}], start_index_map = [{axis}], "
        f"index_vector_dim = 1>, slice_sizes = array<i64: {slices}>}}> : ({kinds[0]}, {at}) -> {kinds[1]}\n"
    )


@pytest.mark.parametrize(
    ("rows", "columns", "wanted"),
    [
        ([0, 0, 1, 1, 2, 2, 3, 3], [0, 0, 1, 2, 2, 3, 4, 4], {"GATHER": 2}),
        ([1, 3], [0, 0, 1, 1, 2, 2, 3, 3, 4, 4], {"GATHER": 1, "STRIDED_SLICE": 1}),
        ([0, 0, 1, 1, 2, 2, 3, 3], [0, 0, 0, 1, 2, 3, 4, 4], {"GATHER": 2}),
    ],
)
def test_nearest_pixels(rows: list[int], columns: list[int], wanted: dict[str, int]) -> None:
    body = taken("0", "a", 1, rows, [2, 4, 5, 3]) + taken("r", "0", 2, columns, [2, len(rows), 5, 3])
    check(body, numbers(2, 4, 5, 3), (2, len(rows), len(columns), 3), wanted)


def copies(name: str, of: str, axis: int, count: int, before: list[int]) -> str:
    wide = [*before[: axis + 1], count, *before[axis + 1 :]]
    after = [size * count if each == axis else size for each, size in enumerate(before)]
    kinds = [f"tensor<{'x'.join(map(str, sizes))}xf32>" for sizes in (before, wide, after)]
    axes = ", ".join(str(each + (each > axis)) for each in range(len(before)))
    return (
        f'    %b{name} = "stablehlo.broadcast_in_dim"(%{of}) <{{broadcast_dimensions = array<i64: {axes}>}}> : '
        f"({kinds[0]}) -> {kinds[1]}\n"
        f'    %{name} = "stablehlo.reshape"(%b{name}) : ({kinds[1]}) -> {kinds[2]}\n'
    )


def test_copies_of_pixels() -> None:
    body = copies("0", "a", 1, 2, [2, 4, 5, 3]) + copies("r", "0", 2, 3, [2, 8, 5, 3])
    check(body, numbers(2, 4, 5, 3), (2, 8, 15, 3), {"RESIZE_NEAREST_NEIGHBOR": 1})


def test_copies_of_elements() -> None:
    check(copies("r", "a", 1, 3, [4, 5]), numbers(4, 5), (4, 15), {"GATHER": 1})
