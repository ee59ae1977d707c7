"""Shapes of reductions over axes and segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.ops.operands import Operands, ShapeFunction
from tfconvert.schema.dialects.dims import axis_of, broadcast, dim_of_element, merge, with_rank, with_rank_at_least
from tfconvert.schema.dialects.types import Shape

Shapes = Sequence[Shape | None]


def _reduce(operands: Operands) -> Shapes:
    shape, keep = operands.shape(0), operands.attribute("keep_dims", False)
    if shape is None:
        return (None,)
    axes = operands.ints(1)
    if axes is None:
        places = operands.shape(1)
        if keep:
            return ((-1,) * len(shape),)
        # Unknown axes may be repeated, so only a single axis determines the rank.
        is_single = places is not None and (len(places) == 0 or places == (1,))
        return ((-1,) * (len(shape) - 1) if is_single and shape else None,)
    reduced = {axis_of(axis, len(shape)) for axis in axes}
    if keep:
        return (tuple([1 if index in reduced else dim for index, dim in enumerate(shape)]),)
    return (tuple([dim for index, dim in enumerate(shape) if index not in reduced]),)


def _arg(operands: Operands) -> Shapes:
    shape, axis = operands.shape(0), operands.scalar(1)
    if shape is None:
        return (None,)
    with_rank_at_least(shape, 1)
    if axis is None:
        return ((-1,) * (len(shape) - 1),)
    place = axis_of(axis, len(shape))
    return (shape[:place] + shape[place + 1 :],)


def _segment(operands: Operands) -> Shapes:
    """How many segments there are is known only once the ids are, and those are sorted: the last one determines it."""
    shape = operands.shape(0)
    with_rank(operands.shape(1), 1, "the segment ids")
    if shape is None:
        return (None,)
    with_rank_at_least(shape, 1)
    ids = operands.ints(1)
    return ((ids[-1] + 1 if ids else -1, *shape[1:]),)


def _unsorted_segment(operands: Operands) -> Shapes:
    shape, ids = operands.shape(0), operands.shape(1)
    if shape is None or ids is None:
        return (None,)
    with_rank_at_least(shape, len(ids))
    merge(shape[: len(ids)], ids)
    found = operands.partial(2)
    return ((dim_of_element(found[0]) if found else -1, *shape[len(ids) :]),)


def _bincount(operands: Operands) -> Shapes:
    found = operands.partial(1)
    bins = dim_of_element(found[0]) if found else -1
    if operands.op.name != "tf.DenseBincount":
        return ((bins,),)
    shape = operands.shape(0)
    return (None if shape is None else (*shape[:-1], bins),)


def _histogram(operands: Operands) -> Shapes:
    found = operands.partial(2)
    return ((dim_of_element(found[0]) if found else -1,),)


def _losses(operands: Operands) -> Shapes:
    """Softmax cross entropy: a loss for each row, and the gradient."""
    logits = with_rank(operands.shape(0), 2, "the logits")
    if "Sparse" in operands.op.name:
        return (merge(logits[:1], with_rank(operands.shape(1), 1, "the labels")), logits)
    shape = broadcast(logits, with_rank(operands.shape(1), 2, "the labels"))
    assert shape is not None
    return (shape[:1], shape)


_REDUCTIONS = ("All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "ReduceJoin", "Sum")
_SEGMENTS = ("Max", "Mean", "Min", "Prod", "Sum")

SHAPES: Mapping[str, ShapeFunction] = {
    **dict.fromkeys(_REDUCTIONS, _reduce),
    **{f"Segment{name}": _segment for name in _SEGMENTS},
    **{f"UnsortedSegment{name}": _unsorted_segment for name in _SEGMENTS},
    "ArgMax": _arg,
    "ArgMin": _arg,
    "Bincount": _bincount,
    "DenseBincount": _bincount,
    "HistogramFixedWidth": _histogram,
    "SoftmaxCrossEntropyWithLogits": _losses,
    "SparseSoftmaxCrossEntropyWithLogits": _losses,
}
"""Op name -> shape function."""
