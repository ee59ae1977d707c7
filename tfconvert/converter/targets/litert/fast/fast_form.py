"""The surface that fast forms are written on: a function that looks at an op and returns what emits its replacement."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from tfconvert.converter.rewrite.pattern import Failure, Pattern, attempt, need
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.accelerators.builder import like, shape_of, stored_constant
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.dims import broadcast, can_broadcast
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

Emit = Callable[[LiteRTBuilder], Value | Sequence[Value]]
"""Emits what replaces an op, and returns the new results."""

MIN_ELEMENTS = 512
"""The size of a tensor from which a faster form is worth more operators: smaller ones take less than a microsecond."""

MAX_RANK = 5
"""The maximum rank of what LiteRT's own kernels slice and transpose, where XNNPACK leaves it to them."""


def fast(name: str, root: str, plan: Callable[[Operation], Emit], benefit: int = 1, depth: int = 1) -> Pattern[Emit]:
    """Returns a pattern.

    Args:
        name: Its name, which is that of its rows in `speed.tsv`.
        root: The op that it starts at, without `tfl.`.
        plan: Returns what to emit for an op; it declines by `pattern.need`.
        benefit: Patterns of one root are tried in descending order of benefit.
        depth: The distance above the root at which `plan` looks.
    """

    def match(op: Operation) -> Emit | Failure:
        return attempt(plan, op)

    def rewrite(_op: Operation, emit: Emit, rewriter: Rewriter) -> None:
        rewriter.replace(emit(LiteRTBuilder(rewriter)))

    return Pattern(name, f"tfl.{root}", match, rewrite, benefit, depth)


_IS_MEASURED: ContextVar[bool] = ContextVar("is_measured", default=False)


@contextmanager
def measured() -> Iterator[None]:
    """Lets patterns accept all sizes whose times can be compared, instead of those that `speed.tsv` speaks for."""
    token = _IS_MEASURED.set(True)
    try:
        yield
    finally:
        _IS_MEASURED.reset(token)


def worth(holds: bool, reason: str) -> None:
    """Declines sizes for which the form isn't known to be faster, unless its time is measured."""
    need(holds or _IS_MEASURED.get(), reason)


def sized(value: Value) -> Shape:
    """Returns a value's shape, in which one dimension may be unknown, as -1: usually that of the batch."""
    shape = shape_of(value)
    need(shape.count(-1) <= 1, "several sizes are unknown")
    return shape


def elements(shape: Sequence[int]) -> int:
    """Returns the number of elements, of a batch of one where it is unknown."""
    return math.prod(abs(dim) for dim in shape)


def large(value: Value) -> Shape:
    """Returns a value's shape like `sized`; declines unless it is large enough."""
    shape = sized(value)
    need(elements(shape) >= MIN_ELEMENTS, "the tensor is small")
    return shape


def joint(*shapes: Shape) -> Shape:
    """Returns the shape that shapes broadcast to; declines if it isn't certain."""
    result: Shape = ()
    for shape in shapes:
        need(can_broadcast(result, shape), "the shapes can't be broadcast")
        result = broadcast(result, shape) or ()
    return result


def is_float(value: Value) -> bool:
    """Returns whether a value is a tensor of 32-bit floats, the type of XNNPACK's arithmetic."""
    return types.element_of(value.type) == types.F32


def constant_of(value: Value) -> Constant:
    """Returns a constant; declines if it is computed."""
    constant = stored_constant(value)
    need(constant is not None, "it is computed")
    assert constant is not None
    return constant


class FastBuilder:
    """Inserts LiteRT's operators by their names, with the types of their results."""

    def __init__(self, emit: LiteRTBuilder) -> None:
        self.emit = emit

    def unary(self, name: str, x: Value) -> Value:
        """Inserts an elementwise operator."""
        return self.emit.tfl(name, (x,), x.type)

    def binary(self, name: str, x: Value, y: Value, shape: Sequence[int]) -> Value:
        """Inserts an elementwise operator of two values, whose result has a shape."""
        return self.emit.tfl(name, (x, y), like(x, shape))

    def reduce(self, name: str, x: Value, axes: Sequence[int]) -> Value:
        """Inserts a reduction that keeps the dimensions."""
        shape = [1 if axis in axes else dim for axis, dim in enumerate(shape_of(x))]
        return self.emit.tfl(name, (x, self.emit.ints(axes)), like(x, shape), {"keep_dims": True})

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """Inserts a reshape, unless the value has the shape."""
        return self.emit.reshape(x, tuple(shape))

    def transpose(self, x: Value, permutation: Sequence[int]) -> Value:
        """Inserts a transpose."""
        shape = shape_of(x)
        kind = like(x, [shape[axis] for axis in permutation])
        return self.emit.tfl("transpose", (x, self.emit.ints(permutation)), kind)

    def slice(self, x: Value, begin: Sequence[int], size: Sequence[int]) -> Value:
        """Inserts a slice."""
        return self.emit.tfl("slice", (x, self.emit.ints(begin), self.emit.ints(size)), like(x, size))

    def concat(self, values: Sequence[Value], axis: int) -> Value:
        """Inserts a concatenation."""
        shape = list(shape_of(values[0]))
        shape[axis] = sum(shape_of(value)[axis] for value in values)
        options = {"axis": axis, "fused_activation_function": "NONE"}
        return self.emit.tfl("concatenation", values, like(values[0], shape), options)
