"""Channels of values that may be divided by positive numbers, if the constants that read them are multiplied.

A rectifier, a pool, a sum and a reshape of numbers divided by s are their results divided by s; a convolution takes any
factor of its input channels into its filter, and gives any factor of its output channels out of it. So each channel of
a value is free, bound to others, as those that are added are, bound inversely, as those of queries and keys are, or
fixed, as what a sigmoid reads is.

    y = relu(conv(x, w));  conv(y, v)  ->  y / s = relu(conv(x, w / s));  conv(y / s, v * s)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.schema.dialects import tensor_data, tfl
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.builder import OpBuilder
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value
from tfconvert.schema.tflite import operators

FIXED = 0
"""The channel that is divided by 1."""

# Larger constants that several operators, or functions, read would be in the file several times.
_SHARED = 4096

# More channels than this are those of an image or a sequence, not of a network's features.
_MAX_CHANNELS = 1 << 16

_LINEAR = frozenset(("NONE", "RELU"))


class Constant(NamedTuple):
    """A constant operand that channels go into.

    Attributes:
        op: The op.
        operand: The index of the operand.
        divided: The channels whose divisors it is divided by; in the constant's shape, but for broadcasting.
        multiplied: Those whose divisors it is multiplied by.
    """

    op: Operation
    operand: int
    divided: Array
    multiplied: Array

    @property
    def value(self) -> tensor_data.Constant:
        """The constant."""
        found = tensor_data.constant_of(self.op.operands[self.operand])
        assert found is not None, "only constants are listed"
        return found

    def aligned(self) -> tuple[Array, Array]:
        """Returns the numbers, 0 for infinite bounds, and the channels that they are divided by, of the same rank."""
        array, divided = tensor_data.to_array(self.value), self.divided
        array = np.where(np.isfinite(array), array, 0)
        rank = max(array.ndim, divided.ndim)
        return _of_rank(array, rank), _of_rank(divided, rank)

    def scale(self, factor: Array) -> None:
        """Multiplies it by factors, which may give it more dimensions."""
        old = self.op.operands[self.operand]
        assert isinstance(old, OpResult), "it is a constant"
        value, shape = self.value, self.value.shape or ()
        while factor.ndim > max(len(shape), 1) and factor.shape[0] == 1:
            factor = factor[0]
        if np.broadcast_shapes(shape, factor.shape) == shape:
            scaled = tensor_data.defer("mul", (value, tensor_data.of_array(factor)), shape)
        else:
            scaled = tensor_data.of_array(tensor_data.to_array(value) * factor)
        self.op.set_operand(self.operand, OpBuilder(self.op).insert(tfl.constant(scaled, old.op.location)).results[0])
        if old.is_unused:
            old.op.erase()

    @property
    def is_table(self) -> bool:
        """Whether it is a table, whose rows are looked up."""
        return _kind(self.op) == "rows"

    @property
    def is_factor(self) -> bool:
        """Whether channels are made from it, and not only added to it or compared with it."""
        row = operators.filters().get(self.op.name.removeprefix(tfl.PREFIX))
        return self.operand != row.bias if row is not None else _kind(self.op) in ("product", "matmul", "rows")


class Product(NamedTuple):
    """An operand whose channels are multiplied by numbers and added up.

    Attributes:
        op: The op.
        operand: The index of the operand.
        weight: The index of what it is multiplied by.
        axis: The axis of the weight along which the channels are.
        rows: The axis of the weight that has a scale for each slice; `None` if it has one scale.
    """

    op: Operation
    operand: int
    weight: int
    axis: int
    rows: int | None


class Channels(NamedTuple):
    """The channels of a function's values.

    Attributes:
        of: The channel of each number of a value; of size 1 along axes that it doesn't depend on. All others are fixed.
        labels: The class of each channel, and of its inverse: an array of two columns. Classes are divided by one
            number; `FIXED` is that of channels that are divided by 1.
        constants: The constants that channels go into.
        products: What reads them.
    """

    of: Mapping[Value, Array]
    labels: Array
    constants: Sequence[Constant]
    products: Sequence[Product]

    def divide(self, divisors: Array) -> None:
        """Divides and multiplies constants by the divisors of channels."""
        for each in self.constants:
            factor = divisors[each.multiplied] / divisors[each.divided]
            if (factor != 1).any():
                each.scale(factor)


def channels_of(function: FuncOp, fixed: Iterable[Value] = ()) -> Channels:
    """Returns the channels of a function's values.

    Args:
        function: The function.
        fixed: Values that have to keep their numbers.
    """
    return _Analysis(function).run(fixed)


class _Analysis:
    def __init__(self, function: FuncOp) -> None:
        self._function = function
        self._elsewhere = _constants_beside(function)
        self._count = 1
        self._edges: list[tuple[Array, Array, bool]] = []
        self._of: dict[Value, Array] = {}
        self._constants: list[Constant] = []
        self._products: list[Product] = []

    def run(self, fixed: Iterable[Value]) -> Channels:
        for op in self._function.body.block.ops:
            rule = _rule(op)
            if rule is not None and all(_is_plain(value) for value in op.results) and _activation(op) in _LINEAR:
                found = rule(self, op)
                if found is not None:
                    self._of.update(zip(op.results, found, strict=True))
                    continue
            self.fix(*op.operands)
        self.fix(*fixed)
        labels = _labels(self._count, self._edges)
        of = {value: ids for value, ids in self._of.items() if (labels[ids, 0] != FIXED).any()}
        constants = [each for each in self._constants if _is_free(labels, each.divided, each.multiplied)]
        return Channels(
            of, labels, constants, [each for each in self._products if each.op.operands[each.operand] in of]
        )

    def of(self, value: Value) -> Array:
        """Returns the channel of each number of a value."""
        found = self._of.get(value)
        return np.full((1,) * len(value.shape or ()), FIXED) if found is None else found

    def is_fixed(self, value: Value) -> bool:
        """Returns whether a value's channels are known to be fixed: by what computes it, or by what else reads it."""
        return value not in self._of or any(
            _rule(use.operation) is None
            or (_kind(use.operation) == "axes" and not _is_outside(self.of(value), _axes(use.operation)))
            for use in value.uses
        )

    def fix(self, *values: Value) -> None:
        """Binds all channels of values to 1."""
        for value in values:
            if value in self._of:
                self.bind(self._of[value], np.full(1, FIXED))

    def bind(self, one: Array, other: Array, *, inversely: bool = False) -> None:
        """Gives channels the same divisors, or each the inverse of the other's."""
        self._edges.append((one, other, inversely))

    def new(self, shape: Sequence[int]) -> Array:
        """Returns channels that are not bound yet."""
        count = int(np.prod(shape))
        if count > _MAX_CHANNELS:
            return np.full((1,) * len(shape), FIXED)
        first, self._count = self._count, self._count + count
        return np.arange(first, self._count).reshape(shape)

    def take(self, op: Operation, index: int, divided: Array, multiplied: Array | None = None) -> bool:
        """Lists a constant that channels go into; returns whether they can."""
        value = op.operands[index]
        constant = tensor_data.constant_of(value)
        if constant is None or not questions.is_float(value):
            return False
        if questions.size_of(constant) > _SHARED and (not value.has_one_use() or _key(constant) in self._elsewhere):
            return False
        fixed = np.full((1,) * len(constant.shape or ()), FIXED)
        self._constants.append(Constant(op, index, divided, fixed if multiplied is None else multiplied))
        return True

    def read(self, op: Operation, index: int, weight: int, axis: int, rows: int | None) -> None:
        self._products.append(Product(op, index, weight, axis, rows))


