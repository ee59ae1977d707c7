"""Bounds of open sizes, for programs with branches and loops.

IREE 3.13 puts tensors into a common buffer, and tracks which places in it a branch or a loop may get. If it can't rule
out that the size of a tensor overflows 64 bits, it loses track of the place of the next one, takes another for a
constant, and the program reads foreign memory. So functions check that sizes are below a bound, and say so.
"""

from __future__ import annotations

import math

from tfconvert.converter.targets.iree.rewrites.context import is_open, shape_of
from tfconvert.converter.targets.iree.rewrites.linalg_builder import LinalgBuilder
from tfconvert.converter.targets.iree.rewrites.unsigned import bits, is_unsigned
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.types import INDEX
from tfconvert.schema.ir.values import Value

_HOLDERS = frozenset({"stablehlo.case", "stablehlo.if", "stablehlo.while"})

# The bits that the bytes of a tensor may take; some are left for the sum of several.
_BITS = 58

# The bits of the largest size that TensorFlow's own integers for sizes have.
_SIZE_BITS = 31

# The bits of the least bound: sizes of that many are common, so that nothing is bounded by less.
_MIN_BITS = 12


def bound(function: FuncOp) -> bool:
    """Lets a function check the sizes of its arguments, if it needs that; returns whether they are bounded then."""
    ops = list(function.walk())
    if not any(op.name in _HOLDERS and is_open(*op.operands, *op.results) for op in ops):
        return True
    block = function.regions[0].block
    values = [*block.args, *[result for op in ops for result in op.results]]
    open_ = [value for value in values if _is_open_tensor(value)]
    # A size may be the product of all others: a tensor of few open dimensions may be one of many that was reshaped.
    width = (_BITS - max(map(_known_bits, open_))) // max([shape_of(value).count(-1) for value in open_])
    width = min(width, _SIZE_BITS)
    if width < _MIN_BITS:
        return False
    emit = LinalgBuilder(block.first_op)
    for argument in block.args:
        if _is_open_tensor(argument):
            _bound(emit, argument, (1 << width) - 1)
    return True


def _known_bits(value: Value) -> int:
    """Returns how many bits the bytes of a tensor have whose open sizes are 1."""
    count = math.prod([dim for dim in shape_of(value) if dim > 0])
    return int(count * types.numpy_dtype(types.element_of(value.type)).itemsize).bit_length()


def _bound(emit: LinalgBuilder, argument: Value, most: int) -> None:
    """Checks the open sizes of an argument, and says to IREE in which range they are."""
    uses = tuple(argument.uses)
    held = bits(emit, argument) if is_unsigned(argument) else argument
    sizes: list[Value] = []
    for axis, dim in enumerate(shape_of(argument)):
        if dim < 0:
            size = emit.one("tensor.dim", (held, emit.index(axis)), INDEX)
            emit.op("cf.assert", (emit.is_("LE", size, emit.index(most)),), (), {"msg": f"a size is above {most}"})
            sizes.append(emit.index(emit.clamped(size, 0, most)))
    tied = emit.one("flow.tensor.tie_shape", (held, *sizes), held.type)
    if held is not argument:
        tied = emit.one("stablehlo.bitcast_convert", (tied,), argument.type)
    for use in uses:
        use.operation.set_operand(use.index, tied)


def _is_open_tensor(value: Value) -> bool:
    shape = types.shape_of(value.type)
    return shape is not None and -1 in shape
