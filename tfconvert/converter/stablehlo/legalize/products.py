"""Products of matrices, and sums of products by letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.converter.stablehlo.legalize.emit import DeclinedError, Emit
from tfconvert.converter.stablehlo.legalize.entry import Lowering, attribute
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.stablehlo_attributes import DotAttr
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def dot(
    lhs: Value,
    rhs: Value,
    batch: Sequence[tuple[int, int]],
    contracted: Sequence[tuple[int, int]],
    emit: Emit,
    element: Attribute | None = None,
) -> Value:
    """Inserts a product; the result has the batch dimensions, then the free ones of both operands.

    Args:
        lhs: The first operand.
        rhs: The second one.
        batch: Pairs of dimensions that both have.
        contracted: Pairs of dimensions that are summed over.
        emit: The emitter.
        element: The result's element type, the operands' by default.
    """
    left, right = emit.dims(lhs), emit.dims(rhs)
    gone = [*batch, *contracted]
    dims = [max(left[one], right[other]) if min(left[one], right[other]) < 0 else left[one] for one, other in batch]
    dims += [dim for axis, dim in enumerate(left) if axis not in [one for one, _ in gone]]
    dims += [dim for axis, dim in enumerate(right) if axis not in [other for _, other in gone]]
    numbers = DotAttr.get(
        lhs_batching_dimensions=[one for one, _ in batch],
        rhs_batching_dimensions=[other for _, other in batch],
        lhs_contracting_dimensions=[one for one, _ in contracted],
        rhs_contracting_dimensions=[other for _, other in contracted],
    )
    kind = element or types.element_of(lhs.type)
    return emit.one("dot_general", (lhs, rhs), kind, dims, {"dot_dimension_numbers": numbers})


def _mat_mul(op: Operation, emit: Emit) -> Value:
    lhs, rhs = op.operands
    contracted = (int(not attribute(op, "transpose_a", False)), int(attribute(op, "transpose_b", False)))
    return dot(lhs, rhs, (), [contracted], emit)


def _batch_mat_mul(op: Operation, emit: Emit) -> Value:
    lhs, rhs = op.operands[:2]
    names = ("adj_x", "adj_y")
    turned = [bool(attribute(op, name, False)) for name in names]
    left, right = emit.dims(lhs), emit.dims(rhs)
    element = types.element_of(op.results[0].type)
    if len(right) == 2 and len(left) > 2 and not turned[0]:
        return dot(lhs, rhs, (), [(len(left) - 1, int(turned[1]))], emit, element)
    joined = emit.join(left[:-2], right[:-2])
    lhs = emit.broadcast(lhs, (*joined, *left[-2:]))
    rhs = emit.broadcast(rhs, (*joined, *right[-2:]))
    rank = len(joined) + 2
    contracted = (rank - 2 if turned[0] else rank - 1, rank - 1 if turned[1] else rank - 2)
    return dot(lhs, rhs, [(axis, axis) for axis in range(len(joined))], [contracted], emit, element)


def _spelled(op: Operation, emit: Emit) -> tuple[list[str], str]:
    """Returns the letters of an einsum's operands and of its result, those of ellipses in capitals that nobody uses."""
    equation = str(attribute(op, "equation", "")).replace(" ", "")
    inputs, arrow, output = equation.partition("->")
    if not arrow:
        raise DeclinedError("its equation has no result")
    free = [chr(code) for code in range(0xC0, 0x100)]
    terms = []
    for term, value in zip(inputs.split(","), op.operands, strict=True):
        missing = len(emit.dims(value)) - len(term.replace("...", ""))
        terms.append(term.replace("...", "".join(free[len(free) - missing :]) if missing else ""))
    most = max(len(set(term) & set(free)) for term in terms)
    output = output.replace("...", "".join(free[len(free) - most :]) if most else "")
    if any(len(set(term)) < len(term) for term in (*terms, output)):
        raise DeclinedError("a letter occurs twice in one term of its equation")
    return terms, output


def _einsum(op: Operation, emit: Emit) -> Value:
    terms, output = _spelled(op, emit)
    values = list(op.operands)
    for index, term in enumerate(terms):
        others = output + "".join(terms[:index] + terms[index + 1 :])
        axes = [axis for axis, letter in enumerate(term) if letter not in others]
        if axes:
            values[index] = emit.reduce("add", values[index], axes, 0)
            terms[index] = "".join(letter for letter in term if letter in others)
    if len(terms) > 2:
        raise DeclinedError("it has more than two operands")
    value, letters = values[0], terms[0]
    if len(terms) == 2:
        one, other = terms
        both = [letter for letter in one if letter in other]
        batch = [letter for letter in both if letter in output]
        summed = [letter for letter in both if letter not in output]
        pairs = [[(one.index(letter), other.index(letter)) for letter in group] for group in (batch, summed)]
        value = dot(values[0], values[1], pairs[0], pairs[1], emit)
        letters = "".join([*batch, *(each for each in one + other if each not in both)])
    return emit.transpose(value, [letters.index(letter) for letter in output])


LOWERINGS: Mapping[str, Lowering] = {
    "BatchMatMul": _batch_mat_mul,
    "BatchMatMulV2": _batch_mat_mul,
    "BatchMatMulV3": _batch_mat_mul,
    "Einsum": _einsum,
    "MatMul": _mat_mul,
}
