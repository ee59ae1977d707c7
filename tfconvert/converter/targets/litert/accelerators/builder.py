"""Rewrites for accelerators: functions that look at an op and emit what replaces it, and what they emit with."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.accelerators.trial import Trial
from tfconvert.schema.dialects import quant, tensor_data, tfl, types
from tfconvert.schema.dialects.dims import constant_target
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import IntegerType, Signedness
from tfconvert.schema.ir.values import Value

Op = TypeVar("Op", bound=Operation)

Operand = Value | float
"""A value, or a number that becomes a scalar constant of the other operand's element type."""


class AcceleratorBuilder(TFLBuilder):
    """Inserts `tfl` ops before the op that is rewritten; result types follow from the operands.

    Attributes:
        rewriter: Keeps the changes until they are accepted.
        is_default: Whether the rewrite is for any file, not for one of an accelerator.
        as_integers: Whether floats will be quantized.
    """

    __slots__ = ("as_integers", "is_default", "rewriter")

    def __init__(self, rewriter: Trial, *, is_default: bool = False, as_integers: bool = False) -> None:
        super().__init__(rewriter.root)
        self.rewriter = rewriter
        self.is_default = is_default
        self.as_integers = as_integers

    def insert(self, op: Op) -> Op:
        return self.rewriter.insert(op)

    def array(self, value: Array, like: Value | None = None) -> Value:
        """Inserts a constant, of the element type of another value if one is given."""
        if like is None:
            return self.constant(value)
        element = types.element_of(like.type)
        return self.constant(value.astype(types.numpy_dtype(element)), element)

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """Inserts a reshape, if the shape is another; a constant is reshaped when it is read.

        Args:
            value: The value.
            shape: The shape, with one unknown size at most, as `target_of` returns it.
        """
        shape = tuple(shape)
        before = shape_of(value)
        if before == shape:
            return value
        if -1 not in shape and -1 not in before:
            assert math.prod(before) == math.prod(shape)
            stored = self._moved(value, "reshape", shape, shape)
            if stored is not None:
                return stored
        kind = types.tensor(types.element_of(value.type), shape)
        return self.tfl("reshape", (value, self.ints(shape)), kind, {"new_shape": shape})

    def transpose(self, value: Value, permutation: Sequence[int]) -> Value:
        """Inserts a transpose, if it moves anything; a constant is transposed when it is read."""
        permutation = tuple(permutation)
        if permutation == tuple(range(len(permutation))):
            return value
        shape = static_shape(value)
        after = tuple(shape[axis] for axis in permutation)
        stored = self._moved(value, "transpose", after, permutation)
        if stored is not None:
            return stored
        kind = types.tensor(types.element_of(value.type), after)
        return self.tfl("transpose", (value, self.ints(permutation)), kind)

    def _moved(self, value: Value, function: str, shape: Shape, parameter: tuple[int, ...]) -> Value | None:
        """Returns a constant in another shape or order, also one that is dequantized; `None` of a computed value."""
        source = dequantized(value)
        constant = stored_constant(source)
        if constant is None:
            return None
        kind = types.tensor(_element_in_order(source, function, parameter), shape)
        stored = tensor_data.defer(function, (constant,), shape, parameter)
        moved = self.insert(tfl.constant(stored, result_type=kind)).results[0]
        if source is value:
            return moved
        return self.tfl("dequantize", (moved,), types.tensor(types.element_of(value.type), shape))

    def mapped(self, value: Value, function: Callable[[Array], Array]) -> Value:
        """Inserts a function of a constant, also of one that is dequantized; declines if it is computed."""
        source = dequantized(value)
        constant = stored_constant(source)
        need(constant is not None, "it is computed")
        assert constant is not None
        new = tensor_data.of_array(function(tensor_data.to_array(constant)), types.element_of(constant.type))
        shape = types.shape_of(new.type)
        kind = types.tensor(types.element_of(source.type), shape)
        mapped = self.insert(tfl.constant(new, result_type=kind)).results[0]
        if source is value:
            return mapped
        return self.tfl("dequantize", (mapped,), types.tensor(types.element_of(value.type), shape))

    def slice(self, value: Value, begin: Sequence[int], size: Sequence[int], shape: Shape | None = None) -> Value:
        kind = types.tensor(types.element_of(value.type), size if shape is None else shape)
        return self.tfl("slice", (value, self.ints(begin), self.ints(size)), kind)

    def concatenation(self, values: Sequence[Value], axis: int) -> Value:
        """Joins values along an axis; returns a single one as it is."""
        if len(values) == 1:
            return values[0]
        shapes = [static_shape(value) for value in values]
        axis %= len(shapes[0])
        shape = [sum(each[axis] for each in shapes) if at == axis else dim for at, dim in enumerate(shapes[0])]
        kind = types.tensor(types.element_of(values[0].type), shape)
        return self.tfl("concatenation", values, kind, {"axis": axis, **NOT_FUSED})

    def pad(self, value: Value, pads: Sequence[tuple[int, int]]) -> Value:
        """Inserts padding with zeros."""
        shape = [dim + sum(pair) for dim, pair in zip(static_shape(value), pads, strict=True)]
        kind = types.tensor(types.element_of(value.type), shape)
        return self.tfl("pad", (value, self.constant(np.array(pads, np.int32))), kind)

    def every(self, value: Value, axis: int, stride: int) -> Value:
        """Inserts a slice of each `stride`th element along an axis, unless that is all."""
        shape = static_shape(value)
        if stride == 1:
            return value
        result = [-(-dim // stride) if at == axis else dim for at, dim in enumerate(shape)]
        return self.strided(
            value, [0] * len(shape), shape, [stride if at == axis else 1 for at in range(len(shape))], result
        )

    def strided(
        self, value: Value, begin: Sequence[int], end: Sequence[int], strides: Sequence[int], shape: Sequence[int]
    ) -> Value:
        """Inserts a strided slice without masks."""
        kind = types.tensor(types.element_of(value.type), shape)
        return self.tfl("strided_slice", (value, self.ints(begin), self.ints(end), self.ints(strides)), kind)

    def tile(self, value: Value, multiples: Sequence[int]) -> Value:
        """Inserts a repetition, unless nothing is repeated."""
        if all(each == 1 for each in multiples):
            return value
        shape = [dim * each for dim, each in zip(static_shape(value), multiples, strict=True)]
        kind = types.tensor(types.element_of(value.type), shape)
        return self.tfl("tile", (value, self.ints(multiples)), kind)

    def unary(self, name: str, value: Value) -> Value:
        """Inserts an elementwise op of one operand."""
        return self.tfl(name, (value,), value.type)

    def binary(self, name: str, x: Operand, y: Operand, element: Attribute | None = None) -> Value:
        """Inserts an elementwise op of two operands.

        Args:
            name: The op.
            x: The first operand.
            y: The second operand.
            element: The result's elements, by default those of the operands.
        """
        own = types.element_of((x if isinstance(x, Value) else y).type)  # type: ignore[union-attr]
        left, right = (each if isinstance(each, Value) else self.scalar(each, own) for each in (x, y))
        shape = np.broadcast_shapes(static_shape(left), static_shape(right))
        options = NOT_FUSED if "fused_activation_function" in tfl.option_fields(name) else None
        return self.tfl(name, (left, right), types.tensor(element or own, shape), options)

    def to(self, value: Value, element: Attribute) -> Value:
        """Converts to another element type by `tfl.cast`."""
        if types.element_of(value.type) == element:
            return value
        kind = types.tensor(element, types.shape_of(value.type))
        return self.tfl("cast", (value,), kind)

    def axis(self, axis: int, like: Value) -> Value:
        """Inserts an axis, as a scalar or a vector like another one."""
        return self.constant(np.full(types.shape_of(like.type) or (), axis, np.int32))

    def again(
        self,
        op: tfl.TFLOp,
        operands: Sequence[Value],
        shapes: Sequence[Shape] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Operation:
        """Inserts an op with other operands.

        Args:
            op: The op.
            operands: Its new operands.
            shapes: The new shapes of its results, `None` if they stay.
            options: The options that change.
        """
        kinds = [
            result.type if shapes is None else types.tensor(types.element_of(result.type), shapes[index])
            for index, result in enumerate(op.results)
        ]
        fields = tfl.option_fields(op.op_name)
        changed = {name: tfl.to_attribute(fields[name], value) for name, value in (options or {}).items()}
        return self.insert(tfl.TFLOp(op.name, operands, kinds, {**op.properties, **changed}, op.attributes))


PREPARES = 100
"""The benefit from which on a rewrite is kept even if it does not help by itself, but only lets another one match."""

MOVED = (types.F32, types.I8, IntegerType.get(8, Signedness.UNSIGNED), types.I32, types.I1)
"""The elements of which accelerators take operators that only move them."""

MAX_RANK = 4
"""The highest rank that GPUs take."""

NOT_FUSED: Mapping[str, Any] = {"fused_activation_function": "NONE"}
"""The options of an operator without a fused activation."""

Emit = Callable[[tfl.TFLOp, AcceleratorBuilder], Value | Sequence[Value]]
"""A function that emits what replaces an op, and returns the new results; it declines by `pattern.need`."""


class Rewrite(NamedTuple):
    """A rewrite that replaces an op by what a function emits.

    The driver drops what was emitted if the function declines, or if accelerators don't take it either.

    Attributes:
        name: Its name.
        root: The op, without `tfl.`.
        emit: The function.
        benefit: Rewrites of one op are tried in descending order of benefit.
        default: The element types of results, or their classes, for which it is made by default, whatever a file is
            for, if it adds no operator. Without any, it is for accelerators alone.
        adds: Whether the default may add operators, since it is more than twice as fast on the CPU.
        producers: Full names of ops, one of which defines an operand where the function doesn't decline; any if empty.
    """

    name: str
    root: str
    emit: Emit
    benefit: int = 1
    default: Collection[Attribute | type[Attribute]] = ()
    adds: bool = False
    producers: frozenset[str] = frozenset()


def need_element(value: Value, *elements: Attribute) -> None:
    """Declines unless the elements of a value are of one of some types."""
    need(types.element_of(value.type) in elements, "its elements have another type")


def shape_of(value: Value) -> Shape:
    """Returns a value's shape, -1 where a size is unknown; declines if its rank is."""
    shape = types.shape_of(value.type)
    need(shape is not None, "a rank is unknown")
    return shape or ()


def target_of(value: Value) -> Shape:
    """Returns a value's shape as that of a reshape; declines if several sizes are unknown."""
    target = constant_target(shape_of(value))
    need(target is not None, "several sizes are unknown")
    return target or ()


def producer(value: Value, name: str) -> tfl.TFLOp:
    """Returns the op of a name that makes a value for this use only; declines if another does."""
    owner = value.owner
    need(
        isinstance(owner, tfl.TFLOp) and owner.op_name == name and value.has_one_use(),
        f"no {name} comes before, or it has other users",
    )
    assert isinstance(owner, tfl.TFLOp)
    return owner


def around(shape: Shape, axis: int) -> Shape:
    """Returns a shape as the sizes before an axis, of the axis, and after it."""
    axis %= len(shape)
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def like(value: Value, shape: Sequence[int]) -> Attribute:
    """Returns the type of a tensor of another shape with a value's elements."""
    return types.tensor(types.element_of(value.type), shape)


def stored_constant(value: Value) -> tensor_data.Constant | None:
    """Returns the stored elements of a constant, also of a quantized one; `None` of a computed value."""
    if not tfl.is_constant(value):
        return None
    assert isinstance(value.owner, Operation)
    stored = value.owner.properties.get("value")
    return stored if isinstance(stored, tensor_data.Constant) else None


def static_shape(value: Value) -> Shape:
    """Returns a value's shape; declines if a size is unknown."""
    shape = shape_of(value)
    need(types.is_static(shape), "a size is unknown")
    return shape


def dequantized(value: Value) -> Value:
    """Returns the constant that a value is dequantized from, the value if it is not."""
    owner = value.owner
    if isinstance(owner, tfl.TFLOp) and owner.op_name == "dequantize" and tfl.is_constant(owner.operands[0]):
        return owner.operands[0]
    return value


def _element_in_order(value: Value, function: str, parameter: tuple[int, ...]) -> Attribute:
    """Returns the element type of a constant in another order; declines where scales don't follow."""
    element = types.element_of(value.type)
    if isinstance(element, quant.UniformType) and element.data.axis is not None:
        axis = element.data.axis
        if function == "transpose":
            return quant.UniformType.get(element.data._replace(axis=parameter.index(axis)))
        need(axis == 0 and parameter[:1] == static_shape(value)[:1], "it has scales for each channel")
    need(not isinstance(element, quant.BlockedType), "it has scales for blocks")
    return element


def source_of(value: Value) -> Value:
    """Returns the value that a value was reshaped from; the value if it was not."""
    owner = value.owner
    while isinstance(owner, tfl.TFLOp) and owner.op_name in RESHAPES:
        value = owner.operands[0]
        owner = value.owner
    return value


RESHAPES = ("expand_dims", "reshape", "squeeze")
"""Operators that only change the shape."""


def array_of(value: Value) -> Array:
    """Returns the elements of a small constant; declines if it is computed or large."""
    constant = stored_constant(value)
    need(constant is not None, "it is computed")
    assert constant is not None
    need(math.prod(types.shape_of(constant.type) or ()) <= MAX_READ, "it is large")
    return tensor_data.to_array(constant)


MAX_READ = 16384
"""The maximum number of elements of a constant that a rewrite reads."""


def ints_of(value: Value) -> list[int]:
    """Returns the elements of a small constant of integers, such as axes or sizes; declines if it is computed."""
    return [int(each) for each in array_of(value).reshape(-1)]


def option(op: tfl.TFLOp, name: str) -> Any:
    """Returns an option of an op, the schema's default if it is not set."""
    return tfl.attribute(op, name)
