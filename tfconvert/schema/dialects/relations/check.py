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
    tfl_check,
)
from tfconvert.schema.dialects.relations.rules import Rule
from tfconvert.schema.dialects.relations.view import Plain, View
from tfconvert.schema.dialects.tfl import TFLOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.symbol_table import SymbolTable
from tfconvert.schema.tensorflow import op_defs
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

_TABLES = (tf_traits.RULES, tf_reshaping.RULES, tf_values.RULES, tf_windows.RULES, tf_xla.RULES)

_TF: Mapping[str, tuple[Rule, ...]] = {
    f"tf.{name}": tuple([table[name] for table in _TABLES if name in table])
    for name in sorted({name for table in _TABLES for name in table})
}


def check(op: Operation, symbols: Callable[[], SymbolTable]) -> None:
    """Checks the relations between an op's operands, results, attributes and callees.

    Args:
        op: An op that keeps to its definition otherwise.
        symbols: Returns the symbols around it.

    Raises:
        VerifyError: One doesn't hold.
    """
    rules = _TF.get(op.name)
    if rules is not None:
        _check_tf(op, rules)
    elif isinstance(op, TFLOp):
        tfl_check.check(op)
    calls.check(op, symbols)


def _check_tf(op: Operation, rules: Sequence[Rule]) -> None:
    name = op.name[len("tf.") :]
    values = tf_verify.values_by_argument(op, name)
    op_def = op_defs.lookup(name)
    if values is not None and op_def is not None:
        view = View(op, values, lambda attribute: _default(op_def, attribute))
        for rule in rules:
            rule(view)


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
