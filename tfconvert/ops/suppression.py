"""Non-maximum suppression: of boxes that overlap, those with the best scores are chosen.

A candidate is compared with the boxes chosen before it. Without a sigma, overlapping one by more than the threshold
drops it; with one, overlaps lower its score and it queues up again.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tfconvert.ops.call import Array, Call, Results, scalar, typed, wide
from tfconvert.ops.declaration import Decomposition, op, ops_like
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import Operands
from tfconvert.ops.shape_functions import Shapes
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.dims import dim_of_element, merge, with_rank
from tfconvert.schema.ir.operation import Operation


def _suppression_shape(operands: Operands) -> Shapes:
    """`NonMaxSuppressionV3` keeps as many boxes as it finds."""
    _check_boxes(operands)
    return ((-1,),)


def _check_boxes(operands: Operands) -> None:
    boxes = with_rank(operands.shape(0), 2, "the boxes")
    merge(boxes[:1], with_rank(operands.shape(1), 1, "the scores"))
    merge(boxes[1:], (4,))
    for index in range(2, len(operands.op.operands)):
        with_rank(operands.shape(index), 0, "the number of boxes, a threshold or the sigma")


def _padded_length(operands: Operands) -> int:
    found = operands.partial(2)
    return dim_of_element(found[0]) if found and operands.attribute("pad_to_max_output_size", False) else -1


def _suppression_v4_shape(operands: Operands) -> Shapes:
    _check_boxes(operands)
    return ((_padded_length(operands),), ())


def _suppression_v5_shape(operands: Operands) -> Shapes:
    _check_boxes(operands)
    length = _padded_length(operands)
    return ((length,), (length,), ())


def _combined_suppression_shape(operands: Operands) -> Shapes:
    boxes = with_rank(operands.shape(0), 4, "the boxes")
    per_class, total = operands.scalar(2), operands.scalar(3)
    scores = with_rank(operands.shape(1), 3, "the scores")
    if total is None:
        length = -1
    elif not operands.attribute("pad_per_class", False):
        length = total
    elif per_class is None or scores[2] < 0:
        length = -1
    else:
        length = min(total, per_class * scores[2])
    batch = boxes[0]
    return ((batch, length, 4), (batch, length), (batch, length), (batch,))


# A score behind all others.
_NONE = float(np.finfo(np.float32).min)


class _Terms(NamedTuple):
    """When a box is chosen.

    Attributes:
        overlap: More than this much of the union drops a box, unless there is a sigma.
        score: Only boxes with better scores are chosen.
        sigma: How much overlaps lower scores; 0 if they don't.
    """

    overlap: np.float32
    score: np.float32
    sigma: np.float32


def ordered(boxes: Array) -> tuple[Array, Array]:
    """Returns boxes with the lower corner first, and their areas; any two opposite corners make a box."""
    near, far = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    return np.concatenate([near, far], axis=1), np.prod(far - near, axis=1)


def overlaps_of(boxes: Array, areas: Array, box: int, others: list[int]) -> Array:
    """Returns how much of their union a box and each of some others have in common; 0 for boxes without an area."""
    near = np.maximum(boxes[box, :2], boxes[others, :2])
    far = np.minimum(boxes[box, 2:], boxes[others, 2:])
    common = np.prod(np.maximum(far - near, 0), axis=1)
    union = areas[box] + areas[others] - common
    empty = (areas[box] <= 0) | (areas[others] <= 0)
    return np.where(empty, np.float32(0), common / union)


def _lowered(score: np.float32, overlaps: Array, terms: _Terms) -> np.float32 | None:
    """Returns a candidate's score after the chosen boxes it has not met yet, the latest first; `None` if dropped."""
    if not terms.sigma:
        return None if (overlaps > terms.overlap).any() else score
    for overlap in overlaps[::-1]:
        score = np.float32(score * np.exp(np.float32(-0.5) / terms.sigma * overlap * overlap))
        if score <= terms.score:
            return None
    return score


def _choose(call: Call, boxes: Array, scores: Array, limit: int, terms: _Terms) -> tuple[list[int], list[np.float32]]:
    """Returns the chosen boxes, best first, and the scores that they were chosen with."""
    if boxes.shape != (len(scores), 4) or scores.ndim != 1:
        raise call.bad(f"{len(scores)} scores don't fit boxes of the shape {boxes.shape}")
    corners, areas = ordered(boxes)
    queue = [(-score, box, 0) for box, score in enumerate(scores) if score > terms.score]
    heapq.heapify(queue)
    chosen: list[int] = []
    chosen_scores: list[np.float32] = []
    while queue and len(chosen) < limit:
        negative, box, met = heapq.heappop(queue)
        score = _lowered(-negative, overlaps_of(corners, areas, box, chosen[met:]), terms)
        if score == -negative:
            chosen.append(box)
            chosen_scores.append(score)
        elif score is not None:
            heapq.heappush(queue, (-score, box, len(chosen)))
    return chosen, chosen_scores


def kernel_differs(boxes: Array, scores: Array, lowest: float) -> str:
    """Returns why LiteRT's kernel may choose other boxes than TensorFlow's ops, as a clause; empty if it doesn't.

    Args:
        boxes: The corners of each box.
        scores: The scores.
        lowest: Only boxes with better scores are chosen.
    """
    if not np.isfinite(ordered(boxes)[1]).all():
        return "the area of a box is infinite or no number"
    order = scores[scores > lowest]
    return "two boxes have the same score" if len(np.unique(order)) < order.size else ""


