"""Computes the commonest StableHLO ops of constants in place: what a batch normalization has for its parameters.

The ops' rows compute the same, but they create `tf` ops and infer their shapes first, which takes longer than the
arithmetic on the few elements of such a constant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tfconvert.converter.from_stablehlo.raised_op import BROADCAST
from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.tensor_data import Array, Constant
from tfconvert.schema.dialects.tf import TFOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import F32, TensorType
from tfconvert.schema.ir.values import Value
from tfconvert.schema.limits import budget

# The ops on floats that are the same in TensorFlow.
_SAME: Mapping[str, str] = {
    "stablehlo.add": "AddV2",
    "stablehlo.multiply": "Mul",
    "stablehlo.negate": "Neg",
    "stablehlo.rsqrt": "Rsqrt",
    "stablehlo.subtract": "Sub",
}

_CONSTANT, _RESHAPE = "stablehlo.constant", "stablehlo.reshape"

CONSTANT_OPS = frozenset({_CONSTANT, _RESHAPE, *_SAME})
"""The ops that may become constants."""

_OF_FLOATS: Mapping[str, object] = {"T": np.dtype(np.float32)}

# The bytes of a float, those of the widest type that kernels compute in, and the work for an element.
_SIZE, _WIDE, _WORK = 4, 8, 4


def turn_into_constant(op: Operation) -> bool:
    """Makes a constant of one of `CONSTANT_OPS` whose operands are small constants; returns whether it is one.

    The ops are elementwise ones of floats whose operands have the result's type or are repeated scalars, reshapes to a
    static shape, and constants themselves. All others are left to their rows.
    """
    if op.name == _CONSTANT:
        found = op.properties["value"]
        if not tensor_data.is_constant(found) or found.type is not op.results[0].type:
            return False
    else:
        kind = op.results[0].type
        if not isinstance(kind, TensorType) or not kind.shape or not kind.is_static:
            return False
        computed = _reshaped(op, kind) if op.name == _RESHAPE else _computed(op, kind)
        if computed is None:
            return False
        found = tensor_data.of_array(computed, kind.element_type)
    op.drop_operands()
    op.turn_into(TFOp, "tf.Const", {"value": found})
    return True


def _reshaped(op: Operation, kind: TensorType) -> Array | None:
    constant = tensor_data.constant_of(op.operands[0])
    if constant is None or constant.type is kind or not tensor_data.is_small(constant):
        return None
    return tensor_data.to_array(constant).reshape(kind.shape)


def _computed(op: Operation, kind: TensorType) -> Array | None:
    """Returns the result of an elementwise op, `None` if it is left to the op's row."""
    count, name = math.prod(kind.shape), _SAME[op.name]
    if kind.element_type is not F32 or not 0 < _SIZE * count * len(op.operands) <= tensor_data.MAX_READ_BYTES:
        return None
    constants = [constant for operand in op.operands if (constant := _operand(operand, kind)) is not None]
    if len(constants) < len(op.operands) or all(not each.shape for each in constants):
        return None
    arrays = [tensor_data.to_array(each) for each in constants]
    if name == "Mul" and any(array.flat[0] == 1 for array in arrays):
        # The row leaves out a multiplication by ones.
        return None
    if not all(each.type is kind for each in constants) and any(_may_be_equal(array) for array in arrays):
        # The row computes a scalar of scalars.
        return None
    if not _spend(op, count):
        return None
    (result,) = evaluate(Call(name, tuple(arrays), _OF_FLOATS))
    return result


def _operand(value: Value, kind: TensorType) -> Constant | None:
    """Returns a constant of a type, or the scalar that is repeated to it."""
    constant = tensor_data.constant_of(value)
    if constant is not None:
        return constant if constant.type is kind else None
    owner = value.owner
    if not isinstance(owner, Operation) or owner.name != BROADCAST or value.type is not kind:
        return None
    constant = tensor_data.constant_of(owner.operands[0])
    return constant if constant is not None and not constant.shape else None


def _may_be_equal(array: Array) -> bool:
    """Returns whether all elements of an array that is not a scalar may be the same, by the first and the last."""
    return array.ndim > 0 and bool(array.flat[0] == array.flat[-1])


def _spend(op: Operation, count: int) -> bool:
    """Spends what an op costs at most, as folding does; returns whether there is enough, of which the row reports."""
    made, transient = _WIDE * count, _WIDE * count * len(op.operands)
    work = _WORK * (count + count * len(op.operands))
    spending = budget()
    is_enough = made + transient <= spending.constant_bytes and work <= spending.folding_work
    return is_enough and spending.can_fold(op.name, made, transient, work)
