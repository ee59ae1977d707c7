"""Softmax over few classes, and normalization of vectors, by their steps.

XNNPACK's softmax handles one vector after the other, which takes 40 ns even for two numbers, and the rest of a vector
beyond a multiple of 16 numbers as slowly. Its elementwise operators and reductions have no such cost.

    softmax(x)      ->  transpose(e / sum(e)), e = exp(y - max(y)), y = transpose(x)
    log_softmax(x)  ->  y - log(sum(exp(y))), y = x - max(x)

XNNPACK doesn't run the normalization, which also cuts the part that it runs in two.

    l2_normalization(x)  ->  x * rsqrt(maximum(sum(square(x)), 1e-12))

Layer normalization needs the difference of a value and its mean twice, and XNNPACK squares while it adds up.

    squared_difference(x, m)  ->  square(d), d = sub(x, m)        where sub(x, m) is there, too
"""

from __future__ import annotations

from typing import Any

from tfconvert.converter.rewrite.pattern import Failure, Pattern, need
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.accelerators.builder import shape_of
from tfconvert.converter.targets.litert.fast.fast_form import Emit, FastBuilder, elements, fast, is_float, large, worth
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.converter.targets.litert.optimize import matching
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# The numbers of vectors and of classes with which the rows of `speed.tsv` are several times faster.
_MIN_VECTORS = 512
_MAX_CLASSES = 31
_MIN_LOGARITHMS = 1024

# How many ops further on a difference is looked for.
_NEAR = 16

# The length of vectors from which the row of normalization is several times faster; with 8 numbers it is slower.
_MIN_VECTOR = 16
# LiteRT's normalization takes shorter vectors for ones of this squared length.
_MIN_SQUARE = 1e-12


def _softmax(op: Operation) -> Emit:
    x = op.operands[0]
    shape = large(x)
    classes = shape[-1]
    need(is_float(x) and tfl.attribute(op, "beta") == 1, "it isn't of 32-bit floats, or has a factor")
    need(classes > 1, "there is one class")
    worth(elements(shape[:-1]) >= _MIN_VECTORS and classes <= _MAX_CLASSES, "there are few vectors, or many classes")

    def emit_steps(emit: LiteRTBuilder) -> Value:
        build, vectors = FastBuilder(emit), -1 if -1 in shape else elements(shape[:-1])
        y = build.transpose(build.reshape(x, (vectors, classes)), (1, 0))
        powers = build.unary("exp", build.binary("sub", y, build.reduce("reduce_max", y, (0,)), (classes, vectors)))
        one = emit.scalar(1.0, types.F32)
        factors = build.binary("div", one, build.reduce("sum", powers, (0,)), (1, vectors))
        result = build.binary("mul", powers, factors, (classes, vectors))
        return build.reshape(build.transpose(result, (1, 0)), shape)

    return emit_steps


def _log_softmax(op: Operation) -> Emit:
    x = op.operands[0]
    shape = large(x)
    need(is_float(x), "it isn't of 32-bit floats")
    worth(elements(shape) >= _MIN_LOGARITHMS, "the tensor is small")

    def emit_steps(emit: LiteRTBuilder) -> Value:
        build, last = FastBuilder(emit), (len(shape) - 1,)
        y = build.binary("sub", x, build.reduce("reduce_max", x, last), shape)
        total = build.reduce("sum", build.unary("exp", y), last)
        return build.binary("sub", y, build.unary("log", total), shape)

    return emit_steps


def _normalized(op: Operation) -> Emit:
    x = op.operands[0]
    shape = large(x)
    need(is_float(x) and tfl.attribute(op, "fused_activation_function") == "NONE", "it isn't of 32-bit floats")
    worth(shape[-1] >= _MIN_VECTOR, "the vectors are short")

    def emit_steps(emit: LiteRTBuilder) -> Value:
        build, last = FastBuilder(emit), (len(shape) - 1,)
        total = build.reduce("sum", build.unary("square", x), last)
        sums = shape_of(total)
        length = build.unary("rsqrt", build.binary("maximum", total, emit.scalar(_MIN_SQUARE, types.F32), sums))
        return build.binary("mul", x, length, shape)

    return emit_steps


def _match_difference(op: Operation) -> Operation | Failure:
    """Returns the next op that computes the difference of the operands."""
    x, y = op.operands
    if not is_float(x) or shape_of(x) != shape_of(op.results[0]):
        return Failure("it isn't of 32-bit floats, or broadcasts its first operand")
    following = op.next_op
    for _ in range(_NEAR):
        if following is None:
            break
        if following.name == "tfl.sub" and list(following.operands) == [x, y] and matching.is_plain(following):
            return following
        following = following.next_op
    return Failure("the difference isn't used soon")


def _square_difference(op: Operation, match: Operation, rewriter: Rewriter) -> None:
    emit, kind = LiteRTBuilder(rewriter), op.results[0].type
    difference = emit.tfl("sub", op.operands, kind, {"fused_activation_function": "NONE"})
    rewriter.replace_value(match.results[0], difference)
    rewriter.replace(emit.tfl("square", (difference,), kind))


PATTERNS: tuple[Pattern[Any], ...] = (
    fast("softmax-by-steps", "softmax", _softmax),
    fast("log-softmax-by-steps", "log_softmax", _log_softmax),
    fast("normalize-by-steps", "l2_normalization", _normalized),
    Pattern("square-of-difference", "tfl.squared_difference", _match_difference, _square_difference),
)
