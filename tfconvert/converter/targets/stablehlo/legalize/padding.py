"""Padding: with a value, by amounts that may be computed, and with the elements at the edges mirrored."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.entry import Lowering, attribute
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate
from tfconvert.converter.targets.stablehlo.legalize.slicing import from_to
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.converter.targets.stablehlo.legalize.window_geometry import amounts_of, pad_around
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _pad(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    fill = op.operands[2] if len(op.operands) > 2 else emit.scalar(0, types.element_of(value.type))
    return pad_around(emit, value, amounts_of(emit, op, 1, len(emit.dims(value))), emit.reshape(fill, ()))


def _mirror_pad(op: Operation, emit: StableHLOBuilder) -> Value:
    from_edge = 1 if attribute(op, "mode", "REFLECT") == "REFLECT" else 0
    value = op.operands[0]
    for axis, (low, high) in enumerate(amounts_of(emit, op, 1, len(emit.dims(value)))):
        size = emit.size(emit.dims(value)[axis])
        behind = emit.compute("subtract", size, from_edge)
        before_end = emit.compute("subtract", behind, high)
        pieces = [value]
        if low != 0:
            pieces.insert(0, _mirrored(emit, value, axis, from_edge, emit.compute("add", low, from_edge)))
        if high != 0:
            pieces.append(_mirrored(emit, value, axis, before_end, behind))
        value = concatenate(emit, pieces, axis)
    return value


def _mirrored(emit: StableHLOBuilder, value: Value, axis: int, begin: Value | int, end: Value | int) -> Value:
    """Returns a part of an axis back to front."""
    dim = emit.dims(value)[axis]
    if dim >= 0 and isinstance(begin, int) and isinstance(end, int) and not 0 <= begin <= end <= dim:
        raise Declined("more is mirrored than there is")
    edge = from_to(emit, value, axis, begin, end)
    if emit.dims(edge)[axis] == 1:
        return edge
    return emit.one("reverse", (edge,), types.element_of(value.type), emit.dims(edge), {"dimensions": (axis,)})


LOWERINGS: Mapping[str, Lowering] = {"MirrorPad": _mirror_pad, "Pad": _pad, "PadV2": _pad}
