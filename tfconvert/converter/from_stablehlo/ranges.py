"""The range of integers, as far as the ops that compute them tell it: indices that are within it need no clamp."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tfconvert.ops.operands import Known
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.dims import UNKNOWN
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import BlockArgument, OpResult, Value


class Range(NamedTuple):
    """A range of integers.

    Attributes:
        low: The minimum.
        high: The maximum.
        below: The symbol of a size that they are all less than, 0 if none is known.
    """

    low: int
    high: int
    below: int = 0

    def is_within(self, size: int, length: int = 1) -> bool:
        """Returns whether slices of a length that start at these indices are inside a dimension.

        Args:
            size: The dimension's size, or its symbol.
            length: The length.
        """
        if self.low < 0:
            return False
        return self.high <= size - length if size >= 0 else self.below == size and length == 1


_MAX_SIZE = (1 << 31) - 1


def compared(direction: str, x: Value, y: Value, known: Known) -> bool | None:
    """Returns the result of a comparison that is the same for all elements, `None` if it isn't known to be.

    Args:
        direction: `LT`, for example.
        x: One tensor of integers.
        y: The other one.
        known: The facts of the values around them.
    """
    if direction in ("GT", "GE"):
        x, y, direction = y, x, {"GT": "LT", "GE": "LE"}[direction]
    one, other = range_of(x, known), range_of(y, known)
    limit = known.partial(y)
    is_less = one.high < other.low or (one.below != 0 and limit == (one.below,))
    if direction in ("EQ", "NE"):
        if is_less or other.high < one.low:
            return direction == "NE"
        is_one = one.low == one.high and one[:2] == other[:2]
        return direction == "EQ" if is_one else None
    if is_less or (direction == "LE" and one.high <= other.low):
        return True
    is_more = one.low > other.high or (direction == "LT" and one.low >= other.high)
    return False if is_more else None


# How many ops are looked through.
_DEPTH = 12


def range_of(value: Value, known: Known, depth: int = _DEPTH) -> Range:
    """Returns the range of an integer tensor.

    Args:
        value: The tensor.
        known: The facts of the values around it.
        depth: How many ops are looked through.
    """
    key = (range_of, value, depth)
    found: Range | None = known.answers.get(key)
    if found is None:
        found = known.answers[key] = _range(value, known, depth)
    return found


def _range(value: Value, known: Known, depth: int) -> Range:
    dtype = types.numpy_dtype(value.element)
    if dtype.kind == "b":
        return Range(0, 1)
    if dtype.kind not in "iu":
        return Range(-(1 << 64), 1 << 64)
    bits = dtype.itemsize * 8 - (dtype.kind == "i")
    whole = Range(-(1 << bits) if dtype.kind == "i" else 0, (1 << bits) - 1)
    constant = tensor_data.constant_of(value)
    if constant is not None:
        array = tensor_data.to_array(constant)
        if array.size == 1:
            return Range(array.item(), array.item())
        return Range(int(array.min()), int(array.max())) if array.size else Range(0, 0)
    partial = known.partial(value)
    if partial and UNKNOWN not in partial:
        sizes = [each if each > UNKNOWN else 0 for each in partial]
        if min(partial) > UNKNOWN:
            return Range(min(sizes), max(sizes))
        whole = Range(min(sizes), whole.high)
    if depth == 0:
        return whole
    if isinstance(value, BlockArgument):
        return _counter(value, known) or whole
    assert isinstance(value, OpResult)
    if is_dimension(value, known):
        return Range(known.smallest, whole.high)
    rule = _RULES.get(value.op.name)
    found = None if rule is None else rule(_View(value, known, depth - 1))
    return whole if found is None else _limited(found, whole, is_size(value, known))


def _limited(found: Range, whole: Range, is_size: bool) -> Range:
    if is_size:
        # Sizes that are computed from others don't wrap around.
        return Range(max(found.low, 0), min(found.high, whole.high), found.below)
    return found if whole.low <= found.low and found.high <= whole.high else whole


def is_size(value: Value, known: Known) -> bool:
    """Returns whether an integer is a size that only running tells, so is not negative."""
    partial = known.partial(value)
    return partial is not None and len(partial) == 1 and partial[0] < UNKNOWN


def is_dimension(value: Value, known: Known) -> bool:
    """Returns whether an integer is a dimension of a tensor: JAX requires that it is at least 1, unlike a size."""
    owner = value.owner
    if not isinstance(owner, Operation) or owner.name != "tf.StridedSlice" or not is_size(value, known):
        return False
    shape = owner.operands[0].owner
    return isinstance(shape, Operation) and shape.name == "tf.Shape"


class _View:
    """An op, one result of which is asked for."""

    __slots__ = ("_depth", "known", "op", "result")

    def __init__(self, result: OpResult, known: Known, depth: int) -> None:
        self.op = result.op
        self.result = result
        self.known = known
        self._depth = depth

    def range(self, index: int) -> Range:
        return range_of(self.op.operands[index], self.known, self._depth)

    def size(self, index: int, axis: int) -> int:
        """Returns the size of an operand's dimension, or its symbol."""
        shape = self.known.shapes.get(self.op.operands[index])
        return -1 if shape is None else shape[axis]

    def scalar(self, index: int) -> int:
        """Returns an operand of one element, or the symbol of the size that it is, `UNKNOWN` if it is neither."""
        partial = self.known.partial(self.op.operands[index])
        return partial[0] if partial is not None and len(partial) == 1 else UNKNOWN


