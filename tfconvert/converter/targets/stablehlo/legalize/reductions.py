"""Reductions, and the greatest and least elements' indices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tfconvert.converter.targets.stablehlo.legalize import computed_axes
from tfconvert.converter.targets.stablehlo.legalize.complex_numbers import conjugated
from tfconvert.converter.targets.stablehlo.legalize.emit import Emit, highest, lowest
from tfconvert.converter.targets.stablehlo.legalize.entry import Lowering, attribute, axes_of, axis_of, ints
from tfconvert.schema.dialects import stablehlo, types
from tfconvert.schema.dialects.stablehlo import EnumeratorAttr
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def kept(value: Value, dims: Sequence[int], axes: Sequence[int], emit: Emit) -> Value:
    """Returns a reduced value with dimensions of size 1 where axes were reduced."""
    return emit.reshape(value, [1 if axis in axes else dim for axis, dim in enumerate(dims)])


def _finish(value: Value, op: Operation, axes: Sequence[int], emit: Emit) -> Value:
    if not attribute(op, "keep_dims", False):
        return value
    return kept(value, emit.dims(op.operands[0]), axes, emit)


def _reduction(name: str, initial: float) -> Lowering:
    def lower(op: Operation, emit: Emit) -> Value:
        value = op.operands[0]
        if computed_axes.are_computed(op):
            return computed_axes.reduced(name, op, initial, emit)
        axes = axes_of(op, 1, len(emit.dims(value)))
        return _finish(emit.reduce(name, value, axes, initial), op, axes, emit)

    return lower


def _max(op: Operation, emit: Emit) -> Value | Sequence[Value]:
    return _reduction("maximum", lowest(types.element_of(op.operands[0].type)))(op, emit)


def _min(op: Operation, emit: Emit) -> Value | Sequence[Value]:
    return _reduction("minimum", highest(types.element_of(op.operands[0].type)))(op, emit)


def _mean(op: Operation, emit: Emit) -> Value:
    value = op.operands[0]
    dims = emit.dims(value)
    element = types.element_of(value.type)
    if computed_axes.are_computed(op):
        count = emit.convert(computed_axes.count_reduced(op, emit), element)
        return emit.binary("divide", computed_axes.reduced("add", op, 0, emit), count)
    axes = axes_of(op, 1, len(dims))
    # Halves are summed as floats, as TensorFlow does.
    is_half = element in (types.F16, types.BF16)
    total = emit.reduce("add", emit.convert(value, types.F32) if is_half else value, axes, 0)
    reduced = [dims[axis] for axis in axes]
    if min(reduced, default=0) >= 0:
        mean = emit.binary("divide", total, math.prod(reduced))
    else:
        count = emit.convert(emit.value(emit.product(reduced)), types.element_of(total.type))
        mean = emit.binary("divide", total, count)
    return _finish(emit.convert(mean, element), op, axes, emit)


def _euclidean_norm(op: Operation, emit: Emit) -> Value:
    """Emits the root of the sum of squares; TensorFlow computes that of integers in doubles, and cuts it off."""
    value = op.operands[0]
    element = types.element_of(value.type)
    axes = axes_of(op, 1, len(emit.dims(value)))
    total = emit.reduce("add", emit.binary("multiply", value, conjugated(value, emit)), axes, 0)
    if types.numpy_dtype(element).kind in "iu":
        total = emit.convert(total, types.F64)
    return _finish(emit.convert(emit.unary("sqrt", total), element), op, axes, emit)


def _l2_loss(op: Operation, emit: Emit) -> Value:
    value = op.operands[0]
    square = emit.binary("multiply", value, value)
    return emit.binary("divide", emit.reduce("add", square, range(len(emit.dims(value))), 0), 2)


def _arg(direction: str) -> Lowering:
    def lower(op: Operation, emit: Emit) -> Value:
        value = op.operands[0]
        dims = emit.dims(value)
        axis = axis_of(ints(op, 1, "the axis")[0], len(dims))
        element, index = types.element_of(value.type), types.element_of(op.results[0].type)
        initial = lowest(element) if direction == "GT" else highest(element)
        operands = (value, emit.iota(dims, axis, index), emit.scalar(initial, element), emit.scalar(0, index))
        left = [dim for at, dim in enumerate(dims) if at != axis]
        kinds = [types.tensor(each, [max(dim, -1) for dim in left]) for each in (element, index)]
        region = arg_body(direction, element, index, emit)
        found = emit.op("reduce", operands, kinds, {"dimensions": (axis,)}, (region,)).results[1]
        emit.sizes.note(found, left)
        return found

    return lower


def arg_body(direction: str, element: Attribute, index: Attribute, emit: Emit) -> Region:
    """Returns the choice between two elements with their indices; of equal ones the lower index counts."""
    value, place, bit = (types.tensor(each, ()) for each in (element, index, types.I1))
    block = Block(arg_types=(value, place, value, place))
    first, at, second, other = block.args

    def add(name: str, operands: Sequence[Value], kind: Attribute, direction: str = "") -> Value:
        properties = (
            {"comparison_direction": EnumeratorAttr.get("comparison_direction", direction)} if direction else {}
        )
        op = stablehlo.build(f"stablehlo.{name}", operands, (kind,), properties, location=emit.location)
        block.add_op(op)
        return op.results[0]

    is_better = add("compare", (first, second), bit, direction)
    is_equal = add("compare", (first, second), bit, "EQ")
    is_before = add("compare", (at, other), bit, "LT")
    # The initial value is of no element: its index 0 must not count, unless it is equal to an element.
    chosen = add("or", (is_better, add("and", (is_equal, is_before), bit)), bit)
    results = add("select", (chosen, first, second), value), add("select", (chosen, at, other), place)
    block.add_op(stablehlo.build(stablehlo.RETURN, results, (), location=emit.location))
    return Region(block)


LOWERINGS: Mapping[str, Lowering] = {
    "All": _reduction("and", 1),
    "Any": _reduction("or", 0),
    "ArgMax": _arg("GT"),
    "ArgMin": _arg("LT"),
    "EuclideanNorm": _euclidean_norm,
    "L2Loss": _l2_loss,
    "Max": _max,
    "Mean": _mean,
    "Min": _min,
    "Prod": _reduction("multiply", 1),
    "Sum": _reduction("add", 0),
}
