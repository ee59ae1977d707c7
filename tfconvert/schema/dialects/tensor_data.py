"""Constants as handles: the source of a tensor's bytes, not the bytes themselves.

A `TensorData` attribute is a tensor type and a *source*. A source is a slice of a memory-mapped file, a buffer in
memory (`sources`), or a deferred expression over other handles (`expressions`: a transposed filter, a filter times a
folded scale). Handles are compared by the identity of their sources, so no pass ever reads a weight by accident; the
exporter reads each once, block by block, while it streams it out. Constants of at most `SMALL` bytes are dense
attributes, compared by value, since passes read them all the time.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import Any, TypeGuard

import numpy as np

from tfconvert.schema.dialects import boxes, dense_text, expressions, sources, types
from tfconvert.schema.ir.attribute import Attribute, AttributePrinter, keep
from tfconvert.schema.ir.types import FloatType, IndexType, IntegerType, TensorType
from tfconvert.schema.ir.values import OpResult, Value
from tfconvert.schema.limits import budget

Array = boxes.Array
Source = sources.DataSource
BufferSource = sources.BufferSource
SplatSource = expressions.SplatSource
Deferred = expressions.Deferred

SMALL = 1024
"""Maximum size in bytes of constants that are dense attributes."""

MAX_READ_BYTES = 64 * 1024
"""Maximum size in bytes of constants that passes may read, and compute from others."""

MAX_FOLDED_BYTES = 1 << 20
"""Maximum size in bytes of constants that are larger than those they are computed from, such as masks and positions."""

ELIDED = "dense_resource<__elided__>"
"""The text that replaces an elided constant."""

CONSTANT_OPS = frozenset({"tf.Const", "tfl.pseudo_const", "tfl.pseudo_qconst", "arith.constant"})
"""The ops that make constants; each holds its value in the property `value`."""

# Those whose property is the value; a quantised constant holds the integers that represent its value.
_KNOWN = CONSTANT_OPS - {"tfl.pseudo_qconst"}


class DenseElementsAttr(Attribute):
    """`dense<[1, 2]> : tensor<2xi32>`: a small tensor of numbers, compared by value."""

    __slots__ = ("data", "type")

    type: TensorType  # The (static) tensor type.
    data: bytes  # The elements in row-major order, little endian.

    @classmethod
    def get(cls, type: TensorType, data: bytes) -> DenseElementsAttr:
        # The most common attribute of a graph; usually it is new, so there is no search before it is made.
        made = DenseElementsAttr()
        made.type = type
        made.data = data
        return keep((DenseElementsAttr, (type, data)), made)

    @property
    def shape(self) -> types.Shape:
        return self.type.shape

    def print(self, printer: AttributePrinter) -> None:
        print_dense(printer, to_array(self), self.type)


class DenseResourceAttr(Attribute):
    """`dense_resource<name> : type`: a tensor whose value is at the end of the text, or left out."""

    __slots__ = ("handle", "type")

    handle: str
    type: Attribute

    @classmethod
    def get(cls, handle: str, type: Attribute) -> DenseResourceAttr:
        return cls.intern(handle, type)

    def print(self, printer: AttributePrinter) -> None:
        printer.write(f"dense_resource<{self.handle}> : ")
        printer.attribute(self.type)


def print_dense(printer: AttributePrinter, value: Array, type: TensorType) -> None:
    """Prints `dense<...> : type`."""
    printer.write("dense<")
    for piece in dense_text.literal(value, type.element_type):
        printer.write(piece)
    printer.write("> : ")
    printer.attribute(type)


# A table of embeddings has more rows than a multiple of its columns.
_TABLE_ROWS = 4

# The number of elements that are compared before all are.
_PROBE = 64


class TensorData(Attribute):
    """The handle of a constant: a static tensor type and a source.

    A small one prints its value, any other is elided, as `dense_resource<__elided__> : type`: the IR's text never
    holds large weights unless that is required (`printing.IRPrinter`).
    """

    __slots__ = ("source", "type")

    type: TensorType  # The (static) tensor type.
    source: Source  # Where the bytes come from.

    @classmethod
    def get(cls, type: TensorType, source: Source) -> TensorData:
        """Returns the handle of a source, which is compared by identity."""
        return cls.intern(type, source)

    @property
    def shape(self) -> types.Shape:
        """The (static) shape."""
        return self.type.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return types.numpy_dtype(self.type.element_type)

    @property
    def nbytes(self) -> int:
        """Size of the value in bytes; 0 for strings."""
        dtype = self.dtype
        return 0 if dtype.kind == "O" else math.prod(self.shape) * dtype.itemsize

    def array(self) -> Array:
        """Returns the value as a C-contiguous array that must not be written to."""
        return self.source.array(self.dtype, self.shape)

    def part(self, box: boxes.Box) -> Array:
        """Returns a box of the value as an array that must not be written to."""
        return self.source.part(self.dtype, self.shape, box)

    def blocks(self) -> Iterator[Array]:
        """Yields the elements in row-major order as C-contiguous arrays, which must not be kept or written to."""
        return self.source.blocks(self.dtype, self.shape)

    def print(self, printer: AttributePrinter) -> None:
        if self._is_small():
            print_dense(printer, self.array(), self.type)
        else:
            printer.write(f"{ELIDED} : ")
            printer.attribute(self.type)

    def _is_small(self) -> bool:
        """Returns whether the value is in memory, can be written, and is short."""
        if not isinstance(self.source, BufferSource) or not dense_text.can_write(self.type.element_type):
            return False
        if self.dtype == object:
            return sum(map(len, self.source.value.ravel())) + 8 * math.prod(self.shape) <= SMALL
        return self.nbytes <= SMALL


Constant = DenseElementsAttr | TensorData
"""Every attribute that holds a tensor's value."""


