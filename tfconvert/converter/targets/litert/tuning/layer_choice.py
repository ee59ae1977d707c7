"""Recurrent layers as LiteRT's operators or as their own steps, whichever was measured to be faster."""

from __future__ import annotations

from collections.abc import Iterable

from tfconvert.converter.ir.excerpt import excerpt, with_neighbours
from tfconvert.converter.pipeline.runner import run_stages
from tfconvert.converter.pipeline.stage import Pass
from tfconvert.converter.targets.litert.recurrent import speed
from tfconvert.converter.targets.litert.stages import STAGES
from tfconvert.converter.targets.litert.tuning.tuner import FormPair, Tuner, operators_of
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.settings.options import Options
from tfconvert.settings.targets import LiteRT

# What follows where layers become operators, without another choice.
_LATER = STAGES[next(at for at, stage in enumerate(STAGES) if stage.run == "unroll-loops") :]
_LATER_OPTIONS = Options(target=LiteRT(recurrent="loop"))

# What operators do themselves.
_REARRANGING = frozenset({"tf.Transpose", "tf.ReverseV2"})


class LayerChoice:
    """Choices between operators and steps.

    Args:
        module: The module that is rewritten.
        tuner: What has the times.
        fuse: The pass that makes operators of steps, without a choice.
    """

    def __init__(self, module: ModuleOp, tuner: Tuner, fuse: Pass) -> None:
        self._module, self._tuner, self._fuse = module, tuner, fuse

    def choose(self, ops: Iterable[Operation], sizes: Iterable[speed.Sizes], *, is_open: bool) -> speed.Choice:
        """Returns the faster form of layers that must all have the same form.

        Args:
            ops: The loop, or the steps.
            sizes: The sizes of each layer.
            is_open: Whether the number of steps is unknown; then only the table of common sizes can decide.
        """
        layers = list(sizes)
        default = speed.choose(layers)
        form = None if is_open else self._form(ops, layers)
        if form is None:
            return default
        times = self._tuner.times(form)
        measured = None if times is None else (times.fast / 1e3, times.usual / 1e3)
        choice = speed.choose(layers, measured)
        self._tuner.decided(form, times, is_fast=choice.fuse, is_default=choice.fuse == default.fuse)
        return choice

    def _form(self, ops: Iterable[Operation], layers: list[speed.Sizes]) -> FormPair | None:
        """Returns both forms; `None` if they can't run by themselves, since they depend on computed integers."""
        part = excerpt(self._module, with_neighbours(ops, _REARRANGING))
        if any(value.element != types.F32 for value in part.inputs):
            return None
        fused = part.module.clone()
        try:
            if not self._fuse.apply(fused).counts:
                return None
            for module in (part.module, fused):
                for _ in run_stages(module, _LATER, _LATER_OPTIONS):
                    pass
        except ConversionError:
            return None  # The conversion itself reports what can't be converted.
        return FormPair(f"{layers[0].cell}-{layers[0].form}-as-operator", part.module, fused, operators_of(fused))
