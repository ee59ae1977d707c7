"""Shapes of ops that create tensors from a shape or a few numbers: fills, ranges, random numbers, spectra."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tfconvert.ops.operands import Operands, ShapeFunction
from tfconvert.schema.dialects.dims import MismatchError, Partial, dim_of_element, text, with_rank, with_rank_at_least
from tfconvert.schema.dialects.types import Shape

Shapes = Sequence[Shape | None]

MAX_LENGTH = 1 << 62


def _as_shape(elements: Partial | None) -> Shape | None:
    if elements is None:
        return None
    if any(-(1 << 63) <= element < 0 for element in elements):
        raise MismatchError(f"{list(elements)} is not a shape")
    return tuple(map(dim_of_element, elements))


def _of_first(operands: Operands) -> Shapes:
    return (_as_shape(operands.elements(0)),)


def _range(operands: Operands) -> Shapes:
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


def _lin_space(operands: Operands) -> Shapes:
    number = operands.partial(2)
    return ((dim_of_element(number[0]) if number else -1,),)


def _multinomial(operands: Operands) -> Shapes:
    logits, number = with_rank(operands.shape(0), 2), operands.partial(1)
    return ((logits[0], dim_of_element(number[0]) if number else -1),)


def _real_spectrum(operands: Operands) -> Shapes:
    """RFFT: the last dimensions become the transform's length, the innermost half of it and one more."""
    return (_spectrum(operands, is_real_result=False),)


def _real_signal(operands: Operands) -> Shapes:
    return (_spectrum(operands, is_real_result=True),)


def _spectrum(operands: Operands, *, is_real_result: bool) -> Shape | None:
    shape, lengths = operands.shape(0), operands.elements(1)
    count = int(operands.op.name[-2]) if operands.op.name.endswith("D") else 1
    with_rank_at_least(shape, count)
    if shape is None:
        return None
    if lengths is None:
        return (*shape[:-count], *(-1,) * count)
    if len(lengths) != count:
        raise MismatchError(f"its transform's lengths {text(lengths)} should be {count}")
    dims = list(map(dim_of_element, lengths))
    if not is_real_result and dims[-1] != -1:
        dims[-1] = dims[-1] // 2 + 1 if dims[-1] >= 0 else -1
    return (*shape[:-count], *dims)


def _list_item(operands: Operands) -> Shapes:
    """Readers of a list's element declare the shape that they expect, -1 where any dimension will do."""
    elements = operands.elements(2) if operands.shape(2) not in ((), None) else None
    if elements is None:
        return (None,)
    return (tuple(-1 if element == -1 else dim_of_element(element) for element in elements),)


def _scalar(operands: Operands) -> Shapes:
    return ((),) * len(operands.op.results)


_FROM_SHAPE = (
    "Empty",
    "Fill",
    "ParameterizedTruncatedNormal",
    "RandomStandardNormal",
    "RandomUniform",
    "RandomUniformInt",
    "StatelessRandomNormal",
    "StatelessRandomUniform",
    "StatelessRandomUniformFullInt",
    "StatelessRandomUniformInt",
    "StatelessTruncatedNormal",
    "StatelessRandomNormalV2",
    "StatelessRandomUniformV2",
    "TruncatedNormal",
)

SHAPES: Mapping[str, ShapeFunction] = {
    **dict.fromkeys(_FROM_SHAPE, _of_first),
    **dict.fromkeys(("RFFT", "RFFT2D", "RFFT3D"), _real_spectrum),
    **dict.fromkeys(("IRFFT", "IRFFT2D", "IRFFT3D"), _real_signal),
    **dict.fromkeys(("Timestamp", "VarHandleOp", "VarIsInitializedOp", "HashTableV2"), _scalar),
    "LinSpace": _lin_space,
    "Multinomial": _multinomial,
    "Range": _range,
    "TensorListGetItem": _list_item,
}
"""Op name -> shape function."""
