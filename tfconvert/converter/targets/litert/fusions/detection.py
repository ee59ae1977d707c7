"""Detection: non-maximum suppression, and the post-processing of a single-shot detector."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.composites.composite import Composite, chosen_options
from tfconvert.converter.composites.fusion import Body, Fusion, first_of
from tfconvert.converter.ir import option_map
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.values import Value

_SUPPRESSION_ARGUMENTS = 5
_POST_PROCESS: dict[str, type] = {
    "max_detections": int,
    "max_classes_per_detection": int,
    "num_classes": int,
    "nms_score_threshold": float,
    "nms_iou_threshold": float,
    "y_scale": float,
    "x_scale": float,
    "h_scale": float,
    "w_scale": float,
    "use_regular_nms": bool,
}
_SUPPRESSION_NOTE = (
    "of boxes with equal scores it may choose another than TensorFlow, and it takes boxes with negative coordinates or "
    "swapped corners as they are, some of which TensorFlow's composite drops"
)
_OPTIONAL = ("detections_per_class",)


def _check_suppression(composite: Composite) -> str | None:
    if len(composite.arguments) < _SUPPRESSION_ARGUMENTS:
        return f"it has {len(composite.arguments)} arguments, not {_SUPPRESSION_ARGUMENTS} or more"
    ranks = {0: 2, 1: 1, 2: 0, 3: 0, 4: 0}
    kinds = {0: "f32", 1: "f32", 2: "i32", 3: "f32", 4: "f32"}
    reason = first_of(composite.counts(len(composite.arguments), 2), composite.ranks(ranks), composite.elements(kinds))
    if reason:
        return reason
    indices = types.shape_of(composite.results[0])
    if indices is None:
        return "the rank of result 0 is not known"
    return first_of(*(composite.gives(index, types.I32, None) for index in range(2)))


def _rewrite_suppression(composite: Composite, body: Body) -> Sequence[Value]:
    indices_type, count_type = composite.results
    shape, count_shape = types.shape_of(indices_type), types.shape_of(count_type)
    assert shape is not None
    flat = types.tensor(types.I32, shape[-1:] or (-1,))
    found, count = body.tfl(
        "non_max_suppression_v4", body.arguments[:_SUPPRESSION_ARGUMENTS], flat, types.tensor(types.I32, ())
    )
    if len(shape) > 1:
        target = (*(1 for _ in shape[1:]), -1)
        found = body.tf("Reshape", (found, body.ints(target)), types.tensor(types.I32, (*target[:-1], shape[-1])))[0]
    if count_shape:
        ones = tuple(1 for _ in count_shape)
        count = body.tf("Reshape", (count, body.ints(ones)), types.tensor(types.I32, ones))[0]
    return found, count


def _check_post_process(composite: Composite) -> str | None:
    kinds = {0: "f32", 1: "f32", 2: "f32"}
    known = _POST_PROCESS | {name: int for name in _OPTIONAL if composite.get(name) is not None}
    return composite.counts(3, 4) or composite.elements(kinds) or composite.has(known)


def _rewrite_post_process(composite: Composite, body: Body) -> Sequence[Value]:
    options = chosen_options(composite, (*_POST_PROCESS, *_OPTIONAL))
    # A number, as in the official converter's files.
    options["use_regular_nms"] = int(options["use_regular_nms"])
    return body.custom(composite.name, option_map.encode(options), body.arguments, composite.results)


FUSIONS = (
    Fusion(
        "non-max-suppression",
        "non_max_suppression_padded_v2",
        "(boxes[N, 4], scores[N], max, iou, score, ...) -> (indices, count): NON_MAX_SUPPRESSION_V4",
        _check_suppression,
        _rewrite_suppression,
        note=lambda composite: _SUPPRESSION_NOTE,
    ),
    Fusion(
        "detection-post-process",
        "TFLite_Detection_PostProcess",
        "(boxes, scores, anchors) -> (boxes, classes, scores, count): the custom operator of that name",
        _check_post_process,
        _rewrite_post_process,
        is_custom=True,
    ),
)
