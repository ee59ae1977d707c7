"""The operator version that a call requires, and the release of the runtime that has it.

A kernel's version states its features: types, ranks, options that were added after the operator itself. A file states
the highest version of each operator that it uses. The rules are in the table `operator_versions.tsv`, the releases in
that of the operators.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from tfconvert.schema import rows_of
from tfconvert.schema.tflite import FOLDER, operators

OPERATOR_VERSIONS = FOLDER / "operator_versions.tsv"

_RELEASE = re.compile(r"\d{1,4}\.\d{1,4}(?:\.\d{1,4})?")


class Operand(NamedTuple):
    """Facts about an operand or a result for rules on kernels."""

    type: str  # Enumerator of `TensorType`.
    shape: tuple[int, ...] | None = None  # Dimensions, -1 where unknown; `None` if the rank is unknown.
    scales: tuple[float, ...] = ()  # Scales of the quantisation, empty if it is not quantised.
    sparse: bool = False  # Whether it is stored sparse.
    zero_points: tuple[int, ...] = ()  # As many as scales; may be empty where they are not needed.
    axis: int | None = None  # The axis that the scales go along, `None` if there is one scale for all.
    block_size: int = 0  # The number of elements that share a scale, 0 if it is not quantised by blocks.
    is_constant: bool = False  # Whether the file holds its value.
    is_variable: bool = False  # Whether it is a state that the operator overwrites.
    # The elements of a small constant; `None` if it is large, computed, or they do not matter.
    elements: tuple[float, ...] | None = None
    # Identifies the tensor: operands with the same one are one tensor. `None` if that does not matter.
    tensor: Hashable = None
    origin: str = ""  # The type of the constant that `DEQUANTIZE` makes it of; empty for all others.


ABSENT = Operand("")
"""Represents an absent operand."""

MAX_ELEMENTS = 64
"""The maximum number of elements of a constant whose values are looked at."""


class Call(NamedTuple):
    """One use of an operator."""

    inputs: tuple[Operand, ...]  # The operands; absent ones are `ABSENT`.
    outputs: tuple[Operand, ...] = ()  # The results.
    options: Mapping[str, Any] = MappingProxyType({})  # Fields of the options table that are set, enums by name.

    def operand(self, index: int) -> Operand:
        """Returns an operand, `ABSENT` if there are fewer."""
        return self.inputs[index] if index < len(self.inputs) else ABSENT

    def result(self, index: int) -> Operand:
        """Returns a result, `ABSENT` if there are fewer."""
        return self.outputs[index] if index < len(self.outputs) else ABSENT

    def types(self, *indices: int) -> tuple[str, ...]:
        """Returns the types of some operands."""
        return tuple(self.operand(index).type for index in indices)


Test = Callable[[Call], bool]


def _value(call: Call, which: str) -> Operand:
    return call.result(0) if which == "result" else call.operand(int(which))


def _rank(operand: Operand) -> int:
    return len(operand.shape or ())


def _is_hybrid(call: Call, weights: str) -> bool:
    return call.operand(0).type == "FLOAT32" and _value(call, weights).type in ("INT8", "UINT8", "INT4")


def _is_larger_broadcast(call: Call, rank: str) -> bool:
    left, right = call.operand(0).shape or (), call.operand(1).shape or ()
    return left != right and max(len(left), len(right)) > int(rank)


def _is_grouped(call: Call) -> bool:
    """Returns whether each filter is applied to a part of the channels only."""
    image, filters = call.operand(0).shape or (), call.operand(1).shape or ()
    return len(image) == len(filters) == 4 and 0 < filters[3] != image[3] > 0


def _is_dilated(call: Call) -> bool:
    return any(call.options.get(f"dilation_{axis}_factor", 1) != 1 for axis in "wh")


def _has_larger_scale(call: Call) -> bool:
    scales = [operand.scales for operand in (call.operand(0), call.operand(1), call.result(0))]
    return all(scales) and scales[0][0] * scales[1][0] / scales[2][0] >= 1


# The tests of the table with an argument; others are types of a value, or options.
_TESTS: Mapping[str, Callable[[Call, str], bool]] = {
    "any-rank=": lambda call, rank: any(_rank(call.operand(index)) == int(rank) for index in range(3)),
    "broadcast>": _is_larger_broadcast,
    "either:": lambda call, kinds: bool({call.operand(0).type, call.result(0).type} & set(kinds.split(","))),
    "hybrid:": _is_hybrid,
    "operands:": lambda call, count: len(call.inputs) == int(count),
    "present:": lambda call, which: _value(call, which) is not ABSENT,
    "rank=": lambda call, rank: _rank(call.operand(0)) == int(rank),
    "rank>": lambda call, rank: _rank(call.operand(0)) > int(rank),
    "scaled:": lambda call, which: bool(_value(call, which).scales),
    "scales:": lambda call, which: len(_value(call, which).scales) > 1,
    "sparse:": lambda call, which: _value(call, which).sparse,
}
_FACTS: Mapping[str, Test] = {"dilated": _is_dilated, "grouped": _is_grouped, "larger-scale": _has_larger_scale}
_WORD = re.compile(r"([\w-]+)(?:([:=>])(.*))?")


@cache
def _test(word: str) -> Test:
    """Returns a test of the table."""
    if word.startswith("-"):
        negated = _test(word[1:])
        return lambda call: not negated(call)
    match = _WORD.fullmatch(word)
    assert match is not None, word
    name, sign, argument = match.groups()
    if sign is None:
        return _FACTS.get(name) or (lambda call: bool(call.options.get(name)))
    known = _TESTS.get(name + sign)
    if known is not None:
        return lambda call: known(call, argument)
    listed = argument.split(",")
    if sign == ":":
        return lambda call: _value(call, name).type in listed
    return lambda call: str(call.options.get(name)) in listed


@cache
def rules() -> Mapping[str, Sequence[tuple[int, Sequence[str]]]]:
    """Returns versions and the tests that require them, by the format's enumerators of operators."""
    found: dict[str, list[tuple[int, Sequence[str]]]] = {}
    for names, version, tests in rows_of(OPERATOR_VERSIONS):
        for operator in names.upper().split(" "):
            found.setdefault(operator, []).append((int(version), () if tests == "-" else tests.split(" ")))
    return found


