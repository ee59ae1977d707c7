"""Sizes in formulas of floats."""

from __future__ import annotations

from tfconvert.converter.ir.constants import Scalar
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import types


def number(emit: LiteRTBuilder, scalar: Scalar) -> EmittedTensor:
    """Returns a scalar integer as a float."""
    return EmittedTensor(emit, emit.cast(emit.value(scalar), types.F32))


def count(emit: LiteRTBuilder, size: Scalar) -> EmittedTensor:
    """Returns the numbers from zero up to a size."""
    length = size if isinstance(size, int) else -1
    bounds = (emit.number(0), emit.value(size), emit.number(1))
    return EmittedTensor(emit, emit.cast(emit.tf("Range", bounds, types.tensor(types.I32, (length,))), types.F32))