def _key(constant: tensor_data.Constant) -> Hashable:
    """Returns what equal constants share."""
    return constant.source.fingerprint() if isinstance(constant, tensor_data.TensorData) else constant


def _constants_beside(function: FuncOp) -> frozenset[Hashable]:
    """Returns the keys of the large constants of a module's other functions."""
    module = function.parent_op()
    others = [op for op in module.ops if op is not function] if isinstance(module, ModuleOp) else []
    values = (result for other in others for op in other.walk() for result in op.results)
    found = (constant for value in values if (constant := tensor_data.constant_of(value)) is not None)
    return frozenset(_key(constant) for constant in found if questions.size_of(constant) > _SHARED)


Rule = Callable[[_Analysis, Operation], "Sequence[Array] | None"]


def _of_rank(array: Array, rank: int) -> Array:
    return array.reshape((1,) * (rank - array.ndim) + array.shape)


def _activation(op: Operation) -> str:
    return questions.activation(op)


def _is_plain(value: Value) -> bool:
    return questions.is_float(value) and value.shape is not None


def _is_free(labels: Array, *each: Array) -> bool:
    return any((labels[ids, 0] != FIXED).any() for ids in each)


def _kind(op: Operation) -> str:
    return operators.having("homogeneous").get(op.name.removeprefix(tfl.PREFIX), "")