def is_constant(attribute: Attribute | None) -> TypeGuard[Constant]:
    """Returns whether an attribute holds a tensor's value."""
    return type(attribute) is DenseElementsAttr or type(attribute) is TensorData


def is_small(constant: Constant) -> bool:
    """Returns whether a constant is small enough for passes to read; a string counts as a pointer."""
    if isinstance(constant, DenseElementsAttr):
        return True
    return math.prod(constant.shape) * constant.dtype.itemsize <= MAX_READ_BYTES


# Element types whose values are equal if their bytes are.
_PLAIN = (IntegerType, FloatType, IndexType)


def of_bytes(data: bytes, row: types.ElementType, shape: types.Shape) -> Constant:
    """Returns the attribute of a value in memory.

    Args:
        data: The elements in row-major order, little endian.
        row: The element type; one of a fixed width.
        shape: The (static) shape.
    """
    if len(data) <= SMALL and isinstance(row.mlir, _PLAIN) and row.dtype.kind in "fiub":
        tensor_type = types.tensor(row.mlir, shape)
        assert isinstance(tensor_type, TensorType)
        return DenseElementsAttr.get(tensor_type, data)
    return of_array(np.frombuffer(data, row.dtype).reshape(shape), row.mlir)


def of_array(array: Array, element: Attribute | None = None) -> Constant:
    """Returns the attribute of a value in memory: dense where small, else a handle that keeps the array.

    Args:
        array: The value; `object` arrays hold bytes (strings). A broadcast of one element stays a view.
        element: The MLIR element type if the dtype doesn't determine it (quantised types).
    """
    element = element or types.from_dtype(array.dtype).mlir
    tensor_type = types.tensor(element, array.shape)
    assert isinstance(tensor_type, TensorType)
    if array.nbytes <= SMALL and array.dtype.kind in "fiub" and isinstance(element, _PLAIN):
        return DenseElementsAttr.get(tensor_type, array.tobytes())
    if array.nbytes > MAX_READ_BYTES and expressions.is_splat(array):
        return TensorData.get(tensor_type, SplatSource(array[(slice(0, 1),) * array.ndim].reshape(())))
    return TensorData.get(tensor_type, BufferSource(np.ascontiguousarray(array).reshape(array.shape)))


def to_array(constant: Attribute) -> Array:
    """Returns a constant's value; a large one is mapped or computed now. Not to be written to.

    Raises:
        TypeError: The attribute holds no tensor.
    """
    if isinstance(constant, TensorData):
        return constant.array()
    if isinstance(constant, DenseElementsAttr):
        tensor_type = constant.type
        dtype = types.numpy_dtype(tensor_type.element_type)
        return np.frombuffer(constant.data, dtype).reshape(tensor_type.shape)
    raise TypeError(f"{constant} is not a tensor value")


