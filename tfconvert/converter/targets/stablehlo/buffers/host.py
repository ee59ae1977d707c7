"""Which values the host computes, and their arithmetic, number by number.

The host computes sizes: what ops need as numbers to know how large their results are, as far back as small tensors of
integers go, and what follows from sizes alone. Everything else is computed in buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from tfconvert.converter.targets.stablehlo.buffers.scalars import Number
from tfconvert.converter.targets.stablehlo.buffers.sizes import Sizing, integer, ints
from tfconvert.schema.dialects import stablehlo, tensor_data, types
from tfconvert.schema.dialects.stablehlo import EnumeratorAttr
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import INDEX, IntegerType, Signedness
from tfconvert.schema.ir.values import Value

CONSTANT = "stablehlo.constant"

FUSION = "dhlo.fusion"
"""The attribute of outlined fusions and of their calls."""

LIMIT = 32
"""How many numbers a tensor of the host may have."""


class Host(Sizing, Protocol):
    """The queries of the host's arithmetic."""

    def numbers(self, value: Value) -> Sequence[Number]:
        """Returns the numbers that a small value holds, in row-major order."""


Arithmetic = Callable[[Host, Operation], Sequence[Number]]
"""Returns the numbers of an op's result."""


def is_small(value: Value) -> bool:
    """Returns whether a value is a small tensor of integers, whose numbers the host can hold."""
    shape, element = types.shape_of(value.type), types.element_of(value.type)
    if shape is None or -1 in shape or not isinstance(element, IntegerType):
        return False
    count = 1
    for size in shape:
        count *= size
    return element.signedness is Signedness.SIGNLESS and element.width <= 64 and count <= LIMIT


def _constant(host: Host, op: Operation) -> Sequence[Number]:
    return [int(each) for each in tensor_data.to_array(op.properties["value"]).reshape(-1)]


def _size(host: Host, op: Operation) -> Sequence[Number]:
    size = host.sizes(op.operands[0])[integer(op, "dimension")]
    return [host.scalars.cast(size, INDEX, types.element_of(op.results[0].type))]


def _same(host: Host, op: Operation) -> Sequence[Number]:
    return host.numbers(op.operands[0])


def _concatenate(host: Host, op: Operation) -> Sequence[Number]:
    return [number for operand in op.operands for number in host.numbers(operand)]


def _slice(host: Host, op: Operation) -> Sequence[Number]:
    (start,), (limit,), (stride,) = (ints(op, name) for name in ("start_indices", "limit_indices", "strides"))
    return host.numbers(op.operands[0])[start:limit:stride]


def _spread(host: Host, op: Operation) -> Sequence[Number]:
    numbers, shape = host.numbers(op.operands[0]), types.shape_of(op.results[0].type) or ()
    count = 1
    for size in shape:
        count *= size
    return numbers if len(numbers) == count else [*numbers] * count


def _convert(host: Host, op: Operation) -> Sequence[Number]:
    source, target = (types.element_of(value.type) for value in (op.operands[0], op.results[0]))
    return [host.scalars.cast(number, source, target) for number in host.numbers(op.operands[0])]


def _binary(name: str) -> Arithmetic:
    def compute(host: Host, op: Operation) -> Sequence[Number]:
        kind = types.element_of(op.results[0].type)
        return [host.scalars.binary(name, x, y, kind) for x, y in zip(*map(host.numbers, op.operands), strict=True)]

    return compute


def _negate(host: Host, op: Operation) -> Sequence[Number]:
    kind = types.element_of(op.results[0].type)
    return [host.scalars.binary("subi", 0, number, kind) for number in host.numbers(op.operands[0])]


def _not(host: Host, op: Operation) -> Sequence[Number]:
    kind = types.element_of(op.results[0].type)
    ones = 1 if kind is types.I1 else -1
    return [host.scalars.binary("xori", number, ones, kind) for number in host.numbers(op.operands[0])]


def _compare(host: Host, op: Operation) -> Sequence[Number]:
    direction, kind = op.properties["comparison_direction"], types.element_of(op.operands[0].type)
    assert isinstance(direction, EnumeratorAttr)
    pairs = zip(*map(host.numbers, op.operands), strict=True)
    return [host.scalars.compare(direction.value, x, y, kind) for x, y in pairs]


def _select(host: Host, op: Operation) -> Sequence[Number]:
    conditions, xs, ys = map(host.numbers, op.operands)
    kind = types.element_of(op.results[0].type)
    conditions = [*conditions] * len(xs) if len(conditions) == 1 else conditions
    return [host.scalars.select(*each, kind) for each in zip(conditions, xs, ys, strict=True)]


def _clamp(host: Host, op: Operation) -> Sequence[Number]:
    low, numbers, high = map(host.numbers, op.operands)
    kind, count = types.element_of(op.results[0].type), len(numbers)
    low, high = ([*each] * count if len(each) == 1 else each for each in (low, high))
    raised = [host.scalars.binary("maxsi", x, y, kind) for x, y in zip(numbers, low, strict=True)]
    return [host.scalars.binary("minsi", x, y, kind) for x, y in zip(raised, high, strict=True)]


ARITHMETIC: Mapping[str, Arithmetic] = {
    CONSTANT: _constant,
    "stablehlo.add": _binary("addi"),
    "stablehlo.and": _binary("andi"),
    "stablehlo.broadcast_in_dim": _spread,
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": _compare,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.convert": _convert,
    "stablehlo.divide": _binary("divsi"),
    "stablehlo.get_dimension_size": _size,
    "stablehlo.maximum": _binary("maxsi"),
    "stablehlo.minimum": _binary("minsi"),
    "stablehlo.multiply": _binary("muli"),
    "stablehlo.negate": _negate,
    "stablehlo.not": _not,
    "stablehlo.or": _binary("ori"),
    "stablehlo.remainder": _binary("remsi"),
    "stablehlo.reshape": _same,
    "stablehlo.select": _select,
    "stablehlo.slice": _slice,
    "stablehlo.subtract": _binary("subi"),
    "stablehlo.xor": _binary("xori"),
}
"""Op -> its arithmetic."""

# Ops that mean another thing for truth values than for numbers.
_ORDERED = frozenset({"stablehlo.maximum", "stablehlo.minimum", "stablehlo.multiply", "stablehlo.add"})

_OF_VECTORS = frozenset({"stablehlo.concatenate", "stablehlo.slice"})


def can_compute(op: Operation) -> bool:
    """Returns whether the host can compute an op, if it holds its operands."""
    if op.name not in ARITHMETIC or len(op.results) != 1 or not is_small(op.results[0]):
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
