"""The page of any model: of a finished file, of a model before its conversion, of one that fails, or of two of them."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tfconvert import conversion
from tfconvert.converter.process.guard import diagnosed
from tfconvert.converter.process.interpreter import with_room
from tfconvert.converter.targets.litert.accelerator_check import check_all
from tfconvert.converter.targets.target import ConvertedFile
from tfconvert.exporters.output_file import write_parts
from tfconvert.importers.source import Source
from tfconvert.importers.tflite.buffers import content_of
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.report.comparison import compared
from tfconvert.report.graph import INPUT, OUTPUT, Function, function_graphs
from tfconvert.report.page import render
from tfconvert.report.report import Report, write_page
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.tflite.operators import needs_registration
from tfconvert.schema.tflite.reader import Allowance, read_model
from tfconvert.settings.options import Options
from tfconvert.tools.bench import measure
from tfconvert.tools.litert_file import LiteRTFile, describe

Result = TypeVar("Result")

FILE, FAILED, CONVERSION, COMPARISON = "file", "failed", "conversion", "comparison"
"""The kinds of pages: of a finished file, of a conversion that failed, of one that succeeded, of two models."""


class ViewedModel(NamedTuple):
    """The contents of a page.

    Attributes:
        kind: The kind of the page.
        report: The report as plain data, with `kind`, and what the page shows beyond a conversion's report.
        graphs: The graphs, as `Report.graphs` has them.
        latency: The time of each operator of the main graph in milliseconds, `None` where it isn't known.
        failure: Why the conversion failed.
    """

    kind: str
    report: Mapping[str, Any]
    graphs: Mapping[str, Any] | None
    latency: Sequence[float | None] = ()
    failure: ConversionError | None = None

    def to_html(self) -> str:
        """Returns the page."""
        return render(self.report, self.graphs, self.latency or None)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page; it appears whole or not at all.

        Args:
            path: The path of the file.
        """
        write_page(path, self.to_html())

    def __repr__(self) -> str:
        return f"<tfconvert page of {self.report['source']}: save(path) writes it>"

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.to_html())}" style="width:100%;height:48em;border:0"></iframe>'


def view_page(model: object, other: object = None, *, options: Options | None = None, bench: bool = False) -> str:
    """Returns the page of a model, or of two side by side, as HTML that needs nothing but a browser.

    Args:
        model: A .tflite file by its path or its bytes, or anything that can be converted, or a `Source` of it: the
            page has its graph before and after a trial conversion, or, if that fails, with what it fails on.
        other: Another one to compare it with; of a model, the result of its conversion is compared.
        options: The settings of the conversion.
        bench: Whether to measure the operators of the file in LiteRT, for the latency of each.

    Raises:
        ConversionError: There is no such file (`model-not-found`), or it is damaged (`malformed-tflite`); or one of two
            can't be converted.
    """
    return view(model, other, options=options, bench=bench).to_html()


@with_room
def view(model: object, other: object = None, *, options: Options | None = None, bench: bool = False) -> ViewedModel:
    """Returns what the page of a model shows; see `view_page`."""
    settings = Options() if options is None else options
    if other is not None:
        return diagnosed(lambda: _comparison([_finished(each, settings) for each in (model, other)]))
    if _is_file(model):
        return diagnosed(lambda: _of_file(model, bench))
    return diagnosed(lambda: _of_model(model, settings, bench))


def _is_file(model: object) -> bool:
    """Returns whether something is a finished file, not a model that is converted."""
    path = model.model if isinstance(model, Source) else model
    if isinstance(path, str | os.PathLike):
        return Path(path).suffix == ".tflite"
    return isinstance(path, bytes | bytearray | memoryview)


def _content(model: object) -> tuple[str, Any]:
    """Returns the name of a finished file, and its path or bytes."""
    path = model.model if isinstance(model, Source) else model
    return (os.fspath(path), path) if isinstance(path, str | os.PathLike) else ("model.tflite", path)


