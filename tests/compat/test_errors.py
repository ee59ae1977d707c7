"""Errors of the class are Python's own, too, and are raised where the official class raises them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tfconvert.compat import attributes, v1
from tfconvert.compat.attributes import ROWS, V1_ROWS, origin
from tfconvert.compat.row import OfficialAttribute
from tfconvert.schema.diagnostics import ConversionError

DEFAULT = [tfconvert.Optimize.DEFAULT]
ODD: Sequence[Any] = (
    7,
    2.5,
    "something",
    b"x",
    object(),
    [[]],
    [7],
    {"a": 1},
    (1, 2),
    lambda: 3,
    int,
    [None],
    {"a": [1]},
    np.zeros(3),
    [np.zeros(2)],
    [{}],
    float("nan"),
    ...,
    True,
)
"""Values that attributes hardly ever have."""


def _of_files(tmp_path: Path) -> dict[str, Callable[[], Any]]:
    """Returns calls that are refused as they are made, since the file isn't what it should be."""
    bad = tmp_path / "bad"
    bad.write_text("bad data")
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "saved_model.pb").write_text("bad data")
    keras = tmp_path / "bad.h5"
    keras.write_text("bad data")
    old = v1.TFLiteConverter
    return {
        "no folder": lambda: tfconvert.TFLiteConverter.from_saved_model(tmp_path / "none"),
        "damaged": lambda: tfconvert.TFLiteConverter.from_saved_model(tmp_path / "saved"),
        "no folder, version 1": lambda: old.from_saved_model(str(tmp_path / "none")),
        "no graph": lambda: old.from_frozen_graph("none", ["x"], ["y"]),
        "damaged graph": lambda: old.from_frozen_graph(bad, ["x"], ["y"]),
        "no Keras file": lambda: old.from_keras_model_file(tmp_path / "none.h5"),
        "damaged Keras file": lambda: old.from_keras_model_file(keras),
    }


@pytest.mark.parametrize(
    "kind",
    [
        "no folder",
        "damaged",
        "no folder, version 1",
        "no graph",
        "damaged graph",
        "no Keras file",
        "damaged Keras file",
    ],
)
def test_errors_about_files(kind: str, tmp_path: Path) -> None:
    with pytest.raises(ConversionError) as caught:
        _of_files(tmp_path)[kind]()
    assert isinstance(caught.value, OSError)
    assert isinstance(caught.value, ValueError)


def _of_arguments(model: Path) -> dict[str, tuple[Callable[[], Any], str]]:
    """Returns calls that are refused as they are made, and what the errors say."""
    new, old = tfconvert.TFLiteConverter, v1.TFLiteConverter
    tags: Any = [[], ["train"]]
    path: Any = None
    number: Any = 7
    metric: Any = max
    return {
        "signature": (lambda: new.from_saved_model(model, ["no"]), "Invalid signature key 'no'.*\n.*serving_default"),
        "signature, version 1": (lambda: old.from_saved_model(model, signature_key="no"), "Invalid signature key 'no'"),
        "tags": (lambda: new.from_saved_model(model, tags=["train"]), "no graph with the tags train"),
        "odd tags": (lambda: new.from_saved_model(model, tags=tags), r"tags: \[\] is not a string"),
        "odd keys": (lambda: new.from_saved_model(model, signature_keys=number), "signature_keys: 7 is not a string"),
        "odd tags, version 1": (lambda: old.from_saved_model(model, tag_set=tags), "tag_set: .* is not a string"),
        "odd path": (lambda: new.from_saved_model(path), "saved_model_dir: None is not a path"),
        "odd functions": (lambda: new.from_concrete_functions(number), "funcs: 7 is not a list"),
        "no functions": (lambda: new.from_concrete_functions([]), "no function"),
        "shape of no input": (lambda: old.from_saved_model(model, input_shapes={"y": [1]}), "'y', which is no input"),
        "shapes of a list": (
            lambda: old.from_saved_model(model, input_shapes=number),
            "input_shapes: 7 is not a mapping",
        ),
        "odd shape": (lambda: old.from_saved_model(model, input_shapes={"pixels": number}), "shape of 'pixels'"),
        "nothing to feed": (lambda: old(None, None, None, output_arrays=["y"]), "what to feed"),
        "nothing to fetch": (lambda: old(None, None, [], input_arrays_with_shape=[("x", [1])]), "what to fetch"),
        "metrics": (
            lambda: tfconvert.experimental.QuantizationDebugOptions({"a": float}, {"a": metric}),
            "two metrics",
        ),
    }


