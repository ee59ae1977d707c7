"""How the constants of two .tflite files differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfconvert.ops.call import Array
from tfconvert.schema.dialects import quant, tensor_data, types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation

_CONSTANTS = frozenset(("tfl.pseudo_const", "tfl.pseudo_qconst"))


class Weight(NamedTuple):
    """A constant: its name, its type as text, its shape, and its op."""

    name: str
    type: str
    shape: tuple[int, ...]
    op: Operation


class WeightChange(NamedTuple):
    """Two constants that differ, or one without its like.

    Attributes:
        name: The name in the first file; in the second, if the first lacks it.
        first: The type in the first file; empty if it lacks it.
        second: The type in the second file.
        shape: The shape.
        numbers: How many numbers differ.
        absolute: By how much at most.
        relative: The same, relative to the largest number.
    """

    name: str
    first: str
    second: str
    shape: tuple[int, ...]
    numbers: int = 0
    absolute: float = 0.0
    relative: float = 0.0


def changed_weights(first: ModuleOp, second: ModuleOp) -> Iterator[WeightChange]:
    """Yields the constants that differ; those of one name are compared, the others in order of those of one shape."""
    ours, theirs = list(_weights(first)), list(_weights(second))
    pairs = _pairs(ours, theirs)
    known = {id(other.op) for _, other in pairs}
    paired = {id(one.op) for one, _ in pairs}
    for one, other in pairs:
        change = _change(one, other)
        if change is not None:
            yield change
    yield from (WeightChange(one.name, one.type, "", one.shape) for one in ours if id(one.op) not in paired)
    yield from (WeightChange(each.name, "", each.type, each.shape) for each in theirs if id(each.op) not in known)


def _weights(module: ModuleOp) -> Iterator[Weight]:
    for function in module.ops:
        if isinstance(function, FuncOp):
            for op in function.body.block.ops:
                if op.name in _CONSTANTS and tensor_data.is_constant(op.properties.get("value")):
                    kind = op.results[0].type
                    shape = types.shape_of(kind) or ()
                    yield Weight(node_of(op.location), _text(types.element_of(kind)), tuple(shape), op)


def _text(element: Any) -> str:
    text = str(quant.storage_of(element)).removeprefix("!tf_type.")
    if not isinstance(element, quant.UniformType):
        return text
    scales = element.data.scales
    return f"{text} (scale {scales[0]:.6g})" if len(scales) == 1 else f"{text} ({len(scales)} scales)"


def _pairs(ours: Sequence[Weight], theirs: Sequence[Weight]) -> list[tuple[Weight, Weight]]:
    """Returns constants that belong together: of one name and shape, then of one shape, in order."""
    pairs: list[tuple[Weight, Weight]] = []
    left = list(theirs)
    rest = []
    for one in ours:
        found = next((other for other in left if (other.name, other.shape) == (one.name, one.shape)), None)
        if found is None:
            rest.append(one)
        else:
            left.remove(found)
            pairs.append((one, found))
    for one in rest:
        found = next((other for other in left if other.shape == one.shape), None)
        if found is not None:
            left.remove(found)
            pairs.append((one, found))
    return pairs


def _change(one: Weight, other: Weight) -> WeightChange | None:
    first, second = tensor_data.to_array(one.op.properties["value"]), tensor_data.to_array(other.op.properties["value"])
    kinds = [each.op.results[0].type for each in (one, other)]
    if kinds[0] == kinds[1] and first.tobytes() == second.tobytes() and first.dtype.kind != "O":
        return None
    if first.dtype.kind in "OS" or second.dtype.kind in "OS":
        count = int(np.count_nonzero(first != second)) if first.shape == second.shape else first.size
        return WeightChange(one.name, one.type, other.type, one.shape, count) if count else None
    a, b = _numbers(first, kinds[0]), _numbers(second, kinds[1])
    distance = np.abs(a - b)
    largest, scale = float(np.max(distance, initial=0)), float(np.max(np.abs(a), initial=0))
    count = int(np.count_nonzero(distance))
    return WeightChange(
        one.name, one.type, other.type, one.shape, count, largest, largest / scale if scale else largest
    )


def _numbers(stored: Array, kind: Any) -> Array:
    """Returns the numbers that a constant stands for."""
    element = types.element_of(kind)
    numbers = stored.astype(np.complex128 if stored.dtype.kind == "c" else np.float64)
    if not isinstance(element, quant.UniformType):
        return numbers
    uniform = element.data
    shape = [1] * numbers.ndim
    if uniform.axis is not None:
        shape[uniform.axis] = -1
    scales, zeros = (np.reshape(np.array(each, np.float64), shape) for each in (uniform.scales, uniform.zero_points))
    return np.asarray((numbers - zeros) * scales)
