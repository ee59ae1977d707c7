"""Constants as handles: where a tensor's bytes are, not the bytes themselves.

A `TensorData` attribute is a tensor type and a *source*. A source is a slice of a memory-mapped file, a buffer in
memory, or a deferred expression over other handles (a transposed filter, a filter times a folded scale). Handles are
compared by the identity of their sources, so no pass ever reads a weight by accident; the exporter reads each once,
while it streams it out. Constants of at most `SMALL` bytes are dense attributes, compared by value, since passes read
them all the time.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeGuard

import google_crc32c
import numpy as np

from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import dense_text, types
from tfconvert.schema.ir.attribute import Attribute, AttributePrinter
from tfconvert.schema.ir.types import FloatType, IntegerType, TensorType
from tfconvert.schema.ir.values import OpResult, Value

Array = np.ndarray[Any, np.dtype[Any]]

SMALL = 1024
"""Constants up to this many bytes are dense attributes."""

MAX_READ_BYTES = 64 * 1024
"""Constants up to this many bytes may be read to see what they hold, and be made of others that are."""

ELIDED = "dense_resource<__elided__>"
"""What stands in a text for a constant that was left out."""

CONSTANT_OPS = frozenset({"tf.Const", "tfl.pseudo_const", "tfl.pseudo_qconst", "arith.constant"})
"""The ops that make constants; each holds its value in the property `value`."""

_KNOWN = CONSTANT_OPS - {"tfl.pseudo_qconst"}
"""Those whose property is the value; a quantised constant holds the integers that stand for its value."""

MAX_DEPTH = 16
"""A deferred expression deeper than this is computed at once, so that reading one never recurses far."""


class MappedFile:
    """A read-only file whose pages are mapped on first use and can be given back."""

    __slots__ = ("_map", "path", "size")

    def __init__(self, path: str) -> None:
        self.path = path
        self.size = Path(path).stat().st_size
        self._map: mmap.mmap | None = None

    def view(self, offset: int, length: int) -> memoryview:
        """Returns `length` bytes from `offset`, without a copy."""
        if self._map is None:
            with Path(self.path).open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return memoryview(self._map)[offset : offset + length]

    def release(self, offset: int, length: int) -> None:
        """Gives the pages wholly inside a range back to the system; they are read anew when needed."""
        start = -(-offset // mmap.PAGESIZE) * mmap.PAGESIZE
        length = (offset + length - start) // mmap.PAGESIZE * mmap.PAGESIZE
        if self._map is not None and length > 0:
            self._map.madvise(mmap.MADV_DONTNEED, start, length)


class Source(Protocol, Hashable):
    """Where the bytes of a constant come from."""

    def array(self, dtype: np.dtype[Any], shape: types.Shape) -> Array:
        """Returns the value, C-contiguous, without a copy where possible; not to be written to."""

    def release(self) -> None:
        """Gives memory back that can be had again."""

    def fingerprint(self) -> Hashable:
        """Returns a key that equal sources share; whoever takes sources of one key for equal compares their bytes."""


@dataclass(eq=False, slots=True)
class FileSlice:
    """Bytes of a memory-mapped file, checked against a checksum when they are first read.

    Attributes:
        file: The mapped file.
        offset: First byte.
        length: Number of bytes.
        crc32c: Unmasked CRC-32C of the bytes, `None` if the format has none.
        name: What the slice is, for error messages: a checkpoint key.
    """

    file: MappedFile
    offset: int
    length: int
    crc32c: int | None = None
    name: str = ""
    _checked: bool = False

    def array(self, dtype: np.dtype[Any], shape: types.Shape) -> Array:
        """Returns a view of the file.

        Raises:
            ConversionError: The bytes don't have the checksum that the file's index promises (`bad-checksum`).
        """
        if self.length == 0:
            return np.zeros(shape, dtype)
        view = self.file.view(self.offset, self.length)
        if not self._checked:
            if self.crc32c is not None and google_crc32c.value(np.frombuffer(view, np.uint8)) != self.crc32c:
                raise error(
                    "bad-checksum",
                    f"the data of {self.name!r} in {self.file.path} is damaged: its CRC-32C is not the index's",
                    hint="copy or download the model again",
                )
            self._checked = True
        return np.frombuffer(view, dtype).reshape(shape)

    def release(self) -> None:
        """Gives the mapped pages back."""
        self.file.release(self.offset, self.length)

    def fingerprint(self) -> Hashable:
        """Returns the checksum and length where known, else the place."""
        if self.crc32c is not None:
            return ("crc", self.crc32c, self.length)
        return ("file", id(self.file), self.offset, self.length)


@dataclass(eq=False, slots=True)
class BufferSource:
    """A value in memory."""

    value: Array

    def array(self, dtype: np.dtype[Any], shape: types.Shape) -> Array:
        """Returns the buffer itself."""
        return self.value.view(dtype).reshape(shape) if self.value.dtype != object else self.value.reshape(shape)

    def release(self) -> None:
        """Does nothing: the buffer is the only copy."""

    def fingerprint(self) -> Hashable:
        """Returns a checksum of the contents and their length."""
        if self.value.dtype == object:
            return ("strings", tuple(self.value.ravel()))
        data = np.ascontiguousarray(self.value)
        return ("crc", google_crc32c.value(data.reshape(-1).view(np.uint8)), data.nbytes)


_BLOCK = 16
"""Rows that a transposition moves at once: a cache line of `f32`, so that each is read and written once."""

_LARGE = 1 << 17
"""From this size in bytes on, blocks make a transposition faster."""


def _transpose(args: list[Array], permutation: Any, out: Array | None) -> Array:
    """Returns a transposed copy; one that swaps leading with trailing axes is a matrix' and goes in blocks."""
    array = args[0]
    split = permutation[0] if permutation else 0
    rank = len(permutation)
    if array.nbytes < _LARGE or tuple(permutation) != (*range(split, rank), *range(split)):
        return array.transpose(permutation).copy()
    matrix = array.reshape(math.prod(array.shape[:split]), -1)
    result = np.empty(matrix.shape[::-1], array.dtype)
    for row in range(0, len(matrix), _BLOCK):
        result[:, row : row + _BLOCK] = matrix[row : row + _BLOCK].T
    return result.reshape(array.shape[split:] + array.shape[:split])


