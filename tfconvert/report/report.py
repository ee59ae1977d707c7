"""The report of a conversion, as text and as data."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from tfconvert.schema.diagnostics import SAME_SIGNATURE, ConversionError, Diagnostic, printable, size_text
from tfconvert.schema.json_text import finite, record

if TYPE_CHECKING:
    from tfconvert.converter.ir.interface import Interface
    from tfconvert.converter.pipeline.pass_result import Equalization, LayerReport, PassResult, QuantizationReport
    from tfconvert.converter.pipeline.tuning_report import TuningReport
    from tfconvert.converter.targets.litert.accelerator_check import Acceptance
    from tfconvert.report.page import Latency
    from tfconvert.schema.fidelity import OutputError

TENSORFLOW_OP = "TensorFlow op"

# How many entries a section of the short text has.
_FEW = 8


class StageTime(NamedTuple):
    """One stage of a conversion: its name and how long it took, in seconds."""

    name: str
    seconds: float


_NONE: Counter[str] = Counter()
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Report(NamedTuple):
    """The report of a conversion; immutable.

    Attributes:
        source: The path of the model.
        stages: The stages in order.
        operations_before: The model's ops after import, by name.
        operations_kind: What these are called in the singular: `TensorFlow op`, `StableHLO op`, `LiteRT operator`.
        operators: LiteRT operators in the result, by name.
        bytes_by_operator: Constant bytes in the result by the operator that first uses them.
        rewrites: How many times each pass did what it reports: patterns applied, variables frozen, ops folded.
        headings: The titles under which the short text lists what some passes did, by the pass.
        frozen_variables: How many variables became constants.
        interfaces: The interfaces of the exported functions.
        size: Bytes of the result.
        verification: Differences an output, empty unless verified.
        notes: Warnings and decisions.
        quantization: What quantizing has done; `None` if nothing was quantized.
        operator_versions: The version of each operator in the result.
        min_runtime_version: The first release of the runtime that has them all; empty if nothing is known.
        graphs: The graphs before and after as plain data, if they were to be kept; not part of `to_dict`.
        input_notes: Notes on the sizes of inputs.
        custom_operators: How many times each operator is called that the app must register.
        acceptances: What the accelerators take that the result is for.
        arena: Bytes that the runtime plans for the tensors of the main graph, with open sizes as stored; `None` if
            unknown.
        beside: The extensions of files beside the result, such as an IREE program's weights.
        failure: The error of a conversion that failed.
        tuning: The forms that were chosen by their times; `None` without tuning.
    """

    source: str
    stages: tuple[StageTime, ...] = ()
    operations_before: Counter[str] = _NONE
    operations_kind: str = TENSORFLOW_OP
    operators: Counter[str] = _NONE
    bytes_by_operator: Counter[str] = _NONE
    rewrites: Mapping[str, Counter[str]] = _NOTHING
    headings: Mapping[str, str] = _NOTHING
    frozen_variables: int = 0
    interfaces: tuple[Interface, ...] = ()
    size: int = 0
    verification: tuple[OutputError, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    quantization: QuantizationReport | None = None
    operator_versions: Mapping[str, int] = _NOTHING
    min_runtime_version: str = ""
    graphs: Mapping[str, Any] | None = None
    input_notes: tuple[Diagnostic, ...] = ()
    custom_operators: Mapping[str, int] = _NOTHING
    acceptances: tuple[Acceptance, ...] = ()
    arena: int | None = None
    beside: tuple[str, ...] = ()
    failure: ConversionError | None = None
    tuning: TuningReport | None = None

    @property
    def seconds(self) -> float:
        """Time of all stages."""
        return sum(stage.seconds for stage in self.stages)

    @property
    def runtime(self) -> str:
        """The runtime that runs the file, as a sentence; empty if nothing is known."""
        version = self.min_runtime_version and f" {self.min_runtime_version} and later"
        registered = f", with these registered: {', '.join(self.custom_operators)}" if self.custom_operators else ""
        return f"runs in TensorFlow Lite{version}{registered}" if version or registered else ""

    def to_dict(self) -> dict[str, Any]:
        """Returns the report as plain data, in a stable order."""
        data: dict[str, Any] = {
            "source": self.source,
            "size": self.size,
            "arena": self.arena,
            "seconds": round(self.seconds, 6),
            "functions": [interface.to_dict() for interface in self.interfaces],
            "stages": [{"name": stage.name, "seconds": round(stage.seconds, 6)} for stage in self.stages],
            "operations_before": ranked(self.operations_before),
            "operations_kind": self.operations_kind,
            "operators": ranked(self.operators),
            "operator_versions": dict(sorted(self.operator_versions.items())),
            "min_runtime_version": self.min_runtime_version,
            "custom_operators": dict(self.custom_operators),
            "bytes_by_operator": ranked(self.bytes_by_operator),
            "rewrites": {name: ranked(counter) for name, counter in self.rewrites.items()},
            "headings": dict(self.headings),
            "frozen_variables": self.frozen_variables,
            "verification": [record(each._asdict()) for each in self.verification],
            "notes": [note.to_dict() for note in (*self.notes, *self.input_notes)],
            **({"accelerators": [each.to_dict() for each in self.acceptances]} if self.acceptances else {}),
            **({"quantization": self.quantization.to_dict()} if self.quantization is not None else {}),
            **({"tuning": self.tuning.to_dict()} if self.tuning is not None else {}),
            **({"beside": list(self.beside)} if self.beside else {}),
            **({"failure": self.failure.to_dict()} if self.failure is not None else {}),
        }
        found: dict[str, Any] = finite(data)
        return found

    def to_text(self, output_file: str = "", *, verbose: bool = False) -> str:
        """Returns the report as text for a terminal.

        Args:
            output_file: Where the result was written.
            verbose: Whether to list everything instead of the largest few.
        """
        most = None if verbose else _FEW
        first = self._first()
        fidelity = self.quantization.head if self.quantization is not None else ""
        lines = [
            head(self.source, output_file, self.beside),
            f"  {size_text(self.size)}, {_many(self.operators, 'operator')}{self._origin()}, {self.seconds:.2f} s",
            *([f"  {fidelity}"] if fidelity else []),
            *(f"  {note.severity}: {note}" for note in first),
            *([f"  {self.runtime}"] if self.runtime else []),
            *([f"  {self._arena_text(self.arena)}"] if self.arena is not None else []),
            *(f"  {interface}" for interface in self.interfaces),
        ]
        for acceptance in self.acceptances:
            lines += [f"  {line}" for line in acceptance.lines(most)]
        lines += _section("operators", self._operator_rows(), most)
        for name, counts in self.rewrites.items():
            if verbose or name in self.headings:
                lines += _section(self.headings.get(name, name), _counter_rows(counts), most)
        if verbose:
            lines += _section(f"{self.operations_kind}s", _counter_rows(self.operations_before), most)
            lines += _section("stages", [(s.name, f"{s.seconds * 1000:.1f} ms") for s in self.stages], most)
        for each in self.verification:
            lines.append(f"  {self._verified_text(each)}")
        if self.quantization is not None:
            lines += [f"  {line}" for line in self.quantization.lines(most)]
        if self.tuning is not None:
            lines += [f"  {line}" for line in self.tuning.lines(most)]
        shown = (note for note in (*self.notes, *self.input_notes) if verbose or note.code != SAME_SIGNATURE)
        lines += [f"  {note.severity}: {note}" for note in shown if note not in first]
        return "\n".join(map(printable, lines))

    def to_html(self, latency: Latency | None = None) -> str:
        """Returns the report as a page that needs nothing but a browser.

        Args:
            latency: How long operators take, in milliseconds: by the names of their nodes, or a list of the main
                graph's, in order.
        """
        from tfconvert.report.page import render

        return render(self.to_dict(), self.graphs, latency)

    def to_model_explorer(self) -> str:
        """Returns the graphs before and after in the JSON format of Google's Model Explorer.

        Raises:
            ConversionError: The graphs were not kept (`wrong-option`).
        """
        from tfconvert.report.model_explorer import to_json

        return to_json(self.source, self.graphs)

    def save(self, path: str | os.PathLike[str], latency: Latency | None = None) -> None:
        """Writes the page; it appears whole or not at all.

        Args:
            path: The path of the file.
            latency: How long operators take, in milliseconds: by the names of their nodes, or a list of the main
                graph's, in order.

        Raises:
            ConversionError: It can't be written there (`output-not-writable`).
        """
        write_page(path, self.to_html(latency))

    def save_model_explorer(self, path: str | os.PathLike[str]) -> None:
        """Writes the graphs for Google's Model Explorer; the file appears whole or not at all.

        Args:
            path: The path of the file.

        Raises:
            ConversionError: The graphs were not kept (`wrong-option`), or it can't be written there
                (`output-not-writable`).
        """
        write_page(path, self.to_model_explorer())

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        from tfconvert.report.summary import Table, interface_tables, summary

        fidelity = self.quantization.head if self.quantization is not None else ""
        lines = [
            f"{size_text(self.size)}, {sum(self.operators.values())} operators, converted in {self.seconds:.2f} s",
            *([fidelity] if fidelity else []),
            *([self.runtime] if self.runtime else []),
            *(self._verified_text(each) for each in self.verification),
            *(f"{note.severity}: {note}" for note in (*self.notes, *self.input_notes)),
        ]
        operators = [
            (name, str(self.operators[name]), size_text(self.bytes_by_operator[name])) for name in self._ranking()
        ]
        tables = [*interface_tables(self.interfaces), Table("operators", ("name", "number", "weights"), operators)]
        return summary(self.source, lines, tables)

    def _first(self) -> tuple[Diagnostic, ...]:
        """Returns the notes that come before all else: that a quantized model differs too much from the float model."""
        if self.quantization is None or self.quantization.fidelity is None:
            return ()
        from tfconvert.schema.fidelity import LOW

        return tuple(note for note in self.notes if note.code == LOW)

    def _verified_text(self, error: OutputError) -> str:
        return (
            f"verified {error.signature}/{error.output}: largest error {error.max_absolute:.2e} "
            f"({error.max_relative:.1e} of the largest value), compared with {error.witness}"
        )

    def _arena_text(self, arena: int) -> str:
        is_open = any(None in (each.shape or ()) for interface in self.interfaces for each in interface.inputs)
        return f"arena of the main graph: {size_text(arena)}{', with dynamic sizes as stored' if is_open else ''}"

    def _ranking(self) -> list[str]:
        """Returns the operators, those with the largest weights first."""
        return sorted(self.operators, key=lambda name: (-self.bytes_by_operator[name], -self.operators[name], name))

    def _operator_rows(self) -> list[tuple[str, str]]:
        return [
            (name, f"{self.operators[name]:>4}  {size_text(self.bytes_by_operator[name]):>10}")
            for name in self._ranking()
        ]

    def _origin(self) -> str:
        return f" from {_many(self.operations_before, self.operations_kind)}" if self.operations_before else ""


class Recorder:
    """Gathers the results of passes while a conversion runs.

    Attributes:
        stages: The times of the stages so far.
        notes: Their notes.
        operations: The model's TensorFlow ops, by name.
    """

    def __init__(self) -> None:
        self.stages: list[StageTime] = []
        self.notes: list[Diagnostic] = []
        self.operations: Counter[str] = Counter()
        self._rewrites: dict[str, Counter[str]] = {}
        self._headings: dict[str, str] = {}
        self._frozen = 0
        self._layers: list[LayerReport] = []
        self._tuning: TuningReport | None = None
        self._equalization: Equalization | None = None

    def add(self, name: str, result: PassResult) -> None:
        """Adds the result of a pass.

        Args:
            name: The pass.
            result: Its result; duplicate notes are left out.
        """
        if result.counts:
            self._rewrites[name] = self._rewrites.get(name, Counter()) + result.counts
        if result.heading:
            self._headings[name] = result.heading
        if result.operations is not None:
            self.operations = result.operations
        self._frozen += result.frozen_variables
        self._layers += result.layers
        self._equalization = result.equalization or self._equalization
        if result.tuning is not None:
            self._tuning = result.tuning if self._tuning is None else self._tuning.joined(result.tuning)
        self.notes += [note for note in result.notes if note not in self.notes]

    def report(self, source: str) -> Report:
        """Returns the gathered results, as a report without the file's measures."""
        quantization = None
        if self._layers:
            from tfconvert.converter.pipeline.pass_result import QuantizationReport

            quantization = QuantizationReport(tuple(self._layers), equalization=self._equalization)
        return Report(
            source,
            tuple(self.stages),
            operations_before=self.operations,
            rewrites=self._rewrites,
            headings=self._headings,
            frozen_variables=self._frozen,
            notes=tuple(self.notes),
            quantization=quantization,
            tuning=self._tuning,
        )


