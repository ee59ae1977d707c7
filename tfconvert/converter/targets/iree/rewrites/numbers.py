"""Sizes and other small integers as numbers of type `index`, computed beside the program, not in tensors.

What StableHLO computes with tensors of one number becomes arithmetic on numbers. Equal sizes become the same value, so
that IREE knows that they are equal.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tfconvert.converter.targets.iree.rewrites.linalg_builder import (
    Index,
    LinalgBuilder,
    bits,
    constant_ints,
    is_unsigned,
)
from tfconvert.schema.dialects import stablehlo, types
from tfconvert.schema.dialects.stablehlo import EnumeratorAttr
from tfconvert.schema.dialects.stablehlo_inference import Dry, infer
from tfconvert.schema.dialects.stablehlo_properties import integer, ints
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import DenseArrayAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import INDEX, IntegerType, Signedness
from tfconvert.schema.ir.values import BlockArgument, OpResult, Value

_LOOP = "stablehlo.while"


class _Places(Dry):
    """Each size as the place that has it: a value, and its axis."""

    __slots__ = ()

    def compute(self, name: str, *operands: object, kind: Attribute = INDEX) -> None:
        """Returns nothing: what is computed has no place."""

    def sizes(self, value: Value) -> Sequence[tuple[Value, int]]:
        return [(value, axis) for axis in range(len(shape_of(value)))]


_PLACES = _Places()

# Ops whose results have sizes of operands, beside those whose table says so. Sizes of products are not among them: IREE
# fails on sizes from outside of a loop.
_FOLLOWED = frozenset(
    f"stablehlo.{name}"
    for name in (
        "bitcast_convert",
        "clamp",
        "compare",
        "concatenate",
        "convert",
        "dynamic_update_slice",
        "is_finite",
        "reduce",
        "reverse",
        "scatter",
        "select",
        "transpose",
    )
)

# Ops of other dialects -> the operand that has the result's sizes.
_LIKE: Mapping[str, int] = {"tensor.insert_slice": 1, "linalg.generic": -1, "linalg.fill": 1}


def source_of(value: OpResult, axis: int) -> tuple[Value, int] | None:
    """Returns a value, and its axis, that has the same size as an axis of a result; `None` if none is known."""
    op = value.op
    if op.name in _LIKE or op.name == "stablehlo.sort":
        return op.operands[_LIKE.get(op.name, value.index)], axis
    definition = stablehlo.definitions().get(op.name)
    is_followed = op.name in _FOLLOWED or (definition is not None and definition.types == "same")
    return _place(op, axis) if is_followed else None


def _place(op: Operation, axis: int) -> tuple[Value, int] | None:
    found = (infer(_PLACES, op) or ())[axis]
    return found if isinstance(found, tuple) else None


def carried_from(value: Value, axis: int) -> tuple[Value, int] | None:
    """Returns the initial value of a value that a loop carries, if no step changes the size."""
    loop = value.op if isinstance(value, OpResult) else value.owner.parent_op()
    if loop is None or loop.name != _LOOP:
        return None
    assert isinstance(value, OpResult | BlockArgument)
    index = value.index
    block = loop.regions[1].block
    end = block.last_op
    assert end is not None
    value, place = end.operands[index], axis
    while value is not block.args[index]:
        source = source_of(value, place) if isinstance(value, OpResult) else None
        if source is None:
            return None
        value, place = source
    return (loop.operands[index], axis) if place == axis else None


def product_of(value: Value, axis: int) -> tuple[Value, int] | None:
    """Returns the operand, and its axis, that has the size of an axis of a product; `None` if it is not one."""
    if not isinstance(value, OpResult) or value.op.name != "stablehlo.dot_general":
        return None
    return _place(value.op, axis)


# The maximum length of a chain of computations that is followed.
_MAX_DEPTH = 64

_BINARY = frozenset(
    {"stablehlo.add", "stablehlo.subtract", "stablehlo.multiply", "stablehlo.maximum", "stablehlo.minimum"}
)
NUMERIC = frozenset({"stablehlo.get_dimension_size", *_BINARY})
"""Ops that compute sizes."""

_OF_TRUTHS = {"stablehlo.and": "arith.andi", "stablehlo.or": "arith.ori"}

# The operand that holds the result's sizes.
_SHAPE_OPERAND = {"stablehlo.dynamic_broadcast_in_dim": 1, "stablehlo.dynamic_iota": 0, "stablehlo.dynamic_reshape": 1}


class Numbers:
    """The numbers of a module, each computed once, right after what it depends on.

    Attributes:
        has_quotients: Whether one is a quotient of others; IREE knows no bound for those.
    """

    __slots__ = ("_before", "_dims", "_elements", "_factors", "has_quotients")

    def __init__(self) -> None:
        self.has_quotients = False
        self._dims: dict[tuple[Value, int], Index] = {}
        self._elements: dict[tuple[Value, int], Index] = {}
        self._factors: dict[Value, tuple[Index, Index]] = {}
        self._before: dict[Value, Index] = {}

    # Sizes.

    def sizes(self, value: Value) -> list[Index]:
        shape = value.shape
        assert shape is not None
        return [self.size(value, axis) for axis in range(len(shape))]

    def size(self, value: Value, axis: int) -> Index:
        shape = value.shape
        assert shape is not None
        if shape[axis] >= 0:
            return shape[axis]
        found = self._dims.get((value, axis))
        if found is None:
            found = self._size(value, axis)
            self._dims[value, axis] = found
        return found

    def _size(self, value: Value, axis: int) -> Index:
        origin, place = value, axis
        while (known := self._dims.get((origin, place))) is None and isinstance(origin, OpResult):
            op = origin.op
            if op.name in _SHAPE_OPERAND:
                return self.element(op.operands[_SHAPE_OPERAND[op.name]], place)
            if op.name in _SIZE_OPERANDS:
                shape = origin.shape
                assert shape is not None
                return op.operands[_SIZE_OPERANDS[op.name](op) + sum(dim < 0 for dim in shape[:place])]
            source = source_of(origin, place)
            if source is None:
                break
            origin, place = source
            static = origin.shape
            if static is not None and static[place] >= 0:
                return static[place]
        return self._read(origin, place) if known is None else known

    def _read(self, value: Value, axis: int) -> Value:
        emit = after(value)
        held = bits(emit, value) if is_unsigned(value) else value
        found = emit.one("tensor.dim", (held, emit.index(axis)), INDEX)
        self._dims[value, axis] = found
        before = carried_from(value, axis) or product_of(value, axis)
        if before is not None:
            self._before[found] = self.size(*before)
        return found

    def before(self, size: Index) -> Index:
        """Returns an equal size that is known earlier, for checks.

        If there is a check among the ops of a loop's step, IREE 3.13 runs them before their operands are ready, or
        loses buffers that the loop carries. Other ops use the size at hand: IREE fails on sizes from outside.
        """
        while isinstance(size, Value) and size in self._before:
            size = self._before[size]
        return size

    # Elements.

    def elements(self, vector: Value) -> list[Index]:
        shape = vector.shape
        assert shape is not None
        assert min(shape, default=0) >= 0, shape
        return [self.element(vector, at) for at in range(math.prod(shape))]

    def element(self, value: Value, at: int = 0, depth: int = 0) -> Index:
        """Returns an element of a tensor of integers.

        Args:
            value: The tensor, whose sizes are known.
            at: The element's number, row by row.
            depth: The length of the chain of computations so far.
        """
        found = self._elements.get((value, at))
        if found is None:
            found = self._element(value, at, depth + 1) if depth < _MAX_DEPTH else None
            if found is None:
                emit = after(value)
                number = emit.element(value, *_places(value, at))
                found = number if number.type is INDEX else emit.one("arith.index_cast", (number,), INDEX)
            self._elements[value, at] = found
        return found

    def _element(self, value: Value, at: int, depth: int) -> Index | None:
        known = constant_ints(value)
        if known is not None:
            return known[at]
        if not isinstance(value, OpResult) or not _is_integer(value):
            return None
        op = value.op
        if op.name == "tensor.from_elements":
            return _before_cast(op.operands[at])
        if op.name == "stablehlo.get_dimension_size":
            return self.size(op.operands[0], integer(op, "dimension"))
        if op.name in _BINARY or op.name == "stablehlo.divide":
            if op.operands[0].shape != value.shape:
                return None
            one, other = (self.element(operand, at, depth) for operand in op.operands)
            return self._computed(value, one, other)
        if op.name == "stablehlo.select":
            return self._chosen(op, at, depth)
        rule = _ELEMENTS.get(op.name)
        source = rule(op, at) if rule is not None else None
        return None if source is None else self.element(*source, depth)

    def _computed(self, value: Value, one: Index, other: Index) -> Index:
        op = value.owner
        assert isinstance(op, Operation)
        emit = after(value)
        if op.name == "stablehlo.multiply":
            return self._product(emit, one, other)
        if op.name != "stablehlo.divide":
            return emit.compute(op.name.removeprefix("stablehlo."), one, other)
        (count, some), (divisor, more) = self.factors(one), self.factors(other)
        if divisor and more and count % divisor == 0 and not more - some:
            # The remaining factor of a reshape is a known size, so that both are the same value.
            found: Index = count // divisor
            for factor in (some - more).elements():
                found = self._product(emit, found, factor)
            return found
        if isinstance(other, int) and other > 0:
            return emit.compute("divide", one, other)
        self.has_quotients = True
        # A division by zero would be undefined; StableHLO's result would be of no use either.
        by = emit.index(other)
        safe = emit.choose(emit.is_("EQ", by, emit.index(0)), emit.index(1), by)
        return emit.compute("divide", one, safe)

    def _product(self, emit: LinalgBuilder, one: Index, other: Index) -> Index:
        found = emit.compute("multiply", one, other)
        if isinstance(found, Value) and found is not one and found is not other:
            self._factors.setdefault(found, (one, other))
        return found

    def _chosen(self, op: Operation, at: int, depth: int) -> Index:
        condition, *cases = op.operands
        one, other = (self.element(case, at, depth) for case in cases)
        if one is other or (isinstance(one, int) and one == other):
            return one
        place = at if condition.shape else 0
        truth = self.truth(condition, place, depth)
        emit = after(op.results[0])
        return emit.choose(truth, emit.index(one), emit.index(other))

    def truth(self, condition: Value, at: int = 0, depth: int = 0) -> Value:
        """Returns an element of a tensor of truth values."""
        emit = after(condition)
        op = condition.owner
        if isinstance(op, Operation) and op.name == "stablehlo.compare" and depth < _MAX_DEPTH:
            direction = op.properties["comparison_direction"]
            assert isinstance(direction, EnumeratorAttr)
            if all(_is_signed(operand) for operand in op.operands):
                one, other = (emit.index(self.element(operand, at, depth + 1)) for operand in op.operands)
                return emit.is_(direction.value, one, other)
        if isinstance(op, Operation) and op.name in _OF_TRUTHS and depth < _MAX_DEPTH:
            first, second = (self.truth(operand, at, depth + 1) for operand in op.operands)
            return emit.one(_OF_TRUTHS[op.name], (first, second), types.I1)
        return emit.element(condition, *_places(condition, at))

    def factors(self, number: Index) -> tuple[int, Counter[Value]]:
        """Returns a number as a product of a constant and of values that are not products."""
        if isinstance(number, int):
            return number, Counter()
        pair = self._factors.get(number)
        if pair is None:
            return 1, Counter((number,))
        (one, some), (other, more) = (self.factors(each) for each in pair)
        return one * other, some + more


def _second_group_end(op: Operation) -> int:
    """Returns the index of the first operand after the second segment: offsets of a slice, sizes before a reshape."""
    counts = op.properties["operandSegmentSizes"]
    assert isinstance(counts, DenseArrayAttr)
    return 1 + int(counts.values[1])


# The index of the first operand that is a dynamic size of the result.
_SIZE_OPERANDS: Mapping[str, Callable[[Operation], int]] = {
    "flow.tensor.reshape": _second_group_end,
    "flow.tensor.tie_shape": lambda op: 1,
    "tensor.empty": lambda op: 0,
    "tensor.expand_shape": lambda op: 1,
    "tensor.extract_slice": _second_group_end,
}


def after(value: Value) -> LinalgBuilder:
    """Returns a builder right after a value's definition."""
    owner = value.owner
    if isinstance(owner, Operation):
        assert owner.next_op is not None
        emit = LinalgBuilder(owner.next_op)
        emit.location = owner.location
        return emit
    return LinalgBuilder(owner.first_op)


