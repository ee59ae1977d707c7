"""The one surface for formulas: whoever can apply an op of TensorFlow to tensors gets operators and functions for it.

A formula is written once, `(x.exp() + (-x).exp()) * 0.5`. What computes it decides what it becomes: ops of `tf`, ops of
StableHLO, or numbers at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.dialects.types import Shape


class Elementwise(ABC):
    """A tensor that elementwise ops are applied to; numbers beside it become scalars of its element type."""

    __slots__ = ()

    @abstractmethod
    def _apply(self, name: str, *operands: Self | float) -> Self:
        """Returns the result of an elementwise op, named as in TensorFlow's registry.

        Args:
            name: The op, `AddV2`.
            operands: The op's operands, this tensor among them; those of a choice begin with the condition.
        """

    @abstractmethod
    def reshape(self, dims: Sequence[int]) -> Self:
        """Returns the elements in another shape, of which one dimension may be -1."""

    @abstractmethod
    def sum(self, axes: Sequence[int], *, keep_dims: bool = False) -> Self:
        """Returns the sums along axes."""

    def __add__(self, other: Self | float) -> Self:
        return self._apply("AddV2", self, other)

    def __radd__(self, other: float) -> Self:
        return self._apply("AddV2", self, other)

    def __sub__(self, other: Self | float) -> Self:
        return self._apply("Sub", self, other)

    def __rsub__(self, other: float) -> Self:
        return self._apply("Sub", other, self)

    def __mul__(self, other: Self | float) -> Self:
        return self._apply("Mul", self, other)

    def __rmul__(self, other: float) -> Self:
        return self._apply("Mul", self, other)

    def __truediv__(self, other: Self | float) -> Self:
        return self._apply("RealDiv", self, other)

    def __rtruediv__(self, other: float) -> Self:
        return self._apply("RealDiv", other, self)

    def __floordiv__(self, other: Self | float) -> Self:
        return self._apply("FloorDiv", self, other)

    def __mod__(self, other: Self | float) -> Self:
        return self._apply("FloorMod", self, other)

    def __abs__(self) -> Self:
        return self._apply("Abs", self)

    def __neg__(self) -> Self:
        return self._apply("Neg", self)

    def __invert__(self) -> Self:
        return self._apply("LogicalNot", self)

    def __and__(self, other: Self) -> Self:
        return self._apply("LogicalAnd", self, other)

    def __or__(self, other: Self) -> Self:
        return self._apply("LogicalOr", self, other)

    def __lt__(self, other: Self | float) -> Self:
        return self._apply("Less", self, other)

    def __le__(self, other: Self | float) -> Self:
        return self._apply("LessEqual", self, other)

    def __gt__(self, other: Self | float) -> Self:
        return self._apply("Greater", self, other)

    def __ge__(self, other: Self | float) -> Self:
        return self._apply("GreaterEqual", self, other)

    def equal(self, other: Self | float) -> Self:
        """Returns where two tensors are equal; `==` compares the objects."""
        return self._apply("Equal", self, other)

    def not_equal(self, other: Self | float) -> Self:
        """Returns where two tensors differ."""
        return self._apply("NotEqual", self, other)

    def where(self, x: Self | float, y: Self | float) -> Self:
        """Returns x where this condition holds, y elsewhere; one of them is a tensor."""
        return self._apply("SelectV2", self, x, y)

    def minimum(self, other: Self | float) -> Self:
        return self._apply("Minimum", self, other)

    def maximum(self, other: Self | float) -> Self:
        return self._apply("Maximum", self, other)

    def clip(self, low: Self | float, high: Self | float) -> Self:
        """Returns the numbers limited to a range; where the bounds are swapped, the lower one."""
        return self.minimum(high).maximum(low)

    def power(self, exponent: Self | float) -> Self:
        return self._apply("Pow", self, exponent)

    def atan2(self, x: Self | float) -> Self:
        """Returns the angle of the point that has this as y."""
        return self._apply("Atan2", self, x)

    def exp(self) -> Self:
        return self._apply("Exp", self)

    def log(self) -> Self:
        return self._apply("Log", self)

    def log1p(self) -> Self:
        return self._apply("Log1p", self)

    def sqrt(self) -> Self:
        return self._apply("Sqrt", self)

    def rsqrt(self) -> Self:
        return self._apply("Rsqrt", self)

    def square(self) -> Self:
        return self._apply("Square", self)

    def sign(self) -> Self:
        return self._apply("Sign", self)

    def floor(self) -> Self:
        return self._apply("Floor", self)

    def ceil(self) -> Self:
        return self._apply("Ceil", self)

    def round(self) -> Self:
        """Returns the nearest whole numbers, even ones of two."""
        return self._apply("Round", self)

    def sin(self) -> Self:
        return self._apply("Sin", self)

    def cos(self) -> Self:
        return self._apply("Cos", self)

    def tanh(self) -> Self:
        return self._apply("Tanh", self)

    def sigmoid(self) -> Self:
        return self._apply("Sigmoid", self)

    def relu(self) -> Self:
        return self._apply("Relu", self)

    def elu(self) -> Self:
        return self._apply("Elu", self)

    def ones_like(self) -> Self:
        return self._apply("OnesLike", self)

    def horner(self, coefficients: Sequence[float]) -> Self:
        """Returns a polynomial by Horner's rule.

        Args:
            coefficients: At least two, that of the highest power first.
        """
        first, second, *others = coefficients
        value = self * first + second
        for coefficient in others:
            value = self * value + coefficient
        return value


PREDICATES = frozenset(
    {"Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "LogicalAnd", "LogicalNot", "LogicalOr", "NotEqual"}
)
"""The elementwise ops whose results are booleans."""


class Tensor(Elementwise):
    """A tensor that any op can be applied to, which decompositions are written with."""

    __slots__ = ()

    @property
    @abstractmethod
    def shape(self) -> Shape | None:
        """The shape, with -1 for dimensions that are not known; `None` for an unknown rank."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """The elements' type."""

    @property
    @abstractmethod
    def constant(self) -> Array | None:
        """The elements of a constant, `None` for other tensors."""

    @abstractmethod
    def op(self, name: str, *operands: Self | Any, results: int = 1, **attributes: Any) -> Any:
        """Returns the result of an op, or its results where there are several.

        Args:
            name: The op's name in TensorFlow's registry.
            operands: Its operands; Python's integers, and lists of them, become constants of `i32`.
            results: How many results it has.
            attributes: Its attributes.
        """

    @abstractmethod
    def of(self, array: Array) -> Self:
        """Returns a constant for the same formula."""

    def produced(self, name: str) -> Sequence[Self] | None:
        """Returns the operands of the op of a name that produced this, `None` if another one did."""
        return None

    @property
    def rank(self) -> int:
        """How many dimensions it has, where that is known."""
        assert self.shape is not None, "a decomposition that needs ranks requires them"
        return len(self.shape)

    def cast(self, dtype: Any) -> Self:
        """Returns the elements as others of a dtype."""
        kept = self.dtype == np.dtype(dtype)
        return self if kept else self.op("Cast", self, DstT=np.dtype(dtype))

    def wide(self) -> Self:
        """Returns floats of 16 bits as those of 32, in which TensorFlow computes them; all else as it is."""
        return self.cast(np.float32) if self.dtype.itemsize == 2 and self.dtype.kind not in "iu" else self

    def conj(self) -> Self:
        """Returns the conjugates of complex numbers; real ones as they are."""
        return self.op("Conj", self) if self.dtype.kind == "c" else self

    def reduce(self, name: str, axes: Sequence[int], *, keep_dims: bool = False) -> Self:
        """Returns a reduction, `Sum`, along axes."""
        return self.op(name, self, list(axes), keep_dims=keep_dims)  # type: ignore[no-any-return]

    def sum(self, axes: Sequence[int], *, keep_dims: bool = False) -> Self:
        return self.reduce("Sum", axes, keep_dims=keep_dims)

    def mean(self, axes: Sequence[int], *, keep_dims: bool = False) -> Self:
        return self.reduce("Mean", axes, keep_dims=keep_dims)

    def split(self, axis: int, count: int) -> Sequence[Self]:
        """Returns equal parts along an axis."""
        return self.op("Split", axis, self, results=count, num_split=count)  # type: ignore[no-any-return]

    def concat(self, others: Sequence[Self], axis: int) -> Self:
        """Returns this and other tensors, one behind the other along an axis."""
        return self if not others else self.op("ConcatV2", self, *others, axis)

    def reshape(self, dims: Sequence[int]) -> Self:
        return self.op("Reshape", self, list(dims))  # type: ignore[no-any-return]

    def expand_dims(self, axis: int) -> Self:
        return self.op("ExpandDims", self, axis)  # type: ignore[no-any-return]

    def transpose(self, order: Sequence[int]) -> Self:
        return self if list(order) == sorted(order) else self.op("Transpose", self, list(order))

    def gather(self, indices: Self | int | Sequence[int], axis: int = 0) -> Self:
        """Returns the elements at indices along an axis."""
        return self.op("GatherV2", self, indices, axis)  # type: ignore[no-any-return]

    def placed(self, starts: Sequence[int], sizes: Sequence[int]) -> Self:
        """Returns a tensor of zeros that has this one's elements from some indices on; those outside are dropped.

        Args:
            starts: The index of the first element along each axis, which may be negative.
            sizes: The sizes of the result; -1 for an axis that stays as it is, whose size may be unknown.
        """
        assert self.shape is not None, "a decomposition that needs shapes requires them"
        begin, length, amounts = [], [], []
        for dim, start, size in zip(self.shape, starts, sizes, strict=True):
            first = 0 if size < 0 else min(max(-start, 0), dim)
            count = dim if size < 0 else max(min(dim, size - start) - first, 0)
            before = 0 if size < 0 else min(max(start, 0), size)
            begin.append(first)
            length.append(count)
            amounts.append((before, 0 if size < 0 else size - before - count))
        cut = self if tuple(length) == tuple(self.shape) else self.op("Slice", self, begin, length)
        return cut.op("Pad", cut, np.array(amounts, np.int32)) if any(map(any, amounts)) else cut

    def size(self, axis: int) -> Self | int:
        """Returns the size of a dimension: a number where it is known, else a scalar of `i32`."""
        known = -1 if self.shape is None else self.shape[axis]
        if known >= 0:
            return known
        return self.op("StridedSlice", self.op("Shape", self), [axis], [axis + 1], [1], shrink_axis_mask=1)  # type: ignore[no-any-return]

    def sizes(self) -> Self | Sequence[int]:
        """Returns the shape: numbers where they are known, else a vector of `i32`."""
        known = self.shape
        return known if known is not None and -1 not in known else self.op("Shape", self)

    def numbers(self, axis: int) -> Self:
        """Returns the numbers from zero up to the size of a dimension, a vector of `i32`."""
        return self.op("Range", 0, self.size(axis), 1)  # type: ignore[no-any-return]


