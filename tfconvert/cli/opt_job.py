"""The work of `tfconvert opt`: reads, runs passes with their instruments, prints."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar, TextIO

from tfconvert.cli.expected_diagnostics import compare, expectations
from tfconvert.conversion import instruments
from tfconvert.converter.pipeline.instruments import PrintIR, TimePasses
from tfconvert.converter.pipeline.pass_options import find, options_of, parse_passes, summary_of
from tfconvert.converter.pipeline.pass_registry import pass_class, pass_names
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.pipeline.runner import run_stages, setting
from tfconvert.converter.pipeline.stage import Instrument, Pass, Stage, apply_watched
from tfconvert.converter.pipeline.stages import before, names_of
from tfconvert.converter.pipelines import PIPELINES
from tfconvert.exporters.mlir import save_mlir, write_mlir, write_modules
from tfconvert.importers.mlir import import_mlir, read_mlir
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ERROR, WARNING, ConversionError, Diagnostic, error
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.limits import limited
from tfconvert.settings.options import Options

_GRAPHS = (".pb", ".pbtxt", ".prototxt")

_STDIN = "-"
_SPLIT = re.compile(r"^// -----[^\n]*(?:\n|\Z)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Request:
    """The request of the command line."""

    OPTIONS: ClassVar[tuple[str, ...]] = (
        "passes",
        "pipeline",
        "until",
        "elide",
        "locations",
        "print_ir_before",
        "print_ir_after",
        "print_ir_after_all",
        "time_passes",
        "split_input_file",
        "verify_diagnostics",
    )
    """The attributes that are options of `opt` alone."""

    source: Source  # The model; its path is `-` for MLIR text on standard input.
    options: Options  # The settings of pipelines, which were checked.
    passes: str | None = None  # The passes to run, as text.
    pipeline: str | None = None  # The name of the pipeline to run.
    until: str | None = None  # The name of the pass after which the pipeline stops.
    elide: int | None = None  # Constants of more elements than this are not printed; `None` prints all.
    locations: bool = False  # Whether to print locations.
    print_ir_before: Sequence[str] = ()  # Names of passes before which the IR is printed.
    print_ir_after: Sequence[str] = ()  # Names of passes after which it is.
    print_ir_after_all: bool = False  # Whether it is printed after all passes.
    time_passes: bool = False  # Whether to measure the passes.
    split_input_file: bool = False  # Whether lines `// -----` cut the text into parts.
    verify_diagnostics: bool = False  # Whether comments in the text announce the diagnostics.

    @property
    def is_text(self) -> bool:
        return self.source.name == _STDIN or self.source.name.endswith(".mlir")


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a text, with the number of its first line."""

    text: str
    first_line: int


@dataclass(slots=True)
class OptOutcome:
    """The outcome of a run."""

    modules: list[ModuleOp] = field(default_factory=list)  # The modules of the parts that succeeded.
    diagnostics: list[Diagnostic] = field(default_factory=list)  # The diagnostics of all parts.

    @property
    def failed(self) -> bool:
        """Whether something went wrong."""
        return any(diagnostic.severity == ERROR for diagnostic in self.diagnostics)


class OptCommand:
    """A run of `opt`.

    Attributes:
        request: The request.
        stages: The stages to run.
        timing: The pass timer, if times are requested.
    """

    def __init__(self, request: Request, log: TextIO) -> None:
        """Checks the request.

        Args:
            request: The request.
            log: Where IR between passes is printed.

        Raises:
            ConversionError: A pass, an option or a pipeline doesn't exist, or options contradict each other.
        """
        self.request = request
        self._source = request.source
        self._passes = _requested(request)
        self.stages = _stages(request, self._passes)
        self.timing = TimePasses() if request.time_passes else None
        self._write = partial(write_mlir, elide=request.elide, locations=request.locations)
        self._instruments = self._watching(log)
        if not request.is_text and (request.split_input_file or request.verify_diagnostics):
            raise error("wrong-option", "--split-input-file and --verify-diagnostics are for MLIR text")

    def run(self) -> OptOutcome:
        """Reads and rewrites; the error of one part doesn't keep the next from running."""
        with limited(self.request.options.limits):
            return self._run()

    def _run(self) -> OptOutcome:
        outcome = OptOutcome()
        if not self.request.is_text:
            self._source = self.request.source.importable()
            module = _opened(self._source, outcome)
            self._rewrite(module, outcome.diagnostics)
            outcome.modules.append(module)
        else:
            for part in self._parts():
                self._run_part(part, outcome)
        return outcome

    def write(self, outcome: OptOutcome, stream: TextIO) -> None:
        """Prints the modules."""
        write_modules(outcome.modules, stream, elide=self.request.elide, locations=self.request.locations)
        stream.flush()

    def save(self, outcome: OptOutcome, path: str | os.PathLike[str]) -> None:
        """Writes the modules to a file, unless something failed."""
        if not outcome.failed:
            save_mlir(outcome.modules, path, elide=self.request.elide, locations=self.request.locations)

    @property
    def _filename(self) -> str:
        return "<stdin>" if self.request.source.name == _STDIN else self.request.source.name

    def _watching(self, log: TextIO) -> list[Instrument]:
        request = self.request
        names = names_of(self.stages)
        for name in (*request.print_ir_before, *request.print_ir_after):
            find(name, names, "unknown-pass", "pass in this run called")
        watching = instruments(request.options)
        after = None if request.print_ir_after_all else request.print_ir_after
        if request.print_ir_before or after is None or after:
            watching.append(PrintIR(log, self._write, request.print_ir_before, after))
        if self.timing is not None:
            watching.append(self.timing)
        return watching

    def _parts(self) -> Iterator[Part]:
        name = self.request.source.name
        text = _read_stdin() if name == _STDIN else read_mlir(Path(name))
        if not self.request.split_input_file:
            yield Part(text, 1)
            return
        start, line = 0, 1
        for mark in _SPLIT.finditer(text):
            yield Part(text[start : mark.start()], line)
            line += text.count("\n", start, mark.end())
            start = mark.end()
        yield Part(text[start:], line)

    def _run_part(self, part: Part, outcome: OptOutcome) -> None:
        found: list[Diagnostic] = []
        try:
            root = self.request.source.asset_root
            module = import_mlir(part.text, self._filename, first_line=part.first_line, asset_root=root)
            self._rewrite(module, found)
            outcome.modules.append(module)
        except ConversionError as problem:
            found += [each for each in problem.diagnostics if each not in found]
        if self.request.verify_diagnostics:
            found = compare(expectations(part.text, self._filename, part.first_line), found, self._filename)
        outcome.diagnostics += found

    def _rewrite(self, module: ModuleOp, found: list[Diagnostic]) -> None:
        """Applies the passes to a module; adds their notes to the findings."""
        for result in self._results(module):
            found += [note for note in result.notes if note not in found]

    def _results(self, module: ModuleOp) -> Iterator[PassResult]:
        """Rewrites a module: passes that are requested by name are all applied, those of a pipeline where needed."""
        if self._passes:
            for run, stage in zip(self._passes, self.stages, strict=True):
                yield apply_watched(run, stage, module, self._instruments)
        else:
            for done in run_stages(module, self.stages, self.request.options, self._instruments):
                yield done.result


