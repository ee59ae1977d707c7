"""Ops of XLA that the runtime has as operators of StableHLO, whose kernels are plain loops."""

from __future__ import annotations

from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering, all_of, constant_operand, ints
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_AMOUNTS = "edge_padding_low", "edge_padding_high", "interior_padding"


def _pad(op: Operation, emit: LiteRTBuilder) -> Value:
    operand, value, *amounts = op.operands
    options = {name: ints(each) for name, each in zip(_AMOUNTS, amounts, strict=True)}
    return emit.tfl("stablehlo_pad", (operand, value), op.results[0].type, options)


ENTRIES: tuple[Entry, ...] = (
    Lowering(
        "XlaPad", "stablehlo_pad", _pad, constraint=all_of(*(constant_operand(index, "padding") for index in (2, 3, 4)))
    ),
)
