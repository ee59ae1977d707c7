"""Windows that are taken from images, as vision transformers take them."""

from __future__ import annotations

import math

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# Largest number of pixels of a window whose parts are cut out one by one.
_MAX_WINDOW = 256

_ELEMENTS = "f32 i32 i64 ui8 i8"


def _windows(op: Operation) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """Returns the windows' size, the steps between them and between their pixels, down and across each."""
    size, strides, rates = (tuple(tf.get(op, name))[1:3] for name in ("ksizes", "strides", "rates"))
    return size, strides, rates


def _patches_constraint(op: Operation) -> Failure | None:
    shape, result = (types.shape_of(value.type) for value in (op.operands[0], op.results[0]))
    if shape is None or result is None or not types.is_static(shape[1:]) or not types.is_static(result[1:]):
        return Failure("the images' size is not known")
    size, strides, _ = _windows(op)
    if size == strides and size[0] == size[1]:
        return None
    return (
        None if math.prod(size) <= _MAX_WINDOW else Failure(f"windows that overlap have at most {_MAX_WINDOW} pixels")
    )


def _patches(op: Operation, emit: LiteRTBuilder) -> Value:
    """Cuts out, for each place in a window, that pixel of every window; blocks side by side are depth."""
    size, strides, rates = _windows(op)
    shape, result = (types.shape_of(value.type) or () for value in (op.operands[0], op.results[0]))
    element, counts = types.element_of(op.operands[0].type), result[1:3]
    reach = [
        (count - 1) * step + (pixels - 1) * rate + 1
        for count, step, pixels, rate in zip(counts, strides, size, rates, strict=True)
    ]
    images = op.operands[0]
    missing = [max(wanted - dim, 0) for wanted, dim in zip(reach, shape[1:3], strict=True)]
    if any(missing):
        images = emit.pad(images, [(0, 0), *((each // 2, each - each // 2) for each in missing), (0, 0)])
    if size == strides and size[0] == size[1] and rates == (1, 1):
        covered = types.tensor(element, (shape[0], *reach, shape[3]))
        cut = emit.tf("Slice", (images, emit.ints((0,) * 4), emit.ints((-1, *reach, -1))), covered)
        return emit.tf("SpaceToDepth", (cut,), op.results[0].type, {"block_size": size[0], "data_format": "NHWC"})
    part = types.tensor(element, (*result[:3], shape[3]))
    parts = []
    for down in range(0, size[0] * rates[0], rates[0]):
        for across in range(0, size[1] * rates[1], rates[1]):
            ends = [
                start + (count - 1) * step + 1
                for start, count, step in zip((down, across), counts, strides, strict=True)
            ]
            bounds = [emit.ints(each) for each in ((0, down, across, 0), (0, *ends, 0), (1, *strides, 1))]
            parts.append(emit.tf("StridedSlice", (images, *bounds), part, {"begin_mask": 9, "end_mask": 9}))
    return emit.tf("ConcatV2", (*parts, emit.scalar(3, types.I32)), op.results[0].type) if parts[1:] else parts[0]


ENTRIES: tuple[Entry, ...] = (
    Lowering("ExtractImagePatches", "StridedSlice ConcatV2", _patches, _ELEMENTS, _patches_constraint),
)
