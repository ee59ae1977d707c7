"""Arithmetic of single numbers on the host: sizes of buffers, and the small tensors of integers that they come from.

A number is a Python integer as long as it is known. What was computed in a block, or in one around it, is not computed
again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tfconvert.ops.kernels.integers import COMPARISONS, FOLDS, PREDICATES, width, wrapped
from tfconvert.schema.dialects import memref, types, upstream
from tfconvert.schema.dialects.foreign import ConstantOp
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import IntegerAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builder import OpBuilder
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import INDEX, IndexType, IntegerType
from tfconvert.schema.ir.values import Value

Number = int | Value
"""A number of the program: known, or the result of an op."""


_DIVISIONS = frozenset({"ceildivsi", "divsi", "remsi"})


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

    def binary(self, name: str, x: Number, y: Number, kind: Attribute = INDEX) -> Number:
        """Returns what an op of `arith` makes of two numbers of a type."""
        if isinstance(x, int) and isinstance(y, int) and not (name in _DIVISIONS and y == 0):
            return wrapped(FOLDS[name](x, y), kind)
        if _is_neutral(name, y):
            return x
        if name in ("addi", "muli") and _is_neutral(name, x):
            return y
        operands = (self.value(x, kind), self.value(y, kind))
        return self._once(_Key(name, operands, kind), lambda: upstream.build(f"arith.{name}", operands, (kind,)))

    def compare(self, direction: str, x: Number, y: Number, kind: Attribute) -> Number:
        """Returns a comparison of two numbers of a type."""
        predicate = PREDICATES[direction]
        if isinstance(x, int) and isinstance(y, int):
            return int(COMPARISONS[predicate](x, y))
        operands = (self.value(x, kind), self.value(y, kind))
        return self._once(
            _Key(f"cmpi {predicate}", operands, kind),
            lambda: upstream.build("arith.cmpi", operands, (types.I1,), {"predicate": predicate}),
        )

    def select(self, condition: Number, x: Number, y: Number, kind: Attribute) -> Number:
        """Returns one of two numbers of a type."""
        if isinstance(condition, int):
            return x if condition else y
        if x == y:
            return x
        operands = (condition, self.value(x, kind), self.value(y, kind))
        return self._once(_Key("select", operands, kind), lambda: upstream.build("arith.select", operands, (kind,)))

    def cast(self, number: Number, source: Attribute, target: Attribute) -> Number:
        """Returns a number of another integer type; truth values are 0 and 1."""
        if source is target:
            return number
        if target is types.I1:
            return self.compare("NE", number, 0, source)
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


def _is_neutral(name: str, y: Number) -> bool:
    return isinstance(y, int) and (
        (name in ("addi", "subi") and y == 0) or (name in ("muli", "divsi", "ceildivsi") and y == 1)
    )


def constant_of(number: int, kind: Attribute) -> Operation:
    """Returns a detached `arith.constant` of a number of a type."""
    assert isinstance(kind, IntegerType | IndexType)
    return ConstantOp.create(properties={"value": IntegerAttr.get(number, kind)}, result_types=(kind,))
