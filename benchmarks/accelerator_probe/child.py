"""Runs files on an accelerator, in a process of its own: `python -m benchmarks.accelerator_probe.child KIND LOG`.

Jobs and answers are lines of JSON with the arrays' bytes in Base64, as those of the kernel probe. What the accelerator
logs goes into a file, which the parent also reads when the process has ended.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kernel_probe.child import pack, unpack
from benchmarks.kernel_probe.tensors import Array
from tfconvert.converter.validation.runtimes_check import find_driver

Run = Callable[[str, Sequence[Array], Sequence[Array]], list[Array]]


def _compiled(**settings: Any) -> Run:
    from ai_edge_litert.compiled_model import CompiledModel  # Other kinds have no such package.

    def run(path: str, inputs: Sequence[Array], expected: Sequence[Array]) -> list[Array]:
        model = CompiledModel.from_file(path, **settings)
        buffers, results = model.create_input_buffers(0), model.create_output_buffers(0)
        for buffer, array in zip(buffers, inputs, strict=True):
            buffer.write(np.ascontiguousarray(array))
        model.run_by_index(0, buffers, results)
        pairs = zip(results, expected, strict=True)
        return [np.asarray(buffer.read(like.size, like.dtype)).reshape(like.shape) for buffer, like in pairs]

    return run


def _gpu() -> Run:
    from ai_edge_litert.hardware_accelerator import HardwareAccelerator

    find_driver(os.environ["XDG_RUNTIME_DIR"])
    return _compiled(hardware_accel=HardwareAccelerator.GPU | HardwareAccelerator.CPU)


def _intel() -> Run:
    from ai_edge_litert import options
    from ai_edge_litert.hardware_accelerator import HardwareAccelerator

    openvino = options.IntelOpenVinoOptions(graph_backend=options.IntelOpenVinoGraphBackend.CPU)
    chosen = options.Options(
        hardware_accelerators=HardwareAccelerator.NPU | HardwareAccelerator.CPU,
        cpu_options=options.CpuOptions(num_threads=1),
        intel_openvino_options=openvino,
    )
    return _compiled(options=chosen)


def _micro() -> Run:
    from tflite_micro.python.tflite_micro import runtime

    def run(path: str, inputs: Sequence[Array], expected: Sequence[Array]) -> list[Array]:
        interpreter = runtime.Interpreter.from_file(path, arena_size=8 << 20)
        for index, array in enumerate(inputs):
            interpreter.set_input(array, index)
        interpreter.invoke()
        return [np.asarray(interpreter.get_output(index)) for index in range(len(expected))]

    return run


KINDS: Mapping[str, Callable[[], Run]] = {"gpu": _gpu, "intel": _intel, "micro": _micro}


def _serve(kind: str, log: str) -> None:
    run = KINDS[kind]()
    stream = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(stream, 2)
    answers = os.dup(1)
    os.dup2(stream, 1)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "form.tflite"))
        for line in sys.stdin:
            os.truncate(log, 0)
            item = json.loads(line)
            Path(path).write_bytes(base64.b64decode(item["file"]))
            inputs, expected = ([unpack(each) for each in item[name]] for name in ("inputs", "expected"))
            try:
                results, problem = run(path, inputs, expected), ""
            except Exception as failure:  # noqa: BLE001  # Each runtime has its own.
                results, problem = [], " ".join(str(failure).split()) or type(failure).__name__
            answer = {"problem": problem, "log": Path(log).read_text("utf-8", "replace")}
            packed = [pack(np.asarray(each)) for each in results]
            os.write(answers, (json.dumps({**answer, "results": packed}) + "\n").encode())


if __name__ == "__main__":
    _serve(*sys.argv[1:3])