def _is_outside(ids: Array, axes: frozenset[int] | None) -> bool:
    """Returns whether channels don't depend on some axes."""
    return axes is not None and all(ids.shape[axis] == 1 for axis in axes)


def _axes(op: Operation) -> frozenset[int] | None:
    return questions.axes(op.operands[1], op.operands[0].shape)


def _kept(analysis: _Analysis, op: Operation) -> Sequence[Array] | None:
    return [analysis.of(op.operands[0])] * len(op.results)


def _windows(analysis: _Analysis, op: Operation) -> Sequence[Array] | None:
    ids = analysis.of(op.operands[0])
    return [ids] if _is_outside(ids, frozenset(range(1, ids.ndim - 1))) else None


def _padded(analysis: _Analysis, op: Operation) -> Sequence[Array] | None:
    ids, pads = analysis.of(op.operands[0]), constant_ints(op.operands[1])
    if pads is None:
        return [ids] if ids.size == 1 else None
    axes = frozenset(axis for axis in range(ids.ndim) if any(pads[2 * axis : 2 * axis + 2]))
    return [ids] if _is_outside(ids, axes) else None


def _reduced(analysis: _Analysis, op: Operation) -> Sequence[Array] | None:
    ids, axes = analysis.of(op.operands[0]), _axes(op)
    if not _is_outside(ids, axes):
        return None
    assert axes is not None
    return [ids if tfl.attribute(op, "keep_dims") else ids.squeeze(tuple(axes))]


def _together(analysis: _Analysis, op: Operation) -> Sequence[Array] | None:
    """Operands that are added or compared are divided by the same numbers."""
    rank = len(op.results[0].shape or ())
    constants = [index for index, value in enumerate(op.operands) if tensor_data.constant_of(value) is not None]
    computed = [analysis.of(value) for index, value in enumerate(op.operands) if index not in constants]
    aligned = [_of_rank(ids, rank) for ids in computed]
    result = analysis.new(np.broadcast_shapes(*(ids.shape for ids in aligned)))
    for ids in aligned:
        analysis.bind(*np.broadcast_arrays(result, ids))
    for index in constants:
        if not analysis.take(op, index, result):
            analysis.bind(result, np.full(1, FIXED))
    return [result]


