"""Inspects a model: what it holds, and whether it will convert, which is found out by converting it.

Everything of a conversion runs but reading and writing weights: import, all passes, and the tables of the file. What it
says is therefore what the conversion will say, for the price of the part that doesn't depend on the weights' size.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from tfconvert import conversion
from tfconvert.converter.process.interpreter import with_room
from tfconvert.exporters.tflite.file import TFLiteFile
from tfconvert.importers.saved_model import MetaGraphInfo, graphs_in, is_saved_model
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.files import is_folder
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.tflite.reader import read_model
from tfconvert.settings.options import Options
from tfconvert.tools.imported import Imported, facts_of, variables_of
from tfconvert.tools.litert_file import LiteRTFile, describe, read_file

_FREEZE = "freeze-variables"
_FORMATS = {
    ".pb": "GraphDef",
    ".pbtxt": "GraphDef",
    ".prototxt": "GraphDef",
    ".mlir": "MLIR",
    ".keras": "Keras",
    ".h5": "Keras",
    ".hdf5": "Keras",
}


class Inspection(NamedTuple):
    """Findings about a model.

    Attributes:
        source: Its path.
        format: `SavedModel`, `GraphDef`, `MetaGraph`, `MLIR`, `Keras` or `LiteRT`.
        size: Bytes of its files.
        graphs: SavedModels: the graphs in it.
        converts: Whether it will convert; `None` for a LiteRT file, which is what models are converted to.
        problems: Why it won't.
        notes: What the conversion notes; what users of a LiteRT file should know.
        model: What is in it; `None` for a LiteRT file, or if it can't be imported.
        mutable_variables: How many variables stay variables; `None` if that was not found out.
        litert: The LiteRT file that it is, or will be; `None` if there is none.
    """

    source: str
    format: str
    size: int
    graphs: tuple[MetaGraphInfo, ...] = ()
    converts: bool | None = None
    problems: tuple[Diagnostic, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    model: Imported | None = None
    mutable_variables: int | None = None
    litert: LiteRTFile | None = None

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data, in a stable order."""
        return {
            "source": self.source,
            "format": self.format,
            "size": self.size,
            "graphs": [graph._asdict() for graph in self.graphs],
            "converts": self.converts,
            "errors": [problem.to_dict() for problem in self.problems],
            "notes": [note.to_dict() for note in self.notes],
            "model": None if self.model is None else {**self.model.to_dict(), "variables": self._variables()},
            "litert": None if self.litert is None else self.litert.to_dict(),
        }

    def _variables(self) -> dict[str, int | None]:
        assert self.model is not None
        mutable = self.mutable_variables
        frozen = None if mutable is None else self.model.variables - mutable
        return {"count": self.model.variables, "bytes": self.model.variable_bytes, "frozen": frozen, "mutable": mutable}


@with_room
def inspect(source: Source, options: Options) -> Inspection:
    """Returns what is known of a model.

    Args:
        source: The model, a path.
        options: The settings of the conversion that is asked about.
    """
    path = Path(source.name)
    if path.suffix == ".tflite":
        file = read_file(source.name)
        return Inspection(source.name, "LiteRT", _size(path), notes=file.notes, litert=file)
    if path.name in ("saved_model.pb", "saved_model.pbtxt"):
        path = path.parent  # As import takes it.
    has_graphs = is_saved_model(path)
    known = Inspection(
        source.name,
        "SavedModel" if has_graphs else _FORMATS.get(path.suffix, "MetaGraph"),
        _size(path),
        graphs_in(path, follow_links=source.follow_links) if has_graphs else (),
    )
    source = source.on_disk()
    try:
        return _tried(known, source, options)
    finally:
        source.discard()


def _tried(known: Inspection, source: Source, options: Options) -> Inspection:
    """Returns what trying to convert a model adds to what is known of it.

    Raises:
        ConversionError: It can't be imported.
    """
    watch = _Watch()
    try:
        file, report = conversion.run(source, conversion.checked(options), watch.stage, watch.imported)
    except ConversionError as problem:
        if watch.facts is None:
            raise
        return known._replace(
            converts=False, problems=problem.diagnostics, model=watch.facts, mutable_variables=watch.mutable
        )
    assert isinstance(file, TFLiteFile), "the target is LiteRT"
    tables = describe(read_model(file.tables), file.size, sum(file.bytes_by_operator.values()))
    return known._replace(
        converts=True, notes=report.notes, model=watch.facts, mutable_variables=watch.mutable, litert=tables
    )


class _Watch:
    """Notes what is seen of a module on its way through a conversion.

    Attributes:
        facts: What was in it after import; `None` before.
        mutable: How many variables were left after the others became constants; `None` before.
    """

    def __init__(self) -> None:
        self.facts: Imported | None = None
        self.mutable: int | None = None
        self._module: ModuleOp | None = None
        self._last = ""

    def imported(self, module: ModuleOp) -> None:
        """Called with the imported module."""
        self._module, self.facts = module, facts_of(module)

    def stage(self, name: str) -> None:
        """Called before each stage."""
        if self._last == _FREEZE and self._module is not None:
            self.mutable = len(variables_of(self._module))
        self._last = name


def _size(path: Path) -> int:
    """Returns the bytes of a model's files: all in a SavedModel's folder, and a MetaGraph's checkpoint."""
    if is_folder(path):
        return sum(_size_of(Path(folder, name)) for folder, _, names in os.walk(path) for name in names)
    if path.suffix == ".meta":
        return sum(_size_of(file) for file in path.parent.glob(f"{path.stem}.*"))
    return _size_of(path)


def _size_of(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
