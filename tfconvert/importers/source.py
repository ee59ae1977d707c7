"""A model to convert (a file, a folder or a message in memory), and the part of it to import."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tfconvert.importers import open_model

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from tfconvert.schema.ir.builtin import ModuleOp


class Source(NamedTuple):
    """A model, and the part to import.

    Attributes:
        model: A SavedModel folder, a file (GraphDef, MetaGraph, MLIR text, `.tflite`), or a SavedModel or GraphDef
            message, TensorFlow's own or this package's.
        signatures: SavedModels: the signatures to import, every one by default.
        tags: SavedModels: the tags of the graph to import, `serve` by default.
        inputs: GraphDefs: the tensors to feed (`x` or `x:0`), in the result's order.
        outputs: GraphDefs: the tensors to fetch, in the result's order.
        input_shapes: Shapes by input name; -1 or `None` leaves a dimension as the model has it.
        checkpoint: SavedModel messages: the path of the checkpoint that holds the variables' values, without its files'
            endings.
        asset_root: MLIR text: the folder below which it may name files; it may name none by default.
    """

    model: str | os.PathLike[str] | Message
    signatures: Sequence[str] | None = None
    tags: Sequence[str] | None = None
    inputs: Sequence[str] | None = None
    outputs: Sequence[str] | None = None
    input_shapes: Mapping[str, Sequence[int | None]] | None = None
    checkpoint: str | os.PathLike[str] | None = None
    asset_root: str | os.PathLike[str] | None = None

    @property
    def name(self) -> str:
        """The path, or the kind of message."""
        model = self.model
        return os.fspath(model) if isinstance(model, str | os.PathLike) else f"a {type(model).__name__} message"

    def open(self) -> ModuleOp:
        """Returns the imported module, a new one at each call.

        Raises:
            ConversionError: It is not a model, or can't be imported.
        """
        return open_model.import_model(self.model, self)