def sizes_of(vector: Tensor, inferred: Shape | None) -> Shape:
    """Returns the sizes that an operand of a formula has, or those of the result's type if it is no constant."""
    found = vector.constant
    sizes = inferred if found is None else tuple(found.reshape(-1).tolist())
    assert sizes is not None, "a decomposition that needs sizes requires them"
    return sizes


def moved(x: Tensor, axis: int, start: int, size: int) -> Tensor:
    """Returns zeros of a size along one axis that have a tensor's elements from an index on."""
    starts, sizes = [0] * x.rank, [-1] * x.rank
    starts[axis], sizes[axis] = start, size
    return x.placed(starts, sizes)


def in_turn(parts: Sequence[Tensor | None], axis: int, count: int) -> Tensor:
    """Returns tensors whose elements take turns along an axis.

    Args:
        parts: The tensors, `None` for zeros.
        axis: The axis.
        count: How many there are, zeros behind the given ones included.
    """
    given = next(part for part in parts if part is not None)
    if count == 1:
        return given
    filled = [given.op("ZerosLike", given) if part is None else part for part in parts]
    joined = filled[0].op("Pack", *filled, axis=axis + 1, N=len(filled))
    joined = moved(joined, axis + 1, 0, count)
    shape = list(joined.shape or ())
    return joined.reshape([*shape[:axis], shape[axis] * count, *shape[axis + 2 :]])
