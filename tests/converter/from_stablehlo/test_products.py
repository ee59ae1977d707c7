"""Products of StableHLO: which dimensions are summed, which are those of batches, and their types."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from tests.converter.from_stablehlo.against_executor import Array, check, numbers
from tests.converter.from_stablehlo.programs import program, results, type_of


class Dot(NamedTuple):
    """A product: shapes, dimensions of batches and summed ones, the result's shape, operators with an open batch."""

    x: tuple[int, ...]
    y: tuple[int, ...]
    dims: str
    shape: tuple[int, ...]
    operators: dict[str, int] | None = None


DOTS = {
    "matrices": Dot((2, 3), (3, 4), "[] [] [1] [0]", (2, 4), {"BATCH_MATMUL": 1}),
    "matrix by a transposed one": Dot((2, 3), (4, 3), "[] [] [1] [1]", (2, 4), {"BATCH_MATMUL": 1}),
    "transposed matrix": Dot((3, 2), (3, 4), "[] [] [0] [0]", (2, 4)),
    "batched": Dot((2, 3, 4), (2, 4, 5), "[0] [0] [2] [1]", (2, 3, 5), {"BATCH_MATMUL": 1}),
    "batched by transposed ones": Dot((2, 3, 4), (2, 5, 4), "[0] [0] [2] [2]", (2, 3, 5), {"BATCH_MATMUL": 1}),
    "vectors": Dot((3,), (3,), "[] [] [0] [0]", ()),
    "rows of two matrices": Dot((2, 3), (2, 3), "[0] [0] [1] [1]", (2,), {"MUL": 1, "SUM": 1}),
    "outer product": Dot((2,), (3,), "[] [] [] []", (2, 3)),
    "projection to heads": Dot((2, 3, 4), (4, 2, 5), "[] [] [2] [0]", (2, 3, 2, 5)),
    "projection from heads": Dot((2, 3, 2, 5), (2, 5, 4), "[] [] [2, 3] [0, 1]", (2, 3, 4)),
    "attention's scores": Dot(
        (2, 3, 2, 4), (2, 5, 2, 4), "[0, 2] [0, 2] [3] [3]", (2, 2, 3, 5), {"TRANSPOSE": 2, "BATCH_MATMUL": 1}
    ),
    "attention's values": Dot((2, 5, 2, 4), (2, 2, 3, 5), "[0, 2] [0, 1] [1] [3]", (2, 2, 4, 3)),
    "two sums in another order": Dot((2, 3, 4), (4, 3, 5), "[] [] [1, 2] [1, 0]", (2, 5)),
    "many batches": Dot(
        (2, 1, 2, 3, 4, 2), (2, 1, 2, 3, 2, 5), "[0, 1, 2, 3] [0, 1, 2, 3] [5] [4]", (2, 1, 2, 3, 4, 5)
    ),
}
ROLES = ("lhs_batching", "rhs_batching", "lhs_contracting", "rhs_contracting")


def op_of(dims: str) -> str:
    lists = zip(ROLES, dims.replace("] [", "]|[").split("|"), strict=True)
    roles = ", ".join(f"{role}_dimensions = {axes}" for role, axes in lists if axes != "[]")
    return f'"stablehlo.dot_general"(%a, %b) <{{dot_dimension_numbers = #stablehlo.dot<{roles}>}}>'


@pytest.mark.parametrize("name", DOTS)
def test_products(name: str) -> None:
    dot = DOTS[name]
    check(op_of(dot.dims), [numbers(*dot.x), numbers(*dot.y, seed=1)], dot.shape)


UNBATCHED = [
    name for name, dot in DOTS.items() if dot.dims.startswith("[] [] [") and dot.shape and dot.x[0] == dot.shape[0]
]


@pytest.mark.parametrize("name", UNBATCHED)
def test_products_of_an_open_batch(name: str) -> None:
    dot = DOTS[name]
    x, y = numbers(*dot.x), numbers(*dot.y, seed=1)
    check(op_of(dot.dims), [x, y], dot.shape, wanted=dot.operators, is_open=True)


@pytest.mark.parametrize(
    ("dtype", "result"),
    [
        ("int8", "int32"),
        ("int8", "int8"),
        ("int8", "float32"),
        ("int32", "int32"),
        ("uint32", "uint32"),
        ("int64", "int64"),
        ("float16", "float32"),
    ],
)
@pytest.mark.parametrize("name", ["matrices", "batched", "projection to heads"])
def test_types_of_products(name: str, dtype: str, result: str) -> None:
    dot = DOTS[name]
    x, y = (abs(numbers(*shape, dtype="int32")).astype(dtype) for shape in (dot.x, dot.y))
    check(op_of(dot.dims), [x if dtype.startswith("u") else -x, y], dot.shape, result)


def other(op: str, x: Array, y: Array, expected: Array) -> None:
    """Compares a product that our executor doesn't know."""
    operands, result = [type_of(x), type_of(y)], type_of(expected)
    text = f"    %0 = {op} : ({', '.join(operands)}) -> {result}\n    return %0 : {result}"
    (found,) = results(program(text, operands, [result]), x, y)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_products_of_booleans() -> None:
    x, y = numbers(4, 3, dtype="bool"), numbers(3, 4, dtype="bool", seed=1)
    other(op_of("[] [] [1] [0]"), x, y, x @ y)


def test_old_products() -> None:
    x, y = numbers(2, 3), numbers(3, 4)
    other('"stablehlo.dot"(%a, %b)', x, y, x @ y)


def test_einstein_sums() -> None:
    x, y = numbers(2, 3, 4), numbers(2, 4, 5)
    other('"stablehlo.einsum"(%a, %b) <{einsum_config = "bij,bjk->bki"}>', x, y, (x @ y).transpose(0, 2, 1))