def composite_differs(boxes: Array) -> str:
    """Returns why the body of TensorFlow's composite may choose other boxes than its ops do; empty if it doesn't."""
    is_other = np.any(boxes[..., :2] > boxes[..., 2:]) or np.any(boxes.max(axis=-1) <= 0)
    return "a box has swapped corners or no positive coordinate" if is_other else ""


def _suppress(call: Call) -> Results:
    boxes, scores, most, overlap, *rest = call.inputs
    numbers = [np.float32(value.reshape(-1)[0]) for value in (overlap, *rest)] + [np.float32(0)]
    lowest = np.finfo(np.float32).min
    terms = _Terms(numbers[0], numbers[1] if rest else lowest, numbers[2] if len(rest) > 1 else np.float32(0))
    limit = scalar(most)
    if limit < 0:
        raise call.bad("the number of boxes to choose is negative")
    chosen, chosen_scores = _choose(call, wide(boxes), wide(scores), limit, terms)
    count = np.array(len(chosen), np.int32)
    if call.flag("pad_to_max_output_size"):
        chosen += [0] * (limit - len(chosen))
        chosen_scores += [np.float32(0)] * (limit - len(chosen_scores))
    indices = np.array(chosen, np.int32)
    found = {
        "NonMaxSuppressionV4": (indices, count),
        "NonMaxSuppressionV5": (indices, typed(chosen_scores, scores.dtype), count),
    }
    return found.get(call.op, (indices,))


# Largest number of suppressions: each image of a batch and each class needs one.
_MAX_SUPPRESSIONS = 256


def _suppressions_are_few(op: Operation) -> str | None:
    shapes = [value.shape for value in op.operands[:2]]
    if not all(shape is not None and types.is_static(shape) for shape in shapes):
        return "the number of images, boxes or classes is not known"
    if any(tensor_data.constant_of(value) is None for value in op.operands[2:4]):
        return "the maximum numbers of boxes are not constants"
    batch, _, classes = shapes[1] or (0, 0, 0)
    if 0 < batch * classes <= _MAX_SUPPRESSIONS and 0 not in (shapes[0] or ()):
        return None
    return f"it takes a suppression for each of {batch * classes} classes of images, not 1 to {_MAX_SUPPRESSIONS}"


def suppress_classes(
    boxes: Tensor,
    scores: Tensor,
    per_class: Tensor,
    total: Tensor,
    overlap: Tensor,
    least: Tensor,
    *,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
) -> Sequence[Tensor]:
    """Suppresses boxes of each image and class, and keeps the best of all classes of an image."""
    (batch, count, classes), sets = scores.shape or (), (boxes.shape or ())[2]
    each, most = (int(np.asarray(size.constant)) for size in (per_class, total))
    length = min(most, each * classes) if pad_per_class else most
    kept = min(each, count)
    of_class = scores.transpose([0, 2, 1])
    images = []
    for image in range(batch):
        found = []
        for index in range(classes):
            mine = boxes.gather(image).gather(index if sets > 1 else 0, 1)
            rated = of_class.gather(image).gather(index)
            picked, valid = boxes.op(
                "NonMaxSuppressionV4", mine, rated, kept, overlap, least, results=2, pad_to_max_output_size=True
            )
            is_valid = picked.op("Range", 0, kept, 1) < valid
            found.append((mine.gather(picked), is_valid.where(rated.gather(picked), _NONE), valid))
        images.append(_best(found, kept, min(length, kept * classes), length, clip=clip_boxes))
    return [images[0][0].op("Pack", *parts, axis=0, N=batch) for parts in zip(*images, strict=True)]


def _best(
    found: Sequence[tuple[Tensor, Tensor, Tensor]], kept: int, best: int, length: int, *, clip: bool
) -> Sequence[Tensor]:
    """Returns the best boxes of an image, their scores and classes, with zeros behind, and how many there are."""
    boxes, scores = (first.concat(others, 0) for first, *others in list(zip(*found, strict=True))[:2])
    valid = found[0][2]
    for _, _, other in found[1:]:
        valid = valid + other
    valid = valid.minimum(length)
    values, places = scores.op("TopKV2", scores, best, results=2)
    is_valid = places.op("Range", 0, best, 1) < valid
    classes = places.of(np.repeat(np.arange(len(found), dtype=np.float32), kept)).gather(places)
    boxes = boxes.gather(places)
    boxes = is_valid.expand_dims(-1).where(boxes.clip(0.0, 1.0) if clip else boxes, 0)
    flat = [is_valid.where(each, 0).placed([0], [length]) for each in (values, classes)]
    return (boxes.placed([0, 0], [length, -1]), *flat, valid)


_COMBINED = ((1, 6, 1, 4), (1, 6, 2), np.array(3, np.int32), np.array(5, np.int32), (), ())

OPS = (
    op(
        "CombinedNonMaxSuppression",
        shape=_combined_suppression_shape,
        decompose=(Decomposition(suppress_classes, "f32", _suppressions_are_few, example=_COMBINED),),
    ),
    op("NonMaxSuppression", shape=_suppression_shape),
    *ops_like("NonMaxSuppressionV2 NonMaxSuppressionV3", shape=_suppression_shape, compute=_suppress),
    op("NonMaxSuppressionV4", shape=_suppression_v4_shape, compute=_suppress),
    op("NonMaxSuppressionV5", shape=_suppression_v5_shape, compute=_suppress),
)
