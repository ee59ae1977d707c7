"""Loops that iterate over the time steps of a sequence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tfconvert.converter.control_flow.calls import Calls
from tfconvert.converter.control_flow.constructs import Construct, invariants, origin, returned
from tfconvert.converter.ir.constants import constant_array, constant_int
from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.shapes.symbolic import Symbols
from tfconvert.schema.dialects import tf, tf_effects, types
from tfconvert.schema.dialects.call_interfaces import KINDS, Kind
from tfconvert.schema.dialects.dims import UNKNOWN
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FloatType
from tfconvert.schema.ir.values import BlockArgument, OpResult, Value


class Extents:
    """Dimensions and scalars as comparable numbers or symbols.

    Args:
        module: The module, whose symbolic shapes are computed when first needed.
    """

    __slots__ = ("_module", "_symbols")

    def __init__(self, module: ModuleOp) -> None:
        self._module = module
        self._symbols: Symbols | None = None

    def dim(self, value: Value, axis: int) -> int | None:
        """Returns a dimension of a value, or `None` without a symbol."""
        shape = value.shape
        if shape is None or len(shape) <= axis:
            return None
        if shape[axis] >= 0:
            return shape[axis]
        known = self._all().shape(value)
        return None if known is None or known[axis] == -1 else known[axis]

    def scalar(self, value: Value | int) -> int | None:
        """Returns a scalar, or `None` without a symbol."""
        value = value if isinstance(value, int) else _absorbed(value)
        number = constant_int(value)
        if number is not None or isinstance(value, int):
            return number
        elements = self._all().known.partial(value)
        if elements is None or len(elements) != 1 or elements[0] == UNKNOWN:
            return None
        return self._all().find(elements[0])

    def _all(self) -> Symbols:
        if self._symbols is None:
            self._symbols = Symbols(Calls(self._module), {})
        return self._symbols


def _absorbed(value: Value) -> Value:
    """Returns `x` for `minimum(x, maximum(x, y))`, `dynamic_rnn`'s length of a sequence, in any order."""
    while (pair := _defined_by(value, "tf.Minimum")) is not None:
        first, second = pair.op.operands
        if _is_at_least(second, first):
            value = first
        elif _is_at_least(first, second):
            value = second
        else:
            break
    return value


def _is_at_least(value: Value, other: Value) -> bool:
    larger = _defined_by(value, "tf.Maximum")
    return value is other or (larger is not None and other in larger.op.operands)


def _defined_by(value: Value, name: str) -> OpResult | None:
    return value if isinstance(value, OpResult) and value.op.name == name else None


@dataclass(frozen=True, slots=True)
class SequenceSteps:
    """A sequence.

    Attributes:
        value: A tensor of the steps, of rank 3.
        axis: The axis of the steps, 0 or 1; the other one is the batch.
        is_reversed: Whether the last step comes first.
    """

    value: Value
    axis: int
    is_reversed: bool = False

    @property
    def batch(self) -> int:
        """The number of sequences, -1 if unknown."""
        return (self.value.shape or ())[1 - self.axis]

    @property
    def features(self) -> int:
        """The number of elements of a step."""
        return (self.value.shape or ())[2]

    @property
    def length(self) -> int:
        """The number of steps, -1 if unknown."""
        return (self.value.shape or ())[self.axis]


def ordered(axis: int, length: int, batch: int, features: int) -> tuple[int, ...]:
    return (length, batch, features) if axis == 0 else (batch, length, features)


def steps_of(value: Value, axis: int) -> SequenceSteps:
    """Returns the source of a sequence, before batch and time were transposed and the order was reversed.

    Args:
        value: The sequence.
        axis: The axis of the steps.
    """
    is_reversed = False
    while isinstance(value, OpResult) and value.op.name in ("tf.ConcatV2", "tf.Transpose", "tf.ReverseV2"):
        if value.op.name == "tf.ConcatV2":
            (only, *more) = _not_empty(value.op, axis)
            if more:
                break
            value = only
            continue
        order = constant_array(value.op.operands[1])
        order = None if order is None else order.reshape(-1)
        if value.op.name == "tf.Transpose" and order is not None and order.tolist() == [1, 0, 2]:
            if axis == 1 and _is_loop(value.op.operands[0]):
                break  # rows that a framework's loop collects, steps first, are mostly available batch first as well
            axis = 1 - axis
        elif value.op.name == "tf.ReverseV2" and order is not None and order.tolist() in ([axis], [axis - 3]):
            is_reversed = not is_reversed
        else:
            break
        value = value.op.operands[0]
    shape = value.shape
    need(shape is not None and len(shape) == 3 and shape[2] > 0, "its input is not a sequence of vectors of known size")
    need(value.element == types.F32, f"it computes with {value.element}, not f32")
    return SequenceSteps(value, axis, is_reversed)


