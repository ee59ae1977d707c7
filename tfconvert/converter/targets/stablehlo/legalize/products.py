"""Products of matrices, and sums of products by letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.converter.targets.stablehlo.legalize.constraints import require_equal
from tfconvert.converter.targets.stablehlo.legalize.emit import DeclinedError, Emit
from tfconvert.converter.targets.stablehlo.legalize.entry import Lowering, attribute
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.stablehlo import DotAttr
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
    for one, other in gone:
        require_equal(left[one], right[other], "the sizes that it multiplies along must be equal", emit)
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
    if len(set(output)) < len(output):
        raise DeclinedError("a letter occurs twice in the result of its equation")
    return terms, output


def _diagonal(value: Value, letters: str, emit: Emit) -> tuple[Value, str]:
    """Emits the elements whose indices are equal wherever their letters are; returns them with each letter once."""
    for axis in reversed(range(len(letters))):
        dims, before = emit.dims(value), letters.index(letters[axis])
        if before < axis:
            is_equal = emit.compare("EQ", emit.iota(dims, before, types.I32), emit.iota(dims, axis, types.I32))
            value = emit.reduce("add", emit.select(is_equal, value, 0), (axis,), 0)
            letters = letters[:axis] + letters[axis + 1 :]
    return value, letters


def _without_ones(values: Sequence[Value], terms: list[str], emit: Emit) -> list[Value]:
    """Removes letters from terms where they are of size 1, and of other sizes elsewhere; returns what is left."""
    shapes = [emit.dims(value) for value in values]
    spread = {
        letter
        for term, dims in zip(terms, shapes, strict=True)
        for letter, dim in zip(term, dims, strict=True)
        if dim != 1
    }
    found = []
    for index, (value, dims) in enumerate(zip(values, shapes, strict=True)):
        term = terms[index]
        left = [axis for axis, dim in enumerate(dims) if dim != 1 or term[axis] not in spread]
        terms[index] = "".join(term[axis] for axis in left)
        found.append(emit.reshape(value, [dims[axis] for axis in left]))
    return found


def _einsum(op: Operation, emit: Emit) -> Value:
    spelled, output = _spelled(op, emit)
    operands = _without_ones(op.operands, spelled, emit)
    terms = []
    for index, (operand, letters) in enumerate(zip(operands, spelled, strict=True)):
        value, term = _diagonal(operand, letters, emit)
        others = output + "".join(spelled[:index] + spelled[index + 1 :])
        axes = [axis for axis, letter in enumerate(term) if letter not in others]
        if axes:
            value = emit.reduce("add", value, axes, 0)
        terms.append((value, "".join(letter for letter in term if letter in others)))
    value, letters = terms[0]
    for index, other in enumerate(terms[1:], 2):
        needed = output + "".join(term for _, term in terms[index:])
        value, letters = _product((value, letters), other, needed, emit)
    return emit.transpose(value, [letters.index(letter) for letter in output])


def _product(one: tuple[Value, str], other: tuple[Value, str], needed: str, emit: Emit) -> tuple[Value, str]:
    """Emits a product of two terms, summed over what both have and nothing else needs; returns it with its letters."""
    (first, left), (second, right) = one, other
    both = [letter for letter in left if letter in right]
    batch = [letter for letter in both if letter in needed]
    summed = [letter for letter in both if letter not in needed]
    pairs = [[(left.index(letter), right.index(letter)) for letter in group] for group in (batch, summed)]
    value = dot(first, second, pairs[0], pairs[1], emit)
    return value, "".join([*batch, *(each for each in left + right if each not in both)])


LOWERINGS: Mapping[str, Lowering] = {
    "BatchMatMul": _batch_mat_mul,
    "BatchMatMulV2": _batch_mat_mul,
    "BatchMatMulV3": _batch_mat_mul,
    "Einsum": _einsum,
    "MatMul": _mat_mul,
}
