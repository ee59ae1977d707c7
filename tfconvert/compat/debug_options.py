"""`experimental.QuantizationDebugOptions`: what to measure, and which operators to leave as floats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfconvert.compat.errors import as_of_the_class
from tfconvert.schema.diagnostics import error

OfDifferences = Callable[[Any], float]
OfOutputs = Callable[[Sequence[Any], Sequence[Any]], float]
OfLayers = Callable[[Any, Any, float, int], float]


class QuantizationDebugOptions:
    """Settings of a `QuantizationDebugger`.

    Args:
        layer_debug_metrics: Functions by name; each gets the differences between a layer's result, turned to floats,
            and the float model's, and returns a number.
        model_debug_metrics: Functions by name; each gets the outputs of the float model and of the quantized one, as
            floats.
        layer_direct_compare_metrics: Functions by name; each gets a layer's result in the float model, its integers in
            the quantized one, their scale and zero point.
        denylisted_ops: Operators that stay float, as `CONV_2D`.
        denylisted_nodes: Layers that stay float, by the name of the tensor that they give.
        fully_quantize: Whether inputs and outputs are 8-bit integers, too, and an operator that would stay float is an
            error.

    Raises:
        ConversionError: Two functions have the same name (`wrong-option`).
    """

    @as_of_the_class()
    def __init__(
        self,
        layer_debug_metrics: Mapping[str, OfDifferences] | None = None,
        model_debug_metrics: Mapping[str, OfOutputs] | None = None,
        layer_direct_compare_metrics: Mapping[str, OfLayers] | None = None,
        denylisted_ops: Sequence[str] | None = None,
        denylisted_nodes: Sequence[str] | None = None,
        fully_quantize: bool = False,
    ) -> None:
        metrics = (layer_debug_metrics, model_debug_metrics, layer_direct_compare_metrics)
        names = Counter(name for each in metrics for name in each or ())
        twice = sorted(name for name, count in names.items() if count > 1)
        if twice:
            raise error("wrong-option", f"two metrics are called {', '.join(twice)}", hint="give each its own name")
        self.layer_debug_metrics = layer_debug_metrics
        self.model_debug_metrics = model_debug_metrics
        self.layer_direct_compare_metrics = layer_direct_compare_metrics
        self.denylisted_ops = denylisted_ops
        self.denylisted_nodes = denylisted_nodes
        self.fully_quantize = fully_quantize
