"""Arithmetic of single numbers on the host: sizes of buffers, and the small tensors of integers that they come from.

A number is a Python integer as long as it is known. What was computed in a block, or in one around it, is not computed
again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tfconvert.schema.dialects import memref, types, upstream
from tfconvert.schema.dialects.arith import INTEGER_OPS, ConstantOp, width, wrapped
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import IntegerAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builder import OpBuilder
from tfconvert.schema.ir.dim import COMPARISONS, simplified
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import INDEX, IndexType, IntegerType
from tfconvert.schema.ir.values import Value

Number = int | Value
"""A number of the program: known, or the result of an op."""


class _Key(NamedTuple):
    """The key of an op: equal ones compute the same."""

    name: str
    operands: tuple[Number, ...]
    kind: Attribute


class Scalars:
    """Inserts arithmetic at the end of a block.

    Args:
        block: The block.
        outer: The arithmetic of the block around it.

    Attributes:
        builder: Where it is inserted.
        known: What was inserted.
    """

    __slots__ = ("builder", "known", "outer")

    def __init__(self, block: Block, outer: Scalars | None = None) -> None:
        self.builder = OpBuilder.at_block_end(block)
        self.outer = outer
        self.known: dict[_Key, Value] = {}

    def value(self, number: Number, kind: Attribute = INDEX) -> Value:
        """Returns a number as a value."""
        if isinstance(number, Value):
            return number
        return self._once(_Key("constant", (number,), kind), lambda: constant_of(number, kind))

    def compute(self, name: str, *operands: Number, kind: Attribute = INDEX) -> Number:
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

    def _select(self, condition: Number, x: Number, y: Number, kind: Attribute) -> Number:
        if isinstance(condition, int):
            return x if condition else y
        if x == y:
            return x
        values = (condition, self.value(x, kind), self.value(y, kind))
        return self._once(_Key("select", values, kind), lambda: upstream.build("arith.select", values, (kind,)))

    def cast(self, number: Number, source: Attribute, target: Attribute) -> Number:
        """Returns a number of another integer type; truth values are 0 and 1."""
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

    def index(self, number: Number, kind: Attribute) -> Number:
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
