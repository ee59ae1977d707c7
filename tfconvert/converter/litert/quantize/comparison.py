"""Compares a quantized file with the float file on samples: at the outputs, and tensor by tensor."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tfconvert.converter.child_process import Child, ChildError
from tfconvert.converter.litert import runtime
from tfconvert.converter.litert.failures import failure
from tfconvert.converter.quantization_report import Fidelity, OutputFidelity, decibels
from tfconvert.exporters.tflite.model import TFLiteFile
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects.boxes import Array

_WORST = 10
"""How many of the tensors that lose most are named."""


def compare(floats: TFLiteFile, quantized: TFLiteFile, samples: Iterable[Sequence[Array]]) -> Fidelity:
    """Runs two files on the same samples, in LiteRT.

    Args:
        floats: The model's file without quantization.
        quantized: The file with it.
        samples: The inputs of the first signature, in order.

    Raises:
        ConversionError: LiteRT is not installed (`litert-missing`), or can't run one of the files (`runtime-error`).
    """
    runtime.require()
    with tempfile.TemporaryDirectory(prefix="tfconvert-") as folder:
        paths = [Path(folder) / name for name in ("float.tflite", "quantized.tflite")]
        for path, file in zip(paths, (floats, quantized), strict=True):
            file.save(path)
        with Child("tfconvert.converter.litert.quantize.comparison_process") as child:
            _ask(child, {"files": [str(path) for path in paths]})
            count = 0
            for sample in samples:
                _ask(child, {}, sample)
                count += 1
            figures = _ask(child, {"finish": True})["figures"]
    return _fidelity(figures, count)


def _ask(child: Child, header: dict[str, Any], arrays: Sequence[Array] = ()) -> dict[str, Any]:
    try:
        answer, _ = child.ask(header, arrays)
    except ChildError as crash:
        raise failure(crash, "runtime-error", "the converted model can't be run") from crash
    if answer["problem"]:
        raise error("runtime-error", f"LiteRT can't run the converted model: {answer['problem']}",
                    hint="this is a defect of the converter; please report it")  # fmt: skip
    return answer


def _fidelity(figures: Sequence[Sequence[Any]], count: int) -> Fidelity:
    outputs, inner = [], []
    for name, is_output, signal, noise, agreed, rows in figures:
        ratio = decibels(signal, noise)
        if is_output:
            outputs.append(OutputFidelity(name, ratio, agreed / rows) if rows else OutputFidelity(name, ratio))
        elif noise > 0:
            inner.append((name, ratio))
    inner.sort(key=lambda each: each[1])
    return Fidelity(count, tuple(outputs), tuple(inner[:_WORST]))
