"""Compares a quantized file with the float file on samples: at the outputs, and tensor by tensor."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tfconvert.converter.process.child_process import Child, ChildError
from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.quantize.comparison_process import Ends, Pair
from tfconvert.converter.targets.litert.quantize.figures import Measured, Step, layers
from tfconvert.converter.targets.litert.quantize.samples import Entry, Sample
from tfconvert.converter.targets.litert.runtime import failure
from tfconvert.exporters.tflite.model import TFLiteFile
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.fidelity import Fidelity, OutputFidelity

# The maximum number of tensors in the report.
_WORST = 10

Taker = Callable[[Sequence[Mapping[str, Array]]], None]
"""Takes the outputs of both models, by name, after each run of the first signature."""


def compare(
    floats: TFLiteFile,
    quantized: TFLiteFile,
    samples: Iterable[Sample],
    entries: Sequence[Entry],
    nodes: Mapping[int, str] | None = None,
    *,
    inner: bool = True,
    taker: Taker | None = None,
) -> Fidelity:
    """Runs two files on the same samples, in LiteRT.

    Args:
        floats: The float file.
        quantized: The quantized file.
        samples: Inputs of the signatures.
        entries: The signatures.
        nodes: The nodes of the float file's tensors, to list layers; `None` to list none.
        inner: Whether to compare inner tensors too, which takes most of the time.
        taker: Takes the outputs of each run.
    """
    runtime.require()
    with tempfile.TemporaryDirectory(prefix="tfconvert-") as directory:
        paths = [str(Path(directory) / name) for name in ("float.tflite", "quantized.tflite")]
        for path, file in zip(paths, (floats, quantized), strict=True):
            file.save(path)
        return compare_files(paths, samples, entries, nodes, inner=inner, taker=taker)


def compare_files(
    paths: Sequence[str],
    samples: Iterable[Sample],
    entries: Sequence[Entry],
    nodes: Mapping[int, str] | None = None,
    *,
    inner: bool = True,
    ends: Sequence[Ends] | None = None,
    taker: Taker | None = None,
) -> Fidelity:
    """Runs two files on the same samples, in LiteRT; see `compare`.

    Args:
        paths: The float file, and the quantized one.
        samples: Inputs of the signatures.
        entries: The signatures.
        nodes: The nodes of the float file's tensors, to list layers; `None` to list none.
        inner: Whether to compare inner tensors too.
        ends: The inputs and outputs of each file, where the orders may differ.
        taker: Takes the outputs of each run.
    """
    known = [(entry.key, [each.name for each in entry.inputs]) for entry in entries]
    with Child() as child:
        try:
            pair = child.call(Pair, list(paths), known, inner, ends)
            count = 0
            for sample in samples:
                results = child.call(Pair.run, pair, sample.entry, list(sample.values), taker is not None)
                if taker is not None and results is not None:
                    taker(results)
                count += 1
            found = child.call(Pair.findings, pair)
        except ChildError as problem:
            hint = "check the inputs' sizes and values; if they are right, please report it"
            raise failure(problem, "runtime-error", "the converted model can't be run", hint) from problem
    return _fidelity(found, count, nodes)


def _fidelity(answer: Mapping[str, Any], count: int, nodes: Mapping[int, str] | None) -> Fidelity:
    found = {index: (name, Measured(*each)) for index, name, each in answer["inner"]}
    outputs = tuple(OutputFidelity(*each) for each in answer["outputs"])
    names = {each.name for each in outputs}
    inner = [(name, each.snr) for name, each in found.values() if each.noise > 0 and name not in names]
    inner.sort(key=lambda each: each[1])
    fidelity = Fidelity(count, outputs, tuple(inner[:_WORST]))
    if nodes is None:
        return fidelity
    steps = [
        Step(next((nodes[each] for each in results if nodes.get(each)), ""), operator, inputs, results)
        for operator, inputs, results in answer["layers"]
    ]
    measured = {index: each for index, (_, each) in found.items()}
    return fidelity._replace(layers=layers(steps, measured, dict(answer["ranges"])))
