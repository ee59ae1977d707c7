"""Reductions of windows: pooling, also with the places of what is found, and what runs along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tfconvert.converter.targets.iree.rewrites.broadcasts import axes
from tfconvert.converter.targets.iree.rewrites.context import Context, is_open, shape_of
from tfconvert.converter.targets.iree.rewrites.linalg_builder import Body, Index, LinalgBuilder, Map
from tfconvert.converter.targets.iree.rewrites.products import is_number
from tfconvert.converter.targets.iree.rewrites.scans import scan
from tfconvert.converter.targets.iree.rewrites.windows import padded, padding_of, slid
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.stablehlo import EnumeratorAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FloatType
from tfconvert.schema.ir.values import Value

# The op of `arith` on floats and on integers.
_BODIES = {
    "stablehlo.add": ("addf", "addi"),
    "stablehlo.maximum": ("maximumf", "maxsi"),
    "stablehlo.minimum": ("minimumf", "minsi"),
    "stablehlo.multiply": ("mulf", "muli"),
}

# The comparison of equal floats, by its number in `arith.cmpf`.
_EQUAL = 1


class _Windows(NamedTuple):
    """How windows lie.

    Attributes:
        sizes: Their sizes.
        strides: The steps between them.
        dilations: The steps between their elements.
        amounts: How much is padded before and behind each axis.
        between: How many elements are put between the operand's.
    """

    sizes: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    amounts: Sequence[tuple[int, int]]
    between: Sequence[int]

    @classmethod
    def of(cls, op: Operation) -> _Windows:
        """Returns those of an op."""
        sizes = axes(op, "window_dimensions")
        ones = (1,) * len(sizes)
        strides, dilations = axes(op, "window_strides") or ones, axes(op, "window_dilations") or ones
        between = [each - 1 for each in axes(op, "base_dilations") or ones]
        return cls(sizes, strides, dilations, padding_of(op, len(sizes)), between)

    @property
    def wide(self) -> list[int]:
        """The axes along which windows have several elements."""
        return [at for at, size in enumerate(self.sizes) if size > 1]

    def read(self) -> Map:
        """Returns which element a loop nest reads: its loops are those of the result, then those of the window."""
        rank, wide = len(self.sizes), self.wide
        found: list[int | str] = []
        for at, stride in enumerate(self.strides):
            step = f"d{at} * {stride}" if stride > 1 else f"d{at}"
            found.append(f"{step} + d{rank + wide.index(at)} * {self.dilations[at]}" if at in wide else step)
        return found

    def counts(self, emit: LinalgBuilder, sizes: Sequence[Index]) -> list[Index]:
        """Returns how many windows fit along each axis of a padded operand."""
        extents = [(size - 1) * dilation + 1 for size, dilation in zip(self.sizes, self.dilations, strict=True)]
        return [slid(emit, *each) for each in zip(sizes, extents, self.strides, strict=True)]

    def reduced(
        self, values: Sequence[Value], beside: Sequence[Value], into: Value, body: Body, context: Context
    ) -> Value:
        """Inserts a loop nest.

        Args:
            values: Padded operands.
            beside: Tensors of the result's sizes.
            into: What the result is at first.
            body: As for `LinalgBuilder.loops`; it also takes an element of the window, which has no value.
            context: Where it is inserted.
        """
        rank, wide, emit = len(self.sizes), self.wide, context.emit
        # The window is an operand of its own, which only tells its size.
        kind = types.tensor(types.element_of(values[0].type), tuple([self.sizes[at] for at in wide]))
        window = emit.one("tensor.empty", (), kind)
        everything = list(range(rank))
        inputs: list[tuple[Value, Map]] = [(value, self.read()) for value in values]
        inputs += [(value, everything) for value in beside]
        inputs.append((window, [rank + at for at in range(len(wide))]))
        return emit.loops(inputs, (into, everything), "p" * rank + "r" * len(wide), body)


def reduce_window(op: Operation, context: Context) -> Value | Sequence[Value] | None:
    """Returns a reduction of windows that pads first, as a loop nest; a running one along an axis as a scan."""
    if not is_open(op.operands[0], op.results[0]):
        return None
    if len(op.operands) != 2:
        return _greatest(op, context) if _finds_greatest(op) else None
    value, initial = op.operands
    element = types.element_of(value.type)
    names = _BODIES.get(_only_op(op))
    if names is None or not is_number(element):
        return None
    name = f"arith.{names[0 if isinstance(element, FloatType) else 1]}"
    windows = _Windows.of(op)
    axis = _running(value, windows)
    if axis is not None:
        return scan(value, initial, axis, lambda inside, arguments: inside.one(name, arguments, element), context)
    return _combined(op, value, initial, name, windows, context)[0]


def _combined(
    op: Operation, value: Value, initial: Value, name: str, windows: _Windows, context: Context
) -> tuple[Value, Value, list[Index]]:
    """Returns what an op of `arith` makes of each window, the padded operand, and the sizes of the result."""
    element = types.element_of(value.type)
    whole, sizes = padded(value, initial, range(len(windows.sizes)), windows.amounts, windows.between, context)
    counts = windows.counts(context.emit, sizes)
    into = context.emit.filled(initial, element, counts, shape_of(op.results[0]))

    def body(inside: LinalgBuilder, arguments: Sequence[Value]) -> Value:
        return inside.one(name, (arguments[-1], arguments[0]), element)

    return windows.reduced([whole], [], into, body, context), whole, counts


def _greatest(op: Operation, context: Context) -> Sequence[Value] | None:
    """Returns the greatest float of each window, and the least of the places that have it, by a loop nest each."""
    value, places, least, nowhere = op.operands
    element, index = types.element_of(value.type), types.element_of(places.type)
    if not isinstance(element, FloatType) or not is_number(index):
        return None
    windows = _Windows.of(op)
    found, whole, counts = _combined(op, value, least, "arith.maximumf", windows, context)
    numbers, _ = padded(places, nowhere, range(len(windows.sizes)), windows.amounts, windows.between, context)
    into = context.emit.filled(nowhere, index, counts, shape_of(op.results[1]))

    def body(inside: LinalgBuilder, arguments: Sequence[Value]) -> Value:
        one, place, best, _, so_far = arguments
        is_it = inside.one("arith.cmpf", (one, best), types.I1, {"predicate": _EQUAL})
        return inside.choose(is_it, inside.one("arith.minsi", (place, so_far), index), so_far)

    return found, windows.reduced([whole, numbers], [found], into, body, context)


def _finds_greatest(op: Operation) -> bool:
    """Returns whether a body chooses the greater of two elements, with its place; of equal ones the lower place."""
    ops = tuple(op.regions[0].block.ops)
    names = ("compare", "compare", "compare", "and", "or", "select", "select", "return")
    if len(op.operands) != 4 or [each.name for each in ops] != [f"stablehlo.{name}" for name in names]:
        return False
    directions = [each.properties["comparison_direction"] for each in ops[:3]]
    return [each.value for each in directions if isinstance(each, EnumeratorAttr)] == ["GT", "EQ", "LT"]


def _only_op(op: Operation) -> str:
    """Returns the name of the op that a region of two arguments consists of, empty if it does more."""
    ops = tuple(op.regions[0].block.ops)
    return ops[0].name if len(ops) == 2 and ops[1].operands[0] is ops[0].results[0] else ""


def _running(value: Value, windows: _Windows) -> int | None:
    """Returns the axis along which each window is all that comes before."""
    wide, amounts = windows.wide, windows.amounts
    if len(wide) != 1 or {*windows.strides, *windows.dilations} != {1} or any(windows.between):
        return None
    (axis,) = wide
    others = [each for at, each in enumerate(amounts) if at != axis]
    is_whole = shape_of(value)[axis] == windows.sizes[axis] and amounts[axis] == (windows.sizes[axis] - 1, 0)
    return axis if is_whole and set(others) <= {(0, 0)} else None
