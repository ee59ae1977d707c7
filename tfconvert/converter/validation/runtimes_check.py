"""Runs a LiteRT file on accelerators and in other runtimes, and compares the results with the interpreter's."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from tfconvert.converter.process.child_process import Child, ChildError
from tfconvert.converter.targets.litert import runtime
from tfconvert.schema.diagnostics import ERROR, NOTE, Diagnostic
from tfconvert.schema.dialects.boxes import Array

COMPILED = "compiled"
"""The runtime that is tried with every verified file."""

TITLES: Mapping[str, str] = {
    "compiled": "LiteRT's CompiledModel (CPU)",
    "gpu": "LiteRT's GPU accelerator",
    "micro": "tflite-micro",
}
"""The runtimes by the names that users give them."""

REFUSED = "runtime-refuses"
"""Code of the note or the error that a runtime does not load or run a file."""

DIFFERS = "runtime-differs"
"""Code of the error that a runtime has other results than the CPU."""

_PACKAGES: Mapping[str, str] = {
    "compiled": "ai_edge_litert.compiled_model",
    "gpu": "ai_edge_litert.compiled_model",
    "micro": "tflite_micro",
}

# Directories of Chromium and Chrome, which bring SwiftShader, a Vulkan driver that computes on the processor.
_BROWSERS = (
    "/usr/lib/chromium",
    "/usr/lib/chromium-browser",
    "/usr/lib64/chromium-browser",
    "/opt/google/chrome",
    "/snap/chromium/current/usr/lib/chromium-browser",
)
_DRIVER = "vk_swiftshader_icd.json"
_DRIVERS = "VK_ICD_FILENAMES"
_RUNTIME_FOLDER = "XDG_RUNTIME_DIR"

# By which part of the largest number results may be off; integers by so many steps.
_TOLERANCE = 1e-3
_STEPS = 2

_ARENA = 64 << 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a file in a runtime.

    Attributes:
        kind: The runtime, a key of `TITLES`.
        problem: Why it did not run; empty if it did.
        error: The largest difference, as a part of the largest value of its output.
        is_whole: Whether an accelerator took all operators; `None` if it does not say.
    """

    kind: str
    problem: str = ""
    error: float = 0.0
    is_whole: bool | None = None


def swiftshader() -> str:
    """Returns the path of SwiftShader's description, empty if it is not installed."""
    return next((str(path) for folder in _BROWSERS if (path := Path(folder, _DRIVER)).exists()), "")


def is_available(kind: str) -> bool:
    """Returns whether a runtime is installed.

    Args:
        kind: A key of `TITLES`.
    """
    try:
        return find_spec(_PACKAGES[kind]) is not None
    except ModuleNotFoundError:
        return False


def outcomes(content: bytes, kinds: Sequence[str]) -> Iterator[Outcome]:
    """Yields what runtimes make of a file, which each runs in a process of its own.

    Args:
        content: The file.
        kinds: The runtimes.
    """
    for kind in kinds:
        if not is_available(kind):
            yield Outcome(kind, f"the package {_PACKAGES[kind].partition('.')[0]} is not installed")
            continue
        with Child() as child:
            try:
                off, is_whole = child.call(run, kind, content)
            except ChildError as problem:
                yield Outcome(kind, problem.refusal or f"it ended the process ({problem})")
            else:
                yield Outcome(kind, error=off, is_whole=is_whole)


def notes_of(found: Sequence[Outcome], *, silent: bool = False) -> Iterator[Diagnostic]:
    """Yields the diagnostics about outcomes.

    Args:
        found: The outcomes.
        silent: Whether a runtime that refuses the file is no error, and one that runs it is not worth a note.
    """
    for each in found:
        title = TITLES[each.kind]
        if each.problem:
            severity = NOTE if silent else ERROR
            yield Diagnostic(
                REFUSED, f"{title} does not run the file: {each.problem}", hint=_HINTS[each.kind], severity=severity
            )
        elif each.error > _TOLERANCE:
            message = f"{title} has other results than the CPU: {each.error:.1e} of the largest value"
            yield Diagnostic(DIFFERS, message, hint=_HINTS[each.kind], severity=NOTE if silent else ERROR)
        elif not silent:
            whole = {True: ", whole", False: ", in part", None: ""}[each.is_whole]
            message = f"{title} runs the file{whole}: largest difference {each.error:.1e} of the largest value"
            yield Diagnostic("runs-there", message, severity=NOTE)


_HINTS: Mapping[str, str] = {
    "compiled": "the interpreter runs it",
    "gpu": "tfconvert inspect FILE --accelerator gpu lists the operators that the GPU does not compute",
    "micro": "tfconvert inspect FILE --accelerator micro lists the operators that it does not have",
}