def head(source: str, output_file: str, beside: Iterable[str]) -> str:
    """Returns the first line of a report.

    Args:
        source: The model.
        output_file: Where the result was written; empty if it was not.
        beside: The extensions of the files beside it.
    """
    if not output_file:
        return source
    files = [output_file, *(str(Path(output_file).with_suffix(each)) for each in beside)]
    return f"{source} -> {', '.join(files)}"


def _many(counter: Counter[str], what: str) -> str:
    count = sum(counter.values())
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def ranked(counter: Counter[str]) -> dict[str, int]:
    """Returns a counter's entries, largest first, equal ones by name."""
    return dict(sorted(counter.items(), key=lambda item: (-item[1], item[0])))


def write_page(path: str | os.PathLike[str], text: str) -> None:
    """Writes text to a file, which appears whole or not at all."""
    from tfconvert.exporters.output_file import write_whole

    content = text.encode("utf-8", "backslashreplace")

    def write(stream: BinaryIO) -> None:
        stream.write(content)

    write_whole(path, write)


def _section(title: str, entries: Iterable[tuple[str, str]], most: int | None) -> list[str]:
    entries = list(entries)
    if not entries:
        return []
    shown = entries[:most]
    width = max(len(name) for name, _ in shown)
    lines = [f"  {title}:", *(f"    {name:<{width}}  {value}" for name, value in shown)]
    if len(shown) < len(entries):
        lines.append(f"    ... and {len(entries) - len(shown)} more (-v shows all)")
    return lines


def _counter_rows(counter: Counter[str]) -> list[tuple[str, str]]:
    return [(name, f"{count:>4}") for name, count in ranked(counter).items()]
