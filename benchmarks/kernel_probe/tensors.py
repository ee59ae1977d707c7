"""The operands and results of a single call: the real numbers that they represent, and how those are stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

from tfconvert.schema.dialects import quant, tensor_data, types
from tfconvert.schema.dialects.quant import Blocks, BlockwiseType, Uniform, UniformType
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.types import IntegerType

Array = np.ndarray[Any, np.dtype[Any]]

_NAMES = {
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "bf16": "bfloat16",
    "f64": "float64",
    "complex64": "complex64",
    "complex128": "complex128",
}

ELEMENTS = {
    "f32": types.F32,
    "f16": types.F16,
    "i64": types.I64,
    "i32": types.I32,
    "i16": types.I16,
    "i8": types.I8,
    "i4": IntegerType.get(4),
    "i2": IntegerType.get(2),
    "bool": types.I1,
    "string": types.STRING,
    **{short: types.from_dtype(np.dtype(getattr(ml_dtypes, name, name))).mlir for short, name in _NAMES.items()},
}

# The minimum and maximum integer of a type.
LIMITS = {"i2": (-2, 1), "i4": (-8, 7), "i8": (-128, 127), "u8": (0, 255), "i16": (-32768, 32767)}

_WIDE = {"i32": 2**31, "i64": 2**62}


@dataclass(frozen=True, slots=True)
class Tensor:
    """An operand or a result."""

    type: str  # The type in short, a key of `ELEMENTS`.
    value: Array  # The numbers that it is to hold; of a result only the shape counts.
    scales: tuple[float, ...] = ()  # The scales; empty if the numbers are stored as they are.
    zero_points: tuple[int, ...] = ()  # As many as scales.
    axis: int | None = None  # The axis that the scales go along.
    block: int = 0  # The number of elements of the last axis that share a scale, 0 if they are not in blocks.
    is_constant: bool = False  # Whether the file holds it.
    is_variable: bool = False  # Whether it is a state, zero at first.

    @property
    def element(self) -> Attribute:
        """The element type."""
        storage = ELEMENTS[self.type]
        if not self.scales:
            return storage
        assert isinstance(storage, IntegerType)
        if self.block:
            scales = np.array(self.scales, np.float16).reshape(self.value.shape[0], -1)
            return BlockwiseType.get(Blocks(storage, self.block, (), tensor_data.of_array(scales)))
        return UniformType.get(Uniform(storage, self.scales, self.zero_points, self.axis))

    @property
    def tensor_type(self) -> Attribute:
        """The tensor type."""
        return types.tensor(self.element, self.value.shape)

    @property
    def stored(self) -> Array:
        """The value as the runtime has it."""
        dtype = types.numpy_dtype(quant.storage_of(self.element))
        if not self.scales:
            return self.value.astype(dtype)
        scales, zero_points = self._spread()
        low, high = LIMITS.get(self.type) or (-_WIDE[self.type], _WIDE[self.type] - 1)
        stored: Array = np.clip(np.round(self.value / scales) + zero_points, low, high)
        return np.asarray(stored).astype(np.int64).astype(dtype)

    @property
    def real(self) -> Array:
        """The real numbers that the stored value represents."""
        if not self.scales:
            return self.stored.astype(np.float32) if self.type == "f16" else self.stored
        return self.to_real(self.stored)

    def to_real(self, stored: Array) -> Array:
        """Returns the real numbers that some stored integers represent."""
        scales, zero_points = self._spread()
        real: Array = ((stored.astype(np.float64) - zero_points) * scales).astype(np.float32)
        return real

    @property
    def twin(self) -> Tensor:
        """The same numbers as floats; numbers that are not quantized as they are."""
        if not self.scales and self.type != "f16":
            return self
        return Tensor("f32", self.real, is_constant=self.is_constant, is_variable=self.is_variable)

    def _spread(self) -> tuple[Array, Array]:
        """Returns scales and zero points in shapes that can be broadcast to the value's."""
        scales, zero_points = np.array(self.scales), np.array(self.zero_points)
        if self.block:
            return np.repeat(scales.reshape(self.value.shape[0], -1), self.block, 1), np.array(0)
        if self.axis is None:
            return scales[0], zero_points[0]
        shape = [1] * self.value.ndim
        shape[self.axis] = -1
        return scales.reshape(shape), zero_points.reshape(shape)


