"""Moves layout changes of fake-quantized constants before the fake quantization, where they are free.

    transpose(fake_quant(w), p)  ->  fake_quant(transpose(w, p))
    reshape(fake_quant(w), s)    ->  fake_quant(reshape(w, s))

The same holds for `dequantize(quantize(w))`, whose axis is renumbered.
"""

from __future__ import annotations

from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert import fake_quant
from tfconvert.converter.targets.litert.optimize import matching, transposes
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _match(op: Operation) -> Value | Failure:
    value = op.operands[0]
    if fake_quant.source_of(value) is None or fake_quant.constant_behind(value) is None:
        return Failure("it isn't about a fake-quantized constant")
    return value


def _match_transpose(op: Operation) -> Value | Failure:
    return _match(op) if transposes.permutation_of(op) is not None else Failure("the permutation is computed")


def _rewrite_transpose(op: Operation, match: Value, rewriter: Rewriter) -> None:
    permutation = transposes.permutation_of(op)
    assert permutation is not None, "checked by the match"
    moved = fake_quant.transposed(rewriter.insert, match, permutation)
    assert moved is not None, "checked by the match"
    rewriter.replace(moved)


def _match_reshape(op: Operation) -> Value | Failure:
    value, shape = _match(op), matching.static_shape(op.results[0])
    if shape is None:
        return Failure("the shape is not known")
    if isinstance(value, Failure) or fake_quant.can_reshape(value, shape):
        return value
    return Failure("no dimension has slices with one range")


def _rewrite_reshape(op: Operation, match: Value, rewriter: Rewriter) -> None:
    shape = matching.static_shape(op.results[0])
    moved = None if shape is None else fake_quant.reshaped(rewriter.insert, match, shape)
    assert moved is not None, "checked by the match"
    rewriter.replace(moved)


PATTERNS: tuple[Pattern[Value], ...] = (
    Pattern(
        "transpose-below-fake-quant",
        "tfl.transpose",
        _match_transpose,
        _rewrite_transpose,
        benefit=15,
        depth=3,
        producers={0: fake_quant.LAST},
    ),
    Pattern(
        "reshape-below-fake-quant",
        "tfl.reshape",
        _match_reshape,
        _rewrite_reshape,
        benefit=15,
        depth=3,
        producers={0: fake_quant.LAST},
    ),
)
