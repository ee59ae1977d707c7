"""The positions of elements in 64 bits, of which JAX's random numbers take both words where a size is dynamic.

LiteRT has no unsigned integers of 64 bits. The lower word of sums and products is computed in 32 bits; the upper one is
zero, since no tensor has so many elements.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tfconvert.converter.from_stablehlo.raised_op import RaisedOp
from tfconvert.converter.from_stablehlo.ranges import is_size
from tfconvert.converter.from_stablehlo.remembered import remembered
from tfconvert.converter.ir.tasks import Task, drive
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

WORD = 32
"""The number of bits of a word."""

_ARITHMETIC = frozenset({"tf.AddV2", "tf.Mul"})
_LAYOUT = frozenset({"tf.BroadcastTo", "tf.ExpandDims", "tf.Reshape"})


def lower_word(raised: RaisedOp, x: EmittedTensor) -> EmittedTensor | None:
    """Returns the lower word of each element of `ui64`s as `ui32`, `None` if they are more than sums and products."""
    # Words that are computed in a block are of use in that block only.
    words: dict[Value, Value | None] = x.known.answers.setdefault((lower_word, raised.op.parent), {})
    word = drive(_word(raised, x, words))
    return None if word is None else raised.tensor(word)


def _word(raised: RaisedOp, x: EmittedTensor, words: dict[Value, Value | None]) -> Task[Value | None]:
    """Computes the lower word of `x` once, however many sums and products it is part of."""
    if x.value not in words:
        constant, found = tensor_data.constant_of(x.value), None
        if constant is not None:
            found = raised.constant(tensor_data.to_array(constant) & np.uint64((1 << WORD) - 1), np.uint32)
        else:
            found = yield from _computed_word(raised, x, words)
        words[x.value] = None if found is None else found.value
    return words[x.value]


def _computed_word(raised: RaisedOp, x: EmittedTensor, words: dict[Value, Value | None]) -> Task[Any]:
    owner = x.value.owner
    if not isinstance(owner, Operation):
        return None
    operands = [raised.tensor(operand) for operand in owner.operands]
    if owner.name == "tf.Cast":
        (source,) = operands
        return source.cast(np.uint32) if source.dtype.kind in "iu" and source.dtype.itemsize < 8 else None
    is_layout = owner.name in _LAYOUT
    if not is_layout and owner.name not in _ARITHMETIC:
        return None
    parts: list[EmittedTensor] = []
    for operand in operands[:1] if is_layout else operands:
        word = yield _word(raised, operand, words)
        if word is None:
            return None
        parts.append(raised.tensor(word))
    found = x.op(owner.name.removeprefix("tf."), *parts, *(operands[1:] if is_layout else ()))
    raised.note(found.value, raised.sizes(x))
    return found


def upper_word(raised: RaisedOp, x: EmittedTensor) -> EmittedTensor | None:
    """Returns zeros as `ui64`s are shifted by a word that are positions of elements in their tensor, else `None`."""
    factor = drive(_largest_factor(x))
    if factor is None or factor > math.prod(size for size in raised.sizes(x) if size > 0):
        return None
    word = lower_word(raised, x)
    return None if word is None else raised.filled(0, word)


@remembered
def _largest_factor(x: EmittedTensor) -> Task[int | None]:
    """Returns the largest constant that positions are computed with, `None` if other numbers are."""
    constant = tensor_data.constant_of(x.value)
    if constant is not None:
        return int(tensor_data.to_array(constant).max(initial=0))
    owner = x.value.owner
    if not isinstance(owner, Operation):
        return None
    operands = [EmittedTensor(x.builder, operand, x.known) for operand in owner.operands]
    if owner.name == "tf.Cast":
        return 0 if is_size(operands[0].value, x.known) or _is_numbered(operands[0].value.owner) else None
    if owner.name not in _ARITHMETIC | _LAYOUT:
        return None
    largest = 0
    for operand in operands if owner.name in _ARITHMETIC else operands[:1]:
        factor = yield _largest_factor(operand)
        if factor is None:
            return None
        largest = max(largest, factor)
    return largest


def _is_numbered(owner: object) -> bool:
    return isinstance(owner, Operation) and owner.name == "tf.Range"
