"""What a conversion may be told."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfconvert.converter.composites.fusion import Fusion
    from tfconvert.converter.rewrite.pattern import Pattern


@dataclass(frozen=True, slots=True)
class Options:
    """A conversion's settings; every one has the default that most users want.

    Attributes:
        inputs: GraphDefs: the tensors to feed (`x` or `x:0`), in the result's order.
        outputs: GraphDefs: the tensors to fetch, in the result's order.
        input_shapes: Shapes by input name; -1 or `None` leaves a dimension as the model has it.
        signatures: SavedModels: the signatures to convert, every one by default.
        tags: SavedModels: the tags of the graph to convert, `serve` by default.
        allow_custom_ops: Whether an op without a builtin becomes a custom op instead of an error.
        verify: Whether to run the result in LiteRT and compare it with the reference executor.
        verify_each: Whether to verify the IR after each pass.
        check_passes: Whether to run the IR before and after each pass on the same inputs and compare.
        patterns: Rewrites of the user's, applied beside the converter's own.
        composites: Fusions of the user's, tried before the converter's own.
        fuse_recurrent: Whether recurrent layers become LiteRT's operators for whole sequences, where they can.
        asset_root: MLIR text: the folder below which it may name files; it may name none by default.
    """

    inputs: Sequence[str] | None = None
    outputs: Sequence[str] | None = None
    input_shapes: Mapping[str, Sequence[int | None]] | None = None
    signatures: Sequence[str] | None = None
    tags: Sequence[str] | None = None
    allow_custom_ops: bool = False
    verify: bool = False
    verify_each: bool = False
    check_passes: bool = False
    patterns: Sequence[Pattern[Any]] = ()
    composites: Sequence[Fusion] = ()
    fuse_recurrent: bool = True
    asset_root: str | os.PathLike[str] | None = None
