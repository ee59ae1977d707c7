"""The largest or smallest elements of rows, what is among them, and the places of what was found."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tfconvert.ops.call import Array, Call, Kernel, Results, ints, scalar


def _approximate(call: Call) -> Results:
    """Finds exactly what may be approximated, as TensorFlow does on a processor."""
    (x,) = call.inputs
    axis, count = call.integer("reduction_dimension", -1), call.integer("k")
    if not call.flag("aggregate_to_topk", True):
        raise call.bad("how many candidates it leaves depends on the device it runs on")
    if not -x.ndim <= axis < x.ndim or not 0 <= count <= x.shape[axis]:
        raise call.bad(f"there are no {count} elements along axis {axis} of {x.shape}")
    keys = -x if call.flag("is_max_k", True) else x
    indices = np.argsort(keys, axis=axis, kind="stable").take(range(count), axis)
    return np.take_along_axis(x, indices, axis), indices.astype(np.int32)


def _in_top_k(call: Call) -> Results:
    """A row with an element that is not finite has no top, and a target that isn't a class is not in it."""
    predictions, targets = call.inputs[:2]
    count = scalar(call.inputs[2]) if len(call.inputs) > 2 else call.integer("k")
    classes = predictions.shape[-1]
    valid = (targets >= 0) & (targets < classes) & np.isfinite(predictions).all(-1)
    if not classes:
        return (valid,)
    own = np.take_along_axis(predictions, np.where(valid, targets, 0)[:, None].astype(np.int64), -1)
    return (valid & ((predictions > own).sum(-1) < count),)


def _nth(call: Call) -> Results:
    x, place = call.inputs[0], scalar(call.inputs[1])
    if not 0 <= place < x.shape[-1]:
        raise call.bad(f"there is no element {place} in a row of {x.shape[-1]}")
    ordered: Array = np.sort(x, axis=-1)
    return (ordered[..., -1 - place if call.flag("reverse") else place],)


def _unravel(call: Call) -> Results:
    indices, dims = call.inputs
    sizes = ints(dims)
    if any(size < 1 for size in sizes) or not ((indices >= 0) & (indices < np.prod(sizes))).all():
        raise call.bad(f"an index is not in a tensor of shape {sizes}")
    return (np.array(np.unravel_index(indices, sizes)).astype(indices.dtype),)


KERNELS: Mapping[str, Kernel] = {
    "ApproxTopK": _approximate,
    "InTopK": _in_top_k,
    "InTopKV2": _in_top_k,
    "NthElement": _nth,
    "UnravelIndex": _unravel,
}
"""Op name -> kernel."""
