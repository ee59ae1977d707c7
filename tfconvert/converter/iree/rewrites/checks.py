"""Assertions, and what only keeps a compiler from moving ops."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.iree.rewrites.context import Context
from tfconvert.schema.ir.attributes import DictionaryAttr, StringAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_ASSERTION = "shape_assertion"


def optimization_barrier(op: Operation, context: Context) -> Sequence[Value]:
    """Returns the operands."""
    return op.operands


def custom_call(op: Operation, context: Context) -> Sequence[Value] | None:
    """Replaces an assertion about sizes, which IREE would ignore, by one that it heeds."""
    name = op.properties.get("call_target_name")
    if not isinstance(name, StringAttr) or name.data != _ASSERTION:
        return None
    message = _message(op)
    context.emit.op("cf.assert", (context.numbers.truth(op.operands[0]),), (), {"msg": message})
    return ()


def _message(op: Operation) -> str:
    found = op.attributes.get("error_message")
    config = op.properties.get("backend_config")
    if found is None and isinstance(config, DictionaryAttr):
        found = dict(config.data).get("error_message")
    return found.data if isinstance(found, StringAttr) else "sizes contradict each other"
