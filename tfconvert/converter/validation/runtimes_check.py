"""Runs a LiteRT file on accelerators and in other runtimes, and compares the results with the interpreter's.

Each runs in a process of its own: one that crashes there, or hangs, is an outcome.
"""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from tfconvert.converter.process.child_process import Child, ChildError
from tfconvert.converter.targets.litert import runtime
from tfconvert.schema.diagnostics import ERROR, NOTE, Diagnostic, size_text
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

RUNS = "runs-there"
"""Code of the note that a runtime runs a file, with the CPU's results."""

MISSING = "runtime-missing"
"""Code of the error that a runtime is not installed."""

_PACKAGES: Mapping[str, str] = {
    "compiled": "ai_edge_litert.compiled_model",
    "gpu": "ai_edge_litert.compiled_model",
    "micro": "tflite_micro",
}

# Where Chromium, Chrome and Playwright install SwiftShader, a Vulkan driver that computes on the processor.
_BROWSERS = (
    "/usr/lib/chromium",
    "/usr/lib/chromium-browser",
    "/usr/lib64/chromium-browser",
    "/opt/google/chrome",
    "/opt/chromium.org/chromium",
    "/snap/chromium/current/usr/lib/chromium-browser",
)
_PLAYWRIGHT = "PLAYWRIGHT_BROWSERS_PATH"
_DRIVER = "vk_swiftshader_icd.json"
_LOADER = "libvulkan.so.1"
_DRIVERS = "VK_ICD_FILENAMES"
_RUNTIME_FOLDER = "XDG_RUNTIME_DIR"

# By which part of the largest number results may be off; integers by so many steps.
_TOLERANCE = 1e-3
_STEPS = 2

_ARENA = 64 << 20

# Seconds that a file may take, compilation of shaders included.
_TIMEOUT = 300.0

_NO_ADAPTER = "No adapters found"
_REFUSED_BLOCK = "Following operations are not supported"
_USED = re.compile(r"Arena allocation total (\d+) bytes")
_COUNTS = re.compile(r"(\d+|No) operations will run on the GPU, and (?:the remaining|all) (\d+) operations will run on")
_NOT_FED = "Unsupported dtype"


@dataclass(frozen=True, slots=True)
class RuntimeOutcome:
    """The outcome of a file in a runtime."""

    kind: str  # The runtime, a key of `TITLES`.
    problem: str = ""  # Why it did not run; empty if it did.
    error: float = 0.0  # The largest difference, as a part of the largest value of its output.
    is_whole: bool | None = None  # Whether an accelerator took all operators; `None` if it does not say.
    refused: tuple[str, ...] = ()  # The operators that an accelerator left to the CPU, with its reasons.
    taken: int = 0  # How many operators it took; 0 if it took all, as it does not say then.
    operators: int = 0  # How many there are; 0 if it does not say.
    is_missing: bool = False  # Whether the runtime, or a device for it, is not installed.
    arena: int | None = None  # The bytes of its arena that a microcontroller's interpreter used; `None` for others.


def swiftshader() -> str:
    """Returns the path of SwiftShader's description, empty if it is not installed."""
    cache = os.environ.get(_PLAYWRIGHT) or Path.home() / ".cache" / "ms-playwright"
    folders = [*map(Path, _BROWSERS), *sorted(Path(cache).glob("chromium*/chrome-*"), reverse=True)]
    return next((str(path) for folder in folders if (path := folder / _DRIVER).exists()), "")


def is_available(kind: str) -> bool:
    """Returns whether a runtime is installed.

    Args:
        kind: A key of `TITLES`.
    """
    try:
        return find_spec(_PACKAGES[kind]) is not None
    except ModuleNotFoundError:
        return False


def outcomes(content: bytes, kinds: Sequence[str], seconds: float = _TIMEOUT) -> Iterator[RuntimeOutcome]:
    """Yields what runtimes make of a file.

    Args:
        content: The file.
        kinds: The runtimes.
        seconds: The timeout of each.
    """
    for kind in kinds:
        if not is_available(kind):
            package = _PACKAGES[kind].partition(".")[0].replace("_", "-")
            yield RuntimeOutcome(kind, f"the package {package} is not installed", is_missing=True)
            continue
        with Child(seconds) as child:
            try:
                off, log = child.call(run, kind, content)
            except ChildError as problem:
                yield _failed(kind, problem)
            else:
                yield RuntimeOutcome(kind, error=off) if log is None else _split(kind, off, log)


def _split(kind: str, error: float, log: str) -> RuntimeOutcome:
    """Returns the outcome of a file that ran, with how the log says that it was split."""
    refused = tuple(refusals(log))
    counts = [(0 if each[1] == "No" else int(each[1]), int(each[2])) for each in _COUNTS.finditer(log)]
    taken, left = sum(on for on, _ in counts), sum(off for _, off in counts)
    if kind == "micro":
        used = _USED.search(log)
        return RuntimeOutcome(kind, error=error, arena=int(used[1]) if used else None)
    return RuntimeOutcome(kind, "", error, not refused and not left, refused, taken, taken + left)