Rule = Callable[[_View], Range | None]


def _first(view: _View) -> Range:
    return view.range(0)


def _joined(view: _View) -> Range:
    count = len(view.op.operands) - (view.op.name == "tf.ConcatV2")
    return _union([view.range(index) for index in range(count)])


def _union(ranges: list[Range]) -> Range:
    below = ranges[0].below if len({each.below for each in ranges}) == 1 else 0
    return Range(min(each.low for each in ranges), max(each.high for each in ranges), below)


def _up_to(size: int) -> Range | None:
    """Returns the range of the indices of a dimension."""
    if size >= 0:
        return Range(0, max(size - 1, 0))
    return Range(0, _MAX_SIZE, size if size < UNKNOWN else 0)


def _extreme_index(view: _View) -> Range | None:
    axis = view.scalar(1)
    return None if axis <= UNKNOWN else _up_to(view.size(0, axis))


def _top_k(view: _View) -> Range | None:
    return _up_to(view.size(0, -1)) if view.result.index else view.range(0)


def _counted(view: _View) -> Range | None:
    """`Range` with a step of 1 or more."""
    start, step, limit = view.range(0), view.scalar(2), view.scalar(1)
    if step < 1:
        return None
    found = _up_to(limit)
    return None if found is None else Range(start.low, max(found.high, start.low), found.below)


def _maximum(view: _View) -> Range:
    one, other = view.range(0), view.range(1)
    return Range(max(one.low, other.low), max(one.high, other.high), one.below if one.below == other.below else 0)


def _minimum(view: _View) -> Range:
    one, other = view.range(0), view.range(1)
    return Range(min(one.low, other.low), min(one.high, other.high), one.below or other.below)


def _add(view: _View) -> Range:
    one, other = view.range(0), view.range(1)
    return Range(one.low + other.low, one.high + other.high)


def _subtract(view: _View) -> Range:
    one, other = view.range(0), view.range(1)
    return Range(one.low - other.high, one.high - other.low)


def _multiply(view: _View) -> Range:
    one, other = view.range(0), view.range(1)
    corners = [x * y for x in one[:2] for y in other[:2]]
    return Range(min(corners), max(corners))


def _floor_mod(view: _View) -> Range | None:
    divisor = view.scalar(1)
    if divisor < UNKNOWN:
        return _up_to(divisor)
    low, high, _ = view.range(1)
    return Range(0, high - 1) if low > 0 else None


def _bitwise_and(view: _View) -> Range | None:
    positive = [each.high for each in (view.range(0), view.range(1)) if each.low >= 0]
    return Range(0, min(positive)) if positive else None


