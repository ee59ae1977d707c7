"""Ops that newer ones have replaced, where a function's body still has them; main graphs are imported without them."""

from __future__ import annotations

from functools import partial

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _blocks(op: Operation, emit: LiteRTBuilder) -> Value:
    """The block was as high as wide, and an attribute."""
    size = tf.get(op, "block_size")
    operands = (op.operands[0], emit.ints((size, size)), op.operands[1])
    return emit.tf(f"{op.name.removeprefix('tf.')}ND", operands, op.results[0].type)


def _top_k(op: Operation, emit: LiteRTBuilder) -> list[Value]:
    count = emit.scalar(tf.get(op, "k"), types.I32)
    options = {"sorted": tf.get(op, "sorted", True)}
    result_types = [result.type for result in op.results]
    return list(emit.tf_op("TopKV2", (op.operands[0], count), result_types, options).results)


def _renamed(name: str, op: Operation, emit: LiteRTBuilder) -> Value:
    return emit.tf(name, op.operands, op.results[0].type, op.properties)


def _batch_norm(op: Operation, emit: LiteRTBuilder) -> Value:
    """`(x - mean) * gamma / sqrt(variance + epsilon) + beta`, with the statistics as one factor and one addend."""
    x, mean, variance, beta, gamma = op.operands
    factor = emit.unary("Rsqrt", emit.binary("AddV2", variance, tf.get(op, "variance_epsilon")))
    if tf.get(op, "scale_after_normalization"):
        factor = emit.binary("Mul", factor, gamma)
    addend = emit.binary("Sub", beta, emit.binary("Mul", mean, factor))
    return emit.binary("AddV2", emit.binary("Mul", x, factor), addend)


def _sparse_product(op: Operation, emit: LiteRTBuilder) -> Value:
    """Its operands are ordinary matrices that happen to have many zeros; they may be halves, the result is not."""
    operands = [emit.cast(operand, types.F32) for operand in op.operands]
    options = {name: tf.get(op, name, False) for name in ("transpose_a", "transpose_b")}
    return emit.tf("MatMul", operands, op.results[0].type, options)


def _reverse(op: Operation, emit: LiteRTBuilder) -> Value:
    constant = tensor_data.constant_of(op.operands[1])
    assert constant is not None, "checked by the constraint"
    axes = tensor_data.to_array(constant).reshape(-1).nonzero()[0]
    return emit.tf("ReverseV2", (op.operands[0], emit.ints(axes.tolist())), op.results[0].type)


def _flags_are_known(op: Operation) -> Failure | None:
    known = tensor_data.constant_of(op.operands[1]) is not None
    return None if known else Failure("which dimensions are reversed is not a constant")


_RENAMED = {f"Batch{name}": name for name in ("MatrixBandPart", "MatrixDiag", "MatrixDiagPart", "MatrixSetDiag")}

ENTRIES: tuple[Entry, ...] = (
    *(Lowering(op, name, partial(_renamed, name)) for op, name in _RENAMED.items()),
    Lowering("BatchNormWithGlobalNormalization", "AddV2 Rsqrt Mul Sub", _batch_norm, "f32"),
    Lowering("BatchToSpace", "BatchToSpaceND", _blocks),
    Lowering("Reverse", "ReverseV2", _reverse, constraint=_flags_are_known),
    Lowering("SpaceToBatch", "SpaceToBatchND", _blocks),
    Lowering("SparseMatMul", "Cast MatMul", _sparse_product, "f32 bf16"),
    Lowering("TopK", "TopKV2", _top_k),
)