def _failed(kind: str, problem: ChildError) -> RuntimeOutcome:
    if _NO_ADAPTER in problem.refusal:
        return RuntimeOutcome(
            kind, "there is no GPU, and no Vulkan driver that computes on the processor", is_missing=True
        )
    if problem.refusal:
        return RuntimeOutcome(kind, " ".join(problem.refusal.split()))
    return RuntimeOutcome(kind, f"it ended the process ({problem})" if not problem.seconds else str(problem))


def notes_of(found: Sequence[RuntimeOutcome], *, silent: bool = False) -> Iterator[Diagnostic]:
    """Yields the diagnostics about outcomes.

    Args:
        found: The outcomes.
        silent: Whether a runtime that refuses the file is no error, and one that runs it is not worth a note.
    """
    severity = NOTE if silent else ERROR
    for each in found:
        title = TITLES[each.kind]
        if each.is_missing:
            if not silent:
                message = f"the file can't run in {title}: {each.problem}"
                yield Diagnostic(MISSING, message, hint=_GETTING[each.kind], severity=severity)
        elif each.problem:
            # Python can't feed numbers of some types to it; other languages can.
            if not silent or _NOT_FED not in each.problem:
                message = f"{title} does not run the file: {each.problem}"
                yield Diagnostic(REFUSED, message, hint=_HINTS[each.kind], severity=severity)
        elif each.error > _TOLERANCE:
            message = f"{title} has other results than the CPU: {each.error:.1e} of the largest value"
            yield Diagnostic(DIFFERS, message, hint=_HINTS[each.kind], severity=severity)
        elif not silent:
            whole = {True: ", all of it on the GPU", False: ", a part of it on the CPU", None: ""}[each.is_whole]
            why = f" ({'; '.join(each.refused)})" if each.refused else ""
            used = "" if each.arena is None else f"; it used {size_text(each.arena)} of its arena"
            message = (
                f"{title} runs the file{whole}{why}: largest difference {each.error:.1e} of the largest value{used}"
            )
            yield Diagnostic(RUNS, message, severity=NOTE)


_HINTS: Mapping[str, str] = {
    "compiled": "the interpreter runs it",
    "gpu": 'target=tfconvert.LiteRT(accelerator=["gpu"]) (--accelerator gpu) writes forms that the GPU computes, and '
    "the report then names the operators that stay on the CPU",
    "micro": 'target=tfconvert.LiteRT(accelerator=["micro"]) (--accelerator micro) writes forms that it has, and '
    "the report then names the operators that it does not have",
}
_GETTING: Mapping[str, str] = {
    "compiled": "pip install 'tfconvert[verify]'",
    "gpu": "pip install 'tfconvert[gpu]', and a GPU with a Vulkan driver, or Chromium, which has one for processors "
    "(apt-get install chromium libvulkan1); VK_ICD_FILENAMES names another",
    "micro": "pip install 'tfconvert[micro]' (Linux, x86-64)",
}


def run(kind: str, content: bytes) -> tuple[float, str | None]:
    """Runs a file; returns the largest difference from the CPU, and what the runtime logs of how it loaded the file.

    Args:
        kind: The runtime.
        content: The file.
    """
    with tempfile.TemporaryDirectory(prefix="tfconvert-") as folder:
        path = str(Path(folder, "model.tflite"))
        Path(path).write_bytes(content)
        find_driver(folder)
        largest = 0.0
        log: str | None = None
        interpreter: Any = runtime.interpreter_of(path, num_threads=1)
        # Without signatures, LiteRT runs the first subgraph by its index.
        keys = list(interpreter.get_signature_list()) or [""]
        model: Any = None
        if kind != "micro":
            model, log = _loaded(kind, path, folder)
        for key in keys[:1] if kind == "micro" else keys:
            inputs, expected = _on_cpu(interpreter, key)
            if kind == "micro":
                results, log = _in_micro(path, interpreter, key, inputs, expected)
            else:
                results = _in_model(model, key, inputs, expected)
            pairs = zip(expected.values(), results, strict=True)
            largest = max([largest, *(_difference(one, other) for one, other in pairs)])
        return largest, log


def find_driver(folder: str) -> None:
    """Lets Vulkan find SwiftShader, and the accelerator Vulkan itself, if nothing else is chosen.

    Args:
        folder: A folder for Vulkan's files, if the system names none.
    """
    if not os.environ.get(_DRIVERS) and (found := swiftshader()):
        os.environ[_DRIVERS] = found
        if (loader := Path(found).with_name(_LOADER)).exists():
            ctypes.CDLL(str(loader))  # The accelerator opens it by its name, and then finds it open.
    if not Path(os.environ.get(_RUNTIME_FOLDER, "")).is_dir() or _RUNTIME_FOLDER not in os.environ:
        os.environ[_RUNTIME_FOLDER] = folder


