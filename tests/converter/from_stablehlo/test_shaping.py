"""Ops of StableHLO that move elements, and sizes that only running tells, which cost nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.from_stablehlo.programs import convert, operators, program, results
from tests.support.litert import run

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
KIND = "tensor<2x3x4xf32>"

MOVED: list[tuple[str, str, Any]] = [
    ("stablehlo.reshape %a : (tensor<2x3x4xf32>) -> tensor<6x4xf32>", "6x4", X.reshape(6, 4)),
    (
        "stablehlo.transpose %a, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>",
        "4x2x3",
        X.transpose(2, 0, 1),
    ),
    ("stablehlo.reverse %a, dims = [0, 2] : tensor<2x3x4xf32>", "2x3x4", X[::-1, :, ::-1]),
    ("stablehlo.slice %a [0:2, 1:3, 0:4:2] : (tensor<2x3x4xf32>) -> tensor<2x2x2xf32>", "2x2x2", X[:, 1:3, ::2]),
    (
        "stablehlo.concatenate %a, %a, dim = 1 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x6x4xf32>",
        "2x6x4",
        np.concatenate([X, X], 1),
    ),
    (
        "stablehlo.broadcast_in_dim %a, dims = [0, 2, 3] : (tensor<2x3x4xf32>) -> tensor<2x5x3x4xf32>",
        "2x5x3x4",
        np.broadcast_to(X[:, None], (2, 5, 3, 4)),
    ),
    (
        "stablehlo.broadcast_in_dim %a, dims = [2, 1, 0] : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>",
        "4x3x2",
        X.transpose(2, 1, 0),
    ),
    ("stablehlo.iota dim = 1 : tensor<2x3xf32>", "2x3", np.broadcast_to(np.arange(3, dtype=np.float32), (2, 3))),
]


@pytest.mark.parametrize(("op", "shape", "expected"), MOVED, ids=lambda value: str(value).split()[0][:30])
def test_elements_are_moved(op: str, shape: str, expected: np.ndarray[Any, Any]) -> None:
    result = f"tensor<{shape}xf32>"
    body = f"    %0 = {op}\n    %1 = stablehlo.negate %0 : {result}\n    return %1, %a : {result}, {KIND}"
    assert np.array_equal(results(program(body, [KIND], [result, KIND]), X)[0], -expected)


def _padded(x: np.ndarray[Any, Any], value: float, *pads: tuple[int, int, int]) -> np.ndarray[Any, Any]:
    for axis, (low, high, between) in enumerate(pads):
        rows = np.moveaxis(x, axis, 0)
        spread = np.full((max(len(rows) * (between + 1) - between, 0), *rows.shape[1:]), value, x.dtype)
        spread[:: between + 1] = rows
        ends = [np.full((max(count, 0), *rows.shape[1:]), value, x.dtype) for count in (low, high)]
        kept = spread[max(-low, 0) : len(spread) - max(-high, 0)]
        x = np.moveaxis(np.concatenate([ends[0], kept, ends[1]]), 0, axis)
    return x


@pytest.mark.parametrize("value", [0.0, 2.5])
@pytest.mark.parametrize(
    "pads", [[(0, 0, 0), (1, 2, 0), (0, 3, 0)], [(0, 0, 0), (-1, 0, 0), (2, -1, 0)], [(0, 0, 1), (1, 1, 2), (0, -2, 1)]]
)
def test_padding_adds_removes_and_spreads(pads: list[tuple[int, int, int]], value: float) -> None:
    low, high, interior = ([pad[index] for pad in pads] for index in range(3))
    expected = _padded(X, value, *pads)
    result = f"tensor<{'x'.join(map(str, expected.shape))}xf32>"
    body = f"""    %c = stablehlo.constant dense<{value}> : tensor<f32>
    %0 = stablehlo.pad %a, %c, low = {low}, high = {high}, interior = {interior} : ({KIND}, tensor<f32>) -> {result}
    return %0 : {result}"""
    assert np.array_equal(results(program(body, [KIND], [result]), X)[0], expected)


OPEN = "tensor<?x3xf32>"
SIZE = f"    %n = stablehlo.get_dimension_size %a, dim = 0 : ({OPEN}) -> tensor<i32>\n"
VECTOR = """    %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %three = stablehlo.constant dense<3> : tensor<1xi32>
    %shape = stablehlo.concatenate %n1, %three, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
