"""Pass `quantize-weights`: constants become 8- or 4-bit integers or 16-bit floats; activations stay 32-bit floats.

In the mode `dynamic`, operators with hybrid kernels multiply integers: they quantize their activations at run time.
Filters of convolutions that are depthwise, or add up few products, stay floats, since integers would be slower, unless
`hybrid_only` is set.

Before:

    func.func @main(%x: tensor<1x1024xf32>, %b: tensor<1xf32>) -> tensor<1x1xf32> {
      %w = "tfl.pseudo_const"() <{value = dense<127.0> : tensor<1x1024xf32>}> : () -> tensor<1x1024xf32>
      %0 = "tfl.fully_connected"(%x, %w, %b) : (tensor<1x1024xf32>, tensor<1x1024xf32>, tensor<1xf32>)
          -> tensor<1x1xf32>
      func.return %0 : tensor<1x1xf32>
    }

After:

    func.func @main(%x: tensor<1x1024xf32>, %b: tensor<1xf32>) -> tensor<1x1xf32> {
      %w = "tfl.pseudo_qconst"() <{
          qtype = tensor<1x1024x!quant.uniform<i8:f32:0, {1.0}>>, value = dense<127> : tensor<1x1024xi8>
      }> : () -> tensor<1x1024x!quant.uniform<i8:f32:0, {1.0}>>
      %0 = "tfl.fully_connected"(%x, %w, %b) <{asymmetric_quantize_inputs = true}>
          : (tensor<1x1024xf32>, tensor<1x1024x!quant.uniform<i8:f32:0, {1.0}>>, tensor<1xf32>) -> tensor<1x1xf32>
      func.return %0 : tensor<1x1xf32>
    }

The rows of a table become floats when they are looked up.

Before:

    func.func @main(%i: tensor<1x3xi64>) -> tensor<1x3x2xf32> {
      %w = "tfl.pseudo_const"() <{value = dense<127.0> : tensor<512x2xf32>}> : () -> tensor<512x2xf32>
      %0 = "tfl.gather"(%w, %i) <{axis = 0 : i32}> : (tensor<512x2xf32>, tensor<1x3xi64>) -> tensor<1x3x2xf32>
      func.return %0 : tensor<1x3x2xf32>
    }

After:

    func.func @main(%i: tensor<1x3xi64>) -> tensor<1x3x2xf32> {
      %w = "tfl.pseudo_qconst"() <{
          qtype = tensor<512x2x!quant.uniform<i8:f32, 1.0>>, value = dense<127> : tensor<512x2xi8>
      }> : () -> tensor<512x2x!quant.uniform<i8:f32, 1.0>>
      %0 = "tfl.gather"(%w, %i) <{axis = 0 : i32}>
          : (tensor<512x2x!quant.uniform<i8:f32, 1.0>>, tensor<1x3xi64>) -> tensor<1x3x2x!quant.uniform<i8:f32, 1.0>>
      %1 = "tfl.dequantize"(%0) : (tensor<1x3x2x!quant.uniform<i8:f32, 1.0>>) -> tensor<1x3x2xf32>
      func.return %1 : tensor<1x3x2xf32>
    }

In the mode `weights`, all weights are stored as integers, and all operators get floats. In the mode `float16`, that is
so for all constants but small ones, as 16-bit floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, get_args

from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.converter.targets.litert.quantize.exclusion import Exclusion
from tfconvert.converter.targets.litert.quantize.hybrid import Form, lookup_of, rewrite_lookup, weights_of
from tfconvert.converter.targets.litert.quantize.weights import StoredConstants, store_float16, why_none
from tfconvert.schema.diagnostics import NOTE, Diagnostic, error
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tfl, tfl_file
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.values import Value
from tfconvert.settings.quantization import Accumulation, Mode, PerChannel, Quantize

_AS_DYNAMIC = "weights are integers that operators take as they are, since the GPU computes others wrongly"


@dataclass(frozen=True, slots=True)
class QuantizeWeights:
    """Stores weights as integers or 16-bit floats; activations stay floats."""

    mode: str = "dynamic"  # `dynamic`, `float16` or `weights`; other modes change nothing.
    weights: int = 8  # Bit width of weights where 4 bits are an advantage, 8 or 4.
    per_channel: PerChannel = True  # Whether weights have a scale for each output channel, or which have.
    exclude: tuple[str, ...] = ()  # Patterns of nodes or operators whose weights stay floats.
    hybrid_only: bool = False  # Whether all convolutions use integers in the mode `dynamic`, faster or not.
    # Whether all weights stay floats except fake-quantized ones, which are already integers.
    trained_only: bool = False
    # The float type that the runtime may sum up products in, in the mode `float16`.
    accumulation: Accumulation = "float32"
    # What the file is for. The GPU computes weights that operators turn to floats wrongly; it computes with floats
    # whatever form weights have, so the modes `dynamic` and `weights` are one there.
    accelerators: Sequence[str] = ()
    name: ClassVar[str] = "quantize-weights"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the number of weights of each form."""
        settings = self._settings()
        if settings.is_static or self.trained_only:
            return NOTHING_DONE
        exclusion, stored = Exclusion(self.exclude), StoredConstants()
        notes = exclusion.unmatched(module)
        for function in module.ops:
            if isinstance(function, FuncOp):
                for block in function.body.blocks:
                    if settings.mode == "float16":
                        store_float16(block, exclusion, stored)
                    else:
                        _Weights(block, settings, exclusion, stored).run()
                    stored.erase_unused()
        if settings.mode == "float16" and stored.counts:
            module.attributes[tfl_file.REDUCED_PRECISION] = attrs.string(tfl_file.HALF_PRECISION[self.accumulation])
        notes += stored.notes
        if settings.mode != self.mode:
            notes.append(Diagnostic("other-mode", _AS_DYNAMIC, severity=NOTE))
        if not stored.counts:
            notes.append(why_none(module, settings.mode, exclusion, stored))
        return PassResult(stored.counts, notes, layers=tuple(stored.layers.values()))

    def _settings(self) -> Quantize:
        modes: tuple[Mode, ...] = get_args(Mode)
        mode = next((each for each in modes if each == self.mode), None)
        if mode is None:
            raise error("wrong-option", f"there is no mode {self.mode!r}", hint=f"choose one of {', '.join(modes)}")
        settings = Quantize(
            mode,
            self.weights,
            per_channel=self.per_channel,
            hybrid_only=self.hybrid_only,
            accumulation=self.accumulation,
        )
        settings.check()
        if "gpu" in self.accelerators and settings.mode == "weights":
            return replace(settings, mode="dynamic", hybrid_only=True)
        return settings


