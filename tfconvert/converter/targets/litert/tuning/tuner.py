"""Decides between equal forms by their times: measured here, or read from a table that was made on a device."""

from __future__ import annotations

import difflib
import hashlib
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol

from tfconvert.converter.ir.excerpt import is_given
from tfconvert.converter.pipeline.tuning_report import TunedForm, TuningReport, merged
from tfconvert.converter.process.child_process import Child, ChildError
from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.tuning import form_timing
from tfconvert.exporters.output_file import write_whole
from tfconvert.exporters.tflite.model import export
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects import quant, tensor_data
from tfconvert.schema.dialects.call_interfaces import symbols
from tfconvert.schema.dialects.func import FuncOp, ReturnOp, functions_of
from tfconvert.schema.files import AnyPath, is_folder, read_file
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.limits import budget
from tfconvert.settings.targets import HOST, is_host

SCRIPT = "measure_forms.py"
"""The name of the script that measures pairs of files on a device."""

# How long a pair is run, and how long all pairs of a pass may take, in seconds.
_SECONDS = 0.4
_MAX_SECONDS = 60

_MAX_TABLE = 1 << 24


class PairTimes(NamedTuple):
    """Microseconds of the usual form and of the fast one."""

    usual: float
    fast: float


class FormPair(NamedTuple):
    """Two equal forms of some operators, each as a model of its own.

    Attributes:
        pattern: What makes the fast form of the usual one.
        usual: The usual form, of LiteRT's operators.
        fast: The fast form.
        becomes: The operators of the fast form.
    """

    pattern: str
    usual: ModuleOp
    fast: ModuleOp
    becomes: str

    @property
    def shape(self) -> str:
        """The shape of the largest input; `n` is a dynamic size."""
        arguments = functions_of(self.usual)["main"].body.block.args
        shapes = [argument.shape or () for argument in arguments]
        shape = max(shapes, key=lambda dims: math.prod(map(abs, dims)), default=())
        return "x".join(str(dim) if dim >= 0 else "n" for dim in shape) or "scalar"

    @property
    def digest(self) -> str:
        """A digest of the operators, their attributes, types and integers, but not of weights."""
        texts = [*_described(self.usual), *_described(self.fast)]
        return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]

    @property
    def name(self) -> str:
        """The name of its files, without their ends; the first columns of its row in a table."""
        return f"{self.pattern}.{self.shape}.{self.digest}"


def operators_of(module: ModuleOp) -> str:
    """Returns the names of the operators of the main function, without constants."""
    ops = functions_of(module)["main"].body.block.ops
    return " ".join(op.name.removeprefix("tfl.") for op in ops if not is_given(op) and not isinstance(op, ReturnOp))


def _described(module: ModuleOp) -> list[str]:
    """Returns the functions of a module as text without names, the main one first."""
    functions = dict(functions_of(module))
    main = functions.pop("main")
    return [_text_of(main), *sorted(map(_text_of, functions.values()))]


def _text_of(function: FuncOp) -> str:
    block = function.body.block
    numbers: dict[Value, int] = {value: number for number, value in enumerate(block.args)}
    lines = [" ".join(map(_kind, block.args))]
    for op in block.ops:
        operands = [numbers.get(value, -1) for value in op.operands]
        for result in op.results:
            numbers[result] = len(numbers)
        lines.append(f"{op.name} {operands} {_properties(op)} {' '.join(map(_kind, op.results))}")
    return "\n".join(lines)


def _kind(value: Value) -> str:
    """Returns the type of a value, without the scales of a quantized one, which depend on the weights."""
    return f"{quant.storage_of(value.element)}{value.shape}"


def _properties(op: Operation) -> list[str]:
    """Returns the properties of an op as text, of constants only small ones of integers, and no names."""
    if op.name not in tensor_data.CONSTANT_OPS:
        known = sorted((name, value) for name, value in op.properties.items() if not symbols(value))
        return [f"{name}={value}" for name, value in known]
    element, constant = op.results[0].element, tensor_data.constant_of(op.results[0])
    if constant is None or not tensor_data.is_small(constant) or quant.storage_of(element) != element:
        return []
    array = tensor_data.to_array(constant)
    return [str(array.tolist())] if array.dtype.kind in "iub" else []


class TimesSource(Protocol):
    """Where times come from."""

    device: str
    directory: str

    def times(self, form: FormPair) -> PairTimes | None:
        """Returns the times of a form's files, `None` if they are not known."""

    def close(self) -> None:
        """Frees what it needs."""


class _Here:
    """Measures on this machine, in a child process."""

    directory = ""

    def __init__(self) -> None:
        runtime.require()
        self.device = f"this machine ({form_timing.device()})"
        self._child = Child(budget().limits.run_seconds)
        self._known: dict[str, PairTimes | None] = {}
        self._spent = 0.0

    def times(self, form: FormPair) -> PairTimes | None:
        name = form.name
        if name not in self._known:
            self._known[name] = self._measured(form) if self._spent < _MAX_SECONDS else None
        return self._known[name]

    def _measured(self, form: FormPair) -> PairTimes | None:
        start = time.perf_counter()
        contents = [export(module).to_bytes() for module in (form.usual, form.fast)]
        try:
            return PairTimes(*self._child.call(form_timing.microseconds_of_files, contents, _SECONDS))
        except ChildError:
            return None  # The whole model is run by those who verify it.
        finally:
            self._spent += time.perf_counter() - start

    def close(self) -> None:
        self._child.stop()


