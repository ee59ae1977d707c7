"""Runs third-party fusion callbacks; an exception becomes a diagnostic that names the fusion, function and line."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tfconvert.converter.composites.body import Body
from tfconvert.converter.composites.composite import Composite
from tfconvert.converter.composites.fusion import Fusion
from tfconvert.converter.process.guard import Guard
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects.dims import compatible_types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

CODE = "bad-fusion"
"""Code of the errors about a faulty fusion."""


def misfit(fusion: Fusion, composite: Composite) -> str | None:
    """Returns why a fusion declines a function, `None` if it doesn't.

    Raises:
        ConversionError: The fusion's check fails, or returns something else (`bad-fusion`).
    """
    with Guard(partial(_mistake, fusion, composite, "check")):
        reason: Any = fusion.check(composite)
    if reason is not None and not isinstance(reason, str):
        raise _mistake(fusion, composite, "check", f"gives {reason!r}, neither a reason nor None")
    return reason


def new_results(fusion: Fusion, composite: Composite, body: Body) -> Sequence[Value]:
    """Runs a fusion's rewrite, which builds the function's body; returns the function's results.

    Raises:
        ConversionError: The fusion's rewrite fails, or returns what the function can't return (`bad-fusion`).
    """
    with Guard(partial(_mistake, fusion, composite, "rewrite")):
        results: Any = fusion.rewrite(composite, body)
    problem = _wrong_results(composite, results)
    if problem:
        raise _mistake(fusion, composite, "rewrite", problem)
    return tuple(results)


def note(fusion: Fusion, composite: Composite) -> str:
    """Returns a fusion's note on a function that was fused, empty if there is none.

    Raises:
        ConversionError: The fusion's note fails (`bad-fusion`).
    """
    with Guard(partial(_mistake, fusion, composite, "note")):
        return fusion.note(composite)


def _wrong_results(composite: Composite, results: Any) -> str:
    if not isinstance(results, Sequence) or not all(isinstance(value, Value) for value in results):
        return f"gives {type(results).__name__} {results}, which is not a sequence of values"
    if len(results) != len(composite.results):
        return f"gives {len(results)} results, not {len(composite.results)}"
    for index, (value, wanted) in enumerate(zip(results, composite.results, strict=True)):
        if not compatible_types(value.type, wanted):
            return f"gives {value.type} as result {index}, not {wanted}"
        block = value.owner.parent if isinstance(value.owner, Operation) else value.owner
        if block is not composite.function.body.block:
            return f"gives a value as result {index} that is none of the new body's"
    return ""


def _mistake(fusion: Fusion, composite: Composite, part: str, problem: str) -> ConversionError:
    place = composite.place
    message = f"the fusion {fusion.name!r} {problem}, in its {part} for the function {composite.function_name!r}"
    return error(CODE, message, node=place.node, location=str(place), hint=f"correct its {part}")
