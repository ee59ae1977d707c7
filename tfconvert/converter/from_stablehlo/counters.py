"""The positions of elements in 64 bits, of which JAX's random numbers take both words where a size is dynamic.

LiteRT has no unsigned integers of 64 bits. The lower word of sums and products is computed in 32 bits; the upper one is
zero, since no tensor has so many elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tfconvert.converter.from_stablehlo.raised_op import RaisedOp
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.ir.operation import Operation

WORD = 32
"""The number of bits of a word."""

_ARITHMETIC = {"tf.AddV2": "AddV2", "tf.Mul": "Mul"}
_LAYOUT = {"tf.BroadcastTo": "BroadcastTo", "tf.ExpandDims": "ExpandDims", "tf.Reshape": "Reshape"}


def lower_word(raised: RaisedOp, x: EmittedTensor) -> EmittedTensor | None:
    """Returns the lower word of each element of `ui64`s as `ui32`, `None` if they are more than sums and products."""
    constant = tensor_data.constant_of(x.value)
    if constant is not None:
        return raised.constant(tensor_data.to_array(constant) & np.uint64((1 << WORD) - 1), np.uint32)
    owner = x.value.owner
    if not isinstance(owner, Operation):
        return None
    operands = [raised.tensor(operand) for operand in owner.operands]
    if owner.name == "tf.Cast":
        return (
            operands[0].cast(np.uint32) if operands[0].dtype.kind in "iu" and operands[0].dtype.itemsize < 8 else None
        )
    if owner.name in _ARITHMETIC:
        words = [lower_word(raised, operand) for operand in operands]
        found = None if None in words else x.op(_ARITHMETIC[owner.name], *words)
    elif owner.name in _LAYOUT:
        word = lower_word(raised, operands[0])
        found = None if word is None else x.op(_LAYOUT[owner.name], word, operands[1])
    else:
        return None
    if found is not None:
        raised.note(found.value, raised.sizes(x))
    return found


def upper_word(raised: RaisedOp, x: EmittedTensor) -> EmittedTensor | None:
    """Returns zeros as `ui64`s are shifted by a word that are positions of elements in their tensor, else `None`."""
    word = (
        lower_word(raised, x)
        if _is_position(raised, x, math.prod(size for size in raised.sizes(x) if size > 0))
        else None
    )
    return None if word is None else raised.filled(0, word)


def _is_position(raised: RaisedOp, x: EmittedTensor, largest: int) -> bool:
    constant = tensor_data.constant_of(x.value)
    if constant is not None:
        return bool((tensor_data.to_array(constant) <= largest).all())
    owner = x.value.owner
    if not isinstance(owner, Operation):
        return False
    operands = [raised.tensor(operand) for operand in owner.operands]
    if owner.name == "tf.Cast":
        return raised.is_size(operands[0]) or _is_numbered(operands[0].value.owner)
    counted: Sequence[EmittedTensor] = operands if owner.name in _ARITHMETIC else operands[:1]
    return owner.name in {*_ARITHMETIC, *_LAYOUT} and all(_is_position(raised, each, largest) for each in counted)


def _is_numbered(owner: object) -> bool:
    return isinstance(owner, Operation) and owner.name == "tf.Range"
