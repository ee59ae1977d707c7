"""Assertions, and what only keeps a compiler from moving ops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tfconvert.converter.targets.iree.rewrites.context import Context, is_open
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.attributes import DictionaryAttr, StringAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_ASSERTION = "shape_assertion"


def optimization_barrier(op: Operation, context: Context) -> Sequence[Value]:
    return op.operands


def custom_call(op: Operation, context: Context) -> Sequence[Value] | None:
    """Replaces an assertion about sizes, which IREE would ignore, by one that it heeds."""
    name = op.properties.get("call_target_name")
    if not isinstance(name, StringAttr) or name.data != _ASSERTION:
        return None
    message = _message(op)
    context.emit.op(_CHECK, (context.numbers.truth(op.operands[0]),), (), {"msg": message})
    return ()


def _message(op: Operation) -> str:
    found = op.attributes.get("error_message")
    config = op.properties.get("backend_config")
    if found is None and isinstance(config, DictionaryAttr):
        found = dict(config.data).get("error_message")
    return found.data if isinstance(found, StringAttr) else "sizes contradict each other"


def late(module: ModuleOp) -> Iterator[Operation]:
    """Yields the checks in loops that come after work on tensors.

    IREE 3.13 doesn't wait for those: what the loop carries is then something else, and nothing tells.
    """
    found = dict.fromkeys(op for loop in module.walk() if loop.name == "stablehlo.while" for op in _late_in(loop))
    yield from found


def _late_in(loop: Operation) -> Iterator[Operation]:
    for region in loop.regions:
        has_worked = False
        for op in (inner for each in region.block.ops for inner in each.walk()):
            if op.name == _CHECK and has_worked:
                yield op
            has_worked = has_worked or not (op.name in _NO_WORK or op.dialect == "arith")


def mixed_up(function: FuncOp) -> Iterator[Operation]:
    """Yields the loops that carry several tensors of open sizes; IREE 3.13 may take one for another (see `bounds`)."""
    for loop in list(function.walk()):
        if loop.name == "stablehlo.while" and sum(is_open(operand) for operand in loop.operands) > 1:
            yield loop


_CHECK = "cf.assert"
_NO_WORK = frozenset(
    (
        _CHECK,
        "stablehlo.constant",
        "stablehlo.get_dimension_size",
        "tensor.cast",
        "tensor.dim",
        "tensor.extract",
        "tensor.from_elements",
    )
)