@pytest.mark.parametrize("kind", _of_arguments(Path()))
def test_errors_about_arguments(kind: str, digits_model: Path) -> None:
    call, message = _of_arguments(digits_model)[kind]
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert isinstance(caught.value, ConversionError)
    assert not isinstance(caught.value, OSError)
    assert all(each.hint for each in caught.value.diagnostics)


def test_functions_that_are_not_traced(tf: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"call get_concrete_function"):
        tfconvert.TFLiteConverter.from_concrete_functions([tf.function(lambda x: x)])
    whole = tf.function(lambda x: x + 1.0, input_signature=[tf.TensorSpec([2], tf.float32)])
    assert tfconvert.TFLiteConverter.from_concrete_functions([whole]).convert()


def test_advice_names_attributes(tf: ModuleType) -> None:
    function = tf.function(tf.linalg.det, input_signature=[tf.TensorSpec([40, 40])])
    converter = tfconvert.TFLiteConverter.from_concrete_functions([function])
    with pytest.raises(ConversionError) as caught:
        converter.convert()
    (advice,) = caught.value.advice
    assert "Select TF ops (OpsSet.SELECT_TF_OPS in target_spec.supported_ops)" in advice
    assert "custom ops (allow_custom_ops = True)" in advice
    assert "--" not in advice


def test_errors_of_the_conversion(digits_model: Path) -> None:
    converter = tfconvert.TFLiteConverter.from_saved_model(digits_model)
    converter.inference_input_type = np.int8
    with pytest.raises(ValueError, match="nothing is quantized") as caught:
        converter.convert()
    assert isinstance(caught.value, ConversionError)
    converter = tfconvert.TFLiteConverter.from_saved_model(digits_model)
    converter.optimizations = DEFAULT
    converter.target_spec.supported_types = ["int8"]
    with pytest.raises(ValueError, match="representative_dataset") as caught:
        converter.convert()
    assert isinstance(caught.value.__cause__, ConversionError)


def test_graphs_are_looked_at_as_they_are_named(tf: ModuleType, tmp_path: Path) -> None:
    old = tf.compat.v1
    with old.Graph().as_default() as graph:
        x = old.placeholder(tf.float32, [None, 2], "x")
        tf.identity(x * old.get_variable("weight", [2]), "y")
        tf.identity(x * 2.0, "z")
    path = tmp_path / "graph"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    for arrays, shapes, message in (
        ((["x"], ["y"]), None, "variable's value is not in this file"),
        ((["x"], ["none"]), None, "no tensor 'none'"),
        ((["none"], ["z"]), None, "no tensor 'none'"),
        ((["x"], ["z"]), {"none": [1, 2]}, "'none', which is no input"),
    ):
        with pytest.raises(ValueError, match=message):
            v1.TFLiteConverter.from_frozen_graph(path, *arrays, input_shapes=shapes)
    # A variable that isn't needed has no value either, and needs none.
    assert v1.TFLiteConverter.from_frozen_graph(path, {"x"}, {"z"}, {"x": (3, 2)}).convert()


def _rows() -> list[Any]:
    return [
        pytest.param(rows, row.name, id=f"{version}-{row.name}")
        for version, rows in (("v2", ROWS), ("v1", V1_ROWS))
        for row in attributes.targeted(rows)
    ]


@pytest.mark.parametrize(("rows", "name"), _rows())
def test_odd_values_are_refused_or_taken(rows: Sequence[OfficialAttribute], name: str) -> None:
    every = attributes.targeted(rows)
    defaults = {row.name: row.default for row in every}
    samples = {"optimizations": DEFAULT, "representative_dataset": lambda: [[1.0]]}
    for given in ({}, samples):
        for value in ODD:
            values = {**defaults, **given, name: value}
            try:
                mapped = attributes.mapped(every, values)
                assert (origin(values, {}) is None) is bool(values["exclude_conversion_metadata"])
                if "quantize" in mapped.arguments:
                    mapped.arguments["quantize"].check()
            except ConversionError as problem:
                assert all(each.hint for each in problem.diagnostics)  # noqa: PT017
