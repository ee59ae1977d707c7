"""Conversion options; the model to convert is a `Source`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tfconvert.schema.limits import Limits

if TYPE_CHECKING:
    from tfconvert.settings.iree_options import IreeOptions
    from tfconvert.settings.quantization import Quantize
    from tfconvert.settings.verify_options import Verify


RECURRENT = ("auto", "fused", "loop", "unrolled")
"""Forms of recurrent layers."""

TARGETS = ("litert", "stablehlo", "iree")
"""Targets of a conversion."""

WEIGHTS = ("resource", "inline", "arguments")
"""Where texts of StableHLO may have their weights: at their end, where they are used, or in a file beside them."""

STATES = ("globals", "arguments")
"""Where texts of StableHLO may have the state that functions change: in the module, or with the caller."""


NAMES = ("signature", "official")
"""Whose names tensors of LiteRT's files have: the user's, those of signatures, or those of TensorFlow's converter."""

ORDERS = ("written", "official", "official-v1", "flattened")
"""The orders of a signature's inputs and outputs: that of the function's arguments and results, or that in which
TensorFlow's own converters have them, those of TensorFlow 2 and 1, and that of a function whose variables nobody owns:
results that are a dictionary by key."""


class Options(NamedTuple):
    """The settings of a conversion; every one has the default that most users want.

    Attributes:
        allow_custom_ops: Whether an op without a builtin becomes a custom op instead of an error.
        verify: How to run the result and compare it with the reference executor; `None` if not at all.
        verify_each: Whether to verify the IR after each pass.
        check_passes: Whether to run the IR before and after each pass on the same inputs and compare.
        patterns: Rewrites of the user's, applied beside the converter's own; `conversion.resolved` replaces names of
            files and of entry points.
        composites: Fusions of the user's, tried before the converter's own; names as in `patterns`.
        recurrent: What recurrent layers become: `fused` for LiteRT's operators for whole sequences, where they can,
            `loop` for none of these, `unrolled` for their steps one after the other, `auto` for what LiteRT is faster
            with.
        quantize: How to quantize; `None` leaves every number as precise as the model has it.
        metadata: What the file says about its inputs and outputs: a mapping, or the path of a file; `None` for nothing.
        target_runtime: The release of the runtime that is to run the file, as `2.14`; any if empty.
        keep_graphs: Whether the report keeps the graphs before and after, for its page.
        allow_flex: Whether an op without a builtin becomes a flex op, which TensorFlow's own kernel computes.
        flex_ops: Names, or patterns of names, of ops that the user's Flex delegate takes beside the usual ones.
        limits: How much the conversion may make out of the model.
        target: What the model becomes, one of `TARGETS`.
        mlir_weights: Where a text of StableHLO has its weights, one of `WEIGHTS`.
        mlir_state: Where it has the state that functions change, one of `STATES`.
        iree: How IREE compiles the model; `None` for the usual way.
        mlir_shape_function: Whether a text of StableHLO has functions that compute the sizes of results.
        mlir_artifact: Whether StableHLO is written as a portable artifact instead of a text.
        sparse_weights: Whether matrices that are mostly zero are stored without their zeros.
        origin: Fields of the file's metadata on how it was made (`Origin`) beside those that the conversion knows;
            `None` leaves that entry out.
        names: What the tensors of a LiteRT file are called, one of `NAMES`.
    """

    allow_custom_ops: bool = False
    verify: Verify | None = None
    verify_each: bool = False
    check_passes: bool = False
    patterns: Sequence[Any] = ()
    composites: Sequence[Any] = ()
    recurrent: str = RECURRENT[0]
    quantize: Quantize | None = None
    metadata: Mapping[str, Any] | str | os.PathLike[str] | None = None
    target_runtime: str = ""
    keep_graphs: bool = False
    allow_flex: bool = False
    flex_ops: Sequence[str] = ()
    limits: Limits = Limits()
    target: str = TARGETS[0]
    mlir_weights: str = WEIGHTS[0]
    mlir_state: str = STATES[0]
    iree: IreeOptions | None = None
    mlir_shape_function: bool = False
    mlir_artifact: bool = False
    sparse_weights: bool = False
    origin: Mapping[str, Any] | None = {}
    names: str = NAMES[0]

    @property
    def fuses_recurrent(self) -> bool:
        """Whether recurrent layers may become operators."""
        return self.recurrent in ("auto", "fused")

    @property
    def unrolls_loops(self) -> bool:
        """Whether loops become their steps."""
        return self.recurrent == "unrolled"

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
