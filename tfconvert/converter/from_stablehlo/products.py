"""Products of tensors: as matrix products where they are that, else as Einstein sums."""

from __future__ import annotations

import numpy as np

from tfconvert.converter.from_stablehlo.raised_op import RaisedOp, Rows
from tfconvert.converter.from_stablehlo.resizing import weighted
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.ops.complex_numbers import complex_of, parts
from tfconvert.schema.dialects.stablehlo import DotAttr

Axes = tuple[int, ...]


def _dot_general(raised: RaisedOp) -> EmittedTensor:
    dims = raised.op.properties["dot_dimension_numbers"]
    assert isinstance(dims, DotAttr)
    batch = dims.of("lhs_batching_dimensions"), dims.of("rhs_batching_dimensions")
    summed = dims.of("lhs_contracting_dimensions"), dims.of("rhs_contracting_dimensions")
    return _in_wide_type(raised, batch, summed)


def _dot(raised: RaisedOp) -> EmittedTensor:
    x, _ = raised.operands
    return _in_wide_type(raised, ((), ()), ((x.rank - 1,), (0,)))


def _in_wide_type(raised: RaisedOp, batch: tuple[Axes, Axes], summed: tuple[Axes, Axes]) -> EmittedTensor:
    """Returns a product whose operands have the type in which it is computed."""
    x, y = raised.operands
    dtype = raised.dtype()
    if dtype == np.bool_:
        return _product(raised, x.cast(np.int32), y.cast(np.int32), batch, summed).not_equal(0)
    if dtype == np.int32 and x.dtype == y.dtype == np.int8:
        found = _byte_product(x, y, batch, summed)
        if found is not None:
            return found
    if dtype.kind == "c":
        (a, b), (c, d) = parts(x), parts(y)

        def real_product(x: EmittedTensor, y: EmittedTensor) -> EmittedTensor:
            return _product(raised, x, y, batch, summed)

        return complex_of(real_product(a, c) - real_product(b, d), real_product(a, d) + real_product(b, c))
    wide = dtype
    if dtype.kind in "iu":
        # Products wrap around: their last bits are the same in all types that have so many.
        wide = np.dtype(np.int32 if dtype.itemsize <= 4 else np.int64)
    return _product(raised, x.cast(wide), y.cast(wide), batch, summed).cast(dtype)


def _byte_product(
    x: EmittedTensor, y: EmittedTensor, batch: tuple[Axes, Axes], summed: tuple[Axes, Axes]
) -> EmittedTensor | None:
    """Returns a product of bytes that is summed as `i32`, `None` if it isn't one of matrices."""
    turned = _turned_matrices(x, y, batch, summed)
    if turned is None:
        return None
    found: EmittedTensor = x.op("BatchMatMulV3", x, y, adj_x=turned[0], adj_y=turned[1], Tout=np.dtype(np.int32))
    return found


def _product(
    raised: RaisedOp, x: EmittedTensor, y: EmittedTensor, batch: tuple[Axes, Axes], summed: tuple[Axes, Axes]
) -> EmittedTensor:
    if x.rank == y.rank == len(batch[0]) + len(summed[0]) and len(summed[0]) == 1 and batch == (batch[1], batch[0]):
        return (x * y).sum(summed[0])
    turned = _turned_matrices(x, y, batch, summed)
    if turned is None:
        found = _einstein_sum(raised, x, y, _equation(x.rank, y.rank, batch, summed))
        resized = weighted(raised, found, range(found.rank))
        found = found if resized is None else resized
    elif x.rank == 2:
        found = x.op("MatMul", x, y, transpose_a=turned[0], transpose_b=turned[1])
    else:
        found = x.op("BatchMatMulV2", x, y, adj_x=turned[0], adj_y=turned[1])
    return found


def _turned_matrices(
    x: EmittedTensor, y: EmittedTensor, batch: tuple[Axes, Axes], summed: tuple[Axes, Axes]
) -> tuple[bool, bool] | None:
    """Returns which operands of a product of matrices are transposed, `None` if it isn't one."""
    outer = tuple(range(x.rank - 2))
    if x.rank != y.rank or batch != (outer, outer) or len(summed[0]) != 1:
        return None
    return summed[0][0] == x.rank - 2, summed[1][0] == y.rank - 1


def _einstein_sum(raised: RaisedOp, x: EmittedTensor, y: EmittedTensor, equation: str) -> EmittedTensor:
    """Returns an Einstein sum without the dimensions of size 1 that a reshape made and one operand alone has."""
    terms, _, result = equation.partition("->")
    left, right = terms.split(",")
    sizes = dict(zip(left + right, (*raised.sizes(x), *raised.sizes(y)), strict=True))
    kept = result
    found = []
    for term, other, operand in ((left, right, x), (right, left, y)):
        made = raised.unsqueezed(operand)
        letters = "" if made is None else "".join(term[axis] for axis in made[1])
        if made is not None and not {*letters} & {*other}:
            operand = made[0]
            term, kept = ("".join(letter for letter in each if letter not in letters) for each in (term, kept))
        found.append((term, operand))
    (left, x), (right, y) = found
    product = x.op("Einsum", x, y, equation=f"{left},{right}->{kept}")
    return raised.reshaped(product, [sizes[letter] for letter in result])


def _equation(rank: int, other_rank: int, batch: tuple[Axes, Axes], summed: tuple[Axes, Axes]) -> str:
    """Returns the equation of an Einstein sum: batch dimensions, then the free ones of both operands."""
    letters = map(chr, range(ord("a"), ord("z") + 1))
    left = dict(zip(range(rank), letters, strict=False))
    shared = dict(zip((*batch[1], *summed[1]), (*batch[0], *summed[0]), strict=True))
    right = {axis: left[shared[axis]] if axis in shared else next(letters, "") for axis in range(other_rank)}
    if not all((*left.values(), *right.values())) or len(left) < rank:
        raise Declined("it has more dimensions than there are letters")
    result = [left[axis] for axis in batch[0]]
    result += [left[axis] for axis in range(rank) if axis not in (*batch[0], *summed[0])]
    result += [right[axis] for axis in range(other_rank) if axis not in shared]
    return f"{''.join(left.values())},{''.join(right.values())}->{''.join(result)}"


def _einsum(raised: RaisedOp) -> EmittedTensor:
    first = raised.operands[0]
    found: EmittedTensor = first.op("Einsum", *raised.operands, equation=raised.text("einsum_config"))
    return found


ROWS: Rows = {"dot": _dot, "dot_general": _dot_general, "einsum": _einsum, "unary_einsum": _einsum}