def constant_of(value: Value) -> Constant | None:
    """Returns a value that is known at compile time, `None` if it is not, or is quantised."""
    if type(value) is not OpResult or value.op.name not in _KNOWN:
        return None
    constant = value.op.properties.get("value")
    # `is_constant`, without a call: this is one of the most common questions.
    return constant if type(constant) is DenseElementsAttr or type(constant) is TensorData else None


def as_handle(constant: Constant) -> TensorData:
    """Returns a constant as a handle, so that a deferred expression can use it."""
    if isinstance(constant, TensorData):
        return constant
    assert isinstance(constant.type, TensorType)
    return TensorData.get(constant.type, BufferSource(to_array(constant)))


def is_table(constant: TensorData) -> bool:
    """Returns whether it may be a table of embeddings: a matrix with many more rows than columns."""
    return len(constant.shape) == 2 and constant.shape[0] > _TABLE_ROWS * constant.shape[1]


def probe(constant: TensorData) -> bytes:
    """Returns the bytes of the first elements, which are read without the others if that is possible."""
    size, found = _PROBE * constant.dtype.itemsize, b""
    for _, values in constant.source.pieces(constant.dtype, constant.shape, size):
        found += values.tobytes()
        if len(found) >= size:
            break
    return found[:size]


def are_equal(first: TensorData, second: TensorData) -> bool:
    """Returns whether two values have the same bytes; they are read until they differ."""
    if first.nbytes != second.nbytes:
        return False
    blocks = [constant.blocks() for constant in (first, second)]
    pieces = [np.zeros(0, np.uint8)] * 2
    left = first.nbytes
    while left:
        pieces = [
            piece if piece.size else next(source).reshape(-1).view(np.uint8)
            for piece, source in zip(pieces, blocks, strict=True)
        ]
        length = min(piece.size for piece in pieces)
        if not np.array_equal(pieces[0][:length], pieces[1][:length]):
            return False
        pieces = [piece[length:] for piece in pieces]
        left -= length
    return True


def defer(
    function: str,
    arguments: tuple[Constant, ...],
    shape: types.Shape,
    parameter: Hashable = None,
    element: Attribute | None = None,
) -> Constant:
    """Returns the constant `function(*arguments)`, computed now if it is small or nested deep, else when read.

    Args:
        function: A key of `expressions.EXPRESSIONS`.
        arguments: Constants; the first one's element type is the result's unless `element` says otherwise.
        shape: The result's shape.
        parameter: The function's parameter.
        element: The result's element type.
    """
    if function == "transpose" and isinstance(parameter, tuple) and isinstance(arguments[0], DenseElementsAttr):
        # The most common one: a small constant is transposed at once, without an expression.
        moved = to_array(arguments[0]).transpose(parameter)
        budget().take_bytes(moved.nbytes, "computing a constant")
        return of_array(moved, arguments[0].type.element_type)
    if function == "reshape" and (kept := _reshaped(arguments[0], shape)) is not None:
        return kept
    handles = tuple(map(as_handle, arguments))
    tensor_type = types.tensor(element or handles[0].type.element_type, shape)
    assert isinstance(tensor_type, TensorType)
    source = Deferred(function, handles, parameter)
    result = TensorData.get(tensor_type, source)
    if result.nbytes > MAX_READ_BYTES and (splat := expressions.result(source, result.dtype)) is not None:
        return TensorData.get(tensor_type, splat)
    if result.nbytes > SMALL and not source.is_costly:
        return result
    budget().take_bytes(result.nbytes, "computing a constant")
    return of_array(np.asarray(result.array()), tensor_type.element_type)


def _reshaped(constant: Constant, shape: types.Shape) -> Constant | None:
    """Returns a constant in memory in another shape, which shares its elements; `None` for others."""
    tensor_type = types.tensor(constant.type.element_type, shape)
    assert isinstance(tensor_type, TensorType)
    if isinstance(constant, DenseElementsAttr):
        return DenseElementsAttr.get(tensor_type, constant.data)
    if isinstance(constant.source, BufferSource) and constant.dtype.kind != "O":
        return TensorData.get(tensor_type, BufferSource(constant.source.value.reshape(shape)))
    return None