def operator_version(operator: str, call: Call) -> int:
    """Returns the version of an operator that a call requires.

    Args:
        operator: Enumerator of `BuiltinOperator`.
        call: The call.
    """
    found = (version for version, tests in rules().get(operator, ()) if all(_test(word)(call) for word in tests))
    return next(found, 1)


Release = tuple[float, ...]
"""A release of the runtime, as comparable numbers."""


def first_release(operator: str, version: int) -> str:
    """Returns the first release of the runtime that can run a version of an operator; empty if that is not known."""
    releases = operators.releases().get(operator.lower(), ())
    release = releases[version - 1] if 0 < version <= len(releases) else "-"
    return "" if release == "-" else release


def newest_version(operator: str) -> int:
    """Returns the newest known version of an operator, 0 if none is known."""
    listed = len(operators.releases().get(operator.lower(), ()))
    return max((listed, *(version for version, _ in rules().get(operator, ())))) if listed else 0


def parse_release(text: str) -> Release | None:
    """Returns a release as numbers, or `None`; `2.14` means the last release of that series."""
    if not _RELEASE.fullmatch(text):
        return None
    numbers = [float(part) for part in text.split(".")]
    return tuple(numbers + [math.inf] * (3 - len(numbers)))


def minimum_runtime(uses: Iterable[tuple[str, int]]) -> str:
    """Returns the first release of the runtime that can run some operators; empty if nothing is known.

    Args:
        uses: Pairs of operator and version.
    """
    releases = filter(None, (first_release(operator, version) for operator, version in uses))
    return max(releases, key=lambda release: tuple(map(int, release.split("."))), default="")