class _Weights:
    """One block's weights that become integers.

    Args:
        block: The block.
        settings: How to quantize.
        exclusion: Operators whose weights stay floats.
        stored: Creates the constants.
    """

    def __init__(self, block: Block, settings: Quantize, exclusion: Exclusion, stored: StoredConstants) -> None:
        self._ops = [op for op in block.ops if isinstance(op, tfl.TFLOp) and not exclusion.excludes(op)]
        self._settings = settings
        self._stored = stored
        self._multiplied: dict[Value, Form] = {}
        """Constants that operators multiply by, and the form in which they take them."""

    def run(self) -> None:
        found = [(op, weights_of(op, self._settings)) for op in self._ops]
        for op, weights in found:
            self._multiplied.update({op.operands[index]: form for index, form in weights})
        lookups = [lookup_of(op, self._settings, self._shared(op)) for op in self._ops]
        self._stored.store_all(dict(found))
        for lookup in lookups:
            if lookup is not None and self._stored.can_be(lookup.table, lookup.form, lookup.op):
                rewrite_lookup(lookup, self._stored.get(lookup.table, lookup.form))

    def _shared(self, op: tfl.TFLOp) -> Form | None:
        """Returns the form that an operand has as a weight of another op, or `None`."""
        return next((self._multiplied[value] for value in op.operands if value in self._multiplied), None)
