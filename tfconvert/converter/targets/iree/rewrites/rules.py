"""All rewrites by op, each with the reason: how IREE 3.13 fails on the original op."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tfconvert.converter.targets.iree.rewrites import control_flow, indexing, loop_nests, scans, shapes, sorts, windows
from tfconvert.converter.targets.iree.rewrites.numbers import Rewrite


class Workaround(NamedTuple):
    """A rewrite, and the reason for it."""

    rewrite: Rewrite
    because: str


RULES: Mapping[str, Workaround] = {
    "chlo.top_k": Workaround(sorts.top_k, "finds equal integers in another order"),
    "stablehlo.concatenate": Workaround(
        indexing.concatenate, "fails, or reads wrong elements, if vectors or columns of a dynamic size are computed"
    ),
    "stablehlo.convolution": Workaround(windows.convolution, "fails if the image, or the batch of groups, is dynamic"),
    "stablehlo.custom_call": Workaround(control_flow.custom_call, "ignores assertions about sizes"),
    "stablehlo.dot_general": Workaround(loop_nests.dot_general, "makes a dynamic_reshape of several free dimensions"),
    "stablehlo.dynamic_broadcast_in_dim": Workaround(
        shapes.dynamic_broadcast_in_dim, "fails if it is not known whether a size is 1, loses sight of which are equal"
    ),
    "stablehlo.dynamic_conv": Workaround(windows.convolution, "fails"),
    "stablehlo.dynamic_gather": Workaround(indexing.gather, "fails"),
    "stablehlo.dynamic_iota": Workaround(shapes.with_numbers, "loses sight of which sizes are equal"),
    "stablehlo.dynamic_pad": Workaround(indexing.dynamic_pad, "fails"),
    "stablehlo.dynamic_reshape": Workaround(shapes.dynamic_reshape, "fails"),
    "stablehlo.dynamic_update_slice": Workaround(indexing.dynamic_update_slice, "fails if a size is dynamic"),
    "stablehlo.fft": Workaround(loop_nests.fft, "fails but for one axis of known sizes, a power of two long"),
    "stablehlo.gather": Workaround(indexing.gather, "makes a reshape to an dynamic size if each index has one number"),
    "stablehlo.optimization_barrier": Workaround(
        control_flow.optimization_barrier, "leaves a tensor.dim if a size is dynamic"
    ),
    "stablehlo.pad": Workaround(indexing.static_pad, "fails if elements are taken away from an dynamic size"),
    "stablehlo.real_dynamic_slice": Workaround(indexing.real_dynamic_slice, "reads past the end of the operand"),
    "stablehlo.reduce_window": Workaround(windows.reduce_window, "fails with padding, or if channels come first"),
    "stablehlo.rng": Workaround(loop_nests.rng, "fails for integers"),
    "stablehlo.scatter": Workaround(indexing.scatter, "writes to foreign memory if an index is out of range"),
    "stablehlo.sort": Workaround(sorts.sort, "needs unbounded stack for several operands of a dynamic size"),
    "stablehlo.while": Workaround(scans.loop, "fails or mixes loops up where they double the distance of a scan"),
}

REFUSED: Mapping[str, str] = {
    "stablehlo.cholesky": "IREE does not compile it",
    "stablehlo.custom_call": "IREE knows no such function",
    "stablehlo.dynamic_conv": "IREE compiles it only with a kernel of a known size",
    "stablehlo.dynamic_pad": "IREE compiles it only with known amounts between elements",
    "stablehlo.reduce_precision": "IREE's compiler aborts at it",
    "stablehlo.triangular_solve": "IREE does not compile it",
}
"""Ops that are errors if they remain after all rewrites, each with the reason."""