def _places(value: Value, at: int) -> list[Index]:
    """Returns the index of an element along each axis."""
    shape = value.shape
    assert shape is not None
    places: list[Index] = []
    for dim in reversed(shape):
        at, place = divmod(at, dim)
        places.insert(0, place)
    return places


def _before_cast(number: Value) -> Value | None:
    """Returns the `index` that a number was cast from, or `None`."""
    if number.type is INDEX:
        return number
    op = number.owner
    is_cast = isinstance(op, Operation) and op.name == "arith.index_cast" and op.operands[0].type is INDEX
    return op.operands[0] if isinstance(op, Operation) and is_cast else None


def is_host_scalar(value: Value) -> bool:
    """Returns whether the host has a scalar: a constant, or a number that was made a tensor."""
    op = value.owner
    if not isinstance(op, Operation):
        return False
    if op.name == "tensor.from_elements":
        return _before_cast(op.operands[0]) is not None
    return op.name == "stablehlo.constant"


def _is_signed(value: Value) -> bool:
    element = value.element
    return isinstance(element, IntegerType) and element.width >= 32 and element.signedness is Signedness.SIGNLESS


def _is_integer(value: Value) -> bool:
    element = value.element
    return element is INDEX or isinstance(element, IntegerType)


def _reshaped(op: Operation, at: int) -> tuple[Value, int]:
    return op.operands[0], at


