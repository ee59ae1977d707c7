"""Cases of detectors: crops of images, images that are scaled and moved, boxes that overlap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType

from tests.converter.targets.stablehlo.group import Case, Group, Input

_KERNELS = ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic")


def _crops(tf: ModuleType) -> Group:
    images = tf.image
    return Group(
        [Input("float32", ("n", "h", "w", 2)), Input("float32", ("m", 4), -0.2, 1.2), Input("int32", (2,), 1, 4)],
        {
            "CropAndResize_bilinear": lambda x, b, s: images.crop_and_resize(
                x, b, tf.zeros_like(b[:, 0], tf.int32), (4, 3)
            ),
            "CropAndResize_nearest": lambda x, b, s: images.crop_and_resize(
                x, b, tf.range(tf.shape(b)[0]) % tf.shape(x)[0], (2, 5), "nearest", 7.0
            ),
            "CropAndResize_middle": lambda x, b, s: images.crop_and_resize(
                x, b, tf.zeros_like(b[:, 0], tf.int32), (1, 3)
            ),
            "CropAndResize_bytes": lambda x, b, s: images.crop_and_resize(
                tf.cast(50 * x + 100, tf.uint8), b, tf.zeros_like(b[:, 0], tf.int32), (3, 3)
            ),
        },
    )


def _crops_of_computed_sizes(tf: ModuleType) -> Group:
    images = tf.image
    return Group(
        [Input("float32", ("n", "h", "w", 2)), Input("float32", ("m", 4), -0.2, 1.2), Input("int32", (2,), 1, 4)],
        {"CropAndResize_crops": lambda x, b, s: images.crop_and_resize(x, b, tf.zeros_like(b[:, 0], tf.int32), s)},
        in_xla=False,
    )


def _scaled_images(tf: ModuleType) -> Group:
    raw, images = tf.raw_ops, tf.image
    return Group(
        [Input("float32", ("n", "h", "w", 2)), Input("float32", (2,), 0.4, 2.5), Input("float32", (2,), -2, 2)],
        {
            **{f"ScaleAndTranslate_{name}": _scaled(raw.ScaleAndTranslate, name) for name in _KERNELS},
            "ScaleAndTranslate_sharp": lambda x, s, t: raw.ScaleAndTranslate(
                images=x, size=[5, 6], scale=s, translation=t, kernel_type="triangle", antialias=False
            ),
            "known": lambda x, s, t: images.resize(x, (5, 11), "lanczos3", antialias=True),
        },
    )


def _boxes(tf: ModuleType) -> Group:
    raw = tf.raw_ops
    return Group(
        [Input("float32", ("h", 4), 0, 1), Input("float32", ("h",), 0, 1), Input("int32", (), 1, 4)],
        {
            "NonMaxSuppressionV4_padded": lambda b, s, k: (
                raw.NonMaxSuppressionV4(
                    boxes=b,
                    scores=s,
                    max_output_size=12,
                    iou_threshold=0.2,
                    score_threshold=0.3,
                    pad_to_max_output_size=True,
                ).selected_indices
            ),
            "NonMaxSuppressionV4_valid": lambda b, s, k: (
                raw.NonMaxSuppressionV4(
                    boxes=b,
                    scores=s,
                    max_output_size=4,
                    iou_threshold=0.1,
                    score_threshold=0.3,
                    pad_to_max_output_size=True,
                ).valid_outputs
            ),
            **{
                f"NonMaxSuppressionV5_soft_{index}": _soft(raw.NonMaxSuppressionV5, index, 0.4, 0.3)
                for index in range(3)
            },
            "NonMaxSuppressionV5_hard": _soft(raw.NonMaxSuppressionV5, 1, 0.0, 0.2),
            "NonMaxSuppressionV5_computed_sigma": lambda b, s, k: (
                raw.NonMaxSuppressionV5(
                    boxes=b,
                    scores=s,
                    max_output_size=5,
                    iou_threshold=0.5,
                    score_threshold=0.1,
                    soft_nms_sigma=s[0],
                    pad_to_max_output_size=True,
                ).selected_scores
            ),
        },
    )


def _chosen_boxes(tf: ModuleType) -> Group:
    raw, images = tf.raw_ops, tf.image
    return Group(
        [Input("float32", ("h", 4), 0, 1), Input("float32", ("h",), 0, 1), Input("int32", (), 1, 4)],
        {
            "NonMaxSuppression_first": lambda b, s, k: raw.NonMaxSuppression(
                boxes=b, scores=s, max_output_size=3, iou_threshold=0.25
            ),
            "NonMaxSuppressionV2_second": lambda b, s, k: raw.NonMaxSuppressionV2(
                boxes=b, scores=tf.round(3 * s), max_output_size=k, iou_threshold=0.3
            ),
            "NonMaxSuppressionV3_third": lambda b, s, k: images.non_max_suppression(b, s, 20, 0.4, 0.2),
            "NonMaxSuppressionV4_fourth": lambda b, s, k: (
                raw.NonMaxSuppressionV4(
                    boxes=b, scores=s, max_output_size=k, iou_threshold=0.2, score_threshold=0.3
                ).selected_indices
            ),
            "NonMaxSuppressionWithOverlaps_by_table": lambda b, s, k: raw.NonMaxSuppressionWithOverlaps(
                overlaps=s[:, tf.newaxis] * s, scores=s, max_output_size=4, overlap_threshold=0.2, score_threshold=0.1
            ),
            "NonMaxSuppressionV5_scores": lambda b, s, k: (
                raw.NonMaxSuppressionV5(
                    boxes=b, scores=s, max_output_size=4, iou_threshold=0.5, score_threshold=0.1, soft_nms_sigma=0.3
                ).selected_scores
            ),
            "NonMaxSuppressionV3_of_none": lambda b, s, k: raw.NonMaxSuppressionV3(
                boxes=b, scores=s, max_output_size=4, iou_threshold=0.5, score_threshold=2.0
            ),
        },
        in_xla=False,
    )


def _boxes_of_classes(tf: ModuleType) -> Group:
    images = tf.image
    return Group(
        [
            Input("float32", ("n", "h", 1, 4), -0.2, 1.2),
            Input("float32", ("n", "h", 3), 0, 1),
            Input("float32", ("n", "h", 3, 4), 0, 2),
        ],
        {
            **{
                f"CombinedNonMaxSuppression_shared_{index}": _combined(images, index, of_each=2, total=5)
                for index in range(4)
            },
            "CombinedNonMaxSuppression_own": lambda b, s, o: images.combined_non_max_suppression(
                o, s, 3, 4, 0.2, 0.1, clip_boxes=False
            )[0],
            "CombinedNonMaxSuppression_padded": lambda b, s, o: images.combined_non_max_suppression(
                b, s, 2, 9, 0.2, 0.4, pad_per_class=True
            )[1],
            "CombinedNonMaxSuppression_wide": lambda b, s, o: images.combined_non_max_suppression(b, s, 2, 9, 0.2, 0.4)[
                2
            ],
        },
    )


def _scaled(run: Case, name: str) -> Case:
    return lambda x, s, t: run(images=x, size=[5, 6], scale=s, translation=t, kernel_type=name)


def _soft(run: Case, index: int, sigma: float, overlap: float) -> Case:
    return lambda b, s, k: run(
        boxes=b,
        scores=s,
        max_output_size=5,
        iou_threshold=overlap,
        score_threshold=0.1,
        soft_nms_sigma=sigma,
        pad_to_max_output_size=True,
    )[index]


def _combined(images: ModuleType, index: int, of_each: int, total: int) -> Case:
    return lambda b, s, o: images.combined_non_max_suppression(b, s, of_each, total, 0.3, 0.2)[index]


GROUPS: Mapping[str, Callable[[ModuleType], Group]] = {
    "crops": _crops,
    "crops of computed sizes": _crops_of_computed_sizes,
    "scaled images": _scaled_images,
    "boxes": _boxes,
    "chosen boxes": _chosen_boxes,
    "boxes of classes": _boxes_of_classes,
}
"""The groups by their names."""