def _reshape(args: list[Array], shape: Any, out: Array | None) -> Array:
    return args[0].reshape(shape)


def _cast(args: list[Array], dtype: Any, out: Array | None) -> Array:
    return args[0].astype(dtype)


def _reverse(args: list[Array], axes: Any, out: Array | None) -> Array:
    return np.flip(args[0], axes)


def _pad(args: list[Array], pads: Any, out: Array | None) -> Array:
    return np.pad(args[0], pads)


def _concatenate(args: list[Array], axis: Any, out: Array | None) -> Array:
    return np.concatenate(args, axis)


def _place(args: list[Array], parameter: Any, out: Array | None) -> Array:
    """Puts the rows of all arguments but the last where that says, one number a row."""
    *tables, places = args
    result = np.empty((places.size, *tables[0].shape[1:]), tables[0].dtype)
    start = 0
    for table in tables:
        result[places[start : start + len(table)]] = table
        start += len(table)
    return result


def _elementwise(function: np.ufunc) -> Expression:
    def compute(args: list[Array], parameter: Any, out: Array | None) -> Array:
        return np.asarray(function(*args, out=out))

    return compute


Expression = Callable[[list[Array], Any, Array | None], Array]

EXPRESSIONS: Mapping[str, Expression] = {
    "transpose": _transpose,
    "reshape": _reshape,
    "cast": _cast,
    "reverse": _reverse,
    "pad": _pad,
    "concat": _concatenate,
    "place": _place,
    "mul": _elementwise(np.multiply),
    "add": _elementwise(np.add),
    "sub": _elementwise(np.subtract),
    "div": _elementwise(np.divide),
}
"""What a deferred expression can compute.

Name -> function of the argument arrays, one hashable parameter, and an array that may be overwritten with the result.
"""

