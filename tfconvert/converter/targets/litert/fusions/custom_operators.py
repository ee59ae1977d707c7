"""Custom operators: TensorFlow Addons and Text, and any function marked `tfl_fusable_op`."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from tfconvert.converter.composites.composite import Composite, chosen_options, plain_option, unfit_option
from tfconvert.converter.composites.fusion import Body, Fusion, first_of
from tfconvert.converter.ir import option_map
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.values import Value

# Kinds of padding, as numbers in LiteRT's pooling parameters.
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


_ADDONS = (
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


_MAX_RANK = 2
_STRING = str(types.StringType())
_SGNN = ("hash_seed", "buckets")
_NGRAMS = {"width": int, "string_separator": str, "axis": int, "reduction_type": str}


def _is_vector(kind: Attribute, element: str) -> bool:
    shape = types.shape_of(kind)
    return str(types.element_of(kind)) == element and shape is not None and len(shape) == 1


def _check_tokenizer(composite: Composite) -> str | None:
    if len(composite.arguments) != 1:
        return f"it has {len(composite.arguments)} arguments, not 1"
    shape = composite.shape(0)
    if shape is None or len(shape) > _MAX_RANK:
        return f"the rank of argument 0 is not known to be {_MAX_RANK} or less"
    if not _is_vector(composite.results[0], _STRING):
        return "result 0 is not a vector of strings"
    if not all(_is_vector(kind, "i64") for kind in composite.results[1:]):
        return "a result after the tokens is not a vector of i64"
    return first_of(composite.counts(1, len(shape) + 1), composite.elements({0: _STRING}))


def _check_ngrams(composite: Composite) -> str | None:
    count = len(composite.results)
    if not count:
        return "it has no results"
    reason = first_of(composite.counts(count, count), composite.has(_NGRAMS))
    if reason:
        return reason
    if str(composite.element(0)) != _STRING:
        return "argument 0 holds no strings"
    splits = (*composite.arguments[1:], *composite.results[1:])
    return None if all(_is_vector(kind, "i64") for kind in splits) else "the row splits are not vectors of i64"


def _check_projection(composite: Composite) -> str | None:
    reason = composite.counts(2, 1) or composite.elements({0: _STRING, 1: "i32 i64"})
    if reason:
        return reason
    seeds = composite.get("hash_seed")
    if not isinstance(seeds, tuple) or not seeds or not all(type(seed) is int for seed in seeds):
        return "the attribute 'hash_seed' is not a list of integers"
    shape = types.shape_of(composite.results[0])
    if shape is None or len(shape) != 2 or shape[1] not in (-1, len(seeds)):
        return f"the result is not a matrix of {len(seeds)} columns"
    return composite.has({"buckets": int})


def _same_name(composite: Composite, body: Body) -> Sequence[Value]:
    return body.custom(composite.name, b"", body.arguments, composite.results)


def _ngrams(composite: Composite, body: Body) -> Sequence[Value]:
    options = option_map.encode(chosen_options(composite, _NGRAMS))
    return body.custom(composite.name, options, body.arguments, composite.results)


def _projection(composite: Composite, body: Body) -> Sequence[Value]:
    options = option_map.encode(chosen_options(composite, _SGNN))
    return body.custom(composite.name, options, body.arguments, composite.results)


_TEXT = (
    Fusion(
        "whitespace-tokenizer",
        "tftext:WhitespaceTokenizer",
        "(strings) -> (tokens, offsets of each dimension): the custom operator of that name",
        _check_tokenizer,
        _same_name,
        is_custom=True,
    ),
    Fusion(
        "ngrams",
        "tftext:Ngrams",
        "(strings, row splits, ...) -> the same; width, string_separator, axis, reduction_type: the custom operator",
        _check_ngrams,
        _ngrams,
        is_custom=True,
    ),
    Fusion(
        "sgnn-projection",
        "tftext:custom:SgnnProjection",
        "(strings, row splits) -> matrix; hash_seed, buckets: the custom operator of that name",
        _check_projection,
        _projection,
        is_custom=True,
    ),
)


FLAG = "tfl_fusable_op"


def _fusable_options(composite: Composite) -> Mapping[str, Attribute]:
    return {name: value for name, value in sorted(composite.attributes.items()) if name != FLAG}


def _check_fusable(composite: Composite) -> str | None:
    if not composite.name:
        return "an operator's name can't be empty"
    return unfit_option(_fusable_options(composite))


def _rewrite_fusable(composite: Composite, body: Body) -> Sequence[Value]:
    options = {name: plain_option(value) for name, value in _fusable_options(composite).items()}
    return body.custom(composite.name, option_map.encode(options), body.arguments, composite.results)


FUSABLE = (
    Fusion(
        "fusable-op",
        "*",
        "any arguments and results; the other attributes are the options: a custom operator of the interface's name",
        _check_fusable,
        _rewrite_fusable,
        flag=FLAG,
        is_custom=True,
    ),
)

FUSIONS = (*_ADDONS, *_TEXT)