def _product(analysis: _Analysis, op: Operation) -> Sequence[Array] | None:
    """A factor that is a constant of one number a channel makes channels of its own."""
    rank = len(op.results[0].shape or ())
    at = [index for index, value in enumerate(op.operands) if tensor_data.constant_of(value) is not None]
    if len(at) == 2 or op.operands[0] is op.operands[1]:
        return None
    if not at:
        one, other = op.operands
        if analysis.is_fixed(one):
            one, other = other, one
        if one.shape != op.results[0].shape:
            return None
        analysis.fix(other)
        return [analysis.of(one)]
    (index,) = at
    ids = analysis.of(op.operands[1 - index])
    ids = _of_rank(ids, rank)
    shape = op.operands[index].shape or ()
    if sum(size > 1 for size in shape) != 1 or op.operands[1 - index].shape != op.results[0].shape:
        return [ids] if ids.shape and op.operands[1 - index].shape == op.results[0].shape else None
    result = analysis.new((1,) * (rank - len(shape)) + tuple(shape))
    if not analysis.take(op, index, result, ids):
        return [ids]
    axis = next(axis for axis, size in enumerate(shape) if size > 1)
    if ids.ndim and ids.shape[axis - len(shape)] > 1:
        analysis.read(op, 1 - index, index, axis, None)
    return [result]


def _quotient(analysis: _Analysis, op: Operation) -> Sequence[Array] | None:
    one, other = op.operands
    if one.shape != op.results[0].shape:
        return None
    analysis.fix(other)
    return [analysis.of(one)]


def _filtered(analysis: _Analysis, op: Operation) -> Sequence[Array] | None:
    """A filter takes the channels of its data, and gives its results any."""
    row = operators.filters()[op.name.removeprefix(tfl.PREFIX)]
    data, weights = op.operands[row.data], op.operands[row.operand]
    shape, rank = weights.shape, len(data.shape or ())
    if shape is None or len(shape) != len(row.axes) or len(op.results) != 1:
        return None
    ids = analysis.of(data)
    into, out = row.input_axis, row.output_axis
    is_apart = ids.size == ids.shape[-1] if ids.ndim else False
    result = analysis.new((1,) * (len(op.results[0].shape or ()) - 1) + (shape[out],))
    if into is None:
        # Of each channel alone: several results may be of one.
        per = shape[out] // ids.shape[-1] if ids.ndim and ids.shape[-1] > 1 else 1
        taken = np.repeat(ids.reshape(-1), per) if is_apart else None
        axis = out
    else:
        taken = ids.reshape(-1) if is_apart and ids.size in (1, shape[into]) else None
        axis = into
        if rank != len(row.axes) and row.axes != "OI":
            taken = None
        if row.axes == "OI" and (data.shape or (0,))[-1] != shape[into]:
            taken = None
    if taken is None or (taken.size > 1 and taken.size != shape[axis]):
        analysis.fix(data)
        taken = np.full(1, FIXED)
    taken = taken.reshape([-1 if place == axis else 1 for place in range(len(shape))])
    given = result.reshape([-1 if place == out else 1 for place in range(len(shape))])
    if not analysis.take(op, row.operand, given, taken):
        return None
    if tfl.has_operand(op, row.bias) and not analysis.take(op, row.bias, result.reshape(-1)):
        return None
    if taken.size > 1:
        analysis.read(op, row.data, row.operand, axis, out)
    return [result]


def _matrix_product(analysis: _Analysis, op: Operation) -> Sequence[Array] | None:
    """Channels that are multiplied with each other are divided and multiplied by the same numbers."""
    one, other = op.operands
    rank = len(op.results[0].shape or ())
    if len(one.shape or ()) != rank or len(other.shape or ()) != rank or rank < 2:
        return None
    across, along = (rank - 2, rank - 1) if tfl.attribute(op, "adj_x") else (rank - 1, rank - 2)
    down, aside = (rank - 1, rank - 2) if tfl.attribute(op, "adj_y") else (rank - 2, rank - 1)
    left = analysis.of(one)
    if tensor_data.constant_of(other) is not None:
        if not _is_outside(left, frozenset(range(rank)) - {across}):
            return None
        shape = other.shape or ()
        taken = left.reshape([-1 if axis == down else 1 for axis in range(rank)])
        result = analysis.new([shape[aside] if axis == rank - 1 else 1 for axis in range(rank)])
        given = result.reshape([-1 if axis == aside else 1 for axis in range(rank)])
        if not analysis.take(op, 1, given, taken):
            return None
        if left.size > 1:
            analysis.read(op, 0, 1, down, None)
        return [result]
    right = analysis.of(other)
    if left.shape[across] == right.shape[down] == 1:
        # One keeps its numbers, the result has the other's channels.
        if right.size > 1:
            analysis.fix(one)
            return [np.moveaxis(right, aside, rank - 1)]
        analysis.fix(other)
        return [np.moveaxis(left, along, rank - 2)]
    if left.shape[along] > 1 or right.shape[aside] > 1:
        return None
    inner = np.moveaxis(left, across, -1), np.moveaxis(right, down, -1)
    analysis.bind(*np.broadcast_arrays(*inner), inversely=True)
    analysis.read(op, 0, 1, down, None)
    analysis.read(op, 1, 0, across, None)
    return [_ones(rank)]


