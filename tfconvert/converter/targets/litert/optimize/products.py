"""Simplifies batched matrix products: fuses transposes of the last two dimensions, and turns constants into weights.

batch_matmul(transpose(x, [..., n, n - 1]), y)  ->  batch_matmul{adj_x}(x, y)    y as well
batch_matmul(x, w)                              ->  fully_connected(x, w)        where w is a constant matrix
mul(batch_matmul(f(x), y), c)                   ->  batch_matmul(f(mul(x, c)), y)

In the last one, c is a number, x comes from a dense layer, and f only moves numbers: heads of an attention. The layer's
weights absorb the number.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.optimize import matching
from tfconvert.schema.dialects import attributes, tensor_data, tfl
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_FLAGS = ("adj_x", "adj_y")


class _Adjoint(NamedTuple):
    """An operand that is transposed: its position and the transpose."""

    position: int
    transpose: Operation


def _match(op: Operation) -> _Adjoint | Failure:
    for index, operand in enumerate(op.operands):
        transpose = operand.producer("tfl.transpose")
        permutation = None if transpose is None else constant_ints(transpose.operands[1])
        if transpose is None or permutation is None or len(permutation) < 2:
            continue
        rank = len(permutation)
        if permutation == (*range(rank - 2), rank - 1, rank - 2):
            return _Adjoint(index, transpose)
    return Failure("no operand has its last two dimensions transposed")


def _rewrite(op: Operation, match: _Adjoint, rewriter: Rewriter) -> None:
    flag = _FLAGS[match.position]
    operands = list(op.operands)
    operands[match.position] = match.transpose.operands[0]
    options = {flag: attributes.boolean(not tfl.attribute(op, flag))}
    rewriter.replace(rewriter.insert(rebuild(op, operands, None, options)))


def _match_weights(op: Operation) -> Constant | Failure:
    weights, dims = tensor_data.constant_of(op.operands[1]), op.operands[0].shape
    if weights is None or len(matching.dims_of(weights)) != 2 or not dims or len(dims) < 2:
        return Failure("the right side isn't a constant matrix, or the left side's rank is unknown")
    floats = all(matching.is_float(value) for value in (*op.operands, *op.results))
    if not floats or tfl.attribute(op, "adj_x"):
        return Failure("the left side is transposed, or the elements aren't 32-bit floats")
    if tfl.attribute(op, "adj_y"):
        return weights
    depth, width = matching.dims_of(weights)
    return tensor_data.defer("transpose", (weights,), (width, depth), (1, 0))


def _rewrite_weights(op: Operation, match: Constant, rewriter: Rewriter) -> None:
    weights = matching.insert_constant(rewriter, match, op.operands[1])
    absent = rewriter.insert(tfl.no_value()).results[0]
    keeps = len(op.operands[0].shape or ()) > 2
    options: dict[str, Any] = {matching.ACTIVATION: "NONE", "keep_num_dims": keeps}
    operands = [op.operands[0], weights, absent]
    rewriter.replace(rewriter.insert(tfl.build("fully_connected", operands, [op.results[0].type], options)))


_MOVES = frozenset({"tfl.reshape", "tfl.transpose"})


class _Scaled(NamedTuple):
    """A number that moves to a dense layer: the product, the layer's result, and the number."""

    product: Operation
    dense: Value
    factor: Constant


def _match_scaled(op: Operation) -> _Scaled | Failure:
    found = matching.with_constant(op) if matching.is_plain(op) else None
    if found is None or matching.size_of(found[1]) != 1 or len(matching.dims_of(found[1])) > 1:
        return Failure("it isn't multiplied by one number")
    product = found[0].sole_producer("tfl.batch_matmul")
    if product is None or not matching.is_float(found[0]):
        return Failure("it isn't a product of 32-bit floats")
    for operand in product.operands:
        value = operand
        while (move := value.sole_producer(_MOVES)) is not None:
            value = move.operands[0]
        dense = value.sole_producer("tfl.fully_connected")
        if dense is not None and matching.is_plain(dense) and tensor_data.constant_of(dense.operands[1]) is not None:
            return _Scaled(product, value, found[1])
    return Failure("no factor comes from a dense layer alone")


def _rewrite_scaled(op: Operation, match: _Scaled, rewriter: Rewriter) -> None:
    use = match.dense.first_use
    assert use is not None, "it has one use"
    user, index = use.operation, use.index
    factor = matching.insert_constant(rewriter, match.factor, *matching.constants_of(op), before=user)
    scaled = tfl.build("mul", [match.dense, factor], [match.dense.type], {matching.ACTIVATION: "NONE"})
    user.set_operand(index, rewriter.insert(scaled, before=user).results[0])
    rewriter.replace(match.product.results[0])


PATTERNS: tuple[Pattern[Any], ...] = (
    Pattern("scale-of-product", "tfl.mul", _match_scaled, _rewrite_scaled, depth=4),
    Pattern(
        "weights-of-product", "tfl.batch_matmul", _match_weights, _rewrite_weights, producers={1: ("tfl.pseudo_const",)}
    ),
    Pattern("transpose-into-product", "tfl.batch_matmul", _match, _rewrite, depth=2),
)