_FRESH = frozenset({"transpose", "place", "mul", "add", "sub", "div"})
"""Expressions whose value is no view of something else."""


@dataclass(eq=False, slots=True)
class Deferred:
    """A value computed from other handles each time it is read; nothing is kept.

    Attributes:
        function: A key of `EXPRESSIONS`.
        arguments: The handles it is computed from.
        parameter: The function's parameter: a permutation, a shape, a dtype, ...
    """

    function: str
    arguments: tuple[TensorData, ...]
    parameter: Hashable = None
    depth: int = field(init=False)

    def __post_init__(self) -> None:
        self.depth = 1 + max(map(_depth, self.arguments), default=0)

    def array(self, dtype: np.dtype[Any], shape: types.Shape) -> Array:
        """Computes the value."""
        arrays = [argument.array() for argument in self.arguments]
        with np.errstate(all="ignore"):
            value = EXPRESSIONS[self.function](arrays, self.parameter, self._overwritable(arrays, dtype, shape))
        return np.ascontiguousarray(value.astype(dtype, copy=False)).reshape(shape)

    def _overwritable(self, arrays: list[Array], dtype: np.dtype[Any], shape: types.Shape) -> Array | None:
        """Returns the first argument if it was computed for this value alone and has its form."""
        source = self.arguments[0].source
        if not isinstance(source, Deferred) or source.function not in _FRESH:
            return None
        return arrays[0] if arrays[0].shape == shape and arrays[0].dtype == dtype else None

    def release(self) -> None:
        """Gives back what the arguments mapped."""
        for argument in self.arguments:
            argument.source.release()

    def fingerprint(self) -> Hashable:
        """Returns the expression with its arguments' fingerprints and types."""
        arguments = tuple(
            (argument.type.element_type, argument.shape, argument.source.fingerprint()) for argument in self.arguments
        )
        return (self.function, arguments, self.parameter)


def _depth(data: TensorData) -> int:
    return data.source.depth if isinstance(data.source, Deferred) else 0


class DenseElementsAttr(Attribute):
    """`dense<[1, 2]> : tensor<2xi32>`: a small tensor of numbers, compared by value.

    Attributes:
        data: The elements in row-major order, little endian.
        type: The (static) tensor type.
    """

    __slots__ = ("data", "type")

    data: bytes
    type: TensorType

    @classmethod
    def get(cls, type: TensorType, data: bytes) -> DenseElementsAttr:
        """Returns the attribute of a value."""
        return cls.intern(data, type)

    @property
    def shape(self) -> types.Shape:
        """The shape."""
        return self.type.shape

    def print(self, printer: AttributePrinter) -> None:
        """Prints `dense<...> : type`."""
        print_dense(printer, to_array(self), self.type)


class DenseResourceAttr(Attribute):
    """`dense_resource<name> : type`: a tensor whose value is at the end of the text, or left out."""

    __slots__ = ("handle", "type")

    handle: str
    type: Attribute

    @classmethod
    def get(cls, handle: str, type: Attribute) -> DenseResourceAttr:
        """Returns the attribute of a name and a type."""
        return cls.intern(handle, type)

    def print(self, printer: AttributePrinter) -> None:
        """Prints `dense_resource<name> : type`."""
        printer.write(f"dense_resource<{self.handle}> : ")
        printer.attribute(self.type)


def print_dense(printer: AttributePrinter, value: Array, type: TensorType) -> None:
    """Prints `dense<...> : type`."""
    printer.write("dense<")
    for piece in dense_text.literal(value, type.element_type):
        printer.write(piece)
    printer.write("> : ")
    printer.attribute(type)


