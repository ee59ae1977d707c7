"""Products of matrices and tensors, and adding a bias."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfconvert.ops.call import Array, Call, Results, typed, wide
from tfconvert.ops.declaration import Decomposition, op, ops_like
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import Operands
from tfconvert.ops.requirements import rank_is_known
from tfconvert.ops.shape_functions import Shapes, all_equal
from tfconvert.schema.dialects.dims import (
    MismatchError,
    broadcast,
    broadcast_dim,
    merge,
    merge_dim,
    text,
    with_rank,
    with_rank_at_least,
)
from tfconvert.schema.dialects.relations.rules import every, is_vector, rank_at_least, same_dims
from tfconvert.schema.dialects.relations.view import View
from tfconvert.schema.dialects.types import Shape

_ELLIPSIS = "..."
# Labels for the dimensions that an ellipsis represents, letters that no equation has.
_SPARE = "".join(map(chr, range(0x391, 0x3A0)))


def _bias_shape(operands: Operands) -> Shapes:
    shape, bias = operands.shape(0), with_rank(operands.shape(1), 1, "the bias")
    if shape is None:
        return (None,)
    with_rank_at_least(shape, 2)
    axis = 1 if operands.text("data_format") == "NCHW" else len(shape) - 1
    channels = merge((shape[axis],), bias)
    assert channels is not None
    return ((*shape[:axis], *channels, *shape[axis + 1 :]),)


def _product(first: Shape, second: Shape, is_first_turned: bool, is_second_turned: bool) -> Shape:
    """Returns rows and columns of a matrix product; takes the last two dimensions of each."""
    rows, inner = first[-2:] if not is_first_turned else first[-1:-3:-1]
    other, columns = second[-2:] if not is_second_turned else second[-1:-3:-1]
    if inner >= 0 and other >= 0 and inner != other:
        raise MismatchError(f"the inner dimensions of {text(first)} and {text(second)}, {inner} and {other}, differ")
    return (rows, columns)


def _matmul_shape(operands: Operands) -> Shapes:
    first, second = with_rank(operands.shape(0), 2), with_rank(operands.shape(1), 2)
    turned = [bool(operands.attribute(name, False)) for name in ("transpose_a", "transpose_b")]
    return (_product(first, second, turned[0], turned[1]),)


def _batch_matmul_shape(operands: Operands) -> Shapes:
    first, second = operands.shape(0), operands.shape(1)
    with_rank_at_least(first, 2)
    with_rank_at_least(second, 2)
    if first is None or second is None:
        return (None,)
    matrix = _product(first, second, operands.attribute("adj_x", False), operands.attribute("adj_y", False))
    if operands.op.name == "tf.BatchMatMul":
        batch = merge(first[:-2], second[:-2])
    else:
        batch = broadcast(first[:-2], second[:-2])
    assert batch is not None
    return ((*batch, *matrix),)


def _expand(term: str, shape: Shape | None, rank: int) -> list[str] | None:
    """Returns one name a dimension: letters, and `...k` for the k-th last dimension under the ellipsis."""
    before, dots, after = term.partition("...")
    if not dots:
        if shape is not None and rank != len(before):
            raise MismatchError(f"{term!r} doesn't fit shape {text(shape)}")
        return list(before)
    if shape is None:
        return None
    extra = rank - len(before) - len(after)
    if extra < 0:
        raise MismatchError(f"{term!r} doesn't fit shape {text(shape)}")
    return [*before, *(f"...{k}" for k in range(extra, 0, -1)), *after]


def _einsum_shape(operands: Operands) -> Shapes:
    left, arrow, right = operands.text("equation").replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow or len(terms) != operands.count:
        raise MismatchError(f"equation {operands.text('equation')!r} doesn't fit {operands.count} operands")
    dims: dict[str, int] = {}
    for term, shape in zip(terms, operands.shapes(), strict=True):
        names = _expand(term, shape, len(shape or ()))
        if names is None:
            return (None,)
        for name, dim in zip(names, shape or (-1,) * len(names), strict=True):
            combine = broadcast_dim if name.startswith("...") else merge_dim
            dims[name] = combine(dims[name], dim) if name in dims else dim
    extra = max((int(name[3:]) for name in dims if name.startswith("...")), default=0)
    before, dots, after = right.partition("...")
    wanted = [*before, *(f"...{k}" for k in range(extra, 0, -1) if dots), *after]
    if any(name not in dims for name in wanted):
        raise MismatchError(f"equation {operands.text('equation')!r} yields what it doesn't take")
    return (tuple(dims[name] for name in wanted),)


def einsum_labels(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Returns the labels of an einsum's operands and of its result, with ellipses spelled out.

    Args:
        equation: The equation.
        ranks: The operands' ranks.

    Raises:
        MismatchError: The equation doesn't fit the operands, or has no arrow.
    """
    left, arrow, result = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow or len(terms) != len(ranks):
        raise MismatchError("the equation has no arrow or another number of operands")
    widths = [rank - len(term.replace(_ELLIPSIS, "")) for term, rank in zip(terms, ranks, strict=True)]
    most = max((width for term, width in zip(terms, widths, strict=True) if _ELLIPSIS in term), default=0)
    if min(widths) < 0 or most > len(_SPARE):
        raise MismatchError("an operand has fewer dimensions than labels")
    labels = []
    for term, width in zip(terms, widths, strict=True):
        spelled = term.replace(_ELLIPSIS, _SPARE[most - width : most])
        if width and _ELLIPSIS not in term:
            raise MismatchError("an operand has more dimensions than labels")
        labels.append(spelled)
    return labels, result.replace(_ELLIPSIS, _SPARE[:most])


