"""Ops that create tensors from a shape or a few numbers: fills and ranges."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from tfconvert.ops.call import Call, Results, ints, is_integer, scalar, typed
from tfconvert.ops.declaration import Decomposition, op
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import MAX_PARTIAL, Operands, Partials
from tfconvert.ops.requirements import constant
from tfconvert.ops.shape_functions import Shapes, same
from tfconvert.schema.dialects.dims import MismatchError, Partial, dim_of_element, with_rank
from tfconvert.schema.dialects.relations.rules import is_scalar, is_vector
from tfconvert.schema.dialects.types import Shape

MAX_LENGTH = 1 << 62


def as_shape(elements: Partial | None) -> Shape | None:
    """Returns the shape that a vector holds."""
    if elements is None:
        return None
    if any(-(1 << 63) <= element < 0 for element in elements):
        raise MismatchError(f"{list(elements)} is not a shape")
    return tuple(map(dim_of_element, elements))


def _of_first_shape(operands: Operands) -> Shapes:
    return (as_shape(operands.elements(0)),)


def _range_shape(operands: Operands) -> Shapes:
    for index, what in enumerate(("start", "limit", "delta")):
        with_rank(operands.shape(index), 0, what)
    values = [operands.value(index) for index in range(3)]
    numbers = [value.reshape(-1)[0] for value in values if value is not None and value.size == 1]
    if len(numbers) < 3:
        return (_symbolic_range(operands),)
    start, limit, delta = numbers
    if delta == 0:
        raise MismatchError("its step is 0")
    if delta.dtype.kind in "iu":
        count: float = len(range(int(start), int(limit), int(delta)))
    else:
        # TensorFlow divides in the operands' own type: 0.3 / 0.1 is 3 in float32, though their doubles' ratio is more.
        with np.errstate(all="ignore"):
            count = max(float(np.ceil((limit - start) / delta)), 0.0)
    if math.isnan(count):
        return ((-1,),)
    if count > MAX_LENGTH:
        raise MismatchError(f"{count} elements are too many")
    return ((int(count),),)


def _symbolic_range(operands: Operands) -> Shape:
    """From 0 in steps of 1 there are as many elements as the limit says."""
    start, limit, delta = (operands.partial(index) for index in range(3))
    if start == (0,) and delta == (1,) and limit is not None and len(limit) == 1:
        return (dim_of_element(limit[0]),)
    return (-1,)


def _lin_space_shape(operands: Operands) -> Shapes:
    number = operands.partial(2)
    return ((dim_of_element(number[0]) if number else -1,),)


def _fill_elements(operands: Operands) -> Partials:
    count, value = operands.ints(0), operands.partial(1)
    if value is None or count is None or len(count) > 1 or any(not 0 <= dim <= MAX_PARTIAL for dim in count):
        return [None]
    return [value * (count[0] if count else 1)]


def _range_elements(operands: Operands) -> Partials:
    bounds = [operands.scalar(index) for index in range(3)]
    if any(bound is None for bound in bounds):
        return [None]
    start, limit, delta = (bound or 0 for bound in bounds)
    if delta == 0 or len(range(start, limit, delta)) > MAX_PARTIAL:
        return [None]
    return [tuple(range(start, limit, delta))]


def _fill(call: Call) -> Results:
    dims, value = call.inputs
    return (np.full(ints(dims), value, value.dtype),)


def _empty(call: Call) -> Results:
    dtype = call.dtype("dtype")
    return (np.full(ints(call.inputs[0]), b"" if dtype.kind == "O" else 0, dtype),)


def _like(value: int, call: Call) -> Results:
    x = call.inputs[0]
    if x.dtype == object:
        return (np.full(x.shape, b"", object),)
    return (np.full(x.shape, value, x.dtype),)


def _range(call: Call) -> Results:
    start, limit, delta = (x.reshape(())[()] for x in call.inputs)
    dtype = call.inputs[0].dtype
    if delta == 0:
        raise call.bad("the step of a range is 0")
    if (limit < start) if delta > 0 else (limit > start):
        raise call.bad(f"a range from {start} to {limit} can't have steps of {delta}")
    if is_integer(dtype):
        return (np.array(range(int(start), int(limit), int(delta)), dtype),)
    # In the operands' own type: 0.3 / 0.1 is 3 in float32, though their doubles' ratio is more.
    with np.errstate(all="ignore"):
        count = float(np.ceil((limit - start) / delta))
    if not math.isfinite(count):
        raise call.bad(f"a range from {start} to {limit} in steps of {delta} has no end")
    count = int(count)
    return (typed(start + np.arange(count).astype(dtype) * delta, dtype),)


def _lin_space(call: Call) -> Results:
    start, stop, number = call.inputs
    count = scalar(number)
    if count < 1:
        raise call.bad(f"{count} values can't span a range")
    if count == 1:
        return (start.reshape(1),)
    step = (stop - start) / typed(count - 1, start.dtype)
    values = start + step * np.arange(count).astype(start.dtype)
    values[-1] = stop
    return (typed(values, start.dtype),)


def lin_space(start: Tensor, stop: Tensor, number: Tensor) -> Tensor:
    count = 1 if number.constant is None else scalar(number.constant)
    return start + (stop - start) * start.of(np.linspace(0, 1, count, dtype=np.float32))


OPS = (
    op("Empty", shape=_of_first_shape, compute=_empty),
    op(
        "Fill",
        shape=_of_first_shape,
        values=_fill_elements,
        compute=_fill,
        relations=(is_vector("dims"), is_scalar("value")),
    ),
    op(
        "LinSpace",
        shape=_lin_space_shape,
        compute=_lin_space,
        decompose=(Decomposition(lin_space, requires=constant(2, "the number of values is"), example=((), (), ())),),
    ),
    op("OnesLike", shape=same, compute=partial(_like, 1), verified=True),
    op("Range", shape=_range_shape, values=_range_elements, compute=_range),
    op("ZerosLike", shape=same, compute=partial(_like, 0), verified=True),
)
