"""Ops that newer ones have replaced, where a function's body still has them; main graphs are imported without them."""

from __future__ import annotations

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _reverse(op: Operation, emit: LiteRTBuilder) -> Value:
    constant = tensor_data.constant_of(op.operands[1])
    assert constant is not None, "checked by the constraint"
    axes = tensor_data.to_array(constant).reshape(-1).nonzero()[0]
    return emit.tf("ReverseV2", (op.operands[0], emit.ints(axes.tolist())), op.results[0].type)


def _flags_are_known(op: Operation) -> Failure | None:
    known = tensor_data.constant_of(op.operands[1]) is not None
    return None if known else Failure("which dimensions are reversed is not a constant")


ENTRIES: tuple[Entry, ...] = (Lowering("Reverse", "ReverseV2", _reverse, constraint=_flags_are_known),)
