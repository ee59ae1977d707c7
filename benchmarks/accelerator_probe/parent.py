"""Runs jobs in child processes that may end."""

from __future__ import annotations

import base64
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.kernel_probe.child import pack, unpack
from benchmarks.kernel_probe.tensors import Array

# The number of jobs of a process, and the seconds that a job may take.
_BATCH = 60
_TIMEOUT = 40.0

ENDED = "the process ended"
HANGS = "the process did not answer"


@dataclass(frozen=True, slots=True)
class Job:
    """A file to be run."""

    file: bytes  # Its bytes.
    inputs: Sequence[Array]  # The inputs.
    expected: Sequence[Array]  # What the CPU computes.


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of a job."""

    results: Sequence[Array]  # The results.
    problem: str  # Why there aren't any; `ENDED` if the process ended.
    log: str  # What was logged.


def run(kind: str, jobs: Sequence[Job], python: str = sys.executable) -> Iterator[Answer]:
    """Yields the answers, in the order of the jobs.

    Args:
        kind: A key of `child.KINDS`.
        jobs: The jobs.
        python: The Python that has the runtime.
    """
    start = 0
    while start < len(jobs):
        for answer in _batch(kind, jobs[start : start + _BATCH], python):
            start += 1
            yield answer


def _batch(kind: str, jobs: Sequence[Job], python: str) -> Iterator[Answer]:
    """Yields the answers until a process ends."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        log.touch()
        command = [python, "-m", "benchmarks.accelerator_probe.child", kind, str(log)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(kind, python, folder)
        ) as child:
            try:
                yield from _answers(child, jobs, log)
            finally:
                # Some drivers hang when their process ends by itself.
                child.kill()


def _answers(child: subprocess.Popen[str], jobs: Sequence[Job], log: Path) -> Iterator[Answer]:
    """Yields the answers of a process until it ends."""
    assert child.stdin is not None
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read, args=(child, lines), daemon=True).start()
    for job in jobs:
        problem = ENDED
        try:
            child.stdin.write(_line(job))
            child.stdin.flush()
            text = lines.get(timeout=_TIMEOUT)
        except BrokenPipeError:
            text = ""
        except queue.Empty:
            text, problem = "", HANGS
        if not text:
            yield Answer([], problem, log.read_text("utf-8", "replace"))
            return
        item = json.loads(text)
        yield Answer([unpack(each) for each in item["results"]], item["problem"], item["log"])


def _read(child: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        lines.put(line)
    lines.put("")


def _line(job: Job) -> str:
    arrays = {name: [pack(each) for each in getattr(job, name)] for name in ("inputs", "expected")}
    return json.dumps({"file": base64.b64encode(job.file).decode(), **arrays}) + "\n"


def environment(kind: str, python: str, folder: str) -> Mapping[str, str]:
    """Returns the environment of a child."""
    found = {"XDG_RUNTIME_DIR": folder, **os.environ}
    if not Path(found["XDG_RUNTIME_DIR"]).is_dir():
        found["XDG_RUNTIME_DIR"] = folder
    if kind == "intel":
        libraries = Path(python).parent.parent.glob("lib/python*/site-packages/openvino/libs")
        found["LD_LIBRARY_PATH"] = ":".join(map(str, libraries))
    return found
