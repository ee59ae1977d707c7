"""Removes broadcasts that the next op does implicitly.

add(broadcast_to(x, s), y)  ->  add(x, y)    where the result has the same shape; other elementwise ops as well
add(tile(x, m), y)          ->  add(x, y)    where only dimensions of one element are repeated
add(fill(s, x), y)          ->  add(x, y)    where y is as large; constants of equal elements as well
add(fill(shape(y), x), y)   ->  add(x, y)    whatever the shape; broadcast_to as well, if x has one element
add(zeros_like(y), y)       ->  add(0, y)

Broadcasts move behind the ops that use them, which then compute fewer elements; the next op may broadcast implicitly.

exp(broadcast_to(x, s))     ->  broadcast_to(exp(x), s)       other elementwise ops as well
add(broadcast_to(x, s), y)  ->  broadcast_to(add(x, y), s)    where y has fewer elements, too
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfconvert.converter.rewrite.pattern import Declined, Failure, Pattern, need
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, planned
from tfconvert.converter.targets.litert.forms.questions import shape_of, static_shape
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators

# The kernel of `atan2` does not broadcast.
_BINARY = sorted(operators.elementwise(2) - {"atan2"})
_BROADCASTING = (*_BINARY, "select_v2", "select")
# Ops that broadcast a value, and its index among their operands.
_DATA: Mapping[str, int] = {"tfl.broadcast_to": 0, "tfl.tile": 0, "tfl.fill": 1}
# Ops that may broadcast a value to another's shape.
_LIKE = frozenset({"tfl.broadcast_to", "tfl.fill", "tfl.zeros_like"})

# All kernels of these ops broadcast tensors of this rank.
_MAX_RANK = 4

# The ops that broadcast tensors of a higher rank.
_HIGHER: Mapping[str, int] = {"tfl.add": 6, "tfl.sub": 6, "tfl.mul": 6, "tfl.div": 5, "tfl.select_v2": 5}


def _with(op: Operation, index: int, value: Value) -> list[Value]:
    """Returns an op's operands with another one at an index."""
    return [value if place == index else each for place, each in enumerate(op.operands)]


def _result(op: Operation, index: int, *instead: Value) -> Shape | None:
    """Returns the shape that an op's operands broadcast to, with others in place of one; `None` if it isn't known.

    Args:
        op: The op.
        index: The operand that is left out.
        instead: What comes in its place.
    """
    shapes = [questions.known_shape(each) for each in (*op.operands[:index], *instead, *op.operands[index + 1 :])]
    known = [shape for shape in shapes if shape is not None]
    return questions.broadcast_shape(*known) if len(known) == len(shapes) else None


_NOT_BROADCAST = Failure("no operand is broadcast, or the other one isn't as large as the result")


def _into(op: Operation) -> Emit | Failure:
    dims = static_shape(op.results[0])
    need(len(dims) <= _HIGHER.get(op.name, _MAX_RANK), "it has too many dimensions")
    is_chosen_by_rows = op.name == "tfl.select" and op.operands[0].shape != dims
    need(not is_chosen_by_rows, "the condition chooses between rows")
    for index, operand in enumerate(op.operands):
        source = operand.producer(_DATA)
        if source is not None and _broadcasts(source) and _result(op, index, data := _data(source)) == dims:
            return lambda build: _implicit(build, op, _with(op, index, data))
    for index, operand in enumerate(op.operands):
        if (number := _single(operand)) is not None and _result(op, index) == dims:
            return lambda build: _implicit(build, op, _with(op, index, build.derived(number, operand)))
    return _NOT_BROADCAST


def _implicit(build: FormBuilder, op: Operation, operands: Sequence[Value]) -> Value | Operation:
    if op.name == "tfl.select":
        return build.tfl("select_v2", operands, op.results[0].type)
    return build.again(op, operands)


def _data(source: Operation) -> Value:
    return source.operands[_DATA[source.name]]