def _is_loop(value: Value) -> bool:
    return isinstance(value, OpResult) and KINDS.get(value.op.name) is Kind.LOOP


def _not_empty(concat: Operation, axis: int) -> list[Value]:
    """Returns the non-empty values that an op concatenates along an axis; its result twice for another axis."""
    *values, along = concat.operands
    found = [value for value in values if (value.shape or (-1,) * 3)[axis] != 0]
    return found if constant_int(along) == axis and found else [concat.results[0], concat.results[0]]


_MASKS = ("begin", "end", "shrink_axis", "ellipsis", "new_axis")
_COUNTING = "its condition is not just a count"


@dataclass(frozen=True, slots=True)
class Read:
    """A step of a sequence that the body reads.

    Attributes:
        sequence: The whole sequence, outside of the loop.
        axis: The axis of the steps.
    """

    sequence: Value
    axis: int


@dataclass(frozen=True, slots=True)
class Scan:
    """A loop that counts from zero.

    Attributes:
        loop: The loop.
        limits: The upper bounds of its counters: numbers, or arguments of the condition that never change.
        counters: The indices of the counters among the variables.
        reads: The steps of sequences that the body reads, by value.
        states: The next values of the variables that the body reads, by index.
        stacks: The row that a step adds, by the variable that collects rows.
        lasts: The row of the last step, by the variable with this row and a leading dimension.
    """

    loop: Construct
    limits: tuple[BlockArgument | int, ...]
    counters: frozenset[int]
    reads: Mapping[Value, Read]
    states: dict[int, Value] = field(default_factory=dict)
    stacks: dict[int, Value] = field(default_factory=dict)
    lasts: dict[int, Value] = field(default_factory=dict)

    @property
    def body(self) -> Block:
        return self.loop.functions[1].body.block

    @property
    def bounds(self) -> list[Value | int]:
        """The upper bounds of its counters, outside of the loop."""
        operands = self.loop.given
        return [operands[limit.index] if isinstance(limit, BlockArgument) else limit for limit in self.limits]

    def state(self, index: int) -> Value:
        return self.body.args[index]


def scan_of(loop: Construct) -> Scan:
    """Returns a loop as one over sequences."""
    body = loop.functions[1].body.block
    for function in loop.functions:
        for op in function.body.block.ops:
            need(op.name == "func.return" or tf_effects.is_pure(op), f"there is an op with effects in it, {op.name}")
    fixed = invariants(body)
    limits, counters = _counting(loop, fixed)
    reads = _reads(loop, fixed, counters)
    scan = Scan(loop, tuple(limits), frozenset(counters), reads)
    for index, value in enumerate(returned(body)):
        if index not in fixed and index not in counters:
            _classify(scan, index, origin(value))
    return scan


def fixed_values(scan: Scan) -> frozenset[Value]:
    """Returns the loop-invariant values of the body."""
    body = scan.body
    fixed: set[Value] = {body.args[index] for index in invariants(body)}
    for op in body.ops:
        if all(operand in fixed for operand in op.operands):
            fixed.update(op.results)
    return frozenset(fixed)


def _counting(loop: Construct, fixed: frozenset[int]) -> tuple[list[BlockArgument | int], set[int]]:
    """Returns the upper bounds of a loop's counters, and the counters' indices."""
    condition, body = (function.body.block for function in loop.functions)
    counters = {index for index, value in enumerate(returned(body)) if is_counter(loop, body, index, value)}
    limits: list[BlockArgument | int] = []
    todo = list(returned(condition))
    seen: set[Value] = set()
    while todo:
        value = origin(todo.pop())
        if value in seen:
            continue
        seen.add(value)
        need(isinstance(value, OpResult), _COUNTING)
        assert isinstance(value, OpResult)
        if value.op.name == "tf.LogicalAnd":
            todo += value.op.operands
            continue
        need(value.op.name == "tf.Less", _COUNTING)
        counter, bound = map(origin, value.op.operands)
        need(isinstance(counter, BlockArgument) and counter.index in counters, _COUNTING)
        limits.append(_limit(fixed, bound))
    return limits, counters


def is_counter(loop: Construct, body: Block, index: int, value: Value) -> bool:
    """Returns whether a variable begins at zero and grows by one."""
    value = origin(value)
    if not isinstance(value, OpResult) or value.op.name not in ("tf.AddV2", "tf.Add"):
        return False
    operands = [origin(operand) for operand in value.op.operands]
    argument = body.args[index]
    steps = [operand for operand in operands if operand is not argument]
    if argument.element not in (types.I32, types.I64):
        return False
    return len(steps) == 1 and constant_int(steps[0]) == 1 and constant_int(loop.given[index]) == 0


