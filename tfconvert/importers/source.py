"""A model to convert (a file, a directory or an object in memory), and the part of it to import."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfconvert.importers import open_model
from tfconvert.schema.diagnostics import NOTE, Diagnostic, error
from tfconvert.schema.files import is_file
from tfconvert.settings.selection import Selection

if TYPE_CHECKING:
    from tfconvert.importers.temporary_model import Original, PreparedModel
    from tfconvert.schema.ir.builtin import ModuleOp


@dataclass(frozen=True, slots=True)
class Source(Selection):
    """A model, and the part of it to import.

    Attributes:
        model: A SavedModel directory, a file (GraphDef, MetaGraph, MLIR text, StableHLO artifact, `jax.export`,
            `.tflite`, Keras), a SavedModel or GraphDef message, TensorFlow's own or this package's, or a Keras model or
            TensorFlow functions (see `importable`), or a function of JAX.
        args: For a function of JAX: examples of its arguments, arrays or `jax.ShapeDtypeStruct`s; one of them alone
            is that of its only argument.
        prepared: The model, if it was made of another that only its framework can read; `importable` sets it, unless
            the caller has one.
    """

    model: object
    args: Sequence[Any] | None = field(default=None, kw_only=True)
    prepared: PreparedModel | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.prepared is not None:
            object.__setattr__(self, "results", self.prepared.results)
            object.__setattr__(self, "tensors", self.prepared.tensors)

    @property
    def name(self) -> str:
        """The path, or the kind of object."""
        model = self.model
        if self.prepared is not None:
            return self.prepared.name
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
        """The kind of a model that was prepared for the conversion, see `PreparedModel`; empty for others."""
        return "" if self.prepared is None else self.prepared.kind

    @property
    def preparation(self) -> tuple[str, Sequence[Diagnostic]]:
        """The name of the stage that prepared the model, and what the report says about it."""
        why = "" if self.prepared is None else self.prepared.saved_for
        if not why:
            return "trace", ()
        message = f"{self.name} was saved to a temporary directory first: {why}"
        return "save", (Diagnostic("saved-first", message, severity=NOTE),)

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

    def importable(self) -> Source:
        """Returns the source of what can be imported: this one, or that of its model as its framework prepared it.

        Temporary files stay as long as the returned source, or until `discard`; keep it for as long as weights are
        read.
        """
        if self.prepared is not None:
            return self
        if self.args is not None:
            return replace(self, model=open_model.exported(self.model, self.args), args=None)
        made = open_model.prepare_if_needed(self.model)
        if made is None:
            return self
        return replace(self, model=made, prepared=made, signatures=self.signatures or made.signatures)

    def files(self) -> list[Path]:
        """Returns the files that an import may read; none for a model in memory."""
        model = self.model if self.prepared is None else self.prepared.name
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

    def original(self) -> Original | None:
        """Returns the model in memory that runs itself; `None` for a part of it, and for models in files."""
        if self.inputs is not None or self.outputs is not None:
            return None
        return open_model.original_of_jax(self.model) if self.prepared is None else self.prepared.original

    def discard(self) -> None:
        """Removes the files that `importable` wrote."""
        if self.prepared is not None:
            self.prepared.remove()

    def open(self, *, functional: bool = False) -> ModuleOp:
        """Returns the imported module, a new one at each call; see `Selection.is_functional`."""
        return open_model.import_model(self.model, replace(self, is_functional=functional))