def _part(op: Operation, at: int) -> tuple[Value, int] | None:
    starts, strides = ints(op, "start_indices"), ints(op, "strides")
    return (op.operands[0], starts[0] + at * strides[0]) if len(starts) == 1 else None


def _piece(op: Operation, at: int) -> tuple[Value, int] | None:
    for operand in op.operands:
        shape = operand.shape
        if shape is None or len(shape) != 1 or shape[0] < 0:
            return None
        if at < shape[0]:
            return operand, at
        at -= shape[0]
    return None


def _converted(op: Operation, at: int) -> tuple[Value, int] | None:
    operand = op.operands[0]
    is_wide = isinstance(kind := operand.element, IntegerType) and kind.width >= 16
    return (operand, at) if is_wide and not _is_narrow(op.results[0].element) else None


def _is_narrow(kind: Attribute) -> bool:
    return not isinstance(kind, IntegerType) or kind.width < 32


def _scalar_source(op: Operation, at: int) -> tuple[Value, int] | None:
    return (op.operands[0], 0) if op.operands[0].shape == () else None


# The sources of the elements of small tensors.
_ELEMENTS: Mapping[str, Callable[[Operation, int], tuple[Value, int] | None]] = {
    "stablehlo.broadcast_in_dim": _scalar_source,
    "stablehlo.concatenate": _piece,
    "stablehlo.convert": _converted,
    "stablehlo.reshape": _reshaped,
    "stablehlo.slice": _part,
}


class Context(NamedTuple):
    """The context of a rewrite.

    Attributes:
        emit: Inserts ops before the op to rewrite.
        numbers: The sizes as numbers.
    """

    emit: LinalgBuilder
    numbers: Numbers


Rewrite = Callable[[Operation, Context], Value | Sequence[Value] | None]
"""Returns the replacements of an op's results; `None` if the op can stay."""


def shape_of(value: Value) -> types.Shape:
    """Returns a shape, with -1 for dynamic sizes; StableHLO has no tensors of unknown rank."""
    shape = value.shape
    assert shape is not None
    return shape


def is_dynamic(*values: Value) -> bool:
    """Returns whether one of the values has a dynamic size."""
    return any(-1 in shape_of(value) for value in values)