def _ones(rank: int) -> Array:
    return np.full((1,) * rank, FIXED)


def _looked_up(analysis: _Analysis, op: Operation) -> Sequence[Array] | None:
    """A table of embeddings gives its columns any divisors."""
    table = 0 if op.name == "tfl.gather" else 1
    shape, rank = op.operands[table].shape, len(op.results[0].shape or ())
    if tensor_data.constant_of(op.operands[table]) is None:
        return _moved(analysis, op)
    if shape is None or len(shape) != 2 or (table == 0 and tfl.attribute(op, "axis") != 0):
        return None
    result = analysis.new((1,) * (rank - 1) + (shape[1],))
    return [result] if analysis.take(op, table, result.reshape(1, -1)) else None


def _joined(analysis: _Analysis, op: Operation) -> Sequence[Array] | None:
    """Parts keep their channels; constants among them get some."""
    axis, rank = tfl.attribute(op, "axis"), len(op.results[0].shape or ())
    axis %= rank
    parts = []
    for index, value in enumerate(op.operands):
        shape = value.shape or ()
        if tensor_data.constant_of(value) is not None:
            ids = analysis.new([1 if axis_ != rank - 1 else size for axis_, size in enumerate(shape)])
            if not analysis.take(op, index, ids):
                return None
        else:
            ids = analysis.of(value)
        parts.append(ids)
    if all(ids.shape[axis] == 1 for ids in parts):
        # Along the joined axis the parts are of the same channels.
        common = np.broadcast_shapes(*(ids.shape for ids in parts))
        for ids in parts[1:]:
            analysis.bind(*np.broadcast_arrays(np.broadcast_to(parts[0], common), ids))
        return [np.broadcast_to(parts[0], common)]
    lengths = [(value.shape or ())[axis] for value in op.operands]
    if min(lengths) < 0:
        return None
    shapes = [np.broadcast_shapes(*(ids.shape[:axis] + (1,) + ids.shape[axis + 1 :] for ids in parts))] * len(parts)
    whole = [shape[:axis] + (length,) + shape[axis + 1 :] for shape, length in zip(shapes, lengths, strict=True)]
    return [np.concatenate([np.broadcast_to(ids, shape) for ids, shape in zip(parts, whole, strict=True)], axis)]