def _tridiagonal_shape(operands: Operands) -> Shapes:
    shape = with_rank_at_least(operands.shape(3), 2)
    for index in range(3):
        diagonal = with_rank_at_least(operands.shape(index), 2)
        if diagonal is not None:
            columns = -1 if shape is None else shape[-1]
            merge_dim(diagonal[-2], 1)
            shape = merge(shape, (*diagonal[:-2], diagonal[-1], columns))
    return (shape,)


def _sparse_product(call: Call) -> Results:
    """The operands may be halves; the result is not."""
    a, b = map(wide, call.inputs)
    left = a.T if call.flag("transpose_a") else a
    right = b.T if call.flag("transpose_b") else b
    return (typed(np.matmul(left, right), np.dtype(np.float32)),)


def _adjoint(x: Array) -> Array:
    return np.asarray(np.conj(np.swapaxes(x, -1, -2)) if x.dtype.kind == "c" else np.swapaxes(x, -1, -2))


def _mat_mul(call: Call) -> Results:
    a, b = call.inputs
    left = wide(a).T if call.flag("transpose_a") else wide(a)
    right = wide(b).T if call.flag("transpose_b") else wide(b)
    return (typed(np.matmul(left, right), a.dtype),)


def _batch_mat_mul(call: Call) -> Results:
    x, y = call.inputs
    left = _adjoint(wide(x)) if call.flag("adj_x") else wide(x)
    right = _adjoint(wide(y)) if call.flag("adj_y") else wide(y)
    dtype = call.dtype("Tout", x.dtype) if call.op == "BatchMatMulV3" else x.dtype
    if dtype.itemsize > left.dtype.itemsize:
        left, right = left.astype(dtype), right.astype(dtype)
    return (typed(np.matmul(left, right), dtype),)


def _einsum(call: Call) -> Results:
    dtype = call.inputs[0].dtype
    # Contracting pairwise goes through BLAS; a sum over three or more operands at once would not.
    result = np.einsum(call.text("equation"), *map(wide, call.inputs), optimize=True)
    return (np.ascontiguousarray(typed(result, dtype)).reshape(result.shape),)


def _bias_add(call: Call) -> Results:
    value, bias = call.inputs
    if call.text("data_format", "NHWC").startswith("NC") and value.ndim > 2:
        bias = bias.reshape(-1, *[1] * (value.ndim - 2))
    return (typed(value + bias, value.dtype),)


