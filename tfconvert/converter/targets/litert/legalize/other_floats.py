"""Ops that stay because their kernels take floats of 32 bits alone: computed in these, and converted back.

Halves lose nothing by that: each result is rounded to them, as TensorFlow's kernels round it. Doubles do, which the
user is warned; between two such ops no double is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.diagnostics import INEXACT, WARNING, Diagnostic
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_HALVES = frozenset({types.F16, types.BF16})
_DOUBLES = frozenset({types.F64})

# Part of the names of patterns that are reported to the user.
_OF_DOUBLES = "of-doubles"

# Ops that exist for their element types.
_CASTS = frozenset({"tf.Cast", "tfl.cast"})


def patterns(names: Iterable[str], declined_by: PatternSet, *, takes_doubles: bool) -> PatternSet:
    """Returns the patterns that compute remaining ops as `f32`, if others would take them then.

    Args:
        names: The names of the remaining ops.
        declined_by: The patterns that leave them.
        takes_doubles: Whether to take doubles as well as halves.
    """
    kinds = (("of-halves", _HALVES), (_OF_DOUBLES, _DOUBLES))[: 1 + takes_doubles]
    return PatternSet(
        _pattern(name, kind, elements, declined_by) for name in sorted({*names} - _CASTS) for kind, elements in kinds
    )


def notes(applied: Mapping[str, int]) -> list[Diagnostic]:
    """Returns a warning if doubles are computed with less precision.

    Args:
        applied: How often each pattern was applied, by its name.
    """
    names = sorted(name.partition("-")[0] for name in applied if f"-{_OF_DOUBLES}-" in name)
    if not names:
        return []
    text = "LiteRT computes no float64, so results have the 7 digits of float32 instead of 16"
    return [Diagnostic(INEXACT, f"{text}: {', '.join(names)}", severity=WARNING)]


def _pattern(name: str, kind: str, elements: frozenset[Attribute], declined_by: PatternSet) -> Pattern[Attribute]:
    op_name = name.removeprefix("tf.")

    def match(op: Operation) -> Attribute | Failure:
        found = {operand.element for operand in op.operands} & elements
        if len(found) != 1:
            return Failure("its operands are of no such type")
        (other,) = found
        declined = (failure for _, failure in declined_by.failures(op) if failure.given == str(other))
        if any("f32" in failure.takes.split() for failure in declined):
            return other
        return Failure("it isn't declined for its element type")

    return Pattern(f"{op_name}-{kind}-as-floats", name, match, _rewrite)


def _rewrite(op: Operation, other: Attribute, rewriter: Rewriter) -> None:
    emit = LiteRTBuilder(rewriter)

    def is_other(value: Value) -> bool:
        return value.element == other

    operands = [_as_float(emit, operand) if is_other(operand) else operand for operand in op.operands]
    result_types = [types.tensor(types.F32, result.shape) if is_other(result) else result.type for result in op.results]
    created: Any = emit.tf_op(op.name.removeprefix("tf."), operands, result_types, op.properties)
    rewriter.replace(
        [emit.cast(value, result.element) for value, result in zip(created.results, op.results, strict=True)]
    )


def _as_float(emit: LiteRTBuilder, value: Value) -> Value:
    """Returns a value as `f32`: a constant is converted, and a cast from `f32` is undone."""
    constant = tensor_data.constant_of(value)
    shape = value.shape
    if constant is not None and shape is not None:
        return emit.constant(tensor_data.defer("cast", (constant,), shape, element=types.F32))
    owner = value.owner
    if isinstance(owner, Operation) and owner.name in _CASTS and value.element == types.F64:
        source = owner.operands[0]
        if source.element == types.F32:
            return source
    return emit.cast(value, types.F32)
