"""Ranks: dimensions that stay together are merged, so that no more than four are left."""

from __future__ import annotations

from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.accelerators.builder import AcceleratorBuilder, form, ints_of, static_shape
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.values import Value


def _reshape_once(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A reshape of a reshape: one reshape, or none."""
    inner = op.operands[0].owner
    need(isinstance(inner, tfl.TFLOp) and inner.op_name == "reshape", "it reshapes no reshape")
    assert isinstance(inner, tfl.TFLOp)
    return build.reshape(inner.operands[0], static_shape(op.results[0]))


def _reshaped(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    return build.reshape(op.operands[0], static_shape(op.results[0]))


def _transpose(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A transpose: drops dimensions of 1, and merges those that stay neighbours."""
    shape, result = static_shape(op.operands[0]), static_shape(op.results[0])
    order = [axis for axis in ints_of(op.operands[1]) if shape[axis] != 1]
    groups: list[list[int]] = []
    for axis in order:
        if groups and _follows(shape, groups[-1][-1], axis):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    places = sorted(range(len(groups)), key=lambda at: groups[at][0])
    sizes = [_product(shape, groups[at]) for at in places]
    need(len(groups) <= 4, "more than four dimensions go apart")
    permutation = [places.index(at) for at in range(len(groups))]
    value = build.transpose(build.reshape(op.operands[0], sizes), permutation)
    return build.reshape(value, result)


def _follows(shape: tuple[int, ...], axis: int, other: int) -> bool:
    return other > axis and all(shape[between] == 1 for between in range(axis + 1, other))


def _product(shape: tuple[int, ...], axes: list[int]) -> int:
    result = 1
    for axis in axes:
        result *= shape[axis]
    return result


PATTERNS = (
    form("reshape-once", "reshape", _reshape_once),
    form("squeeze-as-reshape", "squeeze", _reshaped),
    form("expand-dims-as-reshape", "expand_dims", _reshaped),
    form("transpose-in-fewer-dimensions", "transpose", _transpose),
)