"""
ASSERTION = (
    'stablehlo.custom_call @shape_assertion(%ok, %n) {error_message = "size {0} is bad", has_side_effect = true}'
)


def _at_sizes(text: str, *sizes: int) -> list[tuple[np.ndarray[Any, Any], list[np.ndarray[Any, Any]]]]:
    content = convert(text)
    inputs = [np.arange(3 * size, dtype=np.float32).reshape(size, 3) - 2 for size in sizes]
    return [(x, run(content, [x])) for x in inputs]


def test_an_open_batch_costs_nothing() -> None:
    body = f"""{SIZE}    %one = stablehlo.constant dense<1> : tensor<i32>
    %ok = stablehlo.compare GE, %n, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    {ASSERTION} : (tensor<i1>, tensor<i32>) -> ()
{VECTOR}    %w = stablehlo.constant dense<[[1.0, 2.0, 0.5], [-1.0, 0.0, 3.0], [0.25, -2.0, 1.0]]> : tensor<3x3xf32>
    %b = stablehlo.constant dense<[[1.0, -2.0, 3.0]]> : tensor<1x3xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : ({OPEN}, tensor<3x3xf32>) -> {OPEN}
    %1 = stablehlo.dynamic_broadcast_in_dim %b, %shape, dims = [0, 1] : (tensor<1x3xf32>, tensor<2xi32>) -> {OPEN}
    %2 = stablehlo.add %0, %1 : {OPEN}
    %3 = stablehlo.dynamic_broadcast_in_dim %zero, %shape, dims = [] : (tensor<f32>, tensor<2xi32>) -> {OPEN}
    %4 = stablehlo.maximum %2, %3 : {OPEN}
    return %4 : {OPEN}"""
    text = program(body, [OPEN], [OPEN])
    assert operators(convert(text)) == {"FULLY_CONNECTED": 1}
    weights = np.array([[1, 2, 0.5], [-1, 0, 3], [0.25, -2, 1]], np.float32)
    for x, (found,) in _at_sizes(text, 1, 4):
        assert np.allclose(found, np.maximum(x @ weights + [1, -2, 3], 0))


def test_arithmetic_of_sizes_folds() -> None:
    """`x.reshape(-1, 2, 3)` of a batch `2*n`, with the floored division that JAX writes out."""
    pair = "(tensor<i32>, tensor<i32>) -> tensor<i1>"
    body = f"""{SIZE}    %two = stablehlo.constant dense<2> : tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %rest = stablehlo.remainder %n, %two : tensor<i32>
    %ok = stablehlo.compare EQ, %rest, %zero, SIGNED : {pair}
    {ASSERTION} : (tensor<i1>, tensor<i32>) -> ()
    %0 = stablehlo.divide %n, %two : tensor<i32>
    %1 = stablehlo.sign %n : tensor<i32>
    %2 = stablehlo.sign %two : tensor<i32>
    %3 = stablehlo.compare NE, %1, %2, SIGNED : {pair}
    %4 = stablehlo.compare NE, %rest, %zero, SIGNED : {pair}
    %5 = stablehlo.and %3, %4 : tensor<i1>
    %6 = stablehlo.subtract %0, %one : tensor<i32>
    %7 = stablehlo.select %5, %6, %0 : tensor<i1>, tensor<i32>
    %8 = stablehlo.reshape %7 : (tensor<i32>) -> tensor<1xi32>
    %9 = stablehlo.constant dense<[2, 3]> : tensor<2xi32>
    %10 = stablehlo.concatenate %8, %9, dim = 0 : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
    %11 = stablehlo.dynamic_reshape %a, %10 : ({OPEN}, tensor<3xi32>) -> tensor<?x2x3xf32>
    return %11 : tensor<?x2x3xf32>"""
    text = program(body, [OPEN], ["tensor<?x2x3xf32>"])
    assert operators(convert(text)) == {"RESHAPE": 1}
    for x, (found,) in _at_sizes(text, 2, 4):
        assert np.array_equal(found, x.reshape(-1, 2, 3))


def test_equal_products_of_sizes_are_one_size() -> None:
    body = f"""{SIZE}    %two = stablehlo.constant dense<2> : tensor<i32>
    %double = stablehlo.multiply %two, %n : tensor<i32>
    %n1 = stablehlo.reshape %double : (tensor<i32>) -> tensor<1xi32>
    %three = stablehlo.constant dense<3> : tensor<1xi32>
    %shape = stablehlo.concatenate %n1, %three, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %0 = stablehlo.concatenate %a, %a, dim = 0 : ({OPEN}, {OPEN}) -> {OPEN}
    %1 = stablehlo.dynamic_broadcast_in_dim %one, %shape, dims = [] : (tensor<f32>, tensor<2xi32>) -> {OPEN}
    %2 = stablehlo.add %0, %1 : {OPEN}
    return %2 : {OPEN}"""
    text = program(body, [OPEN], [OPEN])
    assert operators(convert(text)) == {"CONCATENATION": 1, "ADD": 1}
    for x, (found,) in _at_sizes(text, 1, 3):
        assert np.array_equal(found, np.concatenate([x, x]) + 1)


def test_sizes_that_an_assertion_compares_are_equal() -> None:
    body = f"""{SIZE}    %m = stablehlo.get_dimension_size %b, dim = 0 : ({OPEN}) -> tensor<i32>
    %ok = stablehlo.compare EQ, %m, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    {ASSERTION} : (tensor<i1>, tensor<i32>) -> ()
{VECTOR}    %r = stablehlo.dynamic_reshape %b, %shape : ({OPEN}, tensor<2xi32>) -> {OPEN}
    %0 = stablehlo.add %a, %r : {OPEN}
    return %0 : {OPEN}"""
    assert operators(convert(program(body, [OPEN, OPEN], [OPEN]))) == {"ADD": 1}


def test_a_false_assertion_is_an_error_with_its_message() -> None:
    body = f"""    %n = stablehlo.get_dimension_size %a, dim = 0 : (tensor<3x3xf32>) -> tensor<i32>
    %four = stablehlo.constant dense<4> : tensor<i32>
    %ok = stablehlo.compare GE, %n, %four, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    {ASSERTION} : (tensor<i1>, tensor<i32>) -> ()
    return %a : tensor<3x3xf32>"""
    with pytest.raises(tfconvert.ConversionError, match="size 3 is bad"):
        convert(program(body, ["tensor<3x3xf32>"], ["tensor<3x3xf32>"]))


def test_slices_of_computed_length() -> None:
    body = f"""{SIZE}    %one = stablehlo.constant dense<1> : tensor<i32>
    %last = stablehlo.subtract %n, %one : tensor<i32>
    %l1 = stablehlo.reshape %last : (tensor<i32>) -> tensor<1xi32>
    %three = stablehlo.constant dense<3> : tensor<1xi32>
    %limits = stablehlo.concatenate %l1, %three, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %starts = stablehlo.constant dense<[1, 0]> : tensor<2xi32>
    %steps = stablehlo.constant dense<1> : tensor<2xi32>
    %0 = stablehlo.real_dynamic_slice %a, %starts, %limits, %steps
        : ({OPEN}, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> {OPEN}
    return %0 : {OPEN}"""
    for x, (found,) in _at_sizes(program(body, [OPEN], [OPEN]), 3, 6):
        assert np.array_equal(found, x[1:-1])


def test_padding_of_computed_width() -> None:
    body = f"""{SIZE}    %four = stablehlo.constant dense<4> : tensor<i32>
    %more = stablehlo.subtract %four, %n : tensor<i32>
    %m1 = stablehlo.reshape %more : (tensor<i32>) -> tensor<1xi32>
    %zero = stablehlo.constant dense<0> : tensor<1xi32>
    %zeros = stablehlo.constant dense<0> : tensor<2xi32>
    %high = stablehlo.concatenate %m1, %zero, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %value = stablehlo.constant dense<9.0> : tensor<f32>
    %0 = stablehlo.dynamic_pad %a, %value, %zeros, %high, %zeros
        : ({OPEN}, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> {OPEN}
    return %0 : {OPEN}"""
    for x, (found,) in _at_sizes(program(body, [OPEN], [OPEN]), 2, 4, 6):
        assert np.array_equal(found, np.concatenate([x, np.full((4, 3), 9, np.float32)])[:4])


def test_counts_and_repeats_of_computed_size() -> None:
    body = f"""{SIZE}{VECTOR}    %0 = stablehlo.dynamic_iota %shape, dim = 0 : (tensor<2xi32>) -> tensor<?x3xi32>
    %1 = stablehlo.dynamic_broadcast_in_dim %n, %shape, dims = [] : (tensor<i32>, tensor<2xi32>) -> tensor<?x3xi32>
    return %0, %1 : tensor<?x3xi32>, tensor<?x3xi32>"""
    text = program(body, [OPEN], ["tensor<?x3xi32>", "tensor<?x3xi32>"])
    for x, (counted, repeated) in _at_sizes(text, 1, 4):
        assert counted.tolist() == [[row] * 3 for row in range(len(x))]
        assert repeated.tolist() == [[len(x)] * 3] * len(x)


def test_what_is_repeated_twice_costs_nothing() -> None:
    """Functions that `vmap` maps choose between what is repeated for the batch, and what is with more dimensions."""
    wide = "tensor<1x?x3xf32>"
    body = f"""{SIZE}{VECTOR}    %one = stablehlo.constant dense<1> : tensor<1xi32>
    %more = stablehlo.concatenate %one, %shape, dim = 0 : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
    %mask = stablehlo.constant dense<[[true, false, true]]> : tensor<1x3xi1>
    %low = stablehlo.constant dense<-9.0> : tensor<f32>
    %0 = stablehlo.dynamic_broadcast_in_dim %mask, %shape, dims = [0, 1]
        : (tensor<1x3xi1>, tensor<2xi32>) -> tensor<?x3xi1>
    %1 = stablehlo.dynamic_broadcast_in_dim %0, %more, dims = [1, 2]
        : (tensor<?x3xi1>, tensor<3xi32>) -> tensor<1x?x3xi1>
    %2 = stablehlo.dynamic_broadcast_in_dim %low, %shape, dims = [] : (tensor<f32>, tensor<2xi32>) -> {OPEN}
    %3 = stablehlo.dynamic_broadcast_in_dim %2, %more, dims = [1, 2] : ({OPEN}, tensor<3xi32>) -> {wide}
    %4 = stablehlo.dynamic_broadcast_in_dim %a, %more, dims = [1, 2] : ({OPEN}, tensor<3xi32>) -> {wide}
    %5 = stablehlo.select %1, %4, %3 : tensor<1x?x3xi1>, {wide}
    return %5 : {wide}"""
    text = program(body, [OPEN], [wide])
    assert set(operators(convert(text))) <= {"EXPAND_DIMS", "RESHAPE", "SELECT_V2"}
    for x, (found,) in _at_sizes(text, 1, 4):
        assert np.array_equal(found, np.where([True, False, True], x, np.float32(-9))[None])


def test_a_batch_that_is_repeated_is_tiled() -> None:
    body = f"""{SIZE}    %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %rest = stablehlo.constant dense<[5, 3]> : tensor<2xi32>
    %shape = stablehlo.concatenate %n1, %rest, dim = 0 : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
    %0 = stablehlo.dynamic_broadcast_in_dim %a, %shape, dims = [0, 2]
        : ({OPEN}, tensor<3xi32>) -> tensor<?x5x3xf32>
    return %0 : tensor<?x5x3xf32>"""
    text = program(body, [OPEN], ["tensor<?x5x3xf32>"])
    assert operators(convert(text)) == {"RESHAPE": 1, "TILE": 1}
    for x, (found,) in _at_sizes(text, 1, 4):
        assert np.array_equal(found, np.broadcast_to(x[:, None], (len(x), 5, 3)))


@pytest.mark.parametrize(("bounds", "rest", "index"), [("1:2, 0:3", "3", 0), ("0:2, 2:3", "2", 1)])
def test_one_index_is_one_slice(bounds: str, rest: str, index: int) -> None:
    part = "tensor<1x3xf32>" if index == 0 else "tensor<2x1xf32>"
    body = f"""    %0 = stablehlo.slice %a [{bounds}] : (tensor<2x3xf32>) -> {part}
    %1 = stablehlo.reshape %0 : ({part}) -> tensor<{rest}xf32>
    return %1 : tensor<{rest}xf32>"""
    text = program(body, ["tensor<2x3xf32>"], [f"tensor<{rest}xf32>"])
    assert operators(convert(text)) == {"STRIDED_SLICE": 1}
    x = X[0, :2, :3]
    assert np.array_equal(results(text, x)[0], x[1] if index == 0 else x[:, 2])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_tensors_are_stacked_by_one_op(axis: int) -> None:
    sizes = [2, 3]
    sizes.insert(axis, 1)
    one = f"tensor<{'x'.join(map(str, sizes))}xf32>"
    sizes[axis] = 2
    both = f"tensor<{'x'.join(map(str, sizes))}xf32>"
    plain = "tensor<2x3xf32>"
    body = f"""    %0 = stablehlo.reshape %a : ({plain}) -> {one}
    %1 = stablehlo.reshape %b : ({plain}) -> {one}
    %2 = stablehlo.concatenate %0, %1, dim = {axis} : ({one}, {one}) -> {both}
    return %2 : {both}"""
    text = program(body, [plain, plain], [both])
    assert operators(convert(text)) == {"PACK": 1}
    assert np.array_equal(results(text, X[0, :2, :3], X[1, :2, :3])[0], np.stack([X[0, :2, :3], X[1, :2, :3]], axis))


def test_marks_for_compilers_vanish() -> None:
    body = f"""    %0 = stablehlo.optimization_barrier %a : {KIND}
    %1 = stablehlo.custom_call @Sharding(%0) {{mhlo.sharding = "{{replicated}}"}} : ({KIND}) -> {KIND}
    %2 = stablehlo.custom_call @annotate_device_placement(%1) : ({KIND}) -> {KIND}
    %3 = stablehlo.negate %2 : {KIND}
    return %3 : {KIND}"""
    assert operators(convert(program(body, [KIND], [KIND]))) == {"MUL": 1}


def test_bounded_sizes_are_refused() -> None:
    body = f"""    %c = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.set_dimension_size %a, %c, dim = 0 : ({KIND}, tensor<i32>) -> tensor<?x3x4xf32>
    return %0 : tensor<?x3x4xf32>"""
    with pytest.raises(tfconvert.ConversionError, match="bounded dimensions"):
        convert(program(body, [KIND], ["tensor<?x3x4xf32>"]))