def _select(view: _View) -> Range:
    """A choice; of `x < 0 ? x + n : x`, each branch is taken for some x only."""
    wrapped = wrapped_index(view.result)
    if wrapped is None:
        return _union([view.range(1), view.range(2)])
    x, n = view.range(2), view.known.partial(wrapped[1])
    positive = Range(max(x.low, 0), max(x.high, 0), x.below)
    if x.low >= 0:
        return positive
    size = n[0] if n else UNKNOWN
    if size <= UNKNOWN:
        return _union([view.range(1), positive])
    return _union([Range(x.low + size, size - 1), positive])


def wrapped_index(value: Value) -> tuple[Value, Value] | None:
    """Returns x and n of `x < 0 ? x + n : x`, which is how indices are counted from the end; else `None`."""
    owner = value.owner
    if not isinstance(owner, Operation) or owner.name != "tf.SelectV2":
        return None
    condition, moved, x = owner.operands
    less, added = condition.owner, moved.owner
    if not isinstance(less, Operation) or less.name != "tf.Less" or less.operands[0] is not x:
        return None
    zero = tensor_data.constant_of(less.operands[1])
    if zero is None or tensor_data.to_array(zero).any():
        return None
    if not isinstance(added, Operation) or added.name != "tf.AddV2":
        return None
    first, second = added.operands
    return (x, second) if first is x else (x, first) if second is x else None


def _counter(argument: BlockArgument, known: Known) -> Range | None:
    """Returns the range of a loop's counter in its body, which starts at a constant and goes up while it is less."""
    block = argument.owner
    assert isinstance(block, Block)
    region = block.parent
    loop = None if region is None else region.parent
    if loop is None or loop.name != "tf.WhileRegion" or region is loop.regions[0]:
        return None
    start = range_of(loop.operands[argument.index], known)
    last = block.last_op
    step = None if last is None else last.operands[argument.index].owner
    test = loop.regions[0].block
    # The body isn't raised yet.
    if start.low < 0 or not isinstance(step, Operation) or step.name != "stablehlo.add":
        return None
    first, second = step.operands
    if first is not argument or range_of(second, known)[:2] != (1, 1) or test.last_op is None:
        return None
    return _below_limit(test, argument.index, start, known)


def _below_limit(test: Block, index: int, start: Range, known: Known) -> Range | None:
    """Returns the range of a counter that a loop's condition compares with a limit."""
    assert test.last_op is not None
    compared = test.last_op.operands[0].owner
    if not isinstance(compared, Operation) or compared.name != "tf.Less":
        return None
    counter, limit = compared.operands
    if counter is not test.args[index]:
        return None
    partial = known.partial(limit)
    if partial is not None and partial[0] < UNKNOWN:
        return Range(start.low, _MAX_SIZE, partial[0])
    high = range_of(limit, known).high
    return Range(start.low, max(high - 1, start.low))


_MOVING = (
    "tf.BroadcastTo",
    "tf.Cast",
    "tf.ExpandDims",
    "tf.GatherV2",
    "tf.Identity",
    "tf.Reshape",
    "tf.ReverseV2",
    "tf.Slice",
    "tf.Squeeze",
    "tf.StridedSlice",
    "tf.Tile",
    "tf.Transpose",
)

_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(_MOVING, _first),
    "tf.AddV2": _add,
    "tf.ArgMax": _extreme_index,
    "tf.ArgMin": _extreme_index,
    "tf.BitwiseAnd": _bitwise_and,
    "tf.ConcatV2": _joined,
    "tf.Fill": lambda view: view.range(1),
    "tf.FloorMod": _floor_mod,
    "tf.Maximum": _maximum,
    "tf.Minimum": _minimum,
    "tf.Mul": _multiply,
    "tf.Pack": _joined,
    "tf.Range": _counted,
    "tf.SelectV2": _select,
    "tf.Sub": _subtract,
    "tf.TopKV2": _top_k,
}
"""Op -> the range of its result, which counts only if it is one of the result's type: nothing wrapped around."""
