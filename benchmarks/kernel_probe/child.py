"""Runs files in LiteRT, in processes of their own: a kernel that does not expect its operands may end the process.

Jobs and answers are lines of JSON with the arrays' bytes in Base64. The answer to a job that ended the process is
missing, and the jobs behind it go to a new process.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import ml_dtypes  # noqa: F401  # Makes numpy know the names of its dtypes.
import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

if TYPE_CHECKING:
    from benchmarks.kernel_probe.tensors import Array

CRASH = "the process ended"


@dataclass(frozen=True, slots=True)
class Job:
    """A file to be run."""

    file: bytes  # Its bytes.
    inputs: Sequence[Array]  # The inputs, in order.
    has_delegates: bool = False  # Whether XNNPACK takes what it can, as it does by default.


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of a job."""

    results: Sequence[Array] = field(default_factory=list)  # The results.
    problem: str = ""  # Why there are no results; `CRASH` if the process ended.


def pack(array: Array) -> dict[str, Any]:
    """Returns an array as JSON has it."""
    if array.dtype.kind in "OS":
        return {"type": "object", "shape": array.shape, "data": [text.decode("latin1") for text in array.flat]}
    data = base64.b64encode(array.tobytes()).decode()
    return {"type": array.dtype.name, "shape": array.shape, "data": data}


def unpack(item: dict[str, Any]) -> Array:
    """Inverse of `pack`."""
    array: Array
    if item["type"] == "object":
        array = np.empty(len(item["data"]), object)
        array[:] = [text.encode("latin1") for text in item["data"]]
        return array.reshape(item["shape"])
    array = np.frombuffer(base64.b64decode(item["data"]), np.dtype(item["type"]))
    return array.reshape(item["shape"])


def run(jobs: Sequence[Job]) -> list[Answer]:
    """Returns the answers to jobs, in their order."""
    answers: list[Answer] = []
    lines = [_line(job) for job in jobs]
    command = [sys.executable, "-m", "benchmarks.kernel_probe.child"]
    while len(answers) < len(jobs):
        waiting = "".join(lines[len(answers) :])
        done = subprocess.run(command, input=waiting, capture_output=True, text=True, check=False)
        answers += _answers(done.stdout)
        if len(answers) < len(jobs):
            answers.append(Answer(problem=CRASH))
    return answers


def _line(job: Job) -> str:
    inputs = [pack(array) for array in job.inputs]
    file = base64.b64encode(job.file).decode()
    return json.dumps({"file": file, "inputs": inputs, "has_delegates": job.has_delegates}) + "\n"


def _answers(text: str) -> Iterator[Answer]:
    for line in text.splitlines(keepends=True):
        # The runtime has no business on this channel, but the line on which a process ends may be cut.
        if line.startswith('{"problem"') and line.endswith("\n"):
            item = json.loads(line)
            yield Answer([unpack(each) for each in item["results"]], item["problem"])


def _serve() -> None:
    for line in sys.stdin:
        item = json.loads(line)
        try:
            results, problem = _invoke(item), ""
        except (RuntimeError, ValueError) as refused:
            results, problem = [], " ".join(str(refused).split()) or "no reason given"
        print(json.dumps({"problem": problem, "results": [pack(array) for array in results]}), flush=True)


def _invoke(item: dict[str, Any]) -> list[Array]:
    kinds = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, OpResolverType.AUTO
    interpreter = Interpreter(
        model_content=base64.b64decode(item["file"]),
        num_threads=1,
        experimental_op_resolver_type=kinds[item["has_delegates"]],
    )
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), item["inputs"], strict=True):
        interpreter.set_tensor(detail["index"], unpack(array))
    interpreter.invoke()
    return [_result(interpreter, detail) for detail in interpreter.get_output_details()]


def _result(interpreter: Interpreter, detail: dict[str, Any]) -> Array:
    """Returns a result; Python can't get one without elements that has no memory."""
    try:
        result: Array = interpreter.get_tensor(detail["index"])
    except ValueError:
        shape = interpreter._get_tensor_details(detail["index"], 0)["shape"]  # noqa: SLF001  # After the run.
        if 0 not in shape:
            raise
        return np.zeros(shape, detail["dtype"])
    return result


if __name__ == "__main__":
    _serve()
