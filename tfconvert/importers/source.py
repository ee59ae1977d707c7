"""A model to convert (a file, a folder or an object in memory), and the part of it to import."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tfconvert.importers import open_model
from tfconvert.schema.diagnostics import error
from tfconvert.schema.files import is_file

if TYPE_CHECKING:
    from tfconvert.importers.temporary_model import TemporaryModel
    from tfconvert.schema.ir.builtin import ModuleOp


class Source(NamedTuple):
    """A model, and the part to import.

    Attributes:
        model: A SavedModel folder, a file (GraphDef, MetaGraph, MLIR text, `.tflite`, Keras), a SavedModel or GraphDef
            message, TensorFlow's own or this package's, or a Keras model or TensorFlow functions (see `on_disk`).
        signatures: SavedModels: the signatures to import, every one by default.
        tags: SavedModels: the tags of the graph to import, `serve` by default.
        inputs: The tensors to feed (`x` or `x:0`), in the result's order; what lies before them is cut off.
        outputs: The tensors to fetch, in the result's order; what lies behind them is cut off.
        input_shapes: Shapes by input name; -1 or `None` leaves a dimension as the model has it.
        checkpoint: SavedModel messages: the path of the checkpoint that holds the variables' values, without its files'
            endings.
        asset_root: MLIR text: the folder below which it may name files; it may name none by default.
        temporary: The model, if it is a temporary copy of another; `on_disk` sets it, unless the caller has one.
        rename: New names of inputs and outputs.
        batch: The first dimension of every input whose first dimension is unknown; `None` leaves them.
        order: SavedModels: how a signature's inputs and outputs are ordered: `written`, as the function's arguments
            and results, `flattened`, which is the same but has the results of a dictionary by key, or `official` or
            `official-v1`, as TensorFlow's own converters order them.
        follow_links: Whether links may lead out of the model's folder; they may not by default.
        op_defs: A file with definitions of custom ops (an OpList, as text or binary), or such a message: what a
            GraphDef doesn't say itself.
        is_raw: GraphDefs: whether to import every node as it is, though it can't be converted so.
    """

    model: object
    signatures: Sequence[str] | None = None
    tags: Sequence[str] | None = None
    inputs: Sequence[str] | None = None
    outputs: Sequence[str] | None = None
    input_shapes: Mapping[str, Sequence[int | None]] | None = None
    checkpoint: str | os.PathLike[str] | None = None
    asset_root: str | os.PathLike[str] | None = None
    temporary: TemporaryModel | None = None
    rename: Mapping[str, str] | None = None
    batch: int | None = None
    order: str = "written"
    follow_links: bool = False
    op_defs: object = None
    is_raw: bool = False

    @property
    def name(self) -> str:
        """The path, or the kind of object."""
        model = self.model
        if self.temporary is not None:
            return self.temporary.name
        return os.fspath(model) if isinstance(model, str | os.PathLike) else f"a {type(model).__name__} message"

    @property
    def can_be_cut(self) -> bool:
        """Whether its tensors have names by which it can be cut; texts and `.tflite` files are imported whole."""
        return not isinstance(self.model, str | os.PathLike) or Path(self.model).suffix not in open_model.IR_FILES

    @property
    def kind(self) -> str:
        """The kind of a model that was saved for the conversion, see `TemporaryModel`; empty for others."""
        return "" if self.temporary is None else self.temporary.kind

    @property
    def results(self) -> Mapping[str, Sequence[str]]:
        """Names of outputs by signature, in the order of the function's results, as far as a model in memory tells."""
        return self.temporary.results if self.temporary is not None else {}

    @property
    def tensors(self) -> Mapping[str, Mapping[str, str]]:
        """The names of outputs in the graph of a function in memory, by signature and name, in the graph's order."""
        return self.temporary.tensors if self.temporary is not None else {}

    def on_disk(self) -> Source:
        """Returns the source of what can be imported: this one, or that of a temporary SavedModel of its model.

        The temporary files stay as long as the returned source, or until `discard`; keep it for as long as
        weights are read.
        """
        if self.temporary is not None:
            return self
        saved = open_model.save_if_needed(self.model)
        if saved is None:
            return self
        return self._replace(model=saved, temporary=saved, signatures=self.signatures or saved.signatures)

    def files(self) -> list[Path]:
        """Returns the files that an import may read; none for a model in memory."""
        model = self.model if self.temporary is None else self.temporary.name
        return open_model.files_of(model, self.asset_root, follow_links=self.follow_links)

    def check_output(self, path: str | os.PathLike[str], also: Callable[[], Iterable[Path]] = list) -> None:
        """Checks that a file to be written is not one of those that are read.

        Args:
            path: The file, which need not exist.
            also: Returns further files that are read.

        Raises:
            ConversionError: It is one of the model's files, or a link to one (`output-over-input`).
        """
        place = Path(path)
        if not is_file(place):
            return
        for file in (*self.files(), *also()):
            if is_file(file) and place.samefile(file):
                raise error(
                    "output-over-input",
                    f"won't write {place} over {file}, which is read",
                    hint="choose another name for the output",
                )

    def discard(self) -> None:
        """Removes the files that `on_disk` wrote."""
        if self.temporary is not None:
            self.temporary.remove()

    def open(self, *, functional: bool = False) -> ModuleOp:
        """Returns the imported module, a new one at each call.

        Args:
            functional: Whether graphs that need no executor, for they are without V1 control flow, are imported as
                plain ops: what the pass `executor-to-functional` makes of them.
        """
        return open_model.import_model(self.model, self, functional=functional)
