"""Operations of TensorFlow Text, which have custom operators of the same names."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.composites.composite import Composite, chosen_options
from tfconvert.converter.composites.fusion import Body, Fusion, first_of
from tfconvert.converter.ir import option_map
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.values import Value

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


FUSIONS = (
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
