"""Runs IREE's compiler, which the extra `iree` installs, in its own process with limits.

Nothing of it is imported. It compiles text in a temporary directory, and returns a program only if it succeeds.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from tfconvert.converter.process.python_process import kill
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.settings.targets import Iree

# The kinds of devices, by backend; the others make code for this machine's processor.
_DEVICES = {"cuda": "cuda", "rocm": "hip", "vulkan-spirv": "vulkan", "metal-spirv": "metal"}

# The maximum number of the compiler's lines in a message.
_MAX_LINES = 12

# The maximum number of bytes of the compiler's output that are read.
_MAX_OUTPUT = 1 << 16

# The part of the compiler's statistics that is reported.
_COUNTED = {
    "dispatches": ("execution", "dispatch-count"),
    "kernels": ("executable", "executable-count"),
    "copies": ("execution", "copy-count"),
    "fills": ("execution", "fill-count"),
    "submissions": ("execution", "submission-count"),
    "waits": ("synchronization", "await-count"),
}


class Compiled(NamedTuple):
    """A program that was compiled.

    Attributes:
        content: The bytes of the `.vmfb`.
        counts: The numbers of its kernels, dispatches, copies and waits.
    """

    content: bytes
    counts: Counter[str]


def find() -> str:
    """Returns the path of the compiler: that of the Python package, else one in `PATH`.

    Raises:
        ConversionError: IREE is not installed (`iree-missing`).
    """
    package = find_spec("iree")
    name = "iree-compile.exe" if os.name == "nt" else "iree-compile"
    for location in (package.submodule_search_locations or ()) if package is not None else ():
        path = Path(location, "compiler", "_mlir_libs", name)
        if path.is_file():
            return str(path)
    found = shutil.which(name)
    if found is None:
        raise error(
            "iree-missing",
            "models are compiled by IREE's compiler, which is not installed",
            hint="pip install 'tfconvert[iree]'",
        )
    return found


def flags_of(options: Iree) -> list[str]:
    device = _DEVICES.get(options.backend)
    flags = [f"--iree-hal-target-device={device or 'local'}"]
    if device is None:
        flags.append(f"--iree-hal-local-target-device-backends={options.backend}")
    if options.backend == "llvm-cpu":
        flags.append(f"--iree-llvmcpu-target-cpu={options.cpu}")
    # Doubles become floats otherwise, those of inputs and outputs too.
    return [*flags, "--iree-input-demote-f64-to-f32=false", *options.flags]


def compile_text(write: Callable[[BinaryIO], None], options: Iree, seconds: float) -> Compiled:
    """Compiles StableHLO text.

    Args:
        write: Writes the text to a file.
        options: How to compile.
        seconds: The time that it may take.

    Raises:
        ConversionError: The compiler is not installed (`iree-missing`), refuses the text or crashes
            (`iree-compile-failed`), or takes too long (`iree-timeout`); or the disk is full
            (`output-not-writable`).
    """
    program = find()
    try:
        with tempfile.TemporaryDirectory(prefix="tfconvert-") as directory:
            text, result, statistics = (
                Path(directory, name) for name in ("model.mlir", "model.vmfb", "statistics.json")
            )
            with text.open("wb") as stream:
                write(stream)
            _run(
                [
                    program,
                    str(text),
                    "-o",
                    str(result),
                    *flags_of(options),
                    "--iree-scheduling-dump-statistics-format=json",
                    f"--iree-scheduling-dump-statistics-file={statistics}",
                ],
                directory,
                seconds,
            )
            return Compiled(result.read_bytes(), _counts(statistics))
    except OSError as problem:
        raise error(
            "output-not-writable",
            f"can't compile in a temporary directory: {problem.strerror or problem}",
            hint="free disk space, or set TMPDIR to another directory",
        ) from problem


def _run(command: Sequence[str], directory: str, seconds: float) -> None:
    # Jobs of batches and servers are killed with their process group, so the compiler stays in it.
    has_group = os.name != "nt" and os.getsid(0) != os.getpid()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=directory, start_new_session=has_group
        )
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise error(
                "iree-timeout",
                f"IREE's compiler has not finished within {seconds:g} s",
                hint="give it more with --limit run-seconds=N",
            ) from None
        finally:
            if process.returncode is None:
                _end(process, has_group=has_group)
        if status:
            said.seek(0)
            raise _failed(status, said.read(_MAX_OUTPUT).decode("utf-8", "replace"))


def _end(process: subprocess.Popen[bytes], *, has_group: bool) -> None:
    """Kills the compiler, and the linker that it may have started."""
    if has_group:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        kill(process)
    process.wait()


def _failed(status: int, said: str) -> ConversionError:
    """Returns the error for a compiler that has failed.

    Args:
        status: Its exit status, negative for the signal that ended it.
        said: Its output; the message has the lines with errors.
    """
    lines = [line.rstrip() for line in said.partition(_BACKTRACE)[0].splitlines() if line.strip()]
    first = next((place for place, line in enumerate(lines) if "error" in line.lower()), 0)
    told = "\n  ".join(line[:300] for line in lines[first : first + _MAX_LINES])
    how = f"has crashed (signal {-status})" if status < 0 else f"has failed with status {status}"
    hint = _FLAG if told.startswith("iree-compile:") else _PINNED
    return error("iree-compile-failed", f"IREE's compiler {how}{':' if told else ''}\n  {told}".rstrip(), hint=hint)


_FLAG = "correct the flag (--iree-flag); iree-compile --help lists them"
_PINNED = "fix dynamic sizes (--batch, --input-shape), or report it with the text that keep_mlir (--keep-mlir) writes"

# The start of the compiler's own backtrace, which is of no use to users.
_BACKTRACE = "Please report issues to"


def _counts(path: Path) -> Counter[str]:
    """Returns the compiler's statistics; empty if a version writes them in another form."""
    try:
        known: Any = json.loads(path.read_bytes())["stream-aggregate"]
        return Counter({name: int(known[group][key]) for name, (group, key) in _COUNTED.items() if known[group][key]})
    except (OSError, ValueError, KeyError, TypeError):
        return Counter()
