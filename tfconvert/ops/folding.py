"""Computes ops whose operands are all constants, without reading weights where an expression over them will do."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

from tfconvert.ops import registry
from tfconvert.ops.call import call_of
from tfconvert.ops.cost import PADDED, cost_of
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tensor_data, tf_effects, types
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.dialects.tf_traits import IDENTITIES
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult
from tfconvert.schema.limits import budget

# These hold quantization parameters, which folding would lose, or create a list, which is not a constant.
_KEPT_PREFIXES = ("FakeQuant", "QuantizeAndDequantize", "EmptyTensorList", "TensorArray", "TensorList")

_KEPT = frozenset({"Const", "Placeholder", "PlaceholderWithDefault", "NoOp", "Assert"})

# Bytes of operands and results that are not worth counting.
_TRIFLE = 1 << 10

_Plan = tuple[str, Hashable]


def fold(op: Operation, constants: Sequence[Constant], shapes: Sequence[Shape | None]) -> list[Constant] | None:
    """Returns the results of an op as constants, `None` if it is better left alone, or fails at run time.

    Args:
        op: A `tf` op.
        constants: Its operands.
        shapes: Its results' shapes as inferred.
    """
    name = op.name.removeprefix("tf.")
    if not can_fold(name) or not op.results or not tf_effects.is_pure(op) or registry.is_declined(op):
        return None
    if name in IDENTITIES:
        return list(constants)
    inputs = _size_of_all(constants)
    outputs = sum(_result_size(result, shape) for result, shape in zip(op.results, shapes, strict=True))
    # Beyond that a result must not be larger than its operands.
    limit = max(tensor_data.MAX_FOLDED_BYTES, inputs)
    if outputs > limit:
        return None
    if inputs > tensor_data.MAX_READ_BYTES:
        deferred = _deferred(name, op, constants, shapes[0])
        if deferred is not None:
            return [deferred]
    # Most of what is folded is a number or a shape, for which asking would cost more than computing.
    if inputs + outputs > _TRIFLE or not outputs or name in PADDED:
        cost = cost_of(name, op, constants, shapes)
        if not budget().can_fold(op.name, cost.made, cost.transient, cost.work):
            return None
    return _computed(op, constants, limit)


def _size_of_all(constants: Sequence[Constant]) -> int:
    """Returns the size of constants in bytes, each counted once."""
    size = sum(map(size_of, constants))
    if size > tensor_data.MAX_READ_BYTES:
        size = sum(map(size_of, set(constants)))
    return size


def can_fold(op_name: str) -> bool:
    """Returns whether an op can be computed at all, and means nothing beyond its value."""
    is_kept = op_name in _KEPT or op_name.startswith(_KEPT_PREFIXES)
    return not is_kept and registry.kernel(op_name) is not None


def size_of(constant: Constant) -> int:
    """Returns the size of a constant's value in bytes; a string counts as a pointer."""
    if isinstance(constant, tensor_data.TensorData):
        return math.prod(constant.shape) * constant.dtype.itemsize
    return len(constant.data)


def _result_size(result: OpResult, shape: Shape | None) -> int:
    """Returns a result's size in bytes, 0 where it isn't known."""
    row = types.from_mlir(result.element)
    if shape is None or row is None or any(dim < 0 for dim in shape):
        return 0
    return math.prod(shape) * row.dtype.itemsize


def _computed(op: Operation, constants: Sequence[Constant], limit: int) -> list[Constant] | None:
    try:
        arrays = registry.evaluate(call_of(op, [tensor_data.to_array(constant) for constant in constants]))
    except (ConversionError, ZeroDivisionError) as problem:
        if isinstance(problem, ConversionError) and problem.code == "bad-checksum":
            raise
        # It would fail at run time, but it may never run: a branch not taken.
        return None
    if len(arrays) != len(op.results) or sum(array.nbytes for array in arrays) > limit:
        return None
    rows = [types.from_mlir(result.element) for result in op.results]
    if any(row is None or row.dtype != array.dtype for row, array in zip(rows, arrays, strict=True)):
        return None
    return [tensor_data.of_array(array, row.mlir) for array, row in zip(arrays, rows, strict=True) if row is not None]


def _deferred(name: str, op: Operation, constants: Sequence[Constant], shape: Shape | None) -> Constant | None:
    """Returns the lazy form of a result, `None` where no expression says the same."""
    plan = _PLANS.get(name)
    if plan is None or shape is None or any(dim < 0 for dim in shape):
        return None
    found = plan(op, constants, shape)
    if found is None:
        return None
    function, parameter = found
    arguments = tuple(constants) if function in _ARITHMETIC else (constants[0],)
    return tensor_data.defer(function, arguments, shape, parameter, op.results[0].element)


def _plan_transpose(op: Operation, constants: Sequence[Constant], shape: Shape) -> _Plan:
    return ("transpose", tuple(tensor_data.to_array(constants[1]).tolist()))


def _plan_reshape(op: Operation, constants: Sequence[Constant], shape: Shape) -> _Plan:
    return ("reshape", shape)


def _plan_cast(op: Operation, constants: Sequence[Constant], shape: Shape) -> _Plan | None:
    source = types.numpy_dtype(constants[0].type.element_type)
    target = types.numpy_dtype(op.results[0].element)
    if not _is_real(source) or not _is_float(target):
        return None
    return ("cast", target)


def _plan_arithmetic(op: Operation, constants: Sequence[Constant], shape: Shape) -> _Plan | None:
    if not _is_float(types.numpy_dtype(constants[0].type.element_type)):
        return None
    return (_ARITHMETIC_NAMES[op.name.removeprefix("tf.")], None)


def _is_float(dtype: np.dtype[np.generic]) -> bool:
    return dtype.kind == "f" or dtype.name == "bfloat16"


def _is_real(dtype: np.dtype[np.generic]) -> bool:
    return dtype.kind in "iu" or _is_float(dtype)


_ARITHMETIC_NAMES = {"Add": "add", "AddV2": "add", "Mul": "mul", "RealDiv": "div", "Sub": "sub"}
_ARITHMETIC = frozenset(_ARITHMETIC_NAMES.values())

_PLANS: Mapping[str, Callable[[Operation, Sequence[Constant], Shape], _Plan | None]] = {
    **dict.fromkeys(_ARITHMETIC_NAMES, _plan_arithmetic),
    **dict.fromkeys(("ExpandDims", "Reshape", "Squeeze"), _plan_reshape),
    "Cast": _plan_cast,
    "Transpose": _plan_transpose,
}
