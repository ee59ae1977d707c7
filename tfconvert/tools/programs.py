"""Loads converted models and runs them: .tflite files in LiteRT, programs of IREE in IREE's runtime."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tfconvert.converter.ir.interface import Interface, Tensor, in_order, interface_called
from tfconvert.converter.process.guard import diagnosed
from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.quantize.samples import Entry, Input, fitted, read
from tfconvert.exporters.output_file import Parts, only_part, write_parts
from tfconvert.report.report import Report
from tfconvert.report.summary import interface_tables, summary
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.files import is_file, is_missing
from tfconvert.tools.litert_file import read_file

_IDENTIFIER = b"TFL3"
_CHECK_VALUES = "check the sizes and values of the inputs; `tfconvert.verify` compares the file with its model"


class Engine(Protocol):
    """Runs the functions of a converted model."""

    def run(self, interface: Interface, values: Sequence[Array]) -> list[Array]:
        """Runs a function on values in the order of its inputs; returns its results in order."""


class Program:
    """A converted model that runs here; variables keep their values between runs.

        program = tfconvert.load("model.tflite")
        scores = program(image)
        scores = program(image=image)["scores"]

    Integers that stand for numbers, as the inputs of an int8 model, are fed and returned as these numbers.

    Attributes:
        name: The file.
        interfaces: The inputs and outputs of each function, by the names of its signatures.

    Args:
        name: The file.
        interfaces: The inputs and outputs of each function.
        engine: Runs them.
    """

    def __init__(self, name: str, interfaces: Sequence[Interface], engine: Engine) -> None:
        self.name = name
        self.interfaces = tuple(interfaces)
        self._engine = engine

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The inputs of the first function: names, types and shapes."""
        return self.interfaces[0].inputs if self.interfaces else ()

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The outputs of the first function."""
        return self.interfaces[0].outputs if self.interfaces else ()

    def __call__(self, *values: Any, signature: str = "", **named: Any) -> Any:
        """Runs a function.

        Args:
            values: The inputs in order, or one mapping of inputs by name.
            signature: The signature; it may be left out if there is one function.
            named: The inputs by name.

        Returns:
            For inputs in order the result, or a tuple of the results; for inputs by name the results by name.

        Raises:
            ConversionError: The inputs don't fit (`wrong-sample`), or the runtime fails (`runtime-error`).
        """
        interface = interface_called(self.interfaces, signature)
        by_name: Mapping[str, Any] | None = named or None
        if len(values) == 1 and not named and isinstance(values[0], Mapping):
            by_name = values[0]
        elif values and named:
            raise error("wrong-sample", "inputs are given in order and by name", hint="choose one of both")
        if by_name is not None:
            return self.run(by_name, signature)
        if len(values) == 1 < len(interface.inputs) and isinstance(values[0], list | tuple):
            values = tuple(values[0])
        results = tuple(self.run(values, signature).values())
        return results[0] if len(results) == 1 else results

    def run(self, inputs: Mapping[str, Any] | Sequence[Any], signature: str = "") -> dict[str, Array]:
        """Runs a function.

        Args:
            inputs: The values by input name, or in order.
            signature: The signature, or the function's name; it may be left out if there is one function.

        Returns:
            The results by name.

        Raises:
            ConversionError: There is no such signature, or the inputs don't fit (`wrong-sample`); or the runtime fails
                (`runtime-error`).
        """
        interface = interface_called(self.interfaces, signature)
        values = in_order(inputs, interface)
        fed = [_fed(value, tensor) for value, tensor in zip(values, interface.inputs, strict=True)]
        results = self._engine.run(interface, fed)
        return {tensor.name: each for tensor, each in zip(interface.outputs, results, strict=True)}

    def predict(self, data: Any, *, batch_size: int = 32, signature: str = "") -> Any:
        """Runs a function on many samples, batch by batch.

        Args:
            data: The samples, as for `Quantize.samples`: an array whose first axis counts them, arrays by input name,
                a data set (labels are left out), an iterable, or paths.
            batch_size: The number of samples in a run, where the model leaves it open.
            signature: The signature; it may be left out if there is one function.

        Returns:
            The results of all samples, along the first axis; a tuple of them if there are several outputs.

        Raises:
            ConversionError: The samples don't fit, or the results have no batch (`wrong-sample`), or the runtime fails
                (`runtime-error`).
        """
        interface = interface_called(self.interfaces, signature)
        size = _batch(interface)
        entry = _entry(interface, open_batch=size is not None)
        samples = (each.values for each in read(data, [entry], allow_nan=True))
        run = partial(self._engine.run, interface)
        found = list(map(run, samples)) if size is None else list(_batches(run, samples, size or max(batch_size, 1)))
        if not found:
            raise error("wrong-sample", "there are no samples", hint="an iterator gives its samples once")
        join = np.stack if size is None else np.concatenate
        try:
            results = tuple(join(each) for each in zip(*found, strict=True))
        except ValueError as problem:
            hint = "run the samples one by one: [program(x) for x in samples]"
            raise error("wrong-sample", f"the results have different sizes: {problem}", hint=hint) from problem
        return results[0] if len(results) == 1 else results

    def __repr__(self) -> str:
        return f"<tfconvert.Program {self.name}: {'; '.join(map(str, self.interfaces))}>"

    def _repr_html_(self) -> str:
        return summary(self.name, (), interface_tables(self.interfaces))


def _fed(value: Any, tensor: Tensor) -> Array:
    what = f"the input {tensor.name!r}"
    try:
        array = np.asarray(value)
    except ValueError as problem:
        hint = "pass arrays, or lists whose rows have the same length"
        raise error("wrong-sample", f"{what} is not an array", hint=hint) from problem
    return fitted(array, input_of(tensor, value), what)


def input_of(tensor: Tensor, value: Any = None) -> Input:
    """Returns an input as values for it are checked; floats for one of integers that stand for numbers."""
    dtype = np.dtype(object if tensor.dtype == "string" else tensor.dtype)
    if tensor.scale is not None and getattr(value, "dtype", None) != dtype:
        dtype = np.dtype(np.float32)
    shape = None if tensor.shape is None else tuple(-1 if dim is None else dim for dim in tensor.shape)
    return Input(tensor.name, dtype, shape)


def entry_of(interface: Interface) -> Entry:
    """Returns the inputs of a function as samples for it are read."""
    return _entry(interface, open_batch=False)


def _entry(interface: Interface, *, open_batch: bool) -> Entry:
    inputs = [input_of(tensor) for tensor in interface.inputs]
    if open_batch:
        inputs = [each._replace(shape=(-1, *(each.shape or ())[1:])) for each in inputs]
    keys = interface.keys or ("",)
    return Entry(keys[0], tuple(inputs), (*keys[1:], *interface.other_keys))


def _batch(interface: Interface) -> int | None:
    """Returns the fixed batch size of a function, 0 if it is dynamic, `None` if its tensors have no common batch."""
    shapes = [tensor.shape for tensor in (*interface.inputs, *interface.outputs)]
    if not interface.inputs or not all(shapes):
        return None
    sizes = {shape[0] for shape in shapes if shape}
    if len(sizes) > 1:
        return None
    return sizes.pop() or 0


def _batches(
    run: Callable[[list[Array]], list[Array]], samples: Iterator[list[Array]], size: int
) -> Iterator[list[Array]]:
    """Yields the results of batches of a size, of which the last is filled up, and its results are cut off again."""
    waiting: list[list[Array]] = []

    def flush() -> Iterator[list[Array]]:
        columns = [np.concatenate(each) for each in zip(*waiting, strict=True)]
        waiting.clear()
        for start in range(0, len(columns[0]), size):
            parts = [each[start : start + size] for each in columns]
            count = len(parts[0])
            full = [np.concatenate([each, *[each[-1:]] * (size - count)]) for each in parts]
            yield [each[:count] for each in run(full)]

    for values in samples:
        if waiting and [each.shape[1:] for each in waiting[0]] != [each.shape[1:] for each in values]:
            yield from flush()
        waiting.append(values)
        if sum(len(each[0]) for each in waiting) >= size:
            yield from flush()
    if waiting:
        yield from flush()


class _InLiteRT:
    """A .tflite file in LiteRT, in this process.

    Args:
        path: The file.
        content: Its bytes instead.
        threads: The maximum number of threads.
    """

    def __init__(self, path: str | None, content: bytes | None = None, threads: int = 1) -> None:
        runtime.require()
        with runtime.refusals("the file", "`tfconvert inspect` tells which operators and runtime it needs"):
            self._interpreter = runtime.interpreter_of(path, model_content=content, num_threads=threads)

    def run(self, interface: Interface, values: Sequence[Array]) -> list[Array]:
        names = [tensor.name for tensor in interface.inputs]
        outputs = [tensor.name for tensor in interface.outputs]
        key = interface.keys[0] if interface.keys else ""
        shapes = ", ".join(f"{name} {list(value.shape)}" for name, value in zip(names, values, strict=True))
        hint = _CHECK_VALUES if all(value.size for value in values) else "pass at least one sample"
        with runtime.refusals(f"inputs of the shapes {shapes}" if shapes else "the model", hint):
            found = runtime.run(self._interpreter, key, dict(zip(names, values, strict=True)), outputs, as_floats=True)
        return [np.array(each) for each in found]  # LiteRT's own memory is written again by the next run.


class _InIree:
    """A program of IREE.

    Args:
        path: The `.vmfb`.
        parameters: The file of its weights; by default the `.safetensors` of its name beside it.
        driver: The driver of IREE's runtime; by default that of the program's backend.
    """

    def __init__(self, path: str, parameters: str | os.PathLike[str] | None = None, driver: str = "") -> None:
        from tfconvert.converter.targets.iree.runtime import IreeProgram

        self._program = IreeProgram(path, parameters, driver)
        self.interfaces = self._program.interfaces

    def run(self, interface: Interface, values: Sequence[Array]) -> list[Array]:
        return list(self._program.run(values, interface.function).values())


def load(
    path: str | os.PathLike[str],
    parameters: str | os.PathLike[str] | None = None,
    *,
    driver: str = "",
    threads: int = 1,
) -> Program:
    """Loads a converted model to run it: a `.tflite` file of any converter, or a program of IREE (`.vmfb`).

    Args:
        path: The file.
        parameters: IREE: the file of the weights; by default the `.safetensors` of its name beside it.
        driver: IREE: the driver of its runtime, such as `local-sync`; by default that of the program's backend.
        threads: LiteRT: the maximum number of threads.

    Returns:
        The model, ready to run.

    Raises:
        ConversionError: The runtime is not installed (`litert-missing`, `iree-missing`), there is no such file
            (`model-not-found`), or it is damaged (`malformed-tflite`, `bad-program`) or is something else
            (`unknown-format`).
    """
    return diagnosed(lambda: _loaded(os.fspath(path), parameters, driver, threads))


def _loaded(path: str, parameters: str | os.PathLike[str] | None, driver: str, threads: int) -> Program:
    if is_missing(path) or not path:
        raise error("model-not-found", f"{path or 'the empty path'} doesn't exist", hint="check the path")
    if path.endswith(".vmfb"):
        program = _InIree(path, parameters, driver)
        return Program(path, program.interfaces, program)
    if not is_file(path) or not (path.endswith(".tflite") or _is_tflite(path)):
        message = f"{path} is neither a .tflite file nor a program of IREE (.vmfb)"
        hint = f"if it is a model, tfconvert.convert({path!r}) converts it, and its result runs as it is"
        raise error("unknown-format", message, hint=hint)
    return Program(path, read_file(path).signatures, _InLiteRT(path, threads=threads))


def _is_tflite(path: str) -> bool:
    with Path(path).open("rb") as stream:
        return stream.read(8)[4:] == _IDENTIFIER


def load_converted(target: str, parts: Parts, report: Report) -> Program:
    """Returns a model that was just converted, ready to run.

    Args:
        target: Its target.
        parts: Its files.
        report: The report of its conversion.

    Raises:
        ConversionError: Its runtime is not installed (`litert-missing`, `iree-missing`), or refuses it
            (`runtime-error`); or nothing runs it (`wrong-option`).
    """
    if target == "litert":
        stream = BytesIO()
        only_part(parts)(stream)
        return Program(report.source, report.interfaces, _InLiteRT(None, stream.getvalue()))
    if target == "iree":
        folder = Path(tempfile.mkdtemp(prefix="tfconvert-"))
        with ExitStack() as undo:
            undo.callback(shutil.rmtree, folder)
            write_parts(folder / "model.vmfb", parts)
            program = _InIree(str(folder / "model.vmfb"))
            undo.pop_all()
        weakref.finalize(program, shutil.rmtree, folder, ignore_errors=True)
        return Program(report.source, program.interfaces, program)
    hint = 'convert with target="iree", or to LiteRT, to run it here'
    raise error("wrong-option", "StableHLO text is for compilers: it can't be run", hint=hint)
