"""Two operations of TensorFlow Addons, which LiteRT has among its operators for perception: both are custom."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from tfconvert.converter.composites.composite import Composite
from tfconvert.converter.composites.fusion import Body, Fusion, first_of
from tfconvert.schema.ir.values import Value

# The numbers that LiteRT's pooling parameters have for kinds of padding.
_PADDINGS: Mapping[str, int] = {"SAME": 1, "VALID": 2}

# LiteRT's pooling parameters: padding, stride (width, height), window (width, height), activation, four offsets.
_POOL_PARAMETERS = struct.Struct("<10i")


def _check_warp(composite: Composite) -> str | None:
    return first_of(composite.counts(2, 1), composite.ranks({0: 4, 1: 4}), composite.elements({0: "f32", 1: "f32"}))


def _rewrite_warp(composite: Composite, body: Body) -> Sequence[Value]:
    return body.custom("DenseImageWarp", b"", body.arguments, composite.results)


def _check_unpooling(composite: Composite) -> str | None:
    reason = composite.counts(2, 1)
    if reason:
        return reason
    for name in ("pool_size", "strides"):
        value = composite.get(name)
        if not isinstance(value, tuple) or len(value) != 2 or not all(type(item) is int for item in value):
            return f"the attribute {name!r} is not a list of two integers"
    if composite.get("padding") not in _PADDINGS:
        return f"the attribute 'padding' is not {' or '.join(_PADDINGS)}"
    return None


def _rewrite_unpooling(composite: Composite, body: Body) -> Sequence[Value]:
    window, strides = composite.get("pool_size"), composite.get("strides")
    padding = _PADDINGS[composite.get("padding")]
    options = _POOL_PARAMETERS.pack(padding, strides[1], strides[0], window[1], window[0], 0, 0, 0, 0, 0)
    return body.custom("MaxUnpooling2D", options, body.arguments, composite.results)


FUSIONS = (
    Fusion(
        "max-unpooling-2d",
        "addons:MaxUnpooling2D",
        "(pooled, indices) -> unpooled; pool_size, strides (height, width), padding: the custom operator "
        "MaxUnpooling2D",
        _check_unpooling,
        _rewrite_unpooling,
        is_custom=True,
    ),
    Fusion(
        "dense-image-warp",
        "addons:DenseImageWarp",
        "(image[N, H, W, C], flow[N, H, W, 2]) -> image: the custom operator DenseImageWarp",
        _check_warp,
        _rewrite_warp,
        is_custom=True,
    ),
)
