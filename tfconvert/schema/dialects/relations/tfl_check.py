"""Checks the relations of a `tfl` op: those of shapes and options, and for text the types that the dialect has."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.schema.dialects.relations import tfl_rules, tfl_types
from tfconvert.schema.dialects.relations.view import Plain, View
from tfconvert.schema.dialects.tfl import TFLOp, option_fields
from tfconvert.schema.ir.types import NONE
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators
from tfconvert.schema.tflite.tables import Field


def check(op: TFLOp, *, with_types: bool = True) -> None:
    """Checks the relations between an op's operands, results and options.

    Args:
        op: The op.
        with_types: Whether it must have the element types of the dialect's definition. The runtime's kernels take
            others, too, and files have them.

    Raises:
        VerifyError: One doesn't hold.
    """
    operator = op.operator
    if operator is None:
        return
    rules = tfl_rules.RULES.get(operator.name, ())
    if not rules and not with_types:
        return
    values = {
        **_by_argument(operator.operands, op.operands),
        **_by_argument(operator.results, op.results),
    }
    fields = option_fields(op.op_name)
    view = View(op, values, lambda name: _field_default(fields.get(name)))
    if with_types:
        tfl_types.check(view, operator)
    for rule in rules:
        rule(view)


def _by_argument(arguments: Sequence[operators.Value], values: Sequence[Value]) -> dict[str, Sequence[Value]]:
    """Returns values by the names of the operator's arguments; those of a list are all that are left."""
    found: dict[str, Sequence[Value]] = {}
    for index, argument in enumerate(arguments):
        found[argument.name] = values[index:] if argument.variadic else values[index : index + 1]
    return {name: [value for value in each if value.type is not NONE] for name, each in found.items()}


def _field_default(field: Field | None) -> Plain | None:
    default = None if field is None else field.default
    return default if isinstance(default, int | float | str) else None
