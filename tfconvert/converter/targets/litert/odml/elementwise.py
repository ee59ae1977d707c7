"""Recognises rotary position embeddings and gated linear units with SiLU.

concat(a * cos - b * sin, b * cos + a * sin)      where a, b = split(x), and x * cos + concat(-b, a) * sin
gate * logistic(gate) * up
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.converter.targets.litert.odml.norms import reshape
from tfconvert.converter.targets.litert.odml.outline import Body, Insert, Recognized, activation_fits, constant, given
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.attributes import IntegerAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

ROPE = "odml.rope"
SWIGLU = "odml.swiglu"

_MAX_RANK = 4

# Tables of cosines may be as large as this: positions times frequencies.
_MAX_TABLE = 1 << 22

# How far angles that were computed in 32-bit floats are from exact ones, per radian.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class _Angles:
    """The angles of a rotation.

    Attributes:
        frequencies: Radians per position.
        positions: The positions, if they are computed; else they count from 0.
        count: The number of positions.
    """

    frequencies: Array
    positions: Value | None
    count: int


def recognize_rope(op: Operation) -> Recognized | None:
    """Returns the rotary embedding that an op is the last of, if it is of heads before time."""
    if op.name not in ("tfl.add", "tfl.concatenation") or not questions.is_plain(op):
        return None
    for x, cosine, sine in _rotations(op):
        dims = questions.known_shape(x)
        if dims is None or len(dims) != _MAX_RANK or dims[0] != 1 or dims != op.results[0].shape:
            continue
        half = dims[-1] // 2
        angles = _constant_angles(cosine, sine, dims[2], half) or _computed_angles(cosine, sine, dims[2], half)
        scales = None if angles is None else _timescales(angles.frequencies)
        if angles is not None and scales is not None:
            return _rope(op, x, angles, scales)
    return None


def _rope(op: Operation, x: Value, angles: _Angles, scales: tuple[float, float]) -> Recognized:
    count, positions = angles.count, angles.positions
    if positions is None:
        counted: Insert = constant(np.arange(count, dtype=np.float32).reshape(1, count))
    elif positions.shape in ((1, count), (1, count, 1), (1, 1, count, 1)):
        counted = given(positions)
    else:
        found = positions
        counted = lambda builder: reshape(builder, found, (1, count))  # noqa: E731

    def bind(body: Body) -> None:
        body.bind(x, body.arguments[0])
        if positions is not None:
            dims, inside = positions.shape or (), body.arguments[1]
            body.bind(positions, inside if inside.type == positions.type else reshape(body.builder, inside, dims))

    attributes = {"min_timescale": scales[0], "max_timescale": scales[1]}
    return Recognized(ROPE, "rotary embeddings", attributes, op.results[0], [given(x), counted], bind)


def _rotations(op: Operation) -> Iterator[tuple[Value, Value, Value]]:
    """Yields what is rotated, cosine and sine."""
    left, right = op.operands[:2]
    if op.name == "tfl.concatenation":
        yield from _rotations_of_halves(op)
        return
    for straight, turned in ((left, right), (right, left)):
        for (x, cosine), (rotated, sine) in _pairs(_factors(straight), _factors(turned)):
            if _is_rotated(rotated, x):
                yield x, cosine, sine


def _rotations_of_halves(op: Operation) -> Iterator[tuple[Value, Value, Value]]:
    if len(op.operands) != 2 or not _joins_last(op):
        return
    first, second = op.operands[0].producer("tfl.sub"), op.operands[1].producer("tfl.add")
    if first is None or second is None or not questions.is_plain(first) or not questions.is_plain(second):
        return
    for (a, cosine), (b, sine) in _pairs(_factors(first.operands[0]), _factors(first.operands[1])):
        whole = _half(a, 0)
        if whole is None or _half(b, 1) is not whole:
            continue
        for one, other in (second.operands, second.operands[::-1]):
            if (b, cosine) in _factors(one) and (a, sine) in _factors(other):
                yield whole, cosine, sine


def _joins_last(op: Operation) -> bool:
    """Returns whether a concatenation is along the last axis."""
    rank, axis = len(op.results[0].shape or ()), op.properties.get("axis")
    return isinstance(axis, IntegerAttr) and axis.value in (-1, rank - 1)


def _factors(value: Value) -> list[tuple[Value, Value]]:
    op = value.producer("tfl.mul")
    if op is None or not questions.is_plain(op):
        return []
    left, right = op.operands
    return [(left, right), (right, left)]


def _pairs(
    one: list[tuple[Value, Value]], other: list[tuple[Value, Value]]
) -> Iterator[tuple[tuple[Value, Value], tuple[Value, Value]]]:
    return ((first, second) for first in one for second in other)


def _is_rotated(value: Value, x: Value) -> bool:
    """Returns whether a value is `concat(-second half of x, first half of x)`."""
    op = value.producer("tfl.concatenation")
    if op is None or len(op.operands) != 2 or not _joins_last(op) or not questions.is_plain(op):
        return False
    negative = _negated(op.operands[0])
    return negative is not None and _half(negative, 1) is x and _half(op.operands[1], 0) is x


def _negated(value: Value) -> Value | None:
    """Returns the value that another is the negative of: by NEG, or by a product with -1."""
    op = value.producer(frozenset(("tfl.neg", "tfl.mul")))
    if op is None or op.name == "tfl.neg":
        return None if op is None else op.operands[0]
    split = questions.with_constant(op) if questions.is_plain(op) else None
    return split[0] if split is not None and (tensor_data.to_array(split[1]) == -1).all() else None


def _half(value: Value, index: int) -> Value | None:
    """Returns the value that another is the first (0) or the second (1) half of, along the last axis."""
    op = value.producer(frozenset(("tfl.split", "tfl.slice", "tfl.strided_slice")))
    if op is None or not isinstance(value, OpResult):
        return None
    x = op.operands[1 if op.name == "tfl.split" else 0]
    dims, part = questions.known_shape(x), questions.known_shape(value)
    if dims is None or part is None or len(dims) != len(part) or (*dims[:-1], dims[-1] // 2) != part or dims[-1] % 2:
        return None
    if op.name == "tfl.split":
        return x if len(op.results) == 2 and value.index == index else None
    begin = constant_ints(op.operands[1])
    if begin is None or (op.name == "tfl.strided_slice" and not _is_contiguous(op, len(begin), len(dims))):
        return None
    start = 0 if _mask(op, "begin_mask") >> (len(begin) - 1) & 1 else begin[-1]
    return x if start % dims[-1] == index * part[-1] else None


def _mask(op: Operation, name: str) -> int:
    found = op.properties.get(name)
    return found.value if isinstance(found, IntegerAttr) else 0


def _is_contiguous(op: Operation, given_axes: int, rank: int) -> bool:
    """Returns whether a strided slice has steps of 1, and its last position is for the last axis."""
    steps = constant_ints(op.operands[3])
    is_last = given_axes == rank or _mask(op, "ellipsis_mask") != 0
    is_plain = not _mask(op, "new_axis_mask") and not _mask(op, "shrink_axis_mask")
    return steps is not None and set(steps) == {1} and is_last and is_plain


def _constant_angles(cosine: Value, sine: Value, count: int, half: int) -> _Angles | None:
    """Reads frequencies from tables for positions from 0, which are checked against them."""
    tables = [_table(value, count, half) for value in (cosine, sine)]
    cosines, sines = tables
    if cosines is None or sines is None or count < 2 or half < 2:
        return None
    rows = [
        np.arctan2(s[:half].astype(np.float64), c[:half].astype(np.float64))
        for c, s in zip(cosines, sines, strict=True)
    ]
    scales = _timescales(rows[1])
    if scales is None:
        return None
    exact = _frequencies(scales, half)
    angles = np.arange(count)[:, None] * np.tile(exact, cosines.shape[-1] // half)
    allowed = 1e-5 + _ROUNDING * angles
    is_right = np.all(np.abs(np.cos(angles) - cosines) <= allowed) and np.all(np.abs(np.sin(angles) - sines) <= allowed)
    return _Angles(exact, None, count) if is_right else None


def _table(value: Value, count: int, half: int) -> Array | None:
    held = tensor_data.constant_of(value)
    dims = () if held is None else questions.dims_of(held)
    size = math.prod(dims)
    if held is None or not questions.is_float(value) or len(dims) < 2 or size > _MAX_TABLE:
        return None
    if dims[-2] != count or dims[-1] not in (half, 2 * half) or size != count * dims[-1]:
        return None
    return tensor_data.to_array(held).reshape(dims[-2:])


def _computed_angles(cosine: Value, sine: Value, count: int, half: int) -> _Angles | None:
    """Matches the cosine and sine of positions times constant frequencies."""
    one, other = _angle(cosine, "tfl.cos", half), _angle(sine, "tfl.sin", half)
    if one is None or one is not other:
        return None
    for positions, frequencies in _factors(one):
        held = tensor_data.constant_of(frequencies)
        dims = questions.known_shape(positions)
        if held is None or dims is None or math.prod(dims) != count or dims[-1] != 1 or dims[-2:-1] != (count,):
            continue
        numbers = tensor_data.to_array(held).astype(np.float64).reshape(-1)
        is_doubled = numbers.size == 2 * half and np.array_equal(numbers[:half], numbers[half:])
        if (numbers.size == half or is_doubled) and questions.dims_of(held)[-1] == numbers.size:
            return _Angles(numbers[:half], positions, count)
    return None


def _angle(value: Value, name: str, half: int) -> Value | None:
    """Returns the angle of a cosine or sine, of which one half may be a copy of the other."""
    op = _one_of_two(_moved(value)).producer(name)
    if op is None:
        return None
    angle = _one_of_two(_moved(op.operands[0]))
    dims = angle.shape
    return angle if dims is not None and dims[-1] in (half, 2 * half) else None


def _one_of_two(value: Value) -> Value:
    op = value.producer("tfl.concatenation")
    if op is None or len(op.operands) != 2 or op.operands[0] is not op.operands[1]:
        return value
    dims, part = value.shape, op.operands[0].shape
    return op.operands[0] if dims and part and dims[-1] == 2 * part[-1] else value


def _moved(value: Value) -> Value:
    """Returns what a reshape that only adds or removes ones in front reshapes."""
    op = value.producer("tfl.reshape")
    if op is None:
        return value
    dims, source = questions.known_shape(value), questions.known_shape(op.operands[0])
    if dims is None or source is None or len(dims) < 2 or len(source) < 2 or dims[-2:] != source[-2:]:
        return value
    return op.operands[0] if math.prod(dims[:-2]) == math.prod(source[:-2]) == 1 else value


def _frequencies(scales: tuple[float, float], half: int) -> Array:
    low, high = scales
    return 1 / (low * (high / low) ** (np.arange(half) / half))


def _timescales(frequencies: Array) -> tuple[float, float] | None:
    """Returns the smallest and largest timescale of frequencies that are a geometric sequence."""
    half = frequencies.size
    if half < 2 or np.any(frequencies <= 0) or np.any(frequencies > math.pi):
        return None
    low = 1 / float(frequencies[0])
    high = low * float(frequencies[0] / frequencies[-1]) ** (half / (half - 1))
    scales = (_rounded(low), _rounded(high))
    return scales if np.allclose(frequencies, _frequencies(scales, half), rtol=1e-5, atol=0) else None


def _rounded(number: float) -> float:
    """Returns the number of few digits that another is but for rounding, if there is one."""
    short = float(f"{number:.3g}")
    return short if questions.is_close(number, short, relative=1e-5) else number


def recognize_swiglu(op: Operation) -> Recognized | None:
    """Returns the gated linear unit that a product is the last op of."""
    result = op.results[0] if op.name == "tfl.mul" else None
    dims = None if result is None else result.shape
    activation = questions.activation(op)
    if result is None or dims is None or len(dims) > _MAX_RANK or not activation_fits(activation):
        return None
    if not questions.is_float(result):
        return None
    for left, up in (op.operands, op.operands[::-1]):
        gate = _silu(left) or _gate_of(left, up)
        if gate is None:
            continue
        gated, other = gate
        value = up if other is None else other
        if gated.type == result.type == value.type and tensor_data.constant_of(value) is None and gated is not value:
            return _swiglu(result, gated, value, activation)
    return None


def _silu(value: Value) -> tuple[Value, None] | None:
    """Matches `gate * logistic(gate)`."""
    for gate, other in _factors(value):
        op = other.producer("tfl.logistic")
        if op is not None and op.operands[0] is gate and value.has_one_use():
            return gate, None
    return None


def _gate_of(product: Value, gate: Value) -> tuple[Value, Value] | None:
    """Matches `logistic(gate) * up`, which is multiplied by the gate; returns gate and up."""
    for other, up in _factors(product):
        op = other.producer("tfl.logistic")
        if op is not None and op.operands[0] is gate and product.has_one_use():
            return gate, up
    return None


def _swiglu(result: Value, gate: Value, up: Value, activation: str) -> Recognized:
    def bind(body: Body) -> None:
        body.bind(gate, body.arguments[0])
        body.bind(up, body.arguments[1])

    return Recognized(SWIGLU, "gated linear units", {}, result, [given(gate), given(up)], bind, activation=activation)
