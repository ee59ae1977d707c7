"""Compiles forms for Ethos-U by Arm's compiler, and reads what it leaves to the CPU."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.accelerator_probe.judge import Found, normalized
from benchmarks.accelerator_probe.trial import Trial
from benchmarks.kernel_probe import child as cpu
from tfconvert.schema.tflite.accelerators.acceptance import CRASHES, OK, REFUSED

_TIMEOUT = 60
_DEVICE = "ethos-u55-128"
_ON_NPU = re.compile(r"NPU operators = (\d+)")
_REASON = re.compile(r"Warning \(supported operators\)[^\n]*\n\s*(?:Reason: |- )?([^\n]*)(?:\n\s*- ([^\n]*))?")
_CHECKED_TYPES = ("i8", "f32", "i32")


def probe(trials: Sequence[Trial], python: str) -> Iterator[Found]:
    """Yields the outcomes of forms: one of floats and one of i32 an operator, and those of int8.

    Args:
        trials: The forms.
        python: The Python that has the compiler.
    """
    seen: set[tuple[str, str]] = set()
    for trial in trials:
        kind = trial.results[0].type
        is_float = any(each is not None and each.type == "f32" for each in trial.operands)
        key = trial.operator, "f32" if is_float else kind
        if key[1] in _CHECKED_TYPES and (key[1] == "i8" or key not in seen):
            seen.add(key)
            answer = cpu.run([cpu.Job(trial.build()[0], trial.inputs)])[0]
            if not answer.problem:
                file, call = trial.build([each.shape for each in answer.results])
                yield Found(trial.operator, call, *_compiled(file, python))


def _compiled(file: bytes, python: str) -> tuple[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "form.tflite")
        path.write_bytes(file)
        command = [str(Path(python).parent / "vela"), str(path), "--accelerator-config", _DEVICE]
        command += ["--output-dir", folder, "--show-cpu-operations"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT)
        except subprocess.TimeoutExpired:
            return CRASHES, "it does not end"
    found = _ON_NPU.search(done.stdout)
    if found is None:
        return CRASHES, normalized(done.stderr.strip().rpartition("\n")[2])
    if int(found[1]):
        return OK, ""
    why = _REASON.search(done.stdout)
    return REFUSED, normalized(why[1] or why[2] or "") if why else ""
