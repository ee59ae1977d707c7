"""The largest numbers of the rows that a softmax or an arg max compares: what is far below them doesn't matter.

Only samples tell whether a low number is masked, or all of its row is low. So while they run, the model also computes
the largest number of each row, for an arg min the smallest one. Rows whose numbers are too close to each other for
integers to tell them apart, such as those that are masked wholly, don't count: they give the same whatever the numbers
are. The range of the others is an attribute of the op.

    %0 = "tfl.softmax"(%x) <{beta = 1.0 : f32}> {tfl.rows = array<f32: -0.5, 7.0>} : ...
"""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.converter.ir.constants import constant_int
from tfconvert.converter.ir.edit import erase
from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.targets.litert.quantize.candidates import is_constant, is_float
from tfconvert.converter.targets.litert.quantize.observers import Range
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.attributes import DenseArrayAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import F32, IntegerType
from tfconvert.schema.ir.values import Value

_ROWS = "tfl.rows"

_REDUCTIONS: Mapping[str, str] = {
    "softmax": "reduce_max",
    "log_softmax": "reduce_max",
    "arg_max": "reduce_max",
    "arg_min": "reduce_min",
}

# By how many steps numbers of a row must be apart if integers are to tell scores beside -1e4.
_STEPS = 4


def rows_of(op: Operation) -> Range | None:
    """Returns the range of the largest numbers of an op's rows, `None` if it is unknown."""
    found = op.attributes.get(_ROWS)
    return Range(*map(float, found.values)) if isinstance(found, DenseArrayAttr) else None


class Rows:
    """Ops at the end of a module's functions that compute the largest number of each row.

    Attributes:
        values: These numbers, by function.

    Args:
        module: The module.
        storage: The type of integers.
    """

    def __init__(self, module: ModuleOp, storage: IntegerType) -> None:
        self._rounding = _STEPS / 2**storage.width
        self.values: dict[FuncOp, list[Value]] = {}
        self._owners: dict[Value, Operation] = {}
        self._added: list[Operation] = []
        for function in module.ops:
            if isinstance(function, FuncOp):
                ops = list(function.body.block.ops)
                self.values[function] = [found for op in ops if (found := self._add(op, ops[-1])) is not None]
                self._added += list(function.body.block.ops)[len(ops) - 1 : -1]

    def _add(self, op: Operation, end: Operation) -> Value | None:
        reduction = _REDUCTIONS.get(op.name.removeprefix(tfl.PREFIX))
        value = op.operands[0] if reduction is not None else None
        shape = value.shape if value is not None and is_float(value) else None
        axis = constant_int(op.operands[1]) if len(op.operands) > 1 else -1
        if reduction is None or value is None or not shape or axis is None or is_constant(value):
            return None
        builder = TFLBuilder(end)
        axes = builder.ints([axis])
        row = types.tensor(types.F32, [1 if at == axis % len(shape) else size for at, size in enumerate(shape)])
        highest = builder.tfl("reduce_max", (value, axes), row, {"keep_dims": True})
        lowest = builder.tfl("reduce_min", (value, axes), row, {"keep_dims": True})
        rounding = builder.tfl(
            "mul", (builder.tfl("abs", (highest,), row), builder.scalar(self._rounding, types.F32)), row, _PLAIN
        )
        difference = builder.tfl("sub", (highest, lowest), row, _PLAIN)
        differs = builder.tfl("greater", (difference, rounding), types.tensor(types.I1, types.shape_of(row)))
        chosen = highest if reduction == "reduce_max" else lowest
        found = builder.tfl("select_v2", (differs, chosen, builder.scalar(0.0, types.F32)), row)
        self._owners[found] = op
        return found

    def remove(self, found: dict[Value, Range]) -> None:
        """Removes the ops, and moves their ranges among those found to attributes."""
        for value, op in self._owners.items():
            seen = found.pop(value, None)
            if seen is not None and seen.is_finite:
                op.attributes[_ROWS] = DenseArrayAttr.get(F32, seen)
        for op in reversed(self._added):
            erase(op)


_PLAIN = {"fused_activation_function": "NONE"}