def _limit(fixed: frozenset[int], bound: Value) -> BlockArgument | int:
    number = constant_int(bound)
    if number is not None:
        return number
    need(isinstance(bound, BlockArgument) and bound.index in fixed, _COUNTING)
    assert isinstance(bound, BlockArgument)
    return bound


def _reads(loop: Construct, fixed: frozenset[int], counters: set[int]) -> dict[Value, Read]:
    """Returns the steps that the body reads from sequences at its counters."""
    body = loop.functions[1].body.block
    reads: dict[Value, Read] = {}
    for op in body.ops:
        found = _READERS.get(op.name)
        place = found(op) if found is not None else None
        if place is None:
            continue
        sequence, index = origin(op.operands[0]), origin(place[0])
        if (
            isinstance(sequence, BlockArgument)
            and isinstance(index, BlockArgument)
            and sequence.index in fixed
            and index.index in counters
        ):
            reads[op.results[0]] = Read(loop.given[sequence.index], place[1])
    return reads


def _gathered(op: Operation) -> tuple[Value, int] | None:
    """Returns the index and the axis of a row that an op reads."""
    axis = constant_int(op.operands[2])
    return None if axis not in (0, 1) or tf.get(op, "batch_dims") or axis is None else (op.operands[1], axis)


def indexed_axis(op: Operation, rank: int) -> int | None:
    """Returns the axis that `x[i]` or `x[:, i]` indexes, or `None` for other slices.

    Args:
        op: A `StridedSlice`.
        rank: The number of its begins.
    """
    masks = {name: int(tf.get(op, f"{name}_mask", 0)) for name in _MASKS}
    steps, index = constant_array(op.operands[3]), masks["shrink_axis"]
    whole = ((1 << rank) - 1) & ~index
    if steps is None or any(steps != 1) or masks["ellipsis"] or masks["new_axis"] or masks["begin"] & index:
        return None
    if index not in (1, 2) or index >> 1 >= rank or masks["begin"] & masks["end"] & whole != whole:
        return None
    return index >> 1


def sliced(op: Operation) -> tuple[Value, int] | None:
    """Returns the index and the axis of `x[i]` or `x[:, i]`, whose end is its begin plus one."""
    begin = op.operands[1]
    places = begin.op.operands if isinstance(begin, OpResult) and begin.op.name == "tf.Pack" else ()
    axis = indexed_axis(op, len(places))
    return None if axis is None else (places[axis], axis)


_READERS = {"tf.GatherV2": _gathered, "tf.StridedSlice": sliced}


def _classify(scan: Scan, index: int, value: Value) -> None:
    argument = scan.body.args[index]
    row = _row_written(scan, argument, value)
    if row is not None:
        scan.stacks[index] = row
    elif argument.first_use is None:
        row = widened(value)
        scan.lasts[index] = value if row is None else row
    else:
        scan.states[index] = value


def _row_written(scan: Scan, argument: Value, value: Value) -> Value | None:
    """Returns the row that an iteration writes into a tensor at the counter, as the tensor's only use."""
    if not isinstance(value, OpResult) or value.op.name != "tf.XlaDynamicUpdateSlice" or not argument.has_one_use():
        return None
    into, update, place = value.op.operands
    first, *rest = place.op.operands if isinstance(place, OpResult) and place.op.name == "tf.Pack" else (place,)
    counter = origin(first)
    is_counter = isinstance(counter, BlockArgument) and counter.index in scan.counters
    if into is not argument or not is_counter or any(constant_int(item) != 0 for item in rest):
        return None
    is_whole = (into.shape or ())[1:] == (update.shape or ())[1:]
    return widened(update) if is_whole else None


def widened(value: Value) -> Value | None:
    """Returns the source of a value with an added leading dimension."""
    if isinstance(value, OpResult) and value.op.name == "tf.ExpandDims" and constant_int(value.op.operands[1]) == 0:
        return origin(value.op.operands[0])
    return None


_CONVOLUTIONS = frozenset({"tf.Conv2D", "tf.Conv3D", "tf.DepthwiseConv2dNative"})
_PRODUCTS = _CONVOLUTIONS | {"tf.BatchMatMulV2", "tf.Einsum", "tf.MatMul"}


def looks_recurrent(loop: Construct) -> bool:
    """Returns whether a loop has products with matrices or convolutions, and forwards vectors."""
    body = loop.functions[1].body.block
    if not any(op.name in _PRODUCTS for op in body.ops):
        return False
    fixed = invariants(body)
    return any(
        index not in fixed and isinstance(argument.element, FloatType) and argument.first_use is not None
        for index, argument in enumerate(body.args)
    )


def convolves(scan: Scan) -> bool:
    """Returns whether there is a convolution in a loop."""
    return any(op.name in _CONVOLUTIONS for op in scan.body.ops)
