"""The first generation's `quantized_input_stats`: ranges of inputs, given as numbers.

A model that was trained for integers has fake quantization everywhere but at its inputs. There they are put: an integer
`q` represents the number `(q - mean) / std`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tfconvert.compat.quantization import SAMPLES, element_type
from tfconvert.compat.row import Values, refusal
from tfconvert.importers.graph_def import read_graph_def
from tfconvert.importers.source import Source
from tfconvert.importers.temporary_model import temporary_model
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

NAME = "quantized_input_stats"

# The minimum and maximum of each type that inputs may have.
_LIMITS = {"uint8": (0, 255), "int8": (-128, 127)}

_INSTEAD = "set representative_dataset: its samples tell the ranges"


def with_ranges(model: Any, values: Values, inputs: Callable[[], Sequence[str]]) -> Any:
    """Returns a model whose inputs have fake quantization, if they are given ranges that are needed.

    Args:
        model: A model; with ranges, the path or the message of a frozen graph.
        values: The values of all attributes.
        inputs: Returns the names of the model's inputs.

    Raises:
        ConversionError: It is not a frozen graph, has no such input, or the numbers are wrong (`wrong-option`).
    """
    stats, kind = values[NAME], kind_of(values)
    if not stats or kind is None:
        return model
    if not isinstance(stats, Mapping):
        raise refusal(NAME, f"it can't be {stats!r}", "pass a mean and a standard deviation by input")
    graph = _fake_quantized(_graph(model), stats, kind)
    given = {str(name).partition(":")[0] for name in stats}
    if missing := [name for name in inputs() if name not in given]:
        raise refusal(NAME, f"it has no range of the input {', '.join(map(repr, missing))}", "name every input")
    return graph


def ranged(source: Source, stats: Mapping[str, tuple[float, float]], kind: str) -> Source:
    """Returns the source of a copy of a frozen graph whose inputs have fake quantization.

    Args:
        source: The graph.
        stats: Mean and standard deviation by input.
        kind: The type of the integers.

    Raises:
        ConversionError: It is not a frozen graph, has no such input, or the numbers are wrong.
    """
    graph = _fake_quantized(_graph(source.model), stats, kind)
    with temporary_model(source.name, "TF_GRAPH_DEF") as folder:
        path = Path(folder, "graph.pb")
        path.write_bytes(graph.SerializeToString())
        return replace(source, model=path, prepared=folder)


def _fake_quantized(graph: pb.GraphDef, stats: Mapping[str, tuple[float, float]], kind: str) -> pb.GraphDef:
    if kind not in _LIMITS:
        raise refusal(NAME, f"inputs are {kind}, so that they have no range", "choose int8 or uint8")
    nodes = {node.name for node in graph.node}
    for given, numbers in stats.items():
        name = str(given).partition(":")[0]
        if name not in nodes:
            raise refusal(NAME, f"the graph has no input {name!r}", "name the inputs of the model")
        _insert(graph, name, *_range(name, numbers, kind))
    return graph


def kind_of(values: Values) -> str | None:
    """Returns the type of the integers that inputs are or are turned to; `None` for none, or if samples say how."""
    taken, whole = (element_type(values[name] or "float32") for name in ("inference_input_type", "inference_type"))
    if values["inference_input_type"] is None:
        taken = whole
    if taken != "float32":
        return taken
    return whole if whole != "float32" and values[SAMPLES] is None else None


def _graph(model: Any) -> pb.GraphDef:
    if isinstance(model, str | os.PathLike) and os.fspath(model).endswith((".pb", ".pbtxt", ".prototxt")):
        return read_graph_def(model)
    if getattr(getattr(model, "DESCRIPTOR", None), "name", "") == "GraphDef":
        return pb.GraphDef.FromString(model.SerializeToString())
    raise refusal(NAME, "ranges of inputs are taken as numbers for frozen graphs and sessions only", _INSTEAD)


def _range(name: str, numbers: tuple[float, float], kind: str) -> tuple[float, float]:
    low, high = _LIMITS[kind]
    try:
        mean, deviation = map(float, numbers)
    except (TypeError, ValueError):
        raise refusal(NAME, f"{numbers!r} is not a mean and a standard deviation", "pass a pair of numbers") from None
    if not deviation > 0 or not low <= mean <= high:
        raise refusal(
            NAME,
            f"{name!r} can't have the mean {mean:g} and the standard deviation {deviation:g}",
            f"the mean is from {low} to {high}, as the number that stands for 0",
        )
    return (low - mean) / deviation, (high - mean) / deviation


def _insert(graph: pb.GraphDef, name: str, low: float, high: float) -> None:
    """Inserts fake quantization between an input and what uses it."""
    taken = {node.name for node in graph.node}
    inserted = f"{name}/stats"
    while inserted in taken:
        inserted += "_"
    for node in graph.node:
        for index, operand in enumerate(node.input):
            if operand in (name, f"{name}:0"):
                node.input[index] = inserted
    node = graph.node.add(name=inserted, op="FakeQuantWithMinMaxArgs", input=[name])
    node.attr["min"].f = low
    node.attr["max"].f = high
    node.attr["num_bits"].i = 8
    node.attr["narrow_range"].b = False
