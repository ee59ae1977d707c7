"""The builder of forms: inserts `tfl` ops before the op that is rewritten; result types follow from the operands."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.rewrite.rewriter import Rewriter, fuse_origins
from tfconvert.converter.targets.litert.forms.questions import (
    ACTIVATION,
    MAX_RANK,
    MAX_READ,
    PLAIN,
    around,
    dequantized,
    like,
    option,
    shape_of,
    static_shape,
    stored_constant,
)
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder, Op
from tfconvert.schema.dialects import quant, tensor_data, tfl, types
from tfconvert.schema.dialects.tensor_data import Array, Constant
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

MAX_RUNS = 16
"""The maximum number of slices that replace a choice of constant places, which LiteRT.js doesn't load on GPUs."""


class FormBuilder(LiteRTBuilder):
    """Inserts LiteRT's operators by their names; those that would change nothing are left out.

    Attributes:
        before: The op to insert before, `None` for the one that is rewritten.
        is_fast: Whether the form is a faster one for processors, whose operators leave default options out.
        is_default: Whether the rewrite is for any file, not for one of an accelerator.
        as_integers: Whether floats will be quantized.
    """

    __slots__ = ("as_integers", "before", "is_default", "is_fast")

    def __init__(
        self,
        rewriter: Rewriter,
        before: Operation | None = None,
        *,
        is_fast: bool = False,
        is_default: bool = False,
        as_integers: bool = False,
    ) -> None:
        super().__init__(rewriter)
        self.before = before
        self.is_fast = is_fast
        self.is_default = is_default
        self.as_integers = as_integers

    def at(self, before: Operation | None) -> FormBuilder:
        """Returns a builder that inserts before another op."""
        return FormBuilder(self.rewriter, before, is_fast=self.is_fast)

    def insert(self, op: Op) -> Op:
        return self.rewriter.insert(op, before=self.before)

    def emit(
        self, name: str, operands: Sequence[Value], kind: Attribute, options: Mapping[str, Any] | None = None
    ) -> Value:
        if not self.is_fast and ACTIVATION in tfl.option_fields(name):
            options = {**(options or {}), **PLAIN}
        return self.tfl(name, operands, kind, options)

    def cast(self, value: Value, element: Attribute) -> Value:
        if value.element == element:
            return value
        return self.tfl("cast", (value,), types.tensor(element, value.shape))

    def array(self, value: Array, like: Value) -> Value:
        """Inserts a constant of the element type of another value."""
        element = like.element
        _need_plain(element)
        return self.constant(value.astype(types.numpy_dtype(element)), element)

    def absent(self) -> Value:
        """Inserts the value of an operand that is left out."""
        return self.insert(tfl.no_value()).results[0]

    def derived(self, value: Constant | Array, *origins: Value) -> Value:
        """Inserts a constant that is computed from others, which give it its location."""
        attribute = tensor_data.of_array(value) if isinstance(value, np.ndarray) else value
        return self.insert(tfl.constant(attribute, fuse_origins(origins))).results[0]

    def scalar(self, value: float, element: Attribute) -> Value:
        _need_plain(element)
        return super().scalar(value, element)

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """Inserts a reshape, if the shape is another; a constant is reshaped when it is read.

        Args:
            value: The value.
            shape: The shape, with one unknown size at most, as `target_of` returns it.
        """
        shape, before = tuple(shape), shape_of(value)
        if before == shape:
            return value
        if -1 not in shape and -1 not in before:
            # The result of an operator of a damaged file may have any shape.
            need(math.prod(before) == math.prod(shape), "the result has another number of elements")
            stored = self._moved(value, "reshape", shape, shape)
            if stored is not None:
                return stored
        return super().reshape(value, shape)

    def transpose(self, value: Value, permutation: Sequence[int]) -> Value:
        """Inserts a transpose, if it moves anything; a constant is transposed when it is read."""
        permutation = tuple(permutation)
        if permutation == tuple(range(len(permutation))):
            return value
        shape = shape_of(value)
        after = tuple(shape[axis] for axis in permutation)
        stored = self._moved(value, "transpose", after, permutation)
        if stored is not None:
            return stored
        return self.tfl("transpose", (value, self.ints(permutation)), like(value, after))

    def _moved(self, value: Value, function: str, shape: Shape, parameter: tuple[int, ...]) -> Value | None:
        """Returns a constant in another shape or order, also one that is dequantized; `None` of a computed value."""
        source = dequantized(value)
        constant = stored_constant(source)
        if constant is None:
            return None
        element = _element_in_order(source, function, parameter)
        return self._stored(value, tensor_data.defer(function, (constant,), shape, parameter), element)

    def mapped(self, value: Value, function: Callable[[Array], Array]) -> Value:
        """Inserts a function of a constant, also of one that is dequantized; declines if it is computed."""
        source = dequantized(value)
        constant = stored_constant(source)
        need(constant is not None, "it is computed")
        assert constant is not None
        new = tensor_data.of_array(function(tensor_data.to_array(constant)), types.element_of(constant.type))
        return self._stored(value, new, source.element)

    def _stored(self, like_this: Value, constant: tensor_data.Constant, element: Attribute) -> Value:
        """Inserts a constant with some elements, and dequantizes it if another value is dequantized."""
        shape = constant.shape
        stored = self.insert(tfl.constant(constant, result_type=types.tensor(element, shape))).results[0]
        if dequantized(like_this) is like_this:
            return stored
        return self.tfl("dequantize", (stored,), types.tensor(like_this.element, shape))

    def slice(self, value: Value, begin: Sequence[int], size: Sequence[int], shape: Shape | None = None) -> Value:
        kind = like(value, size if shape is None else shape)
        return self.tfl("slice", (value, self.ints(begin), self.ints(size)), kind)

    def cut(self, value: Value, axis: int, begin: int, size: int) -> Value:
        """Inserts a part of an axis, or nothing if it is whole."""
        shape = list(shape_of(value))
        if size == shape[axis]:
            return value
        shape[axis] = size
        return self.slice(value, [begin if at == axis else 0 for at in range(len(shape))], shape)

    def every(self, value: Value, axis: int, stride: int) -> Value:
        """Inserts a slice of each `stride`th element along an axis, unless that is all."""
        shape = static_shape(value)
        if stride == 1:
            return value
        result = [-(-dim // stride) if at == axis else dim for at, dim in enumerate(shape)]
        strides = [stride if at == axis else 1 for at in range(len(shape))]
        return self.strided(value, [0] * len(shape), shape, strides, result)

    def strided(
        self, value: Value, begin: Sequence[int], end: Sequence[int], strides: Sequence[int], shape: Sequence[int]
    ) -> Value:
        """Inserts a strided slice without masks."""
        bounds = (self.ints(begin), self.ints(end), self.ints(strides))
        return self.tfl("strided_slice", (value, *bounds), like(value, shape))

    def concatenation(self, values: Sequence[Value], axis: int) -> Value:
        """Joins values along an axis; returns a single one as it is."""
        if len(values) == 1:
            return values[0]
        shape = list(shape_of(values[0]))
        axis %= len(shape)
        sizes = [shape_of(value)[axis] for value in values]
        need(min(sizes) >= 0, "a size is unknown")
        shape[axis] = sum(sizes)
        return self.tfl("concatenation", values, like(values[0], shape), {"axis": axis, **PLAIN})

    def along_rows(self, name: str, value: Value) -> Value:
        """Inserts a reduction of the last axis, which stays with the size 1."""
        return self.reduce(name, value, (len(shape_of(value)) - 1,), keep_dims=True)

    def pad(self, value: Value, pads: Sequence[tuple[int, int]], fill: float | None = None) -> Value:
        assert fill is None
        shape = [dim if dim < 0 else dim + sum(pair) for dim, pair in zip(shape_of(value), pads, strict=True)]
        return self.tfl("pad", (value, self.constant(np.array(pads, np.int32))), like(value, shape))

    def border(self, value: Value, axis: int, before: int, after: int, fill: float = 0) -> Value:
        """Joins constants to both ends of an axis."""
        shape = list(static_shape(value))
        need(math.prod(shape) // max(shape[axis], 1) * (before + after) <= MAX_READ, "what it adds is large")

        def constants(size: int) -> list[Value]:
            shape[axis] = size
            return [self.array(np.full(shape, fill), value)] if size else []

        return self.concatenation([*constants(before), value, *constants(after)], axis)

    def tile(self, value: Value, multiples: Sequence[int]) -> Value:
        """Inserts a repetition, unless nothing is repeated."""
        if all(each == 1 for each in multiples):
            return value
        shape = [dim * each for dim, each in zip(static_shape(value), multiples, strict=True)]
        return self.tfl("tile", (value, self.ints(multiples)), like(value, shape))

    def gather(self, table: Value, places: Value | Sequence[int], axis: int) -> Value:
        """Inserts the choice of places along an axis."""
        vector = places if isinstance(places, Value) else self.ints(places)
        shape = shape_of(table)
        kind = like(table, (*shape[:axis], *shape_of(vector), *shape[axis + 1 :]))
        return self.tfl("gather", (table, vector), kind, {"axis": axis, "batch_dims": 0})

    def runs(self, value: Value, places: Sequence[int], axis: int, max_runs: int, may_turn: bool = False) -> Value:
        """Inserts the choice of constant places along an axis as slices that are joined, one for each run of places.

        Args:
            value: The value.
            places: The places.
            axis: The axis.
            max_runs: The maximum number of slices.
            may_turn: Whether slices may be reversed, if there are too many otherwise.
        """
        need(all(0 <= place < shape_of(value)[axis] for place in places), "a place may be outside")
        found = _runs(places, (1,))
        found = _runs(places, (1, -1)) if may_turn and len(found) > max_runs else found
        need(0 < len(found) <= max_runs, "places are apart")
        parts = [(self.cut(value, axis, min(run), len(run)), run) for run in found]
        turned = [self.backwards(part, axis) if run[0] > run[-1] else part for part, run in parts]
        return self.concatenation(turned, axis)

    def backwards(self, value: Value, axis: int) -> Value:
        """Inserts the reversal of an axis, in the form that the GPU computes correctly."""
        parts = self.parted(value, axis)
        turned = self.tfl("reverse_v2", (parts, self.ints((2,))), parts.type)
        return self.reshape(turned, static_shape(value))

    def in_full(self, value: Value, shape: Shape, limit: int = MAX_READ) -> Value:
        """Inserts a constant, broadcast to a shape; declines if that has more elements than a limit."""
        need(types.is_static(shape) and math.prod(shape) <= limit, "it is large")
        return self.mapped(value, lambda array: np.ascontiguousarray(np.broadcast_to(array, shape)))

    def activated(self, op: tfl.TFLOp, value: Value) -> Value:
        """Inserts the activation that is fused into an op, if it has one."""
        name = option(op, ACTIVATION)
        if name == "NONE":
            return value
        need(name in tfl.ACTIVATIONS, "its activation has no operator")
        return self.unary(tfl.ACTIVATIONS[name], value)

    def low(self, value: Value) -> Value:
        """Merges all dimensions but the last, if there are more than four."""
        shape = static_shape(value)
        return value if len(shape) <= MAX_RANK else self.reshape(value, (1, 1, math.prod(shape[:-1]), shape[-1]))

    def lifted(self, value: Value) -> Value:
        """Adds dimensions of 1 before a value, up to rank 4; numbers stay."""
        shape = static_shape(value)
        need(len(shape) <= MAX_RANK, "its rank is above 4")
        is_number = tfl.is_constant(value) and not shape
        return value if is_number else self.reshape(value, (*[1] * (MAX_RANK - len(shape)), *shape))

    def parted(self, value: Value, axis: int) -> Value:
        """Merges the dimensions before and behind an axis, which becomes the third of four."""
        return self.reshape(value, (1, *around(static_shape(value), axis)))

    def axis(self, axis: int, like: Value) -> Value:
        """Inserts an axis, as a scalar or a vector like another one."""
        return self.constant(np.full(like.shape or (), axis, np.int32))

    def again(
        self,
        op: Operation,
        operands: Sequence[Value],
        shapes: Sequence[Shape] | None = None,
        options: Mapping[str, Any] | None = None,
        location: Location = UNKNOWN_LOC,
    ) -> Operation:
        """Inserts an op with other operands.

        Args:
            op: The op.
            operands: Its new operands.
            shapes: The new shapes of its results, `None` if they stay.
            options: The options that change.
            location: Its location, by default that of the op that is rewritten.
        """
        kinds = [
            result.type if shapes is None else like(result, shapes[index]) for index, result in enumerate(op.results)
        ]
        fields = tfl.option_fields(op.name.removeprefix(tfl.PREFIX))
        changed = {name: tfl.to_attribute(fields[name], value) for name, value in (options or {}).items()}
        properties = {**op.properties, **changed}
        return self.insert(tfl.TFLOp(op.name, operands, kinds, properties, op.attributes, location=location))


def _need_plain(element: Attribute) -> None:
    """Declines a constant of integers that represent real numbers: they are not its elements."""
    need(quant.storage_of(element) is element, "it needs a constant of integers that have scales")


def _element_in_order(value: Value, function: str, parameter: tuple[int, ...]) -> Attribute:
    """Returns the element type of a constant in another order; declines where scales don't follow."""
    element = value.element
    if isinstance(element, quant.UniformType) and element.data.axis is not None:
        axis = element.data.axis
        if function == "transpose":
            return quant.UniformType.get(element.data._replace(axis=parameter.index(axis)))
        need(axis == 0 and parameter[:1] == static_shape(value)[:1], "it has scales for each channel")
    need(not isinstance(element, quant.BlockedType), "it has scales for blocks")
    return element


def _runs(places: Sequence[int], steps: Sequence[int]) -> list[Sequence[int]]:
    """Returns places in runs of neighbours, which are some steps apart."""
    found: list[list[int]] = []
    for place in places:
        last = found[-1] if found else []
        if last and place - last[-1] in steps and (len(last) == 1 or place - last[-1] == last[-1] - last[-2]):
            last.append(place)
        else:
            found.append([place])
    return list(found)
