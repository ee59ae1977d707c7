"""Conversion options; the model to convert is a `Source`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tfconvert.schema.limits import Limits

if TYPE_CHECKING:
    from tfconvert.converter.iree_options import IreeOptions
    from tfconvert.converter.quantization import Quantize


RECURRENT = ("auto", "fused", "loop")
"""Forms of recurrent layers."""

TARGETS = ("litert", "stablehlo", "iree")
"""Targets of a conversion."""

WEIGHTS = ("resource", "inline", "arguments")
"""Where texts of StableHLO may have their weights: at their end, where they are used, or in a file beside them."""

STATES = ("globals", "arguments")
"""Where texts of StableHLO may have the state that functions change: in the module, or with the caller."""


NAMES = ("signature", "official")
"""Whose names tensors of LiteRT's files have: the user's, those of signatures, or those of TensorFlow's converter."""


class Options(NamedTuple):
    """The settings of a conversion; every one has the default that most users want.

    Attributes:
        allow_custom_ops: Whether an op without a builtin becomes a custom op instead of an error.
        verify: Whether to run the result and compare it with the reference executor.
        verify_each: Whether to verify the IR after each pass.
        check_passes: Whether to run the IR before and after each pass on the same inputs and compare.
        patterns: Rewrites of the user's, applied beside the converter's own; `conversion.resolved` replaces names of
            files and of entry points.
        composites: Fusions of the user's, tried before the converter's own; names as in `patterns`.
        recurrent: What recurrent layers become: `fused` for LiteRT's operators for whole sequences, where they can,
            `loop` for none of these, `auto` for what LiteRT is faster with.
        quantize: How to quantize; `None` leaves every number as precise as the model has it.
        metadata: What the file says about its inputs and outputs: a mapping, or the path of a file; `None` for nothing.
        target_runtime: The release of the runtime that is to run the file, as `2.14`; any if empty.
        keep_graphs: Whether the report keeps the graphs before and after, for its page.
        verify_data: Inputs to verify on; `None` draws random ones that suit the model.
        compare_layers: Whether verifying also finds the first operator whose result differs.
        allow_flex: Whether an op without a builtin becomes a flex op, which TensorFlow's own kernel computes.
        flex_ops: Names, or patterns of names, of ops that the user's Flex delegate takes beside the usual ones.
        limits: How much the conversion may make out of the model.
        target: What the model becomes, one of `TARGETS`.
        mlir_weights: Where a text of StableHLO has its weights, one of `WEIGHTS`.
        mlir_state: Where it has the state that functions change, one of `STATES`.
        iree: How IREE compiles the model; `None` for the usual way.
        mlir_shape_function: Whether a text of StableHLO has functions that compute the sizes of results.
        mlir_artifact: Whether StableHLO is written as a portable artifact instead of a text.
        names: What the tensors of a LiteRT file are called, one of `NAMES`.
    """

    allow_custom_ops: bool = False
    verify: bool = False
    verify_each: bool = False
    check_passes: bool = False
    patterns: Sequence[Any] = ()
    composites: Sequence[Any] = ()
    recurrent: str = RECURRENT[0]
    quantize: Quantize | None = None
    metadata: Mapping[str, Any] | str | os.PathLike[str] | None = None
    target_runtime: str = ""
    keep_graphs: bool = False
    verify_data: Any = None
    compare_layers: bool = False
    allow_flex: bool = False
    flex_ops: Sequence[str] = ()
    limits: Limits = Limits()
    target: str = TARGETS[0]
    mlir_weights: str = WEIGHTS[0]
    mlir_state: str = STATES[0]
    iree: IreeOptions | None = None
    mlir_shape_function: bool = False
    mlir_artifact: bool = False
    names: str = NAMES[0]

    @property
    def verifies(self) -> bool:
        """Whether to run the result in LiteRT: that was requested, or something that needs it."""
        return self.verify or self.compare_layers or self.verify_data is not None

    @property
    def fuses_recurrent(self) -> bool:
        """Whether recurrent layers may become operators."""
        return self.recurrent != "loop"

    @property
    def recurrent_by_speed(self) -> bool:
        """Whether only those recurrent layers become operators that are faster so.

        Integers are for devices that know operators rather than loops, and operators keep their cell states in 16 bits.
        """
        return self.recurrent == "auto" and not self.quantizes_activations

    @property
    def quantizes_activations(self) -> bool:
        """Whether activations should be integers, for which their ranges are needed."""
        return self.quantize is not None and self.quantize.is_static
