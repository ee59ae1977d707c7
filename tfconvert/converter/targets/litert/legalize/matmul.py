"""Matrix products: fully connected layers where one side is a constant matrix, else batched ones; cross products."""

from __future__ import annotations

import numpy as np

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert import fake_quant
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tf, tfl, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_FLOAT = "f32"


def _constant_matrix(op: Operation) -> Failure | None:
    if fake_quant.constant_behind(op.operands[1]) is None:
        return Failure("the right side is not a constant")
    return None if len(op.operands[1].shape or ()) == 2 else Failure("the right side is not a matrix")


def _swapped(emit: LiteRTBuilder, value: Value) -> Value:
    rank = len(value.shape or (-1, -1))
    return emit.transpose(value, (*range(rank - 2), rank - 1, rank - 2))


def _matmul(op: Operation, emit: LiteRTBuilder) -> Value:
    left, right = op.operands
    if tf.get(op, "transpose_a", False):
        left = _swapped(emit, left)
    weights = right if tf.get(op, "transpose_b", False) else _swapped(emit, right)
    options = {**tfl.NOT_FUSED, "keep_num_dims": False}
    return emit.tfl("fully_connected", (left, weights), op.results[0].type, options)


def _matmul_of_values(op: Operation, emit: LiteRTBuilder) -> Value:
    options = {"adj_x": tf.get(op, "transpose_a", False), "adj_y": tf.get(op, "transpose_b", False)}
    return emit.tfl("batch_matmul", op.operands, op.results[0].type, options)


def _rank_constraint(op: Operation) -> Failure | None:
    ranks = [len(shape) for operand in op.operands if (shape := operand.shape) is not None]
    return Failure("tfl.batch_matmul takes 2 dimensions or more") if any(rank < 2 for rank in ranks) else None


def _layer_constraint(op: Operation) -> Failure | None:
    shape = op.operands[0].shape
    if shape is None or len(shape) < 2:
        return Failure("the left side's rank is not known")
    return Failure("the left side must be transposed") if tf.get(op, "adj_x", False) else _constant_matrix(op)


def _batch_matmul_as_layer(op: Operation, emit: LiteRTBuilder) -> Value:
    weights = op.operands[1] if tf.get(op, "adj_y", False) else _swapped(emit, op.operands[1])
    shape = op.operands[0].shape
    options = {**tfl.NOT_FUSED, "keep_num_dims": shape is not None and len(shape) > 2}
    return emit.tfl("fully_connected", (op.operands[0], weights), op.results[0].type, options)


def _batch_matmul(op: Operation, emit: LiteRTBuilder) -> Value:
    options = {"adj_x": tf.get(op, "adj_x", False), "adj_y": tf.get(op, "adj_y", False)}
    return emit.tfl("batch_matmul", op.operands, op.results[0].type, options)


def _integer_constraint(op: Operation) -> Failure | None:
    shapes = [operand.shape for operand in op.operands]
    if any(shape is None or len(shape) < 2 for shape in shapes):
        return Failure("the operands' ranks are not known")
    return None


def _product_and_sum(op: Operation, emit: LiteRTBuilder) -> Value:
    """There is no matrix kernel for integers: every row times every column, elementwise, summed."""
    left, right = op.operands[:2]
    if tf.get(op, "adj_x", False) or tf.get(op, "transpose_a", False):
        left = _swapped(emit, left)
    if not (tf.get(op, "adj_y", False) or tf.get(op, "transpose_b", False)):
        right = _swapped(emit, right)
    sides = []
    for value, offset in ((left, -1), (right, -2)):
        shape = list(value.shape or ())
        axis = len(shape) + offset
        shape.insert(axis, 1)
        axis_operand = emit.constant(np.array(axis, np.int32))
        result_type = types.tensor(value.element, shape)
        sides.append(emit.tf("ExpandDims", (value, axis_operand), result_type))
    product = emit.binary("Mul", *sides)
    rank = len(product.shape or ())
    return emit.tf("Sum", (product, emit.ints((rank - 1,))), op.results[0].type, {"keep_dims": False})


def _other_types(op: Operation) -> Failure | None:
    """`BatchMatMulV3` may take small integers and have a wider type as a result."""
    result = op.results[0].element
    same = all(operand.element == result for operand in op.operands)
    return Failure("it is computed in the type of its operands") if same else None


def _bytes_to_integers(op: Operation) -> Failure | None:
    elements = [value.element for value in (*op.operands, *op.results)]
    if elements != [types.I8, types.I8, types.I32]:
        return Failure("it isn't a product of i8 and i8 that is summed as i32")
    return _rank_constraint(op)


def _in_result_type(op: Operation, emit: LiteRTBuilder) -> Value:
    """Converts the operands to the type in which TensorFlow adds up their products."""
    element = op.results[0].element
    operands = [emit.cast(operand, element) for operand in op.operands]
    options = {"adj_x": tf.get(op, "adj_x", False), "adj_y": tf.get(op, "adj_y", False)}
    return emit.tf("BatchMatMulV2", operands, op.results[0].type, options)


def _sums_nothing(op: Operation) -> Failure | None:
    shape = op.operands[0].shape or ()
    size = shape[-2 if tf.get(op, "transpose_a", False) else -1] if len(shape) > 1 else -1
    return None if size == 0 and types.is_static(op.results[0].shape) else Failure("it sums something")


def _zeros(op: Operation, emit: LiteRTBuilder) -> Value:
    shape = emit.shape(op.results[0])
    return emit.tf("Fill", (shape, emit.scalar(0, op.results[0].element)), op.results[0].type)


_MIXED = "i8 ui8 f16 bf16 f32"
_BATCHED = ("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")


ENTRIES: tuple[Entry, ...] = (
    Lowering(
        "BatchMatMulV3",
        "batch_matmul",
        _batch_matmul,
        "i8",
        _bytes_to_integers,
        benefit=4,
        name="BatchMatMulV3-of-bytes",
    ),
    Lowering("BatchMatMulV3", "Cast BatchMatMulV2", _in_result_type, _MIXED, _other_types, benefit=3),
    Lowering("MatMul", "Fill", _zeros, _FLOAT, _sums_nothing, benefit=3),
    Lowering("MatMul", "fully_connected", _matmul, _FLOAT, _constant_matrix, benefit=2),
    Lowering("MatMul", "batch_matmul", _matmul_of_values, _FLOAT),
    Lowering("MatMul", "Mul Sum", _product_and_sum, "i32 i64", _integer_constraint),
    *(Lowering(op, "fully_connected", _batch_matmul_as_layer, _FLOAT, _layer_constraint, benefit=2) for op in _BATCHED),
    *(Lowering(op, "batch_matmul", _batch_matmul, _FLOAT, _rank_constraint) for op in _BATCHED),
    *(Lowering(op, "Mul Sum", _product_and_sum, "i32 i64", _integer_constraint) for op in _BATCHED),
)
