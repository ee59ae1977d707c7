"""Which values the host computes.

The host computes sizes: what ops need as numbers to know how large their results are, as far back as small tensors of
integers go, and what follows from sizes alone. Everything else is computed in buffers.
"""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.targets.stablehlo.size_rules import NUMBERS
from tfconvert.schema.dialects import stablehlo, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import IntegerType, Signedness
from tfconvert.schema.ir.values import Value

CONSTANT = "stablehlo.constant"

FUSION = "dhlo.fusion"
"""The attribute of outlined fusions and of their calls."""

LIMIT = 32
"""How many numbers a tensor of the host may have."""


def is_small(value: Value) -> bool:
    """Returns whether a value is a small tensor of integers, whose numbers the host can hold."""
    shape, element = types.shape_of(value.type), types.element_of(value.type)
    if shape is None or -1 in shape or not isinstance(element, IntegerType):
        return False
    count = 1
    for size in shape:
        count *= size
    return element.signedness is Signedness.SIGNLESS and element.width <= 64 and count <= LIMIT


# Ops whose numbers are known only if those of their operands are, or that are rarely on sizes.
_NOT_HOSTED = frozenset(
    {
        "stablehlo.dynamic_slice",
        "stablehlo.iota",
        "stablehlo.optimization_barrier",
        "stablehlo.reduce",
        "stablehlo.reverse",
    }
)

# Ops that mean another thing for truth values than for numbers.
_ORDERED = frozenset({"stablehlo.maximum", "stablehlo.minimum", "stablehlo.multiply", "stablehlo.add"})

_OF_VECTORS = frozenset({"stablehlo.concatenate", "stablehlo.slice"})


def can_compute(op: Operation) -> bool:
    """Returns whether the host can compute an op, if it holds its operands."""
    if op.name not in NUMBERS or op.name in _NOT_HOSTED or len(op.results) != 1 or not is_small(op.results[0]):
        return False
    if op.name == "stablehlo.get_dimension_size":
        return True
    if not all(map(is_small, op.operands)):
        return False
    shape = types.shape_of(op.results[0].type) or ()
    if op.name in _OF_VECTORS:
        return len(shape) == 1
    if op.name == "stablehlo.broadcast_in_dim":
        inner = types.shape_of(op.operands[0].type) or ()
        return all(size == 1 for size in inner) or inner == shape
    return op.name not in _ORDERED or types.element_of(op.results[0].type) is not types.I1


def assertion(op: Operation) -> str | None:
    """Returns the message of an op that asserts its first operand, `None` if it is another op."""
    if op.name == "cf.assert":
        message = op.properties.get("msg")
    elif op.name == "stablehlo.custom_call" and op.properties.get("call_target_name") == _SHAPE_ASSERTION:
        message = op.attributes.get("error_message", op.properties.get("error_message"))
    else:
        return None
    return message.data if isinstance(message, StringAttr) else "the sizes are not what the program asserts"


_SHAPE_ASSERTION: Attribute = StringAttr.get("shape_assertion")

_CHOICES = frozenset({"stablehlo.if", "stablehlo.case"})


def _asked(op: Operation) -> Sequence[Value]:
    """Returns the values whose numbers an op asks of the host, whatever its results are."""
    if op.name in _CHOICES or assertion(op) is not None:
        return op.operands[:1]
    if FUSION in op.attributes:
        return [value for value in op.operands if is_small(value)]
    if op.name == "stablehlo.return":
        parent = op.parent_op()
        is_condition = parent is not None and parent.name == "stablehlo.while" and op.parent is _first(parent)
        return op.operands if is_condition else ()
    open_sizes = any(-1 in (types.shape_of(result.type) or ()) for result in op.results)
    return [op.operands[each] for each in stablehlo.SIZE_OPERANDS.get(op.name, ())] if open_sizes else ()


def _first(op: Operation) -> Block:
    return op.regions[0].block


def host_ops(ops: Sequence[Operation]) -> set[Operation]:
    """Returns those of a function's ops, in order and at any depth, that the host computes."""
    found: set[Operation] = set()
    for op in reversed(ops):
        if op in found:
            asked: Sequence[Value] = op.operands if op.name != "stablehlo.get_dimension_size" else ()
        else:
            asked = _asked(op)
        owners = (value.owner for value in asked)
        found.update(owner for owner in owners if isinstance(owner, Operation) and can_compute(owner))
    for op in ops:
        if (
            can_compute(op)
            and op.name != CONSTANT
            and all(value.owner in found or getattr(value.owner, "name", "") == CONSTANT for value in op.operands)
        ) or op.name == "stablehlo.get_dimension_size":
            found.add(op)
    return found
