"""A model to convert (a file, a directory or an object in memory), and the part of it to import."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfconvert.importers import open_model
from tfconvert.schema.diagnostics import error
from tfconvert.schema.files import is_file
from tfconvert.settings.selection import Selection

if TYPE_CHECKING:
    from tfconvert.importers.temporary_model import TemporaryModel
    from tfconvert.schema.ir.builtin import ModuleOp


@dataclass(frozen=True, slots=True)
class Source(Selection):
    """A model, and the part of it to import.

    Attributes:
        model: A SavedModel directory, a file (GraphDef, MetaGraph, MLIR text, StableHLO artifact, `jax.export`,
            `.tflite`, Keras), a SavedModel or GraphDef message, TensorFlow's own or this package's, or a Keras model or
            TensorFlow functions (see `on_disk`), or a function of JAX.
        args: For a function of JAX: examples of its arguments, arrays or `jax.ShapeDtypeStruct`s.
        temporary: The model, if it is a temporary copy of another; `on_disk` sets it, unless the caller has one.
    """

    model: object
    args: Sequence[Any] | None = field(default=None, kw_only=True)
    temporary: TemporaryModel | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.temporary is not None:
            object.__setattr__(self, "results", self.temporary.results)
            object.__setattr__(self, "tensors", self.temporary.tensors)

    @property
    def name(self) -> str:
        """The path, or the kind of object."""
        model = self.model
        if self.temporary is not None:
            return self.temporary.name
        if isinstance(model, str | os.PathLike):
            return os.fspath(model)
        return open_model.name_of_jax(model) or f"a {type(model).__name__} message"

    @property
    def can_be_cut(self) -> bool:
        """Whether its tensors have names by which it can be cut; texts and `.tflite` files are imported whole."""
        model = self.model
        return not (
            open_model.is_ir(Path(model)) if isinstance(model, str | os.PathLike) else open_model.is_of_jax(model)
        )

    @property
    def kind(self) -> str:
        """The kind of a model that was saved for the conversion, see `TemporaryModel`; empty for others."""
        return "" if self.temporary is None else self.temporary.kind

    def selecting(self, **given: Any) -> Source:
        """Returns the same model with other parts to import.

        Args:
            given: Fields and their values; `None` for those that are not given.

        Raises:
            ConversionError: One has a value already (`wrong-option`).
        """
        given = {name: value for name, value in given.items() if value is not None}
        for name in given:
            if getattr(self, name) is not None:
                raise error("wrong-option", f"{name} is given twice", hint="leave it out here, or in the Source")
        return replace(self, **given) if given else self

    def on_disk(self) -> Source:
        """Returns the source of what can be imported: this one, or that of a temporary SavedModel of its model.

        The temporary files stay as long as the returned source, or until `discard`; keep it for as long as
        weights are read.
        """
        if self.temporary is not None:
            return self
        if self.args is not None:
            return replace(self, model=open_model.exported(self.model, self.args), args=None)
        saved = open_model.save_if_needed(self.model)
        if saved is None:
            return self
        return replace(self, model=saved, temporary=saved, signatures=self.signatures or saved.signatures)

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
        """Returns the imported module, a new one at each call; see `Selection.is_functional`."""
        return open_model.import_model(self.model, replace(self, is_functional=functional))
