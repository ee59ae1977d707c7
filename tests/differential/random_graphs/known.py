"""Differences that are LiteRT's own: what its kernels compute otherwise than TensorFlow's, whatever is converted."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from tests.differential.random_graphs.compare import Verdict
from tests.differential.random_graphs.program import Program
from tests.differential.random_graphs.shrink import ops_of


class Difference(NamedTuple):
    """A difference of LiteRT's.

    Attributes:
        ops: A pattern of the smallest program that shows it, as `ops_of` has it.
        verdict: A pattern of how it shows.
        what: What it is.
        holds: Returns whether a program is of the kind, given whether it differs without odd numbers.
        note: The code of the note that the report of such a conversion must have; empty if nothing but the numbers
            with which a model is run tells that it may differ.
    """

    ops: str
    verdict: str
    what: str
    holds: Callable[[Program, Callable[[], bool]], bool] = lambda program, differs: True
    note: str = ""


def _is_empty(program: Program, differs_with_ordinary_numbers: Callable[[], bool]) -> bool:
    return any(not array.size for array in program.values)


def _has_open_rank(program: Program, differs_with_ordinary_numbers: Callable[[], bool]) -> bool:
    return None in program.open.values()


def _has_open_sizes(program: Program, differs_with_ordinary_numbers: Callable[[], bool]) -> bool:
    return bool(program.open)


def _is_odd(program: Program, differs_with_ordinary_numbers: Callable[[], bool]) -> bool:
    return not differs_with_ordinary_numbers()


# The differences.
KNOWN: tuple[Difference, ...] = (
    Difference(".*", "LiteRT: ", "kernels refuse tensors without elements", _is_empty),
    Difference(
        ".*FloorDiv<(float32|bfloat16|float16)>.*",
        "LiteRT: .*Division by 0",
        "FLOOR_DIV of floats stops at zeros",
        _is_odd,
        "runtime-difference",
    ),
    Difference(
        "(QuantizeAndDequantizeV2|FakeQuant.*)<float32>( .*)?",
        "values$",
        "FAKE_QUANT rounds ties as they come",
        note="fake-quant-kept",
    ),
    Difference(".*Relu6?Grad<float32>.*Atan2<float32>", "values$", "what is selected instead of a product has no -0.0"),
    Difference(".*Pow<int32>.*", "values$", "POW of integers is one of doubles", note="runtime-difference"),
    Difference(
        ".*(Max|Avg)Pool<.*",
        "shape .*, not .*\\b0\\b",
        "pools of less than a window",
        _has_open_sizes,
        "runtime-difference",
    ),
    Difference(".*OneHot<int64>.*", "values$", "ONE_HOT takes 32 bits of an index"),
    Difference(
        ".*(Select|Grad|Clip).*",
        r"shape \[\], not \[1",
        "SELECT_V2 of values whose rank the file leaves open",
        _has_open_rank,
        "runtime-difference",
    ),
    Difference(".*", "(values|shape|LiteRT: )", "NaN, infinities, denormals and huge numbers in kernels", _is_odd),
)


def known_difference(
    program: Program, verdict: Verdict, differs_with_ordinary_numbers: Callable[[], bool]
) -> Difference | None:
    """Returns the known difference of LiteRT that a program shows, or `None`.

    Args:
        program: The program.
        verdict: How it differs.
        differs_with_ordinary_numbers: Returns whether it still does if its odd numbers are replaced.
    """
    for row in KNOWN:
        fits = re.fullmatch(row.ops, ops_of(program)) and re.match(row.verdict, verdict.what)
        if fits and (not row.note or row.note in verdict.notes) and row.holds(program, differs_with_ordinary_numbers):
            return row
    return None
