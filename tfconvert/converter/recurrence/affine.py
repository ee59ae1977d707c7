"""Sums of products with weights, which the gates of a cell consist of, in a form common to all frameworks.

    z = [x, h] @ W + b          becomes, for the columns of one gate,
    gate = split(z)[k] + 1          x @ W[:n, k*u:(k+1)*u] + h @ W[n:, k*u:(k+1)*u] + b[k*u:(k+1)*u] + 1

Products with the weights of all gates or of one gate, with or without slices of columns, and with biases added
anywhere, all get this form. Its weights are parts of the graph's values; nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate

from tfconvert.converter.ir.constants import constant_array, constant_int
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

# Maximum nesting of sums of a cell.
_DEPTH = 16

Range = tuple[int, int]
"""A first index and a number of indices."""


@dataclass(frozen=True, slots=True)
class Weights:
    """A part of a matrix that multiplies a vector.

    Attributes:
        value: The matrix.
        is_transposed: Whether its rows, not its columns, are the outputs.
        inputs: The range of inputs.
        outputs: The range of outputs.
    """

    value: Value
    is_transposed: bool
    inputs: Range
    outputs: Range


@dataclass(frozen=True, slots=True)
class Vector:
    """A part of a vector that is added, or that multiplies another one element by element.

    Attributes:
        value: A vector, a matrix of one row, or a scalar that is broadcast.
        elements: The range of elements; all elements of a scalar are equal.
    """

    value: Value
    elements: Range

    @property
    def is_scalar(self) -> bool:
        """Whether one number is broadcast to all elements."""
        return _length(self.value) == 1


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum of products with weights, of scaled vectors and of biases.

    Attributes:
        width: Number of its elements in each row of the batch.
        products: Values that are multiplied by a matrix, with the matrix.
        scaled: Values that are multiplied by a vector, element by element, with the vector.
        biases: Vectors that are added.
    """

    width: int
    products: tuple[tuple[Value, Weights], ...] = ()
    scaled: tuple[tuple[Value, Vector], ...] = ()
    biases: tuple[Vector, ...] = ()

    def __add__(self, other: Sum) -> Sum:
        return Sum(self.width, self.products + other.products, self.scaled + other.scaled, self.biases + other.biases)

    def columns(self, begin: int, size: int) -> Sum:
        """Returns the sum restricted to some columns."""
        return Sum(
            size,
            tuple((leaf, replace(by, outputs=_within(by.outputs, begin, size))) for leaf, by in self.products),
            (),
            tuple(replace(one, elements=_within(one.elements, begin, size)) for one in self.biases),
        )

    @property
    def leaves(self) -> tuple[Value, ...]:
        """The values that are multiplied by matrices, in order of appearance."""
        return tuple(dict.fromkeys(leaf for leaf, _ in self.products))