def _f32(value: float) -> float:
    return float(np.float32(value))


def plain(value: Any, dtype: type[np.generic] = np.int32) -> Tensor:
    """Returns a constant that is stored as it is: a shape, axes, a condition."""
    array = np.array(value, dtype)
    short = {np.dtype(np.bool_): "bool", np.dtype(np.int64): "i64", np.dtype(np.int32): "i32"}.get(array.dtype, "f32")
    return Tensor(short, array, is_constant=True)


def within(kind: str, value: Array, low: float, high: float, *, is_constant: bool = False) -> Tensor:
    """Returns a tensor whose integers span a range, of 16 bits symmetrically; floats are left alone."""
    if kind == "f32":
        return Tensor(kind, value.astype(np.float32), is_constant=is_constant)
    minimum, maximum = LIMITS[kind]
    if kind == "i16":
        return Tensor(kind, value, (_f32(max(-low, high) / maximum),), (0,), is_constant=is_constant)
    scale = _f32((high - low) / (maximum - minimum))
    return Tensor(kind, value, (scale,), (round(minimum - low / scale),), is_constant=is_constant)


def scaled(kind: str, value: Array, scale: float, zero_point: int = 0) -> Tensor:
    """Returns a tensor of a certain scale."""
    return Tensor(kind, value, (_f32(scale),), (zero_point,))


def weights(kind: str, value: Array, axis: int | None = None, block: int = 0) -> Tensor:
    """Returns constant weights, symmetric: with one scale, one for each slice of an axis, or one for each block."""
    if kind in ("f32", "f16"):
        return Tensor(kind, value.astype(np.float32), is_constant=True)
    # 8-bit integers without a sign have their zero in the middle.
    maximum, zero_point = (127, 128) if kind == "u8" else (LIMITS[kind][1], 0)
    if block:
        most = np.abs(value).reshape(value.shape[0], -1, block).max(2)
        scales = (most / maximum).astype(np.float16).ravel()
    elif axis is None:
        scales = np.abs(value).max(keepdims=True).ravel() / maximum
    else:
        scales = np.abs(value).max(tuple(at for at in range(value.ndim) if at != axis)) / maximum
    own = tuple(map(_f32, scales))
    zero_points = () if block else (zero_point,) * len(own)
    return Tensor(kind, value, own, zero_points, axis, block, True)


def bias(kind: str, value: Array, x: Tensor, w: Tensor) -> Tensor:
    """Returns a constant bias in units of the products of its operands."""
    if kind == "f32":
        return Tensor(kind, value.astype(np.float32), is_constant=True)
    scales = tuple(_f32(x.scales[0] * scale) for scale in w.scales)
    return Tensor(kind, value, scales, (0,) * len(scales), None if w.axis is None else 0, is_constant=True)


def with_offset(tensor: Tensor, zero_point: int) -> Tensor:
    """Returns the same tensor with another zero point."""
    return replace(tensor, zero_points=(zero_point,) * len(tensor.scales))


def centred(tensor: Tensor) -> Tensor:
    """Returns the same tensor with 0 stored as 0."""
    return with_offset(tensor, 0)


def with_scales(tensor: Tensor, factor: float) -> Tensor:
    """Returns the same numbers in units of another size."""
    return replace(tensor, scales=tuple(_f32(scale * factor) for scale in tensor.scales))


def like(shape: Sequence[int]) -> Array:
    """Returns zeros of a shape, for a result."""
    return np.zeros(shape, np.float32)