def run(kind: str, content: bytes) -> tuple[float, bool | None]:
    """Runs a file and returns the largest difference from the CPU, and whether an accelerator took all of it.

    Args:
        kind: The runtime.
        content: The file.
    """
    with tempfile.TemporaryDirectory(prefix="tfconvert-") as folder:
        path = str(Path(folder, "model.tflite"))
        Path(path).write_bytes(content)
        _prepare(folder)
        inputs, expected = _on_cpu(path)
        results, is_whole = (
            _micro(path, inputs, expected) if kind == "micro" else _compiled(kind, path, inputs, expected)
        )
        pairs = zip(expected.values(), results, strict=True)
        return max((_difference(one, other) for one, other in pairs), default=0.0), is_whole


def _prepare(folder: str) -> None:
    """Lets Vulkan find SwiftShader if nothing else is chosen."""
    if not os.environ.get(_DRIVERS) and (found := swiftshader()):
        os.environ[_DRIVERS] = found
    if not Path(os.environ.get(_RUNTIME_FOLDER, folder)).is_dir() or _RUNTIME_FOLDER not in os.environ:
        os.environ[_RUNTIME_FOLDER] = folder


def _on_cpu(path: str) -> tuple[dict[str, Array], dict[str, Array]]:
    """Returns inputs, drawn at random, and what the interpreter computes of them, by the names in the signature."""
    interpreter: Any = runtime.interpreter_of(path, num_threads=1)
    keys = list(interpreter.get_signature_list())
    draw = np.random.default_rng(0)
    if not keys:
        raise RuntimeError("the file has no signature")
    runner = interpreter.get_signature_runner(keys[0])
    inputs = {name: _drawn(detail, draw) for name, detail in runner.get_input_details().items()}
    return inputs, {name: np.asarray(value) for name, value in runner(**inputs).items()}


def _drawn(detail: Mapping[str, Any], draw: np.random.Generator) -> Array:
    shape, dtype = tuple(map(int, detail["shape"])), np.dtype(detail["dtype"])
    if dtype.kind == "f":
        return draw.uniform(-1, 1, shape).astype(dtype)
    if dtype.kind == "b":
        return draw.random(shape) > 0.5
    low, high = (0, 4) if dtype.itemsize > 1 else (-100, 100) if dtype.kind == "i" else (0, 200)
    return draw.integers(low, high, shape).astype(dtype)


def _compiled(
    kind: str, path: str, inputs: Mapping[str, Array], expected: Mapping[str, Array]
) -> tuple[list[Array], bool | None]:
    from ai_edge_litert.compiled_model import CompiledModel
    from ai_edge_litert.hardware_accelerator import HardwareAccelerator

    is_whole = None
    hardware = HardwareAccelerator.CPU
    if kind == "gpu":
        hardware |= HardwareAccelerator.GPU
        try:
            model = CompiledModel.from_file(path, hardware_accel=HardwareAccelerator.GPU)
            is_whole = True
        except RuntimeError:
            is_whole = False
    if not is_whole:
        model = CompiledModel.from_file(path, hardware_accel=hardware)
    names = model.get_signature_by_index(0)
    taken, given = model.create_input_buffers(0), model.create_output_buffers(0)
    for name, buffer in zip(names["inputs"], taken, strict=True):
        buffer.write(np.ascontiguousarray(inputs[name]))
    model.run_by_index(0, taken, given)
    by_name = dict(zip(names["outputs"], given, strict=True))
    results = []
    for name, like in expected.items():
        results.append(np.asarray(by_name[name].read(like.size, like.dtype)).reshape(like.shape))
    return results, is_whole


def _micro(path: str, inputs: Mapping[str, Array], expected: Mapping[str, Array]) -> tuple[list[Array], None]:
    from tflite_micro.python.tflite_micro import runtime as micro

    interpreter: Any = runtime.interpreter_of(path, num_threads=1)
    runner = interpreter.get_signature_runner(next(iter(interpreter.get_signature_list())))
    order = _places(runner.get_input_details(), interpreter.get_input_details())
    results = _places(runner.get_output_details(), interpreter.get_output_details())
    model = micro.Interpreter.from_file(path, arena_size=_ARENA)
    for name, place in order.items():
        model.set_input(inputs[name], place)
    model.invoke()
    return [np.asarray(model.get_output(results[name])) for name in expected], None


def _places(named: Mapping[str, Any], ordered: Sequence[Any]) -> dict[str, int]:
    """Returns the places of a signature's tensors among the subgraph's inputs or outputs."""
    indices = [detail["index"] for detail in ordered]
    return {name: indices.index(detail["index"]) for name, detail in named.items()}


def _difference(expected: Array, result: Array) -> float:
    """Returns the largest difference as a part of the largest value; 0 if integers differ by few steps."""
    if not expected.size:
        return 0.0
    one, other = expected.astype(np.float64), result.astype(np.float64)
    finite = np.isfinite(one)
    if not np.array_equal(finite, np.isfinite(other)):
        return float("inf")
    off = float(np.abs(np.where(finite, one - other, 0)).max())
    if expected.dtype.kind != "f":
        return 0.0 if off <= _STEPS and expected.dtype.itemsize == 1 else off
    return off / (float(np.abs(np.where(finite, one, 0)).max()) + 1e-9)
