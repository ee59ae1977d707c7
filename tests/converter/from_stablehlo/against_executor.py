"""Compares LiteRT's results with those of our own executor of StableHLO, with a fixed and with an open batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.converter.from_stablehlo.programs import convert, operators, program, type_of
from tests.support.litert import run
from tfconvert.converter.executor import executor
from tfconvert.schema.dialects.parsing import IRParser

Array = np.ndarray[Any, Any]


def numbers(*shape: int, dtype: str = "float32", seed: int = 0) -> Array:
    """Returns random numbers of both signs."""
    generator = np.random.default_rng(seed)
    if dtype == "bool":
        return generator.random(shape) > 0.5
    found = generator.normal(size=shape) if dtype.startswith("float") else generator.integers(-9, 9, shape)
    return np.round(found, 2).astype(dtype)


def check(
    op: str,
    inputs: Sequence[Array],
    shape: Sequence[int],
    dtype: str = "float32",
    *,
    init: Array | None = None,
    wanted: dict[str, int] | None = None,
    is_open: bool = False,
) -> None:
    """Converts one op and compares what it computes.

    Args:
        op: The op, `"stablehlo.dot"(%a, %b)` with its properties and regions, without its type.
        inputs: Its operands.
        shape: The result's shape.
        dtype: The result's dtype.
        init: A scalar that is the constant `%init`, the op's last operand.
        wanted: The operators that it becomes, if they are to be compared.
        is_open: Whether the first dimension of the first operand and of the result is open.
    """
    operands = [type_of(x, is_open=is_open and not index) for index, x in enumerate(inputs)]
    result = type_of(np.empty(shape, dtype), is_open=is_open)
    taken = operands if init is None else [*operands, type_of(init)]
    constant = "" if init is None else f"    %init = stablehlo.constant dense<{_literal(init)}> : {type_of(init)}\n"
    body = f"{constant}    %0 = {op} : ({', '.join(taken)}) -> {result}\n    return %0 : {result}"
    text = program(body, operands, [result])
    content = convert(text)
    (expected,) = executor.run(IRParser(text).parse_module(), "main", inputs)
    (found,) = run(content, inputs)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    if wanted is not None:
        assert operators(content) == wanted


def _literal(scalar: Array) -> str:
    return f"0x{scalar.view(np.uint32).item():08X}" if scalar.dtype == np.float32 else str(scalar.item()).lower()
