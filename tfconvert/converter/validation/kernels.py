"""Finds where LiteRT's kernels compute something else than the operators of the model, whatever the converter does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tfconvert.converter.executor.executor import Executor
from tfconvert.converter.executor.tasks import Task
from tfconvert.converter.validation.domains import SUPPRESSIONS, suppresses
from tfconvert.ops.call import Array, Results
from tfconvert.ops.suppression import composite_differs, kernel_differs
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation


def differing_kernel(module: ModuleOp, function: str, inputs: Sequence[Array]) -> str:
    """Returns what LiteRT's kernels take otherwise in a run, as a clause; empty if there is nothing.

    Args:
        module: The model.
        function: The function that runs.
        inputs: Its inputs.
    """
    if not any(_is_suppression(op) for op in module.walk()) or Executor(module).problems(function):
        return ""
    watching = _Watching(module)
    try:
        watching.run(function, inputs)
    except ConversionError:
        return ""
    return watching.found


def _is_suppression(op: Operation) -> bool:
    return op.name.removeprefix("tf.") in SUPPRESSIONS or (isinstance(op, FuncOp) and suppresses(op))


@dataclass(slots=True)
class _Watching(Executor):
    """Looks at the boxes and scores that non-maximum suppression gets."""

    found: str = field(default="")  # What its kernel takes otherwise.

    def call(self, name: str, inputs: Results) -> Task:
        if suppresses(self._function(name)):
            self._look(inputs, composite_differs(inputs[0]))
        return Executor.call(self, name, inputs)

    def _look(self, inputs: Results, known: str = "") -> None:
        lowest = float(inputs[4].reshape(-1)[0]) if len(inputs) > 4 else -np.inf
        reason = "" if self.found else known or kernel_differs(inputs[0], inputs[1], lowest)
        self.found = f"{reason} in NON_MAX_SUPPRESSION" if reason else self.found

    def execute(self, op: Operation, inputs: Results) -> Results:
        if _is_suppression(op):
            self._look(inputs)
        return Executor.execute(self, op, inputs)
