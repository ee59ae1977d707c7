"""Padding that programs compute from sizes: recognized by its values, for all sizes of a wide range."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tfconvert.converter.from_stablehlo.raised_op import RaisedOp
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.ops.call import Array, call_of
from tfconvert.ops.registry import evaluate
from tfconvert.schema.dialects.tf_traits import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY
from tfconvert.schema.ir.operation import Operation

# Formulas of sizes are made of sums, products and floors, so that they repeat after few of these sizes.
_SIZES = np.arange(1, 1 << 12, dtype=np.int32)

_SAME_ELEMENTS = frozenset({"tf.Cast", "tf.ExpandDims", "tf.Identity", "tf.Reshape", "tf.Squeeze"})

_ELEMENTWISE = ELEMENTWISE_UNARY | ELEMENTWISE_BINARY | {"SelectV2"}

Pair = tuple[EmittedTensor, EmittedTensor]


def amounts(raised: RaisedOp, padding: EmittedTensor) -> list[Pair]:
    """Returns what is added before and after each dimension, as scalars.

    Args:
        raised: The op.
        padding: A matrix with a row for each dimension.
    """
    found = _scalars(raised, padding)
    return list(zip(found[::2], found[1::2], strict=True))


def _scalars(raised: RaisedOp, tensor: EmittedTensor) -> list[EmittedTensor]:
    """Returns the elements of a tensor, row by row."""
    known = raised.known(tensor)
    if known is not None:
        return [raised.constant(number, np.int32) for number in known.reshape(-1)]
    owner = tensor.value.owner
    count = int(np.prod(raised.sizes(tensor)))
    if count == 1:
        return [raised.reshaped(tensor.cast(np.int32), ())]
    if isinstance(owner, Operation):
        operands = [raised.tensor(operand) for operand in owner.operands]
        if owner.name in _SAME_ELEMENTS:
            return _scalars(raised, operands[0])
        if owner.name in ("tf.ConcatV2", "tf.Pack"):
            parts = operands[:-1] if owner.name == "tf.ConcatV2" else operands
            joined = [scalar for part in parts for scalar in _scalars(raised, part)]
            if len(joined) == count and tensor.rank == len(raised.sizes(parts[0])) + (owner.name == "tf.Pack"):
                return joined
    flat = raised.reshaped(tensor.cast(np.int32), [count])
    return [raised.tensor(flat.builder.pick(flat.value, index)) for index in range(count)]


def equals(raised: RaisedOp, amount: EmittedTensor, size: int, expected: Callable[[Array], Array]) -> bool:
    """Returns whether a scalar has the value that a formula has.

    Args:
        raised: The op.
        amount: The scalar.
        size: The size that the formula is of, as `RaisedOp.sizes` returns it.
        expected: The formula.
    """
    sizes = _SIZES if size < 0 else np.array([size], np.int32)
    found = _evaluated(raised, amount, size, sizes)
    return found is not None and bool((found == expected(sizes)).all())


def _evaluated(raised: RaisedOp, scalar: EmittedTensor, size: int, sizes: Array) -> Array | None:
    """Returns the values of a scalar for all sizes, `None` if it depends on anything else."""
    known = raised.known(scalar)
    if known is not None:
        return known.reshape(())
    if raised.is_size(scalar) and raised.elements(scalar) == (size,):
        return sizes
    owner = scalar.value.owner
    if not isinstance(owner, Operation) or int(np.prod(raised.sizes(scalar))) != 1:
        return None
    name = owner.name.removeprefix("tf.")
    operands = [raised.tensor(operand) for operand in owner.operands[: 1 if owner.name in _SAME_ELEMENTS else None]]
    values = [_evaluated(raised, operand, size, sizes) for operand in operands]
    arrays = [value for value in values if value is not None]
    if len(arrays) < len(values):
        return None
    if owner.name in _SAME_ELEMENTS:
        return arrays[0].astype(scalar.dtype)
    return evaluate(call_of(owner, arrays))[0] if name in _ELEMENTWISE else None


def is_computed_same(raised: RaisedOp, pair: Pair, size: int, extent: int, stride: int) -> bool:
    """Returns whether computed padding of a dimension is what TensorFlow calls `SAME`, for windows of an extent."""

    def total(sizes: Array) -> Array:
        return np.asarray(np.maximum((-(-sizes // stride) - 1) * stride + extent - sizes, 0))

    low, high = pair
    return equals(raised, low, size, lambda sizes: total(sizes) // 2) and equals(
        raised, high, size, lambda sizes: total(sizes) - total(sizes) // 2
    )
