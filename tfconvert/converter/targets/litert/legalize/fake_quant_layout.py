"""Moves layout changes of fake-quantized constants before the quantization, so that filters stay constants."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert import fake_quant
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _match(op: Operation) -> Value | Failure:
    value = op.operands[0]
    if fake_quant.source_of(value) is None or fake_quant.constant_behind(value) is None:
        return Failure("it isn't about a fake-quantized constant")
    if not types.is_static(op.results[0].shape):
        return Failure("the shape is not known")
    is_known = op.name != "tf.Transpose" or tensor_data.constant_of(op.operands[1]) is not None
    return value if is_known else Failure("the permutation is computed")


def _rewrite(op: Operation, match: Value, rewriter: Rewriter) -> None:
    emit = LiteRTBuilder(rewriter)
    if op.name == "tf.Transpose":
        permutation: Sequence[int] = tensor_data.to_array(_known(op.operands[1])).reshape(-1).tolist()
        rewriter.replace(emit.transpose(match, [axis % len(permutation) for axis in permutation]))
    else:
        rewriter.replace(emit.reshape(match, op.results[0].shape or ()))


def _known(value: Value) -> Constant:
    constant = tensor_data.constant_of(value)
    assert constant is not None, "checked by the match"
    return constant


GATES = fake_quant.LAST
"""The ops, one of which a model has if a pattern matches."""

PATTERNS: tuple[Pattern[Value], ...] = tuple(
    Pattern(f"{name}-of-fake-quant", f"tf.{name}", _match, _rewrite, producers={0: fake_quant.LAST})
    for name in ("ExpandDims", "Reshape", "Squeeze", "Transpose")
)
