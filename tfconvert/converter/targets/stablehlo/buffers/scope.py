"""The buffers and numbers of values in a block during its rewrite, and the ownership of buffers.

A block owns the buffers that it allocated or received: results of calls, branches and loops, and values that a loop
carries. The owner frees a buffer after its last use or passes it on. Arguments of functions and constants are borrowed,
and never freed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from tfconvert.converter.ir.constants import Scalar
from tfconvert.converter.targets.stablehlo.buffers.host import Scalars
from tfconvert.converter.targets.stablehlo.buffers.kernels import buffer_type
from tfconvert.converter.targets.stablehlo.size_rules import NUMBERS
from tfconvert.schema.dialects import memref
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.dialects.stablehlo_inference import infer
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class Buffer(NamedTuple):
    """The storage of a value.

    Attributes:
        memref: The buffer.
        sizes: Its sizes.
    """

    memref: Value
    sizes: Sequence[Scalar]


def sizes_of_results(scope: Scope, op: Operation) -> Sequence[Sequence[Scalar]]:
    """Returns the sizes of each of an op's results.

    Raises:
        ConversionError: There is no rule for them (`unsupported-op`).
    """
    shapes = [result.shape or () for result in op.results]
    if all(-1 not in shape for shape in shapes):
        return shapes
    found = infer(scope, op)
    if found is None:
        raise error_at(op, "unsupported-op", f"the sizes of the results of {op.name} are unknown")
    return [[size if dim < 0 else dim for dim, size in zip(shape, found, strict=True)] for shape in shapes]


class Scope:
    """Facts that hold in a block.

    Args:
        block: The new block.
        outer: The scope of the block around it.
        constant: Returns the buffer of a constant.

    Attributes:
        scalars: Its arithmetic.
        owned: The values whose buffers the block owns.
        buffers: The buffers of values in this block only.
        constant: Returns the buffer of a constant.
        known: The numbers of values on the host in this block only.
    """

    def __init__(self, block: Block, outer: Scope | None, constant: Callable[[Scope, Value], Value]) -> None:
        self.block = block
        self.outer = outer
        self.scalars: Scalars = Scalars(block, outer.scalars if outer is not None else None)
        self.owned: dict[Value, None] = {}
        self.constant = constant
        self.buffers: dict[Value, Buffer] = {}
        self.known: dict[Value, Sequence[Scalar]] = {}
        self._loaded: dict[Value, Sequence[Scalar]] = {}

    # The storage of values.

    def find(self, value: Value) -> Buffer | None:
        """Returns the buffer of a value, or `None` for a number on the host or a small constant."""
        scope: Scope | None = self
        while scope is not None:
            if value in scope.buffers:
                return scope.buffers[value]
            scope = scope.outer
        return None

    def buffer(self, value: Value) -> Buffer | None:
        """Returns the buffer of a value or constant, or `None` for a number on the host."""
        found = self.find(value)
        if found is None and not self.is_number(value):
            found = Buffer(self.constant(self, value), value.shape or ())
        return found

    def is_number(self, value: Value) -> bool:
        """Returns whether the host holds a value."""
        scope: Scope | None = self
        while scope is not None:
            if value in scope.known:
                return True
            scope = scope.outer
        return False

    def set_numbers(self, value: Value, numbers: Sequence[Scalar]) -> None:
        """Sets the numbers of a value on the host."""
        self.known[value] = numbers

    def numbers(self, value: Value) -> Sequence[Scalar]:
        """Returns the numbers of a small value, from the host or loaded from a buffer."""
        scope: Scope | None = self
        while scope is not None:
            if value in scope.known:
                return scope.known[value]
            scope = scope.outer
        owner = value.owner
        held = self.find(value)
        if held is not None:
            return self._load(value, held)
        assert isinstance(owner, Operation)
        return NUMBERS[owner.name](self, owner)

    def _load(self, value: Value, held: Buffer) -> Sequence[Scalar]:
        if value in self._loaded:
            return self._loaded[value]
        shape = value.shape or ()
        loaded = []
        for indices in _places(shape):
            operands = (held.memref, *(self.scalars.value(index) for index in indices))
            loaded.append(self.insert(memref.build("memref.load", operands, (value.element,))))
        self._loaded[value] = [op.results[0] for op in loaded]
        return self._loaded[value]

    def indices(self, value: Value) -> Sequence[Scalar]:
        """Returns the numbers of a small value as sizes."""
        kind = value.element
        return [self.scalars.index(number, kind) for number in self.numbers(value)]

    def sizes(self, value: Value) -> Sequence[Scalar]:
        """Returns the sizes of a value."""
        held = self.find(value)
        if held is not None:
            return held.sizes
        shape = value.shape or ()
        if -1 not in shape:
            return shape
        owner = value.owner
        assert isinstance(owner, Operation), "a value of open sizes is in a buffer"
        return sizes_of_results(self, owner)[getattr(value, "index", 0)]

    # Insertion.

    def insert(self, op: Operation) -> Operation:
        """Appends an op to the block."""
        return self.scalars.builder.insert(op)

    def allocate(self, value: Value, sizes: Sequence[Scalar]) -> Value:
        """Allocates a buffer for a value with the given sizes."""
        kind = buffer_type(value.type)
        open_sizes = [self.scalars.value(size) for dim, size in zip(kind.shape, sizes, strict=True) if dim < 0]
        return self.insert(memref.alloc(kind, open_sizes)).results[0]

    def own(self, value: Value, held: Value, sizes: Sequence[Scalar] | None = None) -> None:
        """Makes the block the owner of a value's buffer; the sizes are by default those of the buffer."""
        self.hold(value, held, sizes)
        self.owned[value] = None

    def hold(self, value: Value, held: Value, sizes: Sequence[Scalar] | None = None) -> None:
        """Sets the buffer of a value."""
        shape = value.shape or ()
        if sizes is None:
            sizes = [self.scalars.dim(held, axis) if dim < 0 else dim for axis, dim in enumerate(shape)]
        self.buffers[value] = Buffer(held, sizes)

    def free(self, values: Iterable[Value]) -> None:
        """Frees the buffers of values that the block owns."""
        for value in values:
            if value in self.owned:
                del self.owned[value]
                self.insert(memref.build("memref.dealloc", (self.buffers[value].memref,)))

    def give(self, value: Value, *, is_last: bool) -> Value:
        """Returns a buffer of a value for a new owner: the block's buffer at its last use, or a copy."""
        held = self.buffer(value)
        if held is not None and is_last and value in self.owned:
            del self.owned[value]
            return held.memref
        if held is None:
            return self.stored(value)
        copy = self.allocate(value, held.sizes)
        self.insert(memref.build("memref.copy", (held.memref, copy)))
        return copy

    def stored(self, value: Value) -> Value:
        """Returns a new buffer with the numbers of a value on the host."""
        kind = value.element
        target = self.allocate(value, value.shape or ())
        for indices, number in zip(_places(value.shape or ()), self.numbers(value), strict=True):
            places = [self.scalars.value(index) for index in indices]
            self.insert(memref.build("memref.store", (self.scalars.value(number, kind), target, *places)))
        return target


def _places(shape: Sequence[int]) -> list[tuple[int, ...]]:
    """Returns the indices of all elements, in row-major order."""
    found: list[tuple[int, ...]] = [()]
    for size in shape:
        found = [(*each, index) for each in found for index in range(size)]
    return found


class InlineScope(Scope):
    """The scope of a function that becomes one kernel; the caller computes its sizes.

    Args:
        outer: The caller's scope.
        operands: The caller's values by argument.
    """

    def __init__(self, outer: Scope, operands: Mapping[Value, Value]) -> None:
        super().__init__(outer.block, outer, outer.constant)
        self.scalars = outer.scalars
        self._operands = operands

    def find(self, value: Value) -> Buffer | None:
        assert self.outer is not None
        return self.outer.find(self._operands.get(value, value))

    def numbers(self, value: Value) -> Sequence[Scalar]:
        assert self.outer is not None
        if value in self._operands:
            return self.outer.numbers(self._operands[value])
        return super().numbers(value)
