"""Checks the relations of an op: the rules of its row, and the functions that it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tfconvert.schema.dialects import tf_verify
from tfconvert.schema.dialects.relations import (
    calls,
    tf_reshaping,
    tf_traits,
    tf_values,
    tf_windows,
    tf_xla,
    tfl_rules,
    tfl_types,
)
from tfconvert.schema.dialects.relations.rules import Rule
from tfconvert.schema.dialects.relations.view import Plain, View
from tfconvert.schema.dialects.tfl import TFLOp, option_fields
from tfconvert.schema.ir.builtin import SymbolTable
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import NONE
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tensorflow import op_defs
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.schema.tflite import operators
from tfconvert.schema.tflite.tables import Field

_TABLES = (tf_traits.RULES, tf_reshaping.RULES, tf_values.RULES, tf_windows.RULES, tf_xla.RULES)

_TF: Mapping[str, tuple[Rule, ...]] = {
    f"tf.{name}": tuple([table[name] for table in _TABLES if name in table])
    for name in sorted({name for table in _TABLES for name in table})
}


def check(op: Operation, symbols: Callable[[], SymbolTable], *, with_elements: bool = True) -> None:
    """Checks the relations between an op's operands, results, attributes and callees.

    Args:
        op: An op that keeps to its definition otherwise.
        symbols: Returns the symbols around it.
        with_elements: Whether `tfl` ops may have no element types but those that the dialect lists.
    """
    rules = _TF.get(op.name)
    if rules is not None:
        _check_tf(op, rules)
    elif isinstance(op, TFLOp):
        _check_tfl(op, with_elements)
    calls.check(op, symbols)


def _check_tf(op: Operation, rules: Sequence[Rule]) -> None:
    name = op.name[len("tf.") :]
    values = tf_verify.values_by_argument(op, name)
    op_def = op_defs.lookup(name)
    if values is not None and op_def is not None:
        view = View(op, values, lambda attribute: _default(op_def, attribute))
        for rule in rules:
            rule(view)


def _check_tfl(op: TFLOp, with_elements: bool) -> None:
    operator = op.operator
    if operator is None:
        return
    values = {**_by_argument(operator.operands, op.operands), **_by_argument(operator.results, op.results)}
    fields = option_fields(op.op_name)
    view = View(op, values, lambda name: _field_default(fields.get(name)))
    tfl_types.check(view, operator, with_elements=with_elements)
    for rule in tfl_rules.RULES.get(operator.name, ()):
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


def _default(op_def: pb.OpDef, name: str) -> Plain | None:
    """Returns the default of an attribute that is a number, a string or a list of numbers."""
    for attr in op_def.attr:
        if attr.name == name and attr.HasField("default_value"):
            value = attr.default_value
            match attr.type:
                case "int":
                    return int(value.i)
                case "float":
                    return float(value.f)
                case "bool":
                    return int(value.b)
                case "string":
                    return value.s.decode("utf-8", "replace")
                case "list(int)":
                    return [int(item) for item in value.list.i]
    return None
