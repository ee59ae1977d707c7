"""Pass `fast-forms`: forms that LiteRT runs faster on a processor, where measured times say so.

Before:

    func.func @main(%x: tensor<3x32x32xf32>) -> tensor<32x32xf32> {
      %b = "tfl.pseudo_const"() <{value = dense<[1, 0, 0]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %e = "tfl.pseudo_const"() <{value = dense<[2, 0, 0]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %s = "tfl.pseudo_const"() <{value = dense<1> : tensor<3xi32>}> : () -> tensor<3xi32>
      %0 = "tfl.strided_slice"(%x, %b, %e, %s) <{begin_mask = 6 : i32, end_mask = 6 : i32, shrink_axis_mask = 1 : i32}>
        : (tensor<3x32x32xf32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<32x32xf32>
      func.return %0 : tensor<32x32xf32>
    }

After:

    func.func @main(%x: tensor<3x32x32xf32>) -> tensor<32x32xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<[1, 0, 0]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %1 = "tfl.pseudo_const"() <{value = dense<[1, 32, 32]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %2 = "tfl.slice"(%x, %0, %1) : (tensor<3x32x32xf32>, tensor<3xi32>, tensor<3xi32>) -> tensor<1x32x32xf32>
      %3 = "tfl.pseudo_const"() <{value = dense<32> : tensor<2xi32>}> : () -> tensor<2xi32>
      %4 = "tfl.reshape"(%2, %3) <{new_shape = [32 : i32, 32 : i32]}> : (tensor<1x32x32xf32>, tensor<2xi32>)
        -> tensor<32x32xf32>
      func.return %4 : tensor<32x32xf32>
    }
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar

from tfconvert.converter.pipeline.greedy_pass import GreedyPass
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.converter.targets.litert.forms import tables
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.tflite import versions
from tfconvert.settings.quantization import Quantize

if TYPE_CHECKING:
    from tfconvert.converter.targets.litert.tuning.fast_choice import FastChoice


class FastForms(GreedyPass):
    """Applies the faster ones of `tfconvert.converter.targets.litert.forms` until none matches.

    Args:
        quantize: How to quantize later on; operators that will be of integers stay as they are.
        tune: What has the times of this model's forms: `host`, the path of a table, or of a directory for files;
            without it, those of `speed.tsv` decide.
        target_runtime: The release of the runtime that must have the operators; empty for the newest.
    """

    __slots__ = ("_choice", "quantize", "target_runtime", "tune")

    name: ClassVar[str] = "fast-forms"
    dialect: ClassVar[str] = "tfl."
    has_side_effects = staticmethod(tfl.has_side_effects)

    def __init__(
        self, quantize: Quantize | None = None, tune: str | os.PathLike[str] = "", target_runtime: str = ""
    ) -> None:
        super().__init__()
        self.quantize = quantize
        self.target_runtime = target_runtime
        # Forms that will be of integers can be measured only when they are.
        self.tune = "" if self._is_static else tune
        self._choice: FastChoice | None = None

    @property
    def _is_static(self) -> bool:
        return self.quantize is not None and self.quantize.is_static

    def own_patterns(self, module: ModuleOp, names: set[str]) -> PatternSet:
        names.update(op.name for op in module.walk())
        only_floats = not self._is_static and "tfl.fake_quant" not in names
        has_int16 = self.quantize is not None and self.quantize.mode == "int16"
        keeps_weights = self.quantize is None or self.quantize.mode == "float16"
        release = versions.parse_release(self.target_runtime) if self.target_runtime else None
        found = tables.fast_forms(
            names,
            only_floats=only_floats,
            has_int16=has_int16,
            keeps_weights=keeps_weights,
            per_channel=self.quantize is None or bool(self.quantize.per_channel),
            has_scatter=release is None or release >= tables.SCATTER_RELEASE,
        )
        return found if self._choice is None else self._choice.patterns(found)

    def apply(self, module: ModuleOp) -> PassResult:
        if not self.tune:
            return super().apply(module)
        from tfconvert.converter.targets.litert.tuning.fast_choice import FastChoice
        from tfconvert.converter.targets.litert.tuning.tuner import Tuner

        with Tuner(self.tune) as tuner:
            self._choice = FastChoice(module, tuner)
            return super().apply(module)._replace(tuning=tuner.report)