@contextmanager
def _logged(path: Path) -> Iterator[None]:
    """Writes into a file what C++ code logs in the body."""
    kept = os.dup(2)
    with path.open("wb") as stream:
        os.dup2(stream.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _loaded(kind: str, path: str, folder: str) -> tuple[Any, str | None]:
    """Returns a model that is loaded, and what the accelerator logs of it."""
    from ai_edge_litert.compiled_model import CompiledModel
    from ai_edge_litert.hardware_accelerator import HardwareAccelerator

    if kind == COMPILED:
        return CompiledModel.from_file(path, hardware_accel=HardwareAccelerator.CPU), None
    # That the model is fully accelerated is also said of one that XNNPACK takes the rest of.
    log = Path(folder, "log")
    try:
        with _logged(log):
            both = HardwareAccelerator.GPU | HardwareAccelerator.CPU
            model = CompiledModel.from_file(path, hardware_accel=both)
    except RuntimeError as problem:
        text = log.read_text("utf-8", "replace")
        raise RuntimeError(_NO_ADAPTER if _NO_ADAPTER in text else str(problem)) from problem
    return model, log.read_text("utf-8", "replace")


def refusals(log: str) -> Iterator[str]:
    """Yields what the GPU refuses: operators with reasons, each kind once.

    Args:
        log: What it logs when it loads a file.
    """
    seen = set()
    for block in log.split(_REFUSED_BLOCK)[1:]:
        for line in block.partition("\n")[2].splitlines():
            if "will run on the" in line:
                break
            if line.strip() and line not in seen:
                seen.add(line)
                yield line.strip()


def _on_cpu(interpreter: Any, key: str) -> tuple[dict[str, Array], dict[str, Array]]:
    """Returns inputs, drawn at random, and what the interpreter computes of them, by the names in a signature."""
    draw = np.random.default_rng(0)
    taken, given = _details(interpreter, key)
    inputs = {name: _drawn(detail, draw) for name, detail in taken.items()}
    results = runtime.run(interpreter, key, inputs, list(given), as_floats=False)
    return inputs, dict(zip(given, map(np.asarray, results), strict=True))


def _details(interpreter: Any, key: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the inputs and outputs by the names in a signature, or by position in the first subgraph."""
    if key:
        runner = interpreter.get_signature_runner(key)
        return runner.get_input_details(), runner.get_output_details()
    sides = interpreter.get_input_details(), interpreter.get_output_details()
    taken, given = ({str(place): detail for place, detail in enumerate(side)} for side in sides)
    return taken, given


def _drawn(detail: Mapping[str, Any], draw: np.random.Generator) -> Array:
    shape, dtype = tuple(map(int, detail["shape"])), np.dtype(detail["dtype"])
    if dtype.kind == "f":
        return draw.uniform(-1, 1, shape).astype(dtype)
    if dtype.kind == "b":
        return draw.random(shape) > 0.5
    low, high = (0, 4) if dtype.itemsize > 1 else (-100, 100) if dtype.kind == "i" else (0, 200)
    return draw.integers(low, high, shape).astype(dtype)


def _in_model(model: Any, key: str, inputs: Mapping[str, Array], expected: Mapping[str, Array]) -> list[Array]:
    index = model.get_signature_index(key) if key else 0
    names = model.get_signature_by_index(index) if key else {"inputs": list(inputs), "outputs": list(expected)}
    taken, given = model.create_input_buffers(index), model.create_output_buffers(index)
    for name, buffer in zip(names["inputs"], taken, strict=True):
        buffer.write(np.ascontiguousarray(inputs[name]))
    model.run_by_index(index, taken, given)
    by_name = dict(zip(names["outputs"], given, strict=True))
    results = []
    for name, like in expected.items():
        results.append(np.asarray(by_name[name].read(like.size, like.dtype)).reshape(like.shape))
    return results


def _in_micro(
    path: str, interpreter: Any, key: str, inputs: Mapping[str, Array], expected: Mapping[str, Array]
) -> tuple[list[Array], str]:
    """Returns the results of tflite-micro, and how it used its arena."""
    from tflite_micro.python.tflite_micro import runtime as micro

    taken, given = _details(interpreter, key)
    order = _places(taken, interpreter.get_input_details())
    results = _places(given, interpreter.get_output_details())
    model = micro.Interpreter.from_file(path, arena_size=_ARENA)
    for name, place in order.items():
        model.set_input(inputs[name], place)
    model.invoke()
    log = Path(path).with_name("allocations")
    with _logged(log):
        model.print_allocations()
    return [np.asarray(model.get_output(results[name])) for name in expected], log.read_text("utf-8", "replace")


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