def _moved(analysis: _Analysis, op: Operation) -> Sequence[Array] | None:
    """Where numbers go is seen by moving the channels themselves."""
    at = questions.MOVES[op.name]
    ids, shape = analysis.of(op.operands[at]), op.operands[at].shape
    others = [constant_ints(value) is not None for index, value in enumerate(op.operands) if index != at]
    results = [result.shape for result in op.results]
    if shape is None or not all(others) or ids.size == 1:
        return None if ids.size > 1 or shape is None else [ids.reshape((1,) * len(dims or ())) for dims in results]
    if op.name == "tfl.transpose":
        return [ids.transpose(constant_ints(op.operands[1]))]
    # The number of rows doesn't matter.
    sizes = [1 if size < 0 and axis == 0 else size for axis, size in enumerate(shape)]
    if min(sizes) < 1:
        return None
    full = np.broadcast_to(ids, sizes)
    if op.name in ("tfl.reshape", "tfl.squeeze", "tfl.expand_dims"):
        dims = [1 if size < 0 and axis == 0 else size for axis, size in enumerate(results[0] or ())]
        if min(dims, default=1) < 1 or np.prod(dims) != full.size or (shape[0] < 0) != ((results[0] or (0,))[0] < 0):
            return None
        return [_compact(full.reshape(dims))]
    if min(shape) < 0:
        return None
    from tfconvert.converter.executor import litert_ops  # few models need it

    inputs = [full if index == at else _array(value) for index, value in enumerate(op.operands)]
    moved: Sequence[Array] = litert_ops.evaluate(op, tuple(inputs))
    is_whole = all(array.shape == dims for array, dims in zip(moved, results, strict=True))
    return [_compact(array) for array in moved] if is_whole else None


def _spread(analysis: _Analysis, op: Operation) -> Sequence[Array] | None:
    """Channels that become pixels of one channel are divided by the same number."""
    ids = analysis.of(op.operands[0])
    if ids.size != ids.shape[-1]:
        return None
    if ids.size == 1:
        return [ids]
    pixels = ids.reshape(tfl.attribute(op, "block_size") ** 2, -1)
    analysis.bind(*np.broadcast_arrays(pixels[:1], pixels))
    return [pixels[0].reshape(1, 1, 1, -1)]


def _array(value: Value) -> Array:
    constant = tensor_data.constant_of(value)
    assert constant is not None
    return tensor_data.to_array(constant)


def _compact(ids: Array) -> Array:
    """Makes axes that channels don't depend on of size 1."""
    for axis, size in enumerate(ids.shape):
        first = ids.take([0], axis)
        if size > 1 and (ids == first).all():
            ids = first
    return ids


_RULES: Mapping[str, Rule] = {
    "elements": _kept,
    "windows": _windows,
    "pads": _padded,
    "axes": _reduced,
    "operands": _together,
    "product": _product,
    "quotient": _quotient,
    "matmul": _matrix_product,
    "joined": _joined,
    "blocks": _spread,
    "rows": _looked_up,
}


def _rule(op: Operation) -> Rule | None:
    """Returns what an op does with channels, `None` if it needs them as they are."""
    if op.name.removeprefix(tfl.PREFIX) in operators.filters():
        return _filtered
    return _RULES.get(_kind(op)) or (_moved if op.name in questions.MOVES else None)


def _labels(count: int, edges: Sequence[tuple[Array, Array, bool]]) -> Array:
    """Returns the class of each channel and of its inverse.

    Node 2n is channel n, and node 2n + 1 its inverse.
    """
    pairs = [*_pairs(edges), (np.zeros(1, np.int64), np.ones(1, np.int64))]  # 1 is its own inverse.
    starts, ends = (np.concatenate(column) for column in zip(*pairs, strict=True))
    found = components(2 * count, starts, ends).reshape(-1, 2)
    found[found[:, 0] == found[:, 1]] = FIXED
    return found


def components(count: int, starts: Array, ends: Array) -> Array:
    """Returns the smallest node that each of `count` nodes is connected to by edges, given their ends."""
    labels = np.arange(count)
    while True:
        before = labels.copy()
        low = np.minimum(before[starts], before[ends])
        np.minimum.at(labels, before[starts], low)
        np.minimum.at(labels, before[ends], low)
        labels = labels[labels]
        if (labels == before).all():
            return labels


def _pairs(edges: Sequence[tuple[Array, Array, bool]]) -> Iterator[tuple[Array, Array]]:
    for one, other, inversely in edges:
        first, second = (array.reshape(-1) for array in np.broadcast_arrays(one, other))
        yield 2 * first, 2 * second + inversely
        yield 2 * first + 1, 2 * second + (not inversely)
