"""Patterns made of a function that looks at an op and returns a function that emits what replaces it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.rewrite.pattern import Failure, Pattern, attempt, need
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.dims import constant_target
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tensor_data import Array, Constant
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

Emit = Callable[[LiteRTBuilder], Value | Sequence[Value]]
"""Emits what replaces an op, and returns the new results."""

PLAIN = {"fused_activation_function": "NONE"}
"""The options of an operator without an activation."""

MAX_ELEMENTS = 4096
"""The maximum number of elements of a constant that is written in full, or made."""


def form(
    name: str,
    root: str,
    plan: Callable[[Operation], Emit],
    benefit: int = 1,
    depth: int = 1,
    *,
    is_longer: bool = False,
) -> Pattern[Emit]:
    """Returns a pattern.

    Args:
        name: Its name.
        root: The op that it starts at, without `tfl.`.
        plan: Returns what to emit for an op; it declines by `pattern.need`.
        benefit: Patterns of one root are tried in descending order of benefit.
        depth: The distance above the root at which `plan` looks.
        is_longer: Whether the form has more operators, so that only files for accelerators get it. The functions of
            loops, which are small and run often, and which accelerators don't take as a whole, keep the short one.
    """

    def match(op: Operation) -> Emit | Failure:
        return _IN_LOOP if is_longer and _is_private(op) else attempt(plan, op)

    def rewrite(_op: Operation, emit: Emit, rewriter: Rewriter) -> None:
        rewriter.replace(emit(LiteRTBuilder(rewriter)))

    pattern = Pattern(name, f"tfl.{root}", match, rewrite, benefit, depth)
    if is_longer:
        LONGER.add(name)
    return pattern


LONGER: set[str] = set()
"""The names of the forms with more operators."""


_IN_LOOP = Failure("it is in a function that others call")


def _is_private(op: Operation) -> bool:
    """Returns whether an op is in a function that control flow calls."""
    function = op.parent.parent_op() if op.parent is not None else None
    return isinstance(function, FuncOp) and function.sym_visibility == "private"


def shape_of(value: Value) -> Shape:
    """Returns a value's shape, -1 where unknown; declines if its rank is unknown."""
    shape = types.shape_of(value.type)
    need(shape is not None, "a rank is unknown")
    return shape or ()


def static_shape(value: Value) -> Shape:
    """Returns a value's shape; declines if a size is unknown."""
    shape = shape_of(value)
    need(types.is_static(shape), "a size is unknown")
    return shape


def target_of(value: Value) -> Shape:
    """Returns a value's shape as the operand of a reshape; declines if several sizes are unknown."""
    target = constant_target(shape_of(value))
    need(target is not None, "several sizes are unknown")
    return target or ()


def element_of(value: Value) -> str:
    """Returns the name of a value's element type."""
    return str(types.element_of(value.type))


def ints_of(value: Value) -> tuple[int, ...]:
    """Returns a constant's elements; declines if it is computed."""
    found = constant_ints(value)
    need(found is not None, "a parameter is computed")
    return found or ()


def constant_of(value: Value) -> Constant:
    """Returns a constant; declines if it is computed."""
    constant = tensor_data.constant_of(value)
    if constant is None:
        need(False, "it is computed")
    assert constant is not None
    return constant


def producer(value: Value, name: str) -> tfl.TFLOp:
    """Returns the op of a name that makes a value for this use only; declines if another does."""
    owner = value.owner
    if isinstance(owner, tfl.TFLOp) and owner.op_name == name and value.has_one_use():
        return owner
    need(False, f"no {name} comes before, or it has other users")
    raise AssertionError


def reshaped(emit: LiteRTBuilder, value: Value, result: Value) -> Value:
    """Inserts a reshape to the type of another value, whose shape is a target of reshapes."""
    target = target_of(result)
    return emit.tfl("reshape", (value, emit.ints(target)), result.type, {"new_shape": target})


def leading(shape: Shape, rank: int) -> Shape:
    """Returns a shape with ones in front, up to a rank."""
    return (1,) * (rank - len(shape)) + tuple(shape)


def again(emit: LiteRTBuilder, op: Operation, operands: Sequence[Value], result_type: Attribute) -> Value:
    """Inserts an op of one result with other operands and another type."""
    return emit.insert(tfl.TFLOp(op.name, operands, [result_type], op.properties, op.attributes)).results[0]


def in_full(emit: LiteRTBuilder, value: Value, shape: Shape) -> Value:
    """Inserts a small constant, broadcast to a shape."""
    array = np.broadcast_to(tensor_data.to_array(constant_of(value)), shape)
    return emit.constant(np.ascontiguousarray(array), types.element_of(value.type))


def is_small(shape: Shape) -> bool:
    """Returns whether a constant of a shape may be made."""
    return math.prod(shape) <= MAX_ELEMENTS


def tensor_like(value: Value, shape: Sequence[int]) -> Attribute:
    """Returns the type of tensors of a value's elements, of another shape."""
    return types.tensor(types.element_of(value.type), tuple(shape))


def gathered(emit: LiteRTBuilder, value: Value, places: Array, axis: int, result_type: Any) -> Value:
    """Inserts the choice of constant places along an axis."""
    return emit.tfl("gather", (value, emit.constant(places)), result_type, {"axis": axis, "batch_dims": 0})


def joined(emit: LiteRTBuilder, values: Sequence[Value], axis: int, result_type: Any) -> Value:
    """Inserts a concatenation."""
    return emit.tfl("concatenation", values, result_type, {"axis": axis, **PLAIN})
