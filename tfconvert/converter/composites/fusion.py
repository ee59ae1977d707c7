"""Fusions of functions that declare what they implement, and calls of their callbacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Literal

import numpy as np

from tfconvert.converter.composites.composite import Composite
from tfconvert.converter.composites.marks import IMPLEMENTS, plain_name
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.process.guard import Guard
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.dims import compatible_types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class Body:
    """A function's block, to which ops are appended.

    Attributes:
        arguments: The function's arguments.
        anchor: The function's return. Ops are inserted before it, with its location.

    Args:
        anchor: The return, the only op in the block.
    """

    def __init__(self, anchor: Operation) -> None:
        block = anchor.parent
        assert block is not None
        self._builder = TFBuilder(anchor)
        self.anchor = anchor
        self.arguments: Sequence[Value] = block.args

    def tf(self, name: str, operands: Sequence[Value], *result_types: Attribute, **attributes: Any) -> Sequence[Value]:
        """Appends a `tf` op by its name in TensorFlow; returns its results."""
        return self._builder.tf_op(name, operands, result_types, attributes).results

    def tfl(self, name: str, operands: Sequence[Value], *result_types: Attribute, **options: Any) -> Sequence[Value]:
        """Appends a builtin operator by its name in the `tfl` dialect; returns its results.

        Raises:
            KeyError: There is no such operator, or it has no such option.
        """
        return self._builder.tfl_op(name, operands, result_types, options).results

    def custom(
        self, code: str, options: bytes, operands: Sequence[Value], result_types: Sequence[Attribute]
    ) -> Sequence[Value]:
        """Appends a custom operator; returns its results."""
        return self._builder.insert(tfl.custom(code, options, operands, result_types)).results

    def constant(self, value: np.ndarray[Any, Any]) -> Value:
        """Appends a constant."""
        return self._builder.constant(value)

    def ints(self, values: Sequence[int]) -> Value:
        """Appends a vector of `i32`: axes, a shape, a permutation."""
        return self._builder.ints(values)

    def absent(self) -> Value:
        """Appends the value that represents an absent optional operand."""
        return self._builder.insert(tfl.no_value()).results[0]

    def transposed(self, matrix: Value) -> Value:
        """Appends a transpose of a matrix."""
        return self._builder.transpose(matrix, (1, 0))

    def part(self, value: Value, begin: Sequence[int], size: Sequence[int]) -> Value:
        """Appends a slice."""
        return self._builder.slice(value, begin, size)

    def typed(self, value: Value, known: Attribute) -> Value:
        """Returns a value with a more specific type, which all calls agree on."""
        return value if value.type == known else self.tf("Identity", (value,), known)[0]


Check = Callable[[Composite], str | None]
"""Returns why a function can't be fused, as the end of a sentence, or `None`."""

Rewrite = Callable[[Composite, Body], Sequence[Value]]
"""Appends the new body to a function without a body; returns the function's results."""


@dataclass(frozen=True, slots=True)
class Fusion:
    """An entry of the table of fusions.

    Attributes:
        name: The fusion's name, with dashes, for the report.
        interface: The name that functions declare to implement; `name*` matches all with this prefix.
        summary: The arguments in order and their use, in a line.
        check: Returns why a function with the name doesn't fit.
        rewrite: Builds the new body.
        mark: The function attribute that holds the name.
        flag: An attribute that must be true for the entry to apply; may be empty.
        is_custom: Whether the new operator is a custom operator. Without `allow_custom_ops`, such a fusion leaves the
            body.
        on_misfit: For a function that doesn't fit: `keep` its body and report it, or `error`.
        note: Returns a note for the user on a fused function; may be empty.
        is_recurrent: Whether the operator replaces a loop in the body. Users may want to keep such loops. A kept loop
            is analysed again, without the mark, to report a reason.
        function: A name or pattern of names (`attention_*`) of functions, as in the source. The entry is then for
            functions with these names, marked or not, instead of the interface.
    """

    name: str
    interface: str
    summary: str
    check: Check
    rewrite: Rewrite
    mark: str = IMPLEMENTS
    flag: str = ""
    is_custom: bool = False
    on_misfit: Literal["keep", "error"] = "keep"
    note: Callable[[Composite], str] = lambda composite: ""
    is_recurrent: bool = False
    function: str = ""

    def names(self, function_name: str) -> bool:
        """Returns whether this entry is for functions of a name, regardless of marks."""
        return bool(self.function) and fnmatchcase(plain_name(function_name), self.function)

    def applies(self, composite: Composite, mark: str) -> bool:
        """Returns whether this entry applies to a function."""
        if self.function:
            return self.names(composite.function_name)
        if mark != self.mark or (self.flag and composite.get(self.flag) is not True):
            return False
        if self.interface.endswith("*"):
            return composite.name.startswith(self.interface[:-1])
        return composite.name == self.interface


def first_of(*reasons: str | None) -> str | None:
    """Returns the first reason, if there is any."""
    return next((reason for reason in reasons if reason), None)


CODE = "bad-fusion"
"""Code of the errors about a faulty fusion."""


def misfit(fusion: Fusion, composite: Composite) -> str | None:
    """Returns why a fusion declines a function, or `None`.

    Raises:
        ConversionError: The fusion's check fails, or returns another type (`bad-fusion`).
    """
    with Guard(partial(_mistake, fusion, composite, "check")):
        reason: Any = fusion.check(composite)
    if reason is not None and not isinstance(reason, str):
        raise _mistake(fusion, composite, "check", f"returns {reason!r}, neither a reason nor None")
    return reason


def new_results(fusion: Fusion, composite: Composite, body: Body) -> Sequence[Value]:
    """Runs a fusion's rewrite, which builds the function's body; returns the function's results.

    Raises:
        ConversionError: The fusion's rewrite fails, or returns wrong values (`bad-fusion`).
    """
    with Guard(partial(_mistake, fusion, composite, "rewrite")):
        results: Any = fusion.rewrite(composite, body)
    problem = _wrong_results(composite, results)
    if problem:
        raise _mistake(fusion, composite, "rewrite", problem)
    return tuple(results)


def note_of(fusion: Fusion, composite: Composite) -> str:
    """Returns a fusion's note on a fused function; may be empty.

    Raises:
        ConversionError: The fusion's note fails (`bad-fusion`).
    """
    with Guard(partial(_mistake, fusion, composite, "note")):
        return fusion.note(composite)


def _wrong_results(composite: Composite, results: Any) -> str:
    if not isinstance(results, Sequence) or not all(isinstance(value, Value) for value in results):
        return f"returns {type(results).__name__} {results}, which is not a sequence of values"
    if len(results) != len(composite.results):
        return f"returns {len(results)} results, not {len(composite.results)}"
    for index, (value, wanted) in enumerate(zip(results, composite.results, strict=True)):
        if not compatible_types(value.type, wanted):
            return f"returns {value.type} as result {index}, not {wanted}"
        block = value.owner.parent if isinstance(value.owner, Operation) else value.owner
        if block is not composite.function.body.block:
            return f"returns a value as result {index} that is not in the new body"
    return ""


def _mistake(fusion: Fusion, composite: Composite, part: str, problem: str) -> ConversionError:
    place = composite.place
    message = f"the fusion {fusion.name!r} {problem}, in its {part} for the function {composite.function_name!r}"
    return error(CODE, message, node=place.node, location=str(place), hint=f"correct its {part}")
