"""Slices of open dimensions whose bounds are computed from the size: one op, whatever the size is."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converter.from_stablehlo.programs import convert, of_jax, operators, program
from tests.support.litert import run

KIND = "tensor<?x3xf32>"

_SIZE = """
    %b = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %n = stablehlo.reshape %b : (tensor<i32>) -> tensor<1xi32>
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.constant dense<2> : tensor<i32>
    %v1 = stablehlo.constant dense<1> : tensor<1xi32>
    %v3 = stablehlo.constant dense<3> : tensor<1xi32>
    %z = stablehlo.constant dense<0> : tensor<2xi32>
    %o = stablehlo.constant dense<1> : tensor<2xi32>"""


def _window(begin: str, length: str) -> str:
    """Returns a slice of rows as JAX writes it: a gather of one window."""
    return f"""
    %s = stablehlo.reshape %{begin} : (tensor<i32>) -> tensor<1xi32>
    %l = stablehlo.reshape %{length} : (tensor<i32>) -> tensor<1xi32>
    %sizes = stablehlo.concatenate %l, %v3, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %r = "stablehlo.dynamic_gather"(%a, %s, %sizes)
        <{{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [0]>}}>
        : ({KIND}, tensor<1xi32>, tensor<2xi32>) -> {KIND}"""


def _rows(first: str, step: int, count: str, *, is_reversed: bool = False) -> str:
    """Returns a gather of evenly spaced rows."""
    turned = "\n    %q = stablehlo.reverse %p, dims = [0] : tensor<?xi32>" if is_reversed else ""
    return f"""
    %c = stablehlo.reshape %{count} : (tensor<i32>) -> tensor<1xi32>
    %i = stablehlo.dynamic_iota %c, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
    %t = stablehlo.constant dense<{step}> : tensor<i32>
    %u = stablehlo.dynamic_broadcast_in_dim %t, %c, dims = [] : (tensor<i32>, tensor<1xi32>) -> tensor<?xi32>
    %m = stablehlo.multiply %u, %i : tensor<?xi32>
    %f = stablehlo.dynamic_broadcast_in_dim %{first}, %c, dims = [] : (tensor<i32>, tensor<1xi32>) -> tensor<?xi32>
    %p = stablehlo.add %f, %m : tensor<?xi32>{turned}
    %k = stablehlo.concatenate %c, %v1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %w = stablehlo.dynamic_broadcast_in_dim %{"q" if is_reversed else "p"}, %k, dims = [0]
        : (tensor<?xi32>, tensor<2xi32>) -> tensor<?x1xi32>
    %r = "stablehlo.gather"(%a, %w) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
        collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}}>
        : ({KIND}, tensor<?x1xi32>) -> {KIND}"""


_LESS_1 = """
    %m1 = stablehlo.subtract %b, %1 : tensor<i32>"""
_LESS_2 = """
    %m2 = stablehlo.subtract %b, %2 : tensor<i32>
    %last = stablehlo.maximum %0, %m2 : tensor<i32>"""
_HALF = """
    %more = stablehlo.add %b, %1 : tensor<i32>
    %half = stablehlo.divide %more, %2 : tensor<i32>"""
_ROUNDED_DOWN = """
    %half = stablehlo.divide %b, %2 : tensor<i32>"""
_SLICE = f"""
    %e = stablehlo.concatenate %x, %v3, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %r = stablehlo.real_dynamic_slice %a, %z, %e, %o
        : ({KIND}, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> {KIND}"""

SLICED = {
    "x[-2:]": (_LESS_2 + "\n    %rest = stablehlo.subtract %b, %last : tensor<i32>" + _window("last", "rest"), 1),
    "x[:-1]": (_LESS_1 + _window("0", "m1"), 1),
    "x[1:-1]": (_LESS_2.replace("%last", "%rest") + _window("1", "rest"), 2),
    "x[:2]": ("\n    %first = stablehlo.minimum %b, %2 : tensor<i32>" + _window("0", "first"), 1),
    "x[::2]": (_HALF + _rows("0", 2, "half"), 1),
    "x[1::2]": (_ROUNDED_DOWN + _rows("1", 2, "half"), 2),
    "x[::-1]": (_LESS_1 + _rows("m1", -1, "b"), 1),
    "x[::-2]": (_LESS_1 + _HALF + _rows("m1", -2, "half"), 1),
    "x[::-2][::-1]": (_LESS_1 + _HALF + _rows("m1", -2, "half", is_reversed=True), 1),
    "x[:-1] as a slice": (_LESS_1 + "\n    %x = stablehlo.reshape %m1 : (tensor<i32>) -> tensor<1xi32>" + _SLICE, 1),
}


def _slice(name: str) -> slice:
    """Returns the slice that a name such as `x[:-1]` has."""
    text = name[name.index("[") + 1 : name.index("]")]
    return slice(*[int(bound) if bound else None for bound in text.split(":")])


@pytest.mark.parametrize("name", SLICED)
def test_slices_are_counted_from_the_end(name: str) -> None:
    body, smallest = SLICED[name]
    content = convert(program(f"{_SIZE}{body}\n    return %r : {KIND}", [KIND], [KIND]))
    assert sum(operators(content).values()) == name.count("[")
    for size in (smallest + 1, 5, 6):
        x = np.arange(3 * size, dtype=np.float32).reshape(size, 3)
        (found,) = run(content, [x])
        assert np.array_equal(found, x[_slice(name)][:: -1 if name.count("[") > 1 else 1])


def test_other_numbers_of_rows_are_gathered() -> None:
    body = _SIZE + _ROUNDED_DOWN + _rows("0", 2, "half")
    content = convert(program(f"{body}\n    return %r : {KIND}", [KIND], [KIND]))
    assert "GATHER" in operators(content)
    x = np.arange(15, dtype=np.float32).reshape(5, 3)
    assert np.array_equal(run(content, [x])[0], x[:4:2])


def test_a_roll_of_one_is_two_slices() -> None:
    body = f"""{_SIZE}
    %minus = stablehlo.constant dense<-1> : tensor<i32>
    %rest = stablehlo.remainder %minus, %b : tensor<i32>
    %isnt = stablehlo.compare NE, %rest, %0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %below = stablehlo.compare LT, %rest, %0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %other = stablehlo.compare LT, %b, %0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %signs = stablehlo.compare NE, %below, %other : (tensor<i1>, tensor<i1>) -> tensor<i1>
    %both = stablehlo.and %signs, %isnt : tensor<i1>
    %sum = stablehlo.add %rest, %b : tensor<i32>
    %mod = stablehlo.select %both, %sum, %rest : tensor<i1>, tensor<i32>
    %x = stablehlo.reshape %mod : (tensor<i32>) -> tensor<1xi32>
    %v0 = stablehlo.constant dense<0> : tensor<1xi32>
    %g = stablehlo.concatenate %x, %v0, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %h = stablehlo.concatenate %n, %v3, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %tail = stablehlo.real_dynamic_slice %a, %g, %h, %o
        : ({KIND}, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> {KIND}{_SLICE.replace("%r ", "%head ")}
    %r = stablehlo.concatenate %tail, %head, dim = 0 : ({KIND}, {KIND}) -> {KIND}"""
    content = convert(of_jax(program(f"{body}\n    return %r : {KIND}", [KIND], [KIND])))
    assert operators(content) == {"STRIDED_SLICE": 2, "CONCATENATION": 1}
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    assert np.array_equal(run(content, [x])[0], np.roll(x, 1, 0))
