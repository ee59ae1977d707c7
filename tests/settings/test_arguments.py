"""Whatever is passed to `tfconvert.convert`, it converts or raises a `ConversionError` that names the argument."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import tfconvert
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.settings.arguments import ARGUMENTS, FIELDS, check_arguments
from tfconvert.settings.options import Options

VALUES: Mapping[str, Any] = {
    "None": None,
    "integer": 5,
    "text": "a text",
    "list": [1, "a"],
    "texts": ["a"],
    "mapping": {"a": 1},
    "flag": True,
    "mappings": {"x": {"y": [1]}},
    "object": object(),
    "class": Options,
    "array": np.zeros((2, 3)),
    "shape": (1, 224, 224, 3),
    "function": lambda: 5,
    "bytes": b"x",
}

FITTING: Mapping[str, set[str]] = {
    "integer": {"batch"},
    "text": {"asset_root", "checkpoint", "metadata", "op_defs", "signatures", "target_runtime", "verify_data"},
    "list": {"composites", "patterns", "verify_data"},
    "mapping": {"metadata", "verify_data"},
    "object": set(),
}
"""The arguments for which a value is of the right kind, though it may be wrong for the model."""

SHORT = {"verify_data": "verify.data", "compare_layers": "verify.compare_layers"}
"""Arguments that are short for fields of others, by which they are called."""

PARAMETERS = sorted(set(inspect.signature(tfconvert.convert).parameters) - {"model"})


@pytest.fixture(scope="module")
def graph() -> pb.GraphDef:
    """Returns a graph with the input `x` and the output `y`."""
    found = pb.GraphDef()
    x = found.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = pb.DT_FLOAT
    x.attr["shape"].shape.dim.add(size=3)
    found.node.add(name="y", op="Neg", input=["x"]).attr["T"].type = pb.DT_FLOAT
    return found


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("name", PARAMETERS)
def test_no_value_raises_anything_else(graph: pb.GraphDef, name: str, kind: str) -> None:
    value = VALUES[kind]
    try:
        tfconvert.convert(graph, **{name: value})
    except ConversionError as problem:
        first = problem.diagnostics[0]
        assert first.code != "internal-error"
        if name in ARGUMENTS and not ARGUMENTS[name].fits(value) and not (name == "signatures" and kind == "text"):
            assert first.code == "wrong-option"
            assert first.message.startswith(f"{name} can't be ")
            assert ARGUMENTS[name].expected in first.hint
    else:
        fits = name not in ARGUMENTS or ARGUMENTS[name].fits(value)
        assert fits or value is None or (name, kind) == ("signatures", "text")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for kind in ("integer", "text", "list", "mapping", "object")
        for name in PARAMETERS
        if name not in FITTING[kind]
    ],
)
def test_values_of_a_wrong_kind_are_refused_by_name(graph: pb.GraphDef, name: str, kind: str) -> None:
    with pytest.raises(ConversionError) as refused:
        tfconvert.convert(graph, **{name: VALUES[kind]})
    assert refused.value.code == "wrong-option"
    assert SHORT.get(name, name) in refused.value.diagnostics[0].message


def test_a_value_is_shown_and_what_is_expected(graph: pb.GraphDef) -> None:
    with pytest.raises(ConversionError) as refused:
        tfconvert.convert(graph, input_shapes=(1, 224, 224, 3))  # type: ignore[arg-type]
    (problem,) = refused.value.diagnostics
    assert problem.message == "input_shapes can't be (1, 224, 224, 3)"
    assert problem.hint == (
        'expected is a mapping from names of inputs to shapes, as in input_shapes={"image": [1, 224, 224, 3]}'
    )
    with pytest.raises(ConversionError, match=r"batch can't be '1'\n.*an integer of at least 1"):
        tfconvert.convert(graph, batch="1")  # type: ignore[arg-type]
    with pytest.raises(ConversionError) as refused:
        tfconvert.convert(graph, rename=np.zeros((1000, 1000)))  # type: ignore[arg-type]
    assert len(refused.value.diagnostics[0].message) < 150


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("batch", 0),
        ("batch", True),
        ("batch", 1.0),
        ("inputs", "x"),
        ("tags", "serve"),
        ("inputs", {"x"}),
        ("input_shapes", {"x": "3"}),
        ("input_shapes", {"x": np.array([3])}),
        ("input_shapes", {"x": [1.5]}),
        ("input_shapes", {1: [3]}),
        ("rename", {"x": 1}),
        ("input_shapes", {"x": {"3": 3}}),
        ("limits", tfconvert.Limits(operations=-1)),
        ("order", "Official"),
        ("limits", tfconvert.Limits(run_seconds="1")),
        ("iree", tfconvert.IreeOptions(cpu=5)),  # type: ignore[arg-type]
        ("iree", tfconvert.IreeOptions(flags="--x")),
        ("iree", tfconvert.IreeOptions(keep_mlir="yes")),  # type: ignore[arg-type]
        ("iree", tfconvert.IreeOptions(backend=["cuda"])),  # type: ignore[arg-type]
    ],
)
def test_near_misses(graph: pb.GraphDef, name: str, value: Any) -> None:
    with pytest.raises(ConversionError, match=rf"^{name}(\.\w+)? can't be ") as refused:
        tfconvert.convert(graph, **{name: value})
    assert refused.value.code == "wrong-option"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("input_shapes", {"x": (None,)}),
        ("input_shapes", {"x": [np.int64(3)]}),
        ("verify", np.bool_(0)),
        ("inputs", ("x",)),
        ("rename", {"x": "z"}),
        ("limits", tfconvert.Limits(operations=np.int32(9))),  # type: ignore[arg-type]
    ],
)
def test_what_is_as_good(graph: pb.GraphDef, name: str, value: Any) -> None:
    assert tfconvert.convert(graph, **{name: value}).report.size


def test_every_setting_has_a_row() -> None:
    internal = {"model", "temporary", "is_raw", "verify_each", "quantize"}
    assert set(ARGUMENTS) == {*Source._fields, *Options._fields} - internal
    assert {*PARAMETERS, "sparse_weights", "origin"} == {*ARGUMENTS, *SHORT, "quantize"}
    assert set(FIELDS["iree"]) == set(tfconvert.IreeOptions._fields)
    check_arguments(Source("model"), Options())
    check_arguments(Source("model"), Options(iree=tfconvert.IreeOptions()))
