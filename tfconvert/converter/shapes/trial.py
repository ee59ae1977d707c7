"""Checks whether a function works for arguments of given shapes, without changing the IR."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.converter.shapes.facts import Fact
from tfconvert.converter.shapes.sweep import Sweep
from tfconvert.ops.operands import Known
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.call_interfaces import KINDS
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def fits(function: FuncOp, shapes: Mapping[Value, Shape]) -> bool:
    """Returns whether no op of a function contradicts the given shapes, or has a result without elements for them.

    Ops without shape function, and the contents of branches and loops, are assumed to be correct.

    Args:
        function: The function.
        shapes: The shapes of arguments; the others have those of their types.
    """
    block = function.body.block
    known = Known()
    sweep = Sweep(block, known, writes=False)
    sweep.enter([Fact(shapes.get(argument, argument.shape)) for argument in block.args])
    try:
        for op in block.ops:
            if op.name == "tf.Const":
                sweep.note_constant(op)
            elif op.name in KINDS:
                sweep.settle(op, [Fact(result.shape) for result in op.results])
            elif op.results:
                sweep.visit(op)
                if _vanishes(op, known):
                    return False
    except ConversionError as problem:
        if problem.code != "shape-mismatch":
            raise
        return False
    return True


def _vanishes(op: Operation, known: Known) -> bool:
    """Returns whether an op has a result without elements that its type doesn't show."""
    return any(0 in (known.shapes.get(result) or ()) and 0 not in (result.shape or ()) for result in op.results)