class TensorData(Attribute):
    """The handle of a constant: a static tensor type and a source.

    A small one prints as what it is, any other elided, as `dense_resource<__elided__> : type`: the IR's text never
    holds large weights unless that is required (`printing.IRPrinter`).

    Attributes:
        source: Where the bytes come from.
        type: The (static) tensor type.
    """

    __slots__ = ("source", "type")

    source: Source
    type: TensorType

    @classmethod
    def get(cls, type: TensorType, source: Source) -> TensorData:
        """Returns the handle of a source, which is compared by identity."""
        return cls.intern(source, type)

    @property
    def shape(self) -> types.Shape:
        """The (static) shape."""
        return self.type.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Numpy's dtype of the elements."""
        return types.numpy_dtype(self.type.element_type)

    @property
    def nbytes(self) -> int:
        """Size of the value in bytes; 0 for strings."""
        dtype = self.dtype
        return 0 if dtype.kind == "O" else math.prod(self.shape) * dtype.itemsize

    def array(self) -> Array:
        """Returns the value as a C-contiguous array that must not be written to."""
        return self.source.array(self.dtype, self.shape)

    def print(self, printer: AttributePrinter) -> None:
        """Prints `dense<...> : type`, or `dense_resource<__elided__> : type`."""
        if self._is_small():
            print_dense(printer, self.array(), self.type)
        else:
            printer.write(f"{ELIDED} : ")
            printer.attribute(self.type)

    def _is_small(self) -> bool:
        """Returns whether the value is in memory, can be written, and is not long."""
        if not isinstance(self.source, BufferSource) or not dense_text.can_write(self.type.element_type):
            return False
        if self.dtype == object:
            return sum(map(len, self.source.value.ravel())) + 8 * math.prod(self.shape) <= SMALL
        return self.nbytes <= SMALL


Constant = DenseElementsAttr | TensorData
"""Every attribute that holds a tensor's value."""


def is_constant(attribute: Attribute | None) -> TypeGuard[Constant]:
    """Tells whether an attribute holds a tensor's value."""
    return isinstance(attribute, TensorData | DenseElementsAttr)


def is_small(constant: Constant) -> bool:
    """Returns whether a constant may be read to see what it holds; a string counts as the pointer to it."""
    if isinstance(constant, DenseElementsAttr):
        return True
    return math.prod(constant.shape) * constant.dtype.itemsize <= MAX_READ_BYTES


def of_array(array: Array, element: Attribute | None = None) -> Constant:
    """Returns the attribute of a value in memory: dense where small, else a handle that keeps the array.

    Args:
        array: The value; `object` arrays hold bytes (strings).
        element: The MLIR element type where the dtype doesn't tell (quantised types).
    """
    element = element or types.from_dtype(array.dtype).mlir
    tensor_type = types.tensor(element, array.shape)
    assert isinstance(tensor_type, TensorType)
    if array.nbytes <= SMALL and array.dtype.kind in "fiub" and isinstance(element, IntegerType | FloatType):
        return DenseElementsAttr.get(tensor_type, array.tobytes())
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
    """Returns what a value is known to be at compile time, `None` if it is not, or is quantised."""
    if type(value) is not OpResult or value.op.name not in _KNOWN:
        return None
    constant = value.op.properties.get("value")
    return constant if is_constant(constant) else None


def as_handle(constant: Constant) -> TensorData:
    """Returns a constant as a handle, so that a deferred expression can use it."""
    if isinstance(constant, TensorData):
        return constant
    assert isinstance(constant.type, TensorType)
    return TensorData.get(constant.type, BufferSource(to_array(constant)))


def defer(
    function: str,
    arguments: tuple[Constant, ...],
    shape: types.Shape,
    parameter: Hashable = None,
    element: Attribute | None = None,
) -> Constant:
    """Returns the constant `function(*arguments)`, computed now if it is small or nested deep, else when read.

    Args:
        function: A key of `EXPRESSIONS`.
        arguments: Constants; the first one's element type is the result's unless `element` says otherwise.
        shape: The result's shape.
        parameter: The function's parameter.
        element: The result's element type.
    """
    handles = tuple(map(as_handle, arguments))
    tensor_type = types.tensor(element or handles[0].type.element_type, shape)
    assert isinstance(tensor_type, TensorType)
    source = Deferred(function, handles, parameter)
    result = TensorData.get(tensor_type, source)
    if result.nbytes > SMALL and source.depth <= MAX_DEPTH:
        return result
    return of_array(np.asarray(result.array()), tensor_type.element_type)