class _File(NamedTuple):
    """A finished file: its name, its bytes, what its tables say, its module and its graphs."""

    name: str
    content: bytes | memoryview
    description: LiteRTFile
    module: ModuleOp
    graphs: list[Function]

    @classmethod
    def read(cls, name: str, content: Any) -> _File:
        """Returns a file's contents.

        Args:
            name: Its name.
            content: Its path or bytes.
        """
        view = content_of(content).view
        module = import_tflite(content)
        file = describe(read_model(view, Allowance(len(view))), len(view))
        return cls(name, view, file, module, function_graphs(module, with_histograms=True))

    def to_dict(self) -> dict[str, Any]:
        """Returns the file as the report of a conversion describes its result."""
        file = self.description
        nodes = [node for graph in self.graphs for node in graph.nodes if node.op not in (INPUT, OUTPUT)]
        weights: Counter[str] = Counter()
        for node in nodes:
            weights[node.op] += node.bytes
        report = Report(
            self.name,
            operators=Counter({use.name: use.calls for use in file.operators}),
            bytes_by_operator=+weights,
            interfaces=file.signatures,
            size=file.size,
            notes=file.notes,
            operator_versions={use.name: use.version for use in file.operators},
            min_runtime_version=file.min_runtime_version,
            custom_operators={
                use.name: use.calls for use in file.operators if use.is_custom and needs_registration(use.name)
            },
            acceptances=check_all(self.module, lambda: self.content),
            arena=file.arena,
        )
        facts = {
            "description": file.description,
            "constants": file.constants,
            "constant_types": dict(file.constant_types),
            "computed_types": dict(file.computed_types),
            "metadata": dict(file.metadata),
            "subgraphs": file.subgraphs,
        }
        return report.to_dict() | {"kind": FILE, "file": facts}


def _of_file(model: object, bench: bool) -> ViewedModel:
    name, content = _content(model)
    file = _File.read(name, content)
    graphs = {"before": [], "after": [graph.to_dict() for graph in file.graphs], "stages": []}
    return ViewedModel(FILE, file.to_dict(), graphs, _measured(content) if bench else ())


def _measured(content: Any) -> list[float | None]:
    if isinstance(content, str | os.PathLike):
        return [each.milliseconds for each in measure(content).operators]
    with tempfile.TemporaryDirectory(prefix="tfconvert-") as folder:
        path = Path(folder, "model.tflite")
        path.write_bytes(content)
        return [each.milliseconds for each in measure(path).operators]


def _of_model(model: object, options: Options, bench: bool) -> ViewedModel:
    """Returns what the page of a model shows: both sides of a conversion, or the side that can't be converted."""
    original = model if isinstance(model, Source) else Source(model)
    source = original
    try:
        source = original.importable()
        checked = conversion.checked(replace(options, keep_graphs=True))
        file, report = conversion.run(source, checked)
    except ConversionError as problem:
        _discard(source, original)
        found = problem.report or Report(original.name, failure=problem)
        return ViewedModel(FAILED, found.to_dict() | {"kind": FAILED}, found.graphs, failure=problem)
    try:
        latency = _written(file, _measured) if bench else []
    finally:
        _discard(source, original)
    return ViewedModel(CONVERSION, report.to_dict() | {"kind": CONVERSION}, report.graphs, latency)


def _finished(model: object, options: Options) -> _File:
    """Returns a finished file, or the one that a model becomes."""
    if _is_file(model):
        return _File.read(*_content(model))
    original = model if isinstance(model, Source) else Source(model)
    source = original.importable()
    try:
        file, _ = conversion.run(source, conversion.checked(options))
        content = _written(file, lambda path: path.read_bytes())
    finally:
        _discard(source, original)
    return _File.read(original.name, content)


def _discard(source: Source, original: Source) -> None:
    """Removes the files that were written to import a model."""
    if source is not original:
        source.discard()


def _written(file: ConvertedFile, work: Callable[[Path], Result]) -> Result:
    """Returns what a function returns for a file that is written for it."""
    with tempfile.TemporaryDirectory(prefix="tfconvert-") as folder:
        path = Path(folder, "model.tflite")
        write_parts(path, file.parts)
        return work(path)


def _comparison(files: Sequence[_File]) -> ViewedModel:
    first, second = files
    graphs = compared(first.graphs, second.graphs)
    nodes = (node for file in files for function in file.graphs for node in function.nodes)
    changes = Counter(node.change for node in nodes if node.change)
    report = second.to_dict() | {"kind": COMPARISON, "first": first.to_dict(), "changes": dict(sorted(changes.items()))}
    return ViewedModel(COMPARISON, report, graphs)