def cross(x: Tensor, y: Tensor) -> Tensor:
    """Multiplies each coordinate of one vector with the next of the other, and vice versa."""

    def permuted(vectors: Tensor, *order: int) -> Tensor:
        return vectors.op("GatherV2", vectors, list(order), -1)  # type: ignore[no-any-return]

    return permuted(x, 1, 2, 0) * permuted(y, 2, 0, 1) - permuted(x, 2, 0, 1) * permuted(y, 1, 2, 0)


def sparse_mat_mul(a: Tensor, b: Tensor, *, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    """Its operands are ordinary matrices that happen to have many zeros; they may be halves, the result is not."""
    a, b = a.cast(np.float32), b.cast(np.float32)
    return a.op("MatMul", a, b, transpose_a=transpose_a, transpose_b=transpose_b)  # type: ignore[no-any-return]


def tridiagonal_mat_mul(above: Tensor, main: Tensor, below: Tensor, x: Tensor) -> Tensor:
    """Multiplies by matrices that are zero but for three diagonals, each given as a row of a matrix."""
    rank = above.rank
    order = [*range(rank - 2), rank - 1, rank - 2]

    def rows(matrix: Tensor, first: int, end: int, end_mask: int) -> Tensor:
        masks = {"ellipsis_mask": 0b001, "begin_mask": 0b100, "end_mask": end_mask}
        return matrix.op("StridedSlice", matrix, [0, first, 0], [0, end, 0], [1, 1, 1], **masks)  # type: ignore[no-any-return]

    def without_first(matrix: Tensor) -> Tensor:
        return rows(matrix, 1, 0, 0b110)

    def without_last(matrix: Tensor) -> Tensor:
        return rows(matrix, 0, -1, 0b100)

    def padded(matrix: Tensor, *paddings: int) -> Tensor:
        return matrix.op("Pad", matrix, [[0, 0]] * (rank - 2) + [list(paddings), [0, 0]])  # type: ignore[no-any-return]

    above, main, below = (each.op("Transpose", each, order) for each in (above, main, below))
    # The last element above and the first one below are unused, and may be anything.
    from_next = without_last(above) * without_first(x)
    from_previous = without_first(below) * without_last(x)
    return main * x + padded(from_next, 0, 1) + padded(from_previous, 1, 0)


def _bias(view: View) -> None:
    """Refuses a bias that is not a vector with an element for each channel."""
    is_first = view.string("data_format") == "NCHW"
    every(rank_at_least("value", 3 if is_first else 2), is_vector("bias"))(view)
    shape = view.shape("value")
    same_dims("value", len(shape) - 3 if is_first and shape is not None else -1, "bias", 0)(view)


def _two_at_most(view: View) -> None:
    if len(view.values("inputs")) > 2:
        view.fail(f"it takes at most two operands, found {len(view.values('inputs'))}")


OPS = (
    *ops_like("BatchMatMul BatchMatMulV2", shape=_batch_matmul_shape, compute=_batch_mat_mul, verified=True),
    op("BatchMatMulV3", shape=_batch_matmul_shape, compute=_batch_mat_mul),
    op("BiasAdd", shape=_bias_shape, compute=_bias_add, relations=(_bias,)),
    op("BiasAddV1", shape=_bias_shape, compute=_bias_add),
    op("Cross", shape=all_equal, decompose=(Decomposition(cross, "number", rank_is_known),), verified=True),
    op("Einsum", shape=_einsum_shape, compute=_einsum, relations=(_two_at_most,)),
    op("MatMul", shape=_matmul_shape, compute=_mat_mul),
    op(
        "SparseMatMul",
        shape=_matmul_shape,
        compute=_sparse_product,
        decompose=(Decomposition(sparse_mat_mul, "f32 bf16", example=((4, 4),) * 2),),
    ),
    op(
        "TridiagonalMatMul",
        shape=_tridiagonal_shape,
        decompose=(Decomposition(tridiagonal_mat_mul, "float", rank_is_known, example=(*((2, 1, 4),) * 3, (2, 4, 3))),),
    ),
)
