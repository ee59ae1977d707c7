"""Whatever is passed to `tfconvert.convert`, it converts or raises a `ConversionError` that names the argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import tfconvert
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.settings.options import Options
from tfconvert.settings.selection import Selection
from tfconvert.settings.setting import Setting, check_fields, settings_of
from tfconvert.settings.targets import CLASSES, Iree, LiteRT, StableHLO

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
    "text": {"asset_root", "checkpoint", "metadata", "op_defs", "signatures", "target_runtime", "tune", "data", "cpu"},
    "list": {"composites", "patterns", "data"},
    "mapping": {"metadata", "data", "origin"},
    "object": set(),
}
"""The settings for which a value is of the right kind, though it may be wrong for the model."""

# With any arguments.
CONVERT: Any = tfconvert.convert
PARAMETERS = sorted(set(inspect.signature(tfconvert.convert).parameters) - {"model"})
ROWS: Mapping[str, Setting] = {**settings_of(Selection), **settings_of(Options)}
HOLDERS: tuple[Any, ...] = (tfconvert.Source, LiteRT, StableHLO, Iree, tfconvert.Verify)


def _rows(cls: Any) -> Mapping[str, Setting]:
    return settings_of(Selection if cls is tfconvert.Source else cls)


FIELDS = [(cls, name) for cls in HOLDERS for name in _rows(cls) if name not in PARAMETERS]
"""The settings that are fields of arguments."""


def _converted(graph: pb.GraphDef, cls: Any, name: str, value: Any) -> tfconvert.Model:
    """Returns what a graph becomes with a value of a field of an argument."""
    if cls is tfconvert.Source:
        return tfconvert.convert(tfconvert.Source(graph, **{name: value}))
    if cls is tfconvert.Verify:
        return tfconvert.convert(graph, verify=tfconvert.Verify(**{name: value}))
    return tfconvert.convert(graph, target=cls(**{name: value}))


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
        if name in ROWS and not ROWS[name].fits(value) and not (name == "signatures" and kind == "text"):
            assert first.code == "wrong-option"
            assert first.message.startswith(f"{name} can't be ")
            assert ROWS[name].expected in first.hint
    else:
        fits = name not in ROWS or name == "verify" or ROWS[name].fits(value)
        assert fits or value is None or (name, kind) == ("signatures", "text")


@pytest.mark.parametrize(("cls", "name"), FIELDS)
def test_a_field_as_an_argument_raises_an_error_that_names_its_place(cls: Any, name: str) -> None:
    with pytest.raises(ConversionError) as refused:
        CONVERT("model.pb", **{name: 1})
    assert refused.value.code == "wrong-option"
    assert f"{name}=...)" in refused.value.diagnostics[0].hint


def test_an_argument_that_is_no_setting_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        CONVERT("model.pb", colour=1)


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize(("cls", "name"), FIELDS)
def test_no_value_of_a_field_raises_anything_else(graph: pb.GraphDef, cls: Any, name: str, kind: str) -> None:
    row, value = _rows(cls)[name], VALUES[kind]
    try:
        _converted(graph, cls, name, value)
    except ConversionError as problem:
        first = problem.diagnostics[0]
        assert first.code != "internal-error"
        if not row.fits(value) and value is not None:
            assert first.code == "wrong-option"
            assert f"{name} can't be " in first.message
            assert row.expected in first.hint
    else:
        assert row.fits(value) or value is None


def _check_refused(convert: Callable[[Any], Any], name: str, kind: str) -> None:
    """Asserts that a conversion refuses a value of a wrong kind, and names the setting."""
    with pytest.raises(ConversionError) as refused:
        pytest.fail(f"{name} accepts {convert(VALUES[kind])}: if it should, add it to FITTING[{kind!r}]")
    assert refused.value.code == "wrong-option"
    assert name in refused.value.diagnostics[0].message


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
    _check_refused(lambda value: tfconvert.convert(graph, **{name: value}), name, kind)


@pytest.mark.parametrize(
    ("cls", "name", "kind"),
    [
        (cls, name, kind)
        for kind in ("integer", "text", "list", "mapping", "object")
        for cls, name in FIELDS
        if name not in FITTING[kind]
        and (kind != "integer" or name not in ("min_snr", "search_seconds", "seconds"))  # Numbers of Verify.
    ],
)
def test_fields_of_a_wrong_kind_are_refused_by_name(graph: pb.GraphDef, cls: Any, name: str, kind: str) -> None:
    _check_refused(lambda value: _converted(graph, cls, name, value), name, kind)


def test_a_value_is_shown_and_what_is_expected(graph: pb.GraphDef) -> None:
    with pytest.raises(ConversionError) as refused:
        tfconvert.convert(graph, input_shapes=(1, 224, 224, 3))  # type: ignore[arg-type]
    (problem,) = refused.value.diagnostics
    assert problem.message == "input_shapes can't be (1, 224, 224, 3)"
    assert problem.hint == (
        'use a mapping from names of inputs to shapes, as in input_shapes={"image": [1, 224, 224, 3]}'
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
        ("inputs", {"x"}),
        ("input_shapes", {"x": "3"}),
        ("input_shapes", {"x": np.array([3])}),
        ("input_shapes", {"x": [1.5]}),
        ("input_shapes", {1: [3]}),
        ("rename", {"x": 1}),
        ("input_shapes", {"x": {"3": 3}}),
        ("limits", tfconvert.Limits(operations=-1)),
        ("limits", tfconvert.Limits(run_seconds="1")),  # type: ignore[arg-type]
        ("target", tfconvert.Iree(cpu=5)),  # type: ignore[arg-type]
        ("target", tfconvert.Iree(flags="--x")),
        ("target", tfconvert.Iree(keep_mlir="yes")),  # type: ignore[arg-type]
        ("target", tfconvert.Iree(backend=["cuda"])),  # type: ignore[arg-type]
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


@pytest.mark.parametrize(("name", "value"), [("tags", "serve"), ("order", "Official")])
def test_near_misses_of_sources(graph: pb.GraphDef, name: str, value: Any) -> None:
    with pytest.raises(ConversionError, match=f"^{name} can't be ") as refused:
        tfconvert.convert(tfconvert.Source(graph, **{name: value}))
    assert refused.value.code == "wrong-option"


def test_nothing_is_given_twice(graph: pb.GraphDef) -> None:
    with pytest.raises(ConversionError, match="inputs is given twice") as refused:
        tfconvert.convert(tfconvert.Source(graph, inputs=["x"]), inputs=["x"])
    assert refused.value.code == "wrong-option"
    assert tfconvert.convert(tfconvert.Source(graph, inputs=["x"]), outputs=["y"]).report.size


def test_every_setting_has_a_row() -> None:
    internal = {"model", "args", "prepared", "is_functional", "is_raw", "results", "tensors", "verify_each", "target"}
    found = {field.name for cls in (tfconvert.Source, Options) for field in fields(cls)}
    assert set(ROWS) == found - internal
    assert set(PARAMETERS) - {"args", "target", "quantize", "samples"} <= set(ROWS)
    assert set(settings_of(Options)) <= set(PARAMETERS), "a setting of Options is an argument of tfconvert.convert, too"
    assert len(PARAMETERS) <= 15
    for cls in CLASSES.values():
        assert list(map(str, _rows(cls))) == [field.name for field in fields(cls)]
    check_fields(Source("model"), cls=Selection)
    Options().check()
    Options(target=tfconvert.Iree()).check()


def test_classes_list_their_settings() -> None:
    for cls in (tfconvert.LiteRT, tfconvert.StableHLO, tfconvert.Iree, tfconvert.Quantize, tfconvert.Verify):
        assert all(f"\n    {name}: {row.text}" in str(cls.__doc__) for name, row in _rows(cls).items())