def described_passes() -> str:
    """Returns a text that lists all passes with their options, and the pipelines."""
    width = max(map(len, (*pass_names(), *PIPELINES))) + 2
    lines = ["passes:"]
    for name in pass_names():
        pass_type = pass_class(name)
        lines.append(f"  {name:<{width}}{summary_of(pass_type)}")
        lines += [
            f"  {'':<{width}}  {option.name}={option.kind} (default: {_as_text(option.default)})"
            for option in options_of(pass_type)
        ]
    lines.append("pipelines:")
    lines += [f"  {name:<{width}}{', '.join(names_of(stages))}" for name, stages in PIPELINES.items()]
    return "\n".join(lines)


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _opened(source: Source, outcome: OptOutcome) -> ModuleOp:
    """Returns the module to show: a GraphDef that can't be imported for a conversion has all its nodes as they are."""
    try:
        return source.open()
    except ConversionError as problem:
        if Path(source.name).suffix not in _GRAPHS:
            raise
        try:
            module = replace(source, is_raw=True).open()
        except ConversionError:
            raise problem from None
        first = problem.diagnostics[0]
        outcome.diagnostics.append(first._replace(severity=WARNING, message=f"shown as it is: {first.message}"))
        return module


def _requested(request: Request) -> list[Pass]:
    """Returns the passes that a request names, with those of the user's patterns and fusions that they take.

    Raises:
        ConversionError: A pass doesn't exist; or patterns and fusions are given, but nothing that would apply them
            (`wrong-option`).
    """
    given = {"patterns": request.options.patterns, "composites": setting(request.options, "fusions")}
    rules = {name: tuple(each) for name, each in given.items() if each}
    passes = parse_passes(request.passes) if request.passes is not None else []
    if rules and not passes and request.pipeline is None and request.until is None:
        raise error(
            "wrong-option",
            f"--{next(iter(rules))} is for passes, and no pass is to run",
            hint="add --pipeline tflite, or -p canonicalize for patterns of tf ops and -p optimize for "
            "those of tfl ops",
        )
    return [_with(run, rules) for run in passes]


def _with(run: Any, rules: Mapping[str, Any]) -> Pass:
    """Returns a pass with the rules that it has attributes for."""
    own = {name: given for name, given in rules.items() if hasattr(run, name)}
    if own:
        run = type(run)(**{name: getattr(run, name) for name in signature(type(run)).parameters} | own)
    result: Pass = run
    return result


def _stages(request: Request, passes: Sequence[Pass]) -> Sequence[Stage]:
    """Returns the stages of a request: the passes that it names, or a pipeline.

    Raises:
        ConversionError: It names what doesn't exist, or passes and a pipeline at once.
    """
    if request.passes is not None:
        if request.pipeline is not None or request.until is not None:
            raise error("wrong-option", "--passes says what to run; --pipeline and --until do too")
        return [Stage(run.name, "the user requested it") for run in passes]
    if request.pipeline is None and request.until is None:
        return ()
    name = find(request.pipeline or "tflite", PIPELINES, "unknown-pipeline", "pipeline")
    stages = PIPELINES[name]
    if request.until is None:
        return stages
    last = find(request.until, names_of(stages), "unknown-pass", f"pass in pipeline {name} called")
    return stages[: len(before(stages, last)) + 1]


def _read_stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as problem:
        raise error("malformed-mlir", f"byte {problem.start} is not UTF-8 text", location="<stdin>") from problem