def _single(operand: Value) -> Array | None:
    """Returns the number that all elements of a constant are, without reading it from a file."""
    constant = tensor_data.constant_of(operand)
    if constant is None or (size := questions.size_of(constant)) < 2 or not tensor_data.is_small(constant):
        return None
    if isinstance(constant, tensor_data.DenseElementsAttr):
        width = len(constant.data) // size
        if constant.data[:width] != constant.data[width : 2 * width]:
            return None
    if types.from_mlir(operand.element) is None or operand.element == types.STRING:
        return None
    if isinstance(constant, tensor_data.TensorData) and not isinstance(constant.source, tensor_data.BufferSource):
        return None
    array = tensor_data.to_array(constant)
    first = array.reshape(-1)[:1]
    return first.reshape(()) if array.tobytes() == first.tobytes() * array.size else None


def _broadcasts(source: Operation) -> bool:
    """Returns whether an op only repeats dimensions of one element."""
    before, after = questions.known_shape(_data(source)), questions.known_shape(source.results[0])
    if before is None or after is None or len(before) > len(after):
        return False
    aligned = (1,) * (len(after) - len(before)) + before
    return all(old in (1, new) for old, new in zip(aligned, after, strict=True))


def _like(op: Operation) -> Emit:
    """An operand that is broadcast to the other one's shape, which may be dynamic."""
    need(len(shape_of(op.results[0])) <= _MAX_RANK, "the rank is too high")
    for index, operand in enumerate(op.operands):
        source = operand.producer(_LIKE)
        if source is not None and _is_as_large(source, op.operands[1 - index]):
            return lambda build: build.again(op, _with(op, index, _element(build, source)))
    raise Declined("no operand is made of one element in the shape of the other")


def _element(build: FormBuilder, source: Operation) -> Value:
    """Returns the only element that an op repeats."""
    if source.name != "tfl.zeros_like":
        return _data(source)
    return build.derived(np.zeros((), types.numpy_dtype(source.results[0].element)))


def _is_as_large(source: Operation, other: Value) -> bool:
    """Returns whether an op repeats one element in the shape of another value."""
    if source.name == "tfl.zeros_like":
        return source.operands[0] is other
    sizes = source.operands[1 - _DATA[source.name]].producer("tfl.shape")
    return _data(source).shape == () and sizes is not None and sizes.operands[0] is other


_UNARY = sorted(operators.elementwise(1))
_SOURCE = ("tfl.broadcast_to",)


def _behind(op: Operation) -> Emit:
    dims = static_shape(op.results[0])
    need(len(dims) <= _MAX_RANK, "it has too many dimensions")
    for index, operand in enumerate(op.operands):
        source = operand.sole_producer(_SOURCE)
        if source is not None and operand.shape == dims:
            small = _result(op, index, source.operands[0])
            if small is not None and small != dims:
                return lambda build: _broadcast(build, op, index, source, small)
    raise Declined("no operand is broadcast only for this op, or the result would be as large without")


def _broadcast(build: FormBuilder, op: Operation, index: int, source: Operation, shape: Shape) -> Value:
    """Inserts an op with a small result, and the broadcast of that."""
    small = build.again(op, _with(op, index, source.operands[0]), [shape])
    return build.tfl("broadcast_to", (small.results[0], source.operands[1]), op.results[0].type)


PATTERNS: tuple[Pattern[Any], ...] = (
    *(planned(f"broadcast-into-{name}", name, _into, benefit=0) for name in _BROADCASTING),
    *(
        planned(f"{where}-like-into-{name}", name, _like, depth=2, producers={index: _LIKE})
        for name in _BROADCASTING
        if not name.startswith("select")
        for index, where in enumerate(("left", "right"))
    ),
    *(planned(f"broadcast-behind-{name}", name, _behind, benefit=0, producers={0: _SOURCE}) for name in _UNARY),
    *(
        planned(f"{where}-broadcast-behind-{name}", name, _behind, benefit=0, producers={index: _SOURCE})
        for name in _BINARY
        for index, where in enumerate(("left", "right"))
    ),
)
