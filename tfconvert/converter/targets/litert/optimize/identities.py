"""Removes ops that yield their operand unchanged.

    slice(x, 0, shape of x), strided_slice(x) of all of x, tile(x, 1), broadcast_to(x, shape of x),
    concatenation(x), split{1}(x), cast(x) to its own type, max_pool_2d{1x1}(x), resize(x, size of x),
    logical_and(x, x), logical_or(x, x), maximum(x, x), minimum(x, x)  ->  x

Unknown dimensions are taken to change unless the op certainly keeps them.
"""

from __future__ import annotations

from typing import Any

from tfconvert.converter.rewrite.declarative import rule
from tfconvert.converter.rewrite.dsl import Check, Op, array, check, tfl, value
from tfconvert.converter.rewrite.pattern import Pattern
from tfconvert.converter.targets.litert.optimize import matching
from tfconvert.schema.dialects import tfl as dialect
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _takes_all(x: Value, begin: Array, size: Array) -> bool:
    dims = matching.shape(x)
    if dims is None or begin.any() or size.size != len(dims):
        return False
    return all(count in (-1, dim) for count, dim in zip(size.ravel(), dims, strict=True))


def _strides_over_all(root: Operation, x: Value, begin: Array, end: Array, strides: Array) -> bool:
    """Returns whether a strided slice takes each dimension from its begin to its end, one by one."""
    dims = matching.shape(x)
    if dims is None or (strides != 1).any() or begin.size != end.size or begin.size > len(dims):
        return False
    open_begin, open_end = dialect.attribute(root, "begin_mask"), dialect.attribute(root, "end_mask")
    return all(
        (open_begin >> index & 1 or first == 0) and (open_end >> index & 1 or 0 < dims[index] <= last)
        for index, (first, last) in enumerate(zip(begin.ravel().tolist(), end.ravel().tolist(), strict=True))
    )


X, Y = value("x"), value("y")
_BEGIN = array("begin")
_ONE_PIXEL = {"filter_height": 1, "filter_width": 1, "stride_h": 1, "stride_w": 1, **matching.PLAIN}
_WHOLE = {"ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}

_ALL = check("it takes a part, or may do so", _takes_all)
_ALL_STRIDES = check("it takes a part, or may do so", _strides_over_all)
_ONCE = check("it repeats its operand", lambda multiples: (multiples == 1).all())
_SINGLE = check("it has several results", lambda root: len(root.results) == 1)


def _identity(matched: Op, *conditions: Check) -> Pattern[Any]:
    return rule(f"identity-{matched.names[0][4:]}", matched, X, where=[matching.KEEPS_TYPE, *conditions], benefit=20)


PATTERNS: tuple[Pattern[Any], ...] = (
    _identity(tfl.slice(X, _BEGIN, array("size")), _ALL),
    _identity(tfl.strided_slice(X, _BEGIN, array("end"), array("strides"), **_WHOLE), _ALL_STRIDES),
    _identity(tfl.tile(X, array("multiples")), _ONCE),
    _identity(tfl.broadcast_to(X.static(), Y)),
    _identity(tfl.concatenation(X, **matching.PLAIN)),
    _identity(tfl.split(Y, X), _SINGLE),
    _identity(tfl.cast(X)),
    _identity(tfl.logical_and(X, X)),
    _identity(tfl.logical_or(X, X)),
    _identity(tfl.maximum(X, X)),
    _identity(tfl.minimum(X, X)),
    _identity(tfl.max_pool_2d(X, **_ONE_PIXEL)),
    _identity(tfl.average_pool_2d(X, **_ONE_PIXEL)),
    _identity(tfl.resize_bilinear(X.static(), Y)),
    _identity(tfl.resize_nearest_neighbor(X.static(), Y)),
)