class _Table:
    """The times of a table."""

    directory = ""

    def __init__(self, path: AnyPath) -> None:
        self.device, self._rows = read_table(path)

    def times(self, form: FormPair) -> PairTimes | None:
        return self._rows.get(form.name)

    def close(self) -> None:
        """Does nothing: the table was read."""


class _Directory:
    """Writes the files, to be measured elsewhere."""

    device = ""

    def __init__(self, path: AnyPath) -> None:
        self.directory = os.fspath(path)
        script = Path(form_timing.__file__).read_bytes()
        try:
            Path(path).mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            message = f"can't create the directory {self.directory}: {problem.strerror}"
            raise error("output-not-writable", message) from problem
        write_whole(Path(path, SCRIPT), lambda stream: stream.write(script))

    def times(self, form: FormPair) -> PairTimes | None:
        for module, end in ((form.usual, form_timing.USUAL), (form.fast, form_timing.FAST)):
            export(module).save(Path(self.directory, f"{form.name}{end}"))
        return None

    def close(self) -> None:
        """Does nothing: the files are closed."""


def _source(tune: AnyPath) -> TimesSource:
    if is_host(tune):
        return _Here()
    return _Directory(tune) if _is_directory(tune) else _Table(tune)


def _is_directory(tune: AnyPath) -> bool:
    return not is_host(tune) and (is_folder(tune) or os.fspath(tune).endswith(("/", os.sep)))


def check(tune: AnyPath) -> None:
    """Checks that forms can be tuned by what the user has chosen.

    Args:
        tune: `host`, the path of a table, or of a directory for files.

    A directory is only made when forms are written.

    Raises:
        ConversionError: LiteRT is missing (`litert-missing`), or the table is missing or wrong (`bad-tuning-table`).
    """
    if not _is_directory(tune):
        _source(tune).close()


def read_table(path: AnyPath) -> tuple[str, Mapping[str, PairTimes]]:
    """Returns the device of a table, and its times by the names of forms.

    Raises:
        ConversionError: It can't be read, or is not a table (`bad-tuning-table`).
    """
    name = os.fspath(path)
    try:
        text = read_file(path, _MAX_TABLE).decode("utf-8")
    except OSError as problem:
        hint = f"did you mean {HOST}?" if difflib.get_close_matches(name.lower(), [HOST]) else ""
        raise _bad(name, f"can't be read: {problem.strerror}", hint) from None
    except UnicodeDecodeError:
        raise _bad(name, "is not UTF-8 text") from None
    device, rows = name, {}
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    for _, line in lines:
        if line.startswith(form_timing.DEVICE):
            device = line.removeprefix(form_timing.DEVICE).strip()
    lines = [(number, line) for number, line in lines if not line.startswith("#")]
    if not lines or tuple(lines[0][1].split("\t")) != form_timing.COLUMNS:
        raise _bad(name, f"doesn't begin with the columns {', '.join(form_timing.COLUMNS)}")
    for number, line in lines[1:]:
        *parts, usual, fast = ["", *line.split("\t")][-len(form_timing.COLUMNS) - 1 :]
        try:
            times = PairTimes(float(usual), float(fast))
        except ValueError:
            times = PairTimes(math.nan, math.nan)
        if len(parts) != 4 or parts[0] or not (0 < times.usual < math.inf and 0 < times.fast < math.inf):
            raise _bad(name, f"line {number} doesn't have {len(form_timing.COLUMNS)} columns, the last two times")
        rows[".".join(parts[1:])] = times
    return device, rows


def _bad(name: str, what: str, hint: str = "") -> ConversionError:
    usual = f"--tune DIR/ writes the forms of a model into a directory, and {SCRIPT} there measures them on a device"
    return error("bad-tuning-table", f"the table of forms {name} {what}", hint=hint or usual)


class Tuner:
    """Decides on the forms of one pass; a context manager.

    Args:
        tune: `host`, the path of a table, or of a directory for files.
    """

    def __init__(self, tune: AnyPath) -> None:
        self._source = _source(tune)
        self._found: list[TunedForm] = []

    def __enter__(self) -> Tuner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._source.close()

    @property
    def directory(self) -> str:
        """Where forms are written, to be measured elsewhere; empty if they are not."""
        return self._source.directory

    def times(self, form: FormPair) -> PairTimes | None:
        """Returns the times of a form, `None` if they are not known."""
        return self._source.times(form)

    def decided(self, form: FormPair, times: PairTimes | None, *, is_fast: bool, is_default: bool = True) -> None:
        """Adds a decision to the report.

        Args:
            form: The form.
            times: Its times, if they are known.
            is_fast: Whether the fast form was chosen.
            is_default: Whether it would be without times.
        """
        usual, fast = times or (math.nan, math.nan)
        names = (form.pattern, form.shape, form.digest, form.becomes)
        self._found.append(TunedForm(*names, usual, fast, is_fast, is_default))

    @property
    def report(self) -> TuningReport:
        """The decisions so far."""
        return TuningReport(self._source.device, merged(self._found), self.directory)
