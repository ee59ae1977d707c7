"""Values that the host computes, and their arithmetic.

The host computes sizes: the numbers that determine the sizes of results, back through small integer tensors, and values
that depend only on sizes. Everything else is computed in buffers. A known number is a Python integer. A computation in
the same or an enclosing block is reused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tfconvert.converter.ir.constants import Scalar
from tfconvert.converter.targets.stablehlo.size_rules import NUMBERS
from tfconvert.schema.dialects import memref, stablehlo, types, upstream
from tfconvert.schema.dialects.arith import INTEGER_OPS, ConstantOp, width, wrapped
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import IntegerAttr, StringAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builder import OpBuilder
from tfconvert.schema.ir.dim import COMPARISONS, simplified
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import INDEX, IndexType, IntegerType, Signedness
from tfconvert.schema.ir.values import Value

CONSTANT = "stablehlo.constant"

FUSION = "dhlo.fusion"
"""The attribute with the kind of a kernel, on functions and their calls."""

LIMIT = 32
"""Maximum number of elements of a tensor on the host."""


def is_small(value: Value) -> bool:
    """Returns whether a value is a small integer tensor, which the host can hold."""
    shape, element = value.shape, value.element
    if shape is None or -1 in shape or not isinstance(element, IntegerType):
        return False
    count = 1
    for size in shape:
        count *= size
    return element.signedness is Signedness.SIGNLESS and element.width <= 64 and count <= LIMIT


# Ops that need known operands, or that rarely operate on sizes.
_NOT_HOSTED = frozenset(
    {
        "stablehlo.dynamic_slice",
        "stablehlo.iota",
        "stablehlo.optimization_barrier",
        "stablehlo.reduce",
        "stablehlo.reverse",
    }
)

# Ops with another meaning for booleans than for numbers.
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
    shape = op.results[0].shape or ()
    if op.name in _OF_VECTORS:
        return len(shape) == 1
    if op.name == "stablehlo.broadcast_in_dim":
        inner = op.operands[0].shape or ()
        return all(size == 1 for size in inner) or inner == shape
    return op.name not in _ORDERED or op.results[0].element is not types.I1


def assertion(op: Operation) -> str | None:
    """Returns the message of an op that asserts its first operand, or `None` for other ops."""
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
    """Returns the values whose numbers an op needs from the host, regardless of its results."""
    if op.name in _CHOICES or assertion(op) is not None:
        return op.operands[:1]
    if FUSION in op.attributes:
        return [value for value in op.operands if is_small(value)]
    if op.name == "stablehlo.return":
        parent = op.parent_op()
        is_condition = parent is not None and parent.name == "stablehlo.while" and op.parent is _first(parent)
        return op.operands if is_condition else ()
    open_sizes = any(-1 in (result.shape or ()) for result in op.results)
    return [op.operands[each] for each in stablehlo.SIZE_OPERANDS.get(op.name, ())] if open_sizes else ()


def _first(op: Operation) -> Block:
    return op.regions[0].block


def host_ops(ops: Sequence[Operation]) -> set[Operation]:
    """Returns the ops of a function that the host computes, at any depth."""
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


class _Key(NamedTuple):
    """The key of an op: equal ones compute the same."""

    name: str
    operands: tuple[Scalar, ...]
    kind: Attribute


class Scalars:
    """Inserts arithmetic at the end of a block.

    Args:
        block: The block.
        outer: The arithmetic of the block around it.

    Attributes:
        builder: The insertion point.
        known: The inserted values.
    """

    __slots__ = ("builder", "known", "outer")

    def __init__(self, block: Block, outer: Scalars | None = None) -> None:
        self.builder = OpBuilder.at_block_end(block)
        self.outer = outer
        self.known: dict[_Key, Value] = {}

    def value(self, number: Scalar, kind: Attribute = INDEX) -> Value:
        """Returns a number as a value."""
        if isinstance(number, Value):
            return number
        return self._once(_Key("constant", (number,), kind), lambda: constant_of(number, kind))

    def compute(self, name: str, *operands: Scalar, kind: Attribute = INDEX) -> Scalar:
        """Returns the result of an operation of the algebra of sizes on numbers of a type."""
        if name == "select":
            condition, x, y = operands
            return self._select(condition, x, y, kind)
        x, y = operands
        found = simplified(name, x, y)
        if found is not None:
            return wrapped(found, kind) if isinstance(found, int) else found
        op, values = INTEGER_OPS[name], (self.value(x, kind), self.value(y, kind))
        if name in COMPARISONS:
            predicate = {"predicate": COMPARISONS.index(name)}
            return self._once(_Key(name, values, kind), lambda: upstream.build(op, values, (types.I1,), predicate))
        return self._once(_Key(name, values, kind), lambda: upstream.build(op, values, (kind,)))

    def _select(self, condition: Scalar, x: Scalar, y: Scalar, kind: Attribute) -> Scalar:
        if isinstance(condition, int):
            return x if condition else y
        if x == y:
            return x
        values = (condition, self.value(x, kind), self.value(y, kind))
        return self._once(_Key("select", values, kind), lambda: upstream.build("arith.select", values, (kind,)))

    def cast(self, number: Scalar, source: Attribute, target: Attribute) -> Scalar:
        """Returns a number converted to another integer type; booleans are 0 and 1."""
        if source is target:
            return number
        if target is types.I1:
            return self.compute("NE", number, 0, kind=source)
        if isinstance(number, int):
            return wrapped(number, target)
        if INDEX in (source, target):
            name = "index_cast"
            made = number.owner
            if isinstance(made, Operation) and made.name == "arith.index_cast" and made.operands[0].type is target:
                return made.operands[0]
        elif source is types.I1:
            name = "extui"
        else:
            name = "extsi" if width(source) < width(target) else "trunci"
        return self._once(_Key(name, (number,), target), lambda: upstream.build(f"arith.{name}", (number,), (target,)))

    def index(self, number: Scalar, kind: Attribute) -> Scalar:
        """Returns a number of an integer type as a size."""
        if kind is types.I1 and isinstance(number, Value):
            number, kind = self.cast(number, kind, types.I32), types.I32
        return self.cast(number, kind, INDEX)

    def dim(self, buffer: Value, axis: int) -> Value:
        """Returns a size of a buffer."""
        operands = (buffer, self.value(axis))
        return self._once(_Key("dim", operands, INDEX), lambda: memref.build("memref.dim", operands, (INDEX,)))

    def _once(self, key: _Key, build: Callable[[], Operation]) -> Value:
        around: Scalars | None = self
        while around is not None:
            found = around.known.get(key)
            if found is not None:
                return found
            around = around.outer
        found = self.known[key] = self.builder.insert(build()).results[0]
        return found


def constant_of(number: int, kind: Attribute) -> Operation:
    """Returns a detached `arith.constant` of a number of a type."""
    assert isinstance(kind, IntegerType | IndexType)
    return ConstantOp.create(properties={"value": IntegerAttr.get(number, kind)}, result_types=(kind,))
