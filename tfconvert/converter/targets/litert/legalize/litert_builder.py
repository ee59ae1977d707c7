"""Emits the ops that replace one; infers result types where the kind of op determines them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert import fake_quant
from tfconvert.schema.dialects import dims, tensor_data, tfl, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

Op = TypeVar("Op", bound=Operation)

Operand = Value | float | int | bool
"""A value, or a number that becomes a scalar constant of the other operand's element type."""


INT32 = (-(1 << 31), (1 << 31) - 1)
"""The smallest and the largest `i32`."""


class LiteRTBuilder(TFLBuilder):
    """Inserts ops before the op that is rewritten.

    A rewrite may emit `tf` ops as well as `tfl` ops: these are legalized in turn, so that a decomposition
    need not know the kernels' limits.

    Attributes:
        rewriter: Keeps track of inserted ops and their origins.
    """

    __slots__ = ("rewriter",)

    def __init__(self, rewriter: Rewriter) -> None:
        super().__init__(rewriter.root)
        self.rewriter = rewriter

    def insert(self, op: Op) -> Op:
        return self.rewriter.insert(op)

    def turn_into(self, name: str, properties: dict[str, Attribute], operands: Sequence[Value] | None = None) -> None:
        """Makes a `tfl` op of the op that is rewritten, instead of replacing it; see `Rewriter.turn_root_into`."""
        self.rewriter.turn_root_into(tfl.TFLOp, tfl.full_name(name), properties, operands)

    def i32(self, value: Value) -> Value:
        constant = None if value.element == types.I32 else tensor_data.constant_of(value)
        if constant is not None:
            return self.constant(np.asarray(tensor_data.to_array(constant).clip(*INT32), np.int32))
        return super().i32(value)

    def limited_i32(self, value: Value) -> Value:
        """Like `i32`, but clamps any value: a bound or limit that may be as good as infinite."""
        if value.element == types.I64 and tensor_data.constant_of(value) is None:
            value = self.binary("Maximum", self.binary("Minimum", value, INT32[1]), INT32[0])
        return self.i32(value)

    def emit(
        self, name: str, operands: Sequence[Value], kind: Attribute, options: Mapping[str, Any] | None = None
    ) -> Value:
        """Inserts an op of the dialect that the methods below name ops of: `tf`."""
        return self.tf(name, operands, kind, options)

    def unary(self, name: str, x: Value) -> Value:
        """Inserts an elementwise op of one operand."""
        return self.emit(name, (x,), x.type)

    def binary(self, name: str, x: Operand, y: Operand) -> Value:
        """Inserts an elementwise op of two operands that has their element type."""
        left, right = self._pair(x, y)
        return self.emit(name, (left, right), broadcast_type(left, right, left.element))

    def compare(self, name: str, x: Operand, y: Operand) -> Value:
        """Inserts an elementwise op of two operands that has booleans as a result."""
        left, right = self._pair(x, y)
        return self.emit(name, (left, right), broadcast_type(left, right, types.I1))

    def select(self, condition: Value, x: Operand, y: Operand) -> Value:
        """Inserts a choice between two values for every element."""
        left, right = self._pair(x, y)
        both = broadcast_type(left, right, left.element)
        shape = dims.broadcast(types.shape_of(both), condition.shape)
        result_type = types.tensor(left.element, without_symbols(shape))
        return self.tf("SelectV2", (condition, left, right), result_type)

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """Inserts a reshape to a shape with one unknown dimension at most; a constant is reshaped when it is read."""
        if value.shape == tuple(shape) and -1 not in shape:
            return value
        result_type = types.tensor(value.element, shape)
        constant = tensor_data.constant_of(value)
        if constant is not None and -1 not in shape and math.prod(shape) == math.prod(constant.shape):
            return self.constant(tensor_data.defer("reshape", (constant,), tuple(shape), tuple(shape)))
        quantized = fake_quant.reshaped(self.insert, value, shape)
        if quantized is not None:
            return quantized
        return self.tfl("reshape", (value, self.ints(shape)), result_type, {"new_shape": tuple(shape)})

    def transpose(self, value: Value, permutation: Sequence[int]) -> Value:
        permutation = tuple(permutation)
        if permutation == tuple(range(len(permutation))):
            return value
        shape = value.shape
        moved = None if shape is None else tuple(shape[axis] for axis in permutation)
        constant = tensor_data.constant_of(value)
        if constant is not None and moved is not None:
            return self.constant(tensor_data.defer("transpose", (constant,), moved, permutation))
        quantized = fake_quant.transposed(self.insert, value, permutation)
        return quantized if quantized is not None else super().transpose(value, permutation)

    def reduce(self, name: str, value: Value, axes: Sequence[int], keep_dims: bool = False) -> Value:
        """Inserts a reduction (`Sum`, `Mean`, ...) over axes counted from the front."""
        shape = value.shape
        reduced = None
        if shape is not None:
            kept = ((axis, dim) for axis, dim in enumerate(shape) if keep_dims or axis not in axes)
            reduced = tuple(1 if axis in axes else dim for axis, dim in kept)
        result_type = types.tensor(value.element, reduced)
        return self.emit(name, (value, self.ints(axes)), result_type, {"keep_dims": keep_dims})

    def shape(self, value: Value, rank: int | None = None) -> Value:
        shape = value.shape
        if shape is not None and -1 not in shape:
            return self.ints(shape)
        return super().shape(value, rank)

    def pad(self, value: Value, pads: Sequence[tuple[int, int]], fill: float | None = None) -> Value:
        """Inserts padding with zeros, or with another number."""
        shape = value.shape
        padded = None
        if shape is not None:
            padded = tuple(dim if dim < 0 else dim + sum(pad) for dim, pad in zip(shape, pads, strict=True))
        element = value.element
        amounts = self.constant(np.array(pads, np.int32).reshape(len(pads), 2))
        if fill is None:
            return self.tf("Pad", (value, amounts), types.tensor(element, padded))
        return self.tf("PadV2", (value, amounts, self.scalar(fill, element)), types.tensor(element, padded))

    def _pair(self, x: Operand, y: Operand) -> tuple[Value, Value]:
        element = types.element_of((x if isinstance(x, Value) else y).type)  # type: ignore[union-attr]
        left = x if isinstance(x, Value) else self.scalar(x, element)
        right = y if isinstance(y, Value) else self.scalar(y, element)
        return left, right


def without_symbols(shape: types.Shape | None) -> types.Shape | None:
    """Returns a shape as types have it: unknown dimensions are -1, whichever symbol represents them."""
    return None if shape is None else dims.without_symbols(shape)


def broadcast_type(x: Value, y: Value, element: Attribute) -> Attribute:
    """Returns the type of an elementwise result."""
    shape = dims.broadcast(x.shape, y.shape)
    return types.tensor(element, without_symbols(shape))