class Sums:
    """The sums of a function.

    Args:
        is_fixed: Returns whether a value is equal in all steps, so that it can be a weight.
    """

    __slots__ = ("_known", "_rules", "is_fixed")

    def __init__(self, is_fixed: Callable[[Value], bool]) -> None:
        self.is_fixed = is_fixed
        self._known: dict[Value, Sum | None] = {}
        self._rules: Mapping[str, Callable[[OpResult, int], Sum | None]] = {
            "tf.Add": self._addition,
            "tf.AddV2": self._addition,
            "tf.BiasAdd": self._addition,
            "tf.MatMul": self._product,
            "tf.Mul": self._scaling,
            "tf.Slice": self._slice,
            "tf.Split": self._split,
            "tf.SplitV": self._split_sizes,
            "tf.StridedSlice": self._strided_slice,
        }

    def of(self, value: Value, depth: int = 0) -> Sum | None:
        """Returns the terms of a sum, `None` if the value isn't a sum of products."""
        if value not in self._known:
            self._known[value] = self._computed(value, depth + 1) if isinstance(value, OpResult) else None
        return self._known[value]

    def _computed(self, value: OpResult, depth: int) -> Sum | None:
        rule = self._rules.get(value.op.name)
        return rule(value, depth) if rule is not None and depth <= _DEPTH and width(value) else None

    def _product(self, value: OpResult, depth: int) -> Sum | None:
        left, matrix = value.op.operands
        rows = _ends(left)
        shape = matrix.shape or ()
        is_matrix = len(shape) == 2 and types.is_static(shape)
        if tf.get(value.op, "transpose_a") or rows is None or not self.is_fixed(matrix) or not is_matrix:
            return None
        is_transposed = bool(tf.get(value.op, "transpose_b"))
        inputs, outputs = shape[::-1] if is_transposed else shape
        if rows[-1][1] != inputs:
            return None
        columns = (0, outputs)
        starts = (0, *(end for _, end in rows))
        return Sum(
            outputs,
            tuple(
                (leaf, Weights(matrix, is_transposed, (begin, end - begin), columns))
                for (leaf, end), begin in zip(rows, starts, strict=False)
            ),
        )

    def _addition(self, value: OpResult, depth: int) -> Sum | None:
        found = [self._term(operand, width(value), depth) for operand in value.op.operands]
        if None in found or all(term is not None and not term.products and not term.scaled for term in found):
            return None
        return found[0] + found[1] if found[0] is not None and found[1] is not None else None

    def _term(self, value: Value, wanted: int, depth: int) -> Sum | None:
        """Returns one of two addends as a sum, which may be a bias alone."""
        if self.is_fixed(value):
            if _length(value) in (1, wanted):
                return Sum(wanted, biases=(Vector(value, (0, wanted)),))
            # The first step's products of zeros with weights have been folded already.
            zeros = constant_array(value)
            return Sum(wanted) if zeros is not None and not zeros.any() and width(value) == wanted else None
        known = self.of(_as_row(value), depth)
        return known if known is not None and known.width == wanted else None

    def _scaling(self, value: OpResult, depth: int) -> Sum | None:
        wanted = width(value)
        for leaf, by in (value.op.operands, reversed(value.op.operands)):
            if self.is_fixed(by) and not self.is_fixed(leaf) and _length(by) == width(leaf) == wanted:
                return Sum(wanted, scaled=((leaf, Vector(by, (0, wanted))),))
        return None

    def _split(self, value: OpResult, depth: int) -> Sum | None:
        axis, whole = value.op.operands
        return self._columns(whole, axis, [width(result) for result in value.op.results], value.index, depth)

    def _split_sizes(self, value: OpResult, depth: int) -> Sum | None:
        whole, _, axis = value.op.operands
        return self._columns(whole, axis, [width(result) for result in value.op.results], value.index, depth)

    def _columns(self, whole: Value, axis: Value, sizes: list[int], index: int, depth: int) -> Sum | None:
        ends = list(accumulate(sizes))
        if constant_int(axis) not in (1, -1) or 0 in sizes or ends[-1] != width(whole):
            return None
        return self._part(whole, ends[index] - sizes[index], sizes[index], depth)

    def _slice(self, value: OpResult, depth: int) -> Sum | None:
        whole, begins, sizes = value.op.operands
        begin, size = constant_array(begins), constant_array(sizes)
        if begin is None or size is None or begin[0] != 0 or not _keeps_rows(size[0], whole):
            return None
        return self._part(whole, int(begin[1]), width(value), depth)

    def _strided_slice(self, value: OpResult, depth: int) -> Sum | None:
        bounds = columns_taken(value.op)
        return None if bounds is None else self._part(value.op.operands[0], *bounds, depth)

    def _part(self, whole: Value, begin: int, size: int, depth: int) -> Sum | None:
        known = self.of(whole, depth)
        if known is None or known.scaled or begin + size > known.width:
            return None
        return known.columns(begin, size)


def width(value: Value) -> int:
    """Returns the number of columns of a matrix, or 0 if it is unknown or the value isn't a matrix."""
    shape = value.shape
    return max(shape[1], 0) if shape is not None and len(shape) == 2 else 0


def columns_taken(op: Operation) -> Range | None:
    """Returns the columns that a `StridedSlice` selects from a matrix; `None` for other slices."""
    whole, *bounds = op.operands
    begin, end, strides = map(constant_array, bounds)
    begins, ends = int(tf.get(op, "begin_mask", 0)), int(tf.get(op, "end_mask", 0))
    others = [tf.get(op, name, 0) for name in ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask")]
    if begin is None or end is None or strides is None or any(others) or strides.tolist() != [1, 1]:
        return None
    if not (begins & 1 or begin[0] == 0) or not ends & 1:
        return None
    first, behind, _ = slice(None if begins & 2 else int(begin[1]), None if ends & 2 else int(end[1])).indices(
        width(whole)
    )
    return (first, behind - first) if behind > first else None


def _keeps_rows(size: int, whole: Value) -> bool:
    shape = whole.shape or (-1,)
    return size == -1 or size == shape[0]


def _ends(value: Value) -> list[tuple[Value, int]] | None:
    """Returns the matrices that a value concatenates along columns, each with its end column."""
    parts = [value]
    if isinstance(value, OpResult) and value.op.name == "tf.ConcatV2":
        *parts, axis = value.op.operands
        if constant_int(axis) not in (1, -1):
            return None
    widths = [width(part) for part in parts]
    return None if 0 in widths else list(zip(parts, accumulate(widths), strict=True))


def _as_row(value: Value) -> Value:
    """Returns the source of a vector that was a matrix of one row, as Keras adds biases, or the value itself."""
    if isinstance(value, OpResult) and value.op.name in ("tf.Reshape", "tf.Squeeze"):
        row = value.op.operands[0]
        shape = row.shape or ()
        if len(shape) == 2 and shape[0] == 1 and value.shape == shape[1:]:
            return row
    return value


def _length(value: Value) -> int:
    """Returns the number of elements of a scalar, a vector or a matrix of one row, or 0 for other values."""
    shape = value.shape
    if shape is None or not types.is_static(shape) or any(dim != 1 for dim in shape[:-1]) or len(shape) > 2:
        return 0
    return shape[-1] if shape else 1


def _within(whole: Range, begin: int, size: int) -> Range:
    return whole[0] + begin, size
