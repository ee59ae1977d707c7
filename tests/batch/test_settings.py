"""Settings as data are those of `tfconvert.convert`, and checked before anything is done with them."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any

import pytest

import tfconvert
from tfconvert.batch.settings import IREE, QUANTIZE, REFUSED, SETTINGS, check_settings, to_travel
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.settings.options import Options

jsonschema = pytest.importorskip("jsonschema")

GOOD: list[dict[str, Any]] = [
    {},
    {"signatures": ["serve"], "batch": 3, "recurrent": "loop"},
    {"input_shapes": {"x": [1, None, -1]}, "rename": {"x": "y"}},
    {"quantize": "dynamic", "verify": True, "limits": {"operations": 10}},
    {"verify": {"min_snr": 20, "min_agreement": 0.9, "compare_layers": True, "search_seconds": 0.5, "data": ["x.npz"]}},
    {"quantize": {"mode": "int8", "io": ["int8", "float32"], "per_channel": "not-dense", "weights": 8}},
]
BAD: list[tuple[dict[str, Any], str]] = [
    ({"quantise": "dynamic"}, "'quantise' is not known\n.*did you mean 'quantize'"),
    ({"nonsense": 1}, "'nonsense' is not known\n.*known are: inputs"),
    ({"batch": True}, "'batch' can't be True"),
    ({"limits": {"memory": 1}}, "'limits' can't be"),
    ({"batch": 0}, "'batch' can't be 0"),
    ({"signatures": "serve"}, "'signatures' can't be 'serve'"),
    ({"input_shapes": {"x": [1.5]}}, "'input_shapes' can't be"),
    ({"input_shapes": {"x": [1] * 33}}, "'input_shapes' can't be"),
    ({"input_shapes": {"x": [1 << 62]}}, "'input_shapes' can't be"),
    ({"recurrent": "fast"}, "'recurrent' can't be 'fast'"),
    ({"quantize": {}}, "quantize: 'mode' is missing"),
    ({"quantize": {"mode": "int8", "weights": True}}, "quantize: 'weights' can't be True"),
    ({"quantize": {"mode": "int8", "io": ["int8"]}}, "'io' can't be"),
    ({"verify": "yes"}, "'verify' can't be 'yes'"),
    ({"verify": {"min_snr": "20"}}, "verify: 'min_snr' can't be '20'"),
    ({"verify": {"min_agreement": 90}}, "verify: 'min_agreement' can't be 90"),
    ({"verify": {"minimum": 90}}, "verify: the setting 'minimum' is not known"),
    ({"order": "x" * 1000}, r"\.\.\.$"),
]


@pytest.mark.parametrize("settings", GOOD, ids=str)
def test_settings_are_taken(settings: dict[str, Any]) -> None:
    check_settings(settings)
    jsonschema.validate(settings, _schema())


@pytest.mark.parametrize(("settings", "message"), BAD, ids=[str(each)[:40] for each, _ in BAD])
def test_others_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConversionError, match=message) as caught:
        check_settings(settings, "here")
    assert caught.value.code == "bad-config"
    assert caught.value.diagnostics[0].message.startswith("here: ")


def test_files_are_named_only_where_that_is_allowed() -> None:
    for name in ("patterns", "composites", "asset_root", "verify_data"):
        value = "rules.py" if name == "asset_root" else ["rules.py"]
        check_settings({name: value})
        with pytest.raises(ConversionError, match="names files, which is not allowed here"):
            check_settings({name: value}, allow_paths=False)
    with pytest.raises(ConversionError, match="verify: 'data' names files"):
        check_settings({"verify": {"data": ["/etc"]}}, allow_paths=False)
    with pytest.raises(ConversionError, match="'samples' names files"):
        check_settings({"quantize": {"mode": "int8", "samples": ["/etc"]}}, allow_paths=False)
    metadata = {"outputs": {"y": {"labels": ["cat", "dog"]}}}
    check_settings({"metadata": metadata}, allow_paths=False)
    metadata["outputs"]["y"]["labels"] = "/etc/passwd"  # type: ignore[assignment]
    check_settings({"metadata": metadata})
    with pytest.raises(ConversionError, match="names files of labels"):
        check_settings({"metadata": metadata}, allow_paths=False)


def test_they_are_all_of_the_function() -> None:
    keywords = set(inspect.signature(tfconvert.convert).parameters)
    assert set(SETTINGS) == keywords - {"model", "checkpoint"}
    assert set(QUANTIZE) == {field.name for field in fields(tfconvert.Quantize)} - {"progress"}
    assert set(IREE) == set(tfconvert.IreeOptions._fields)


@pytest.mark.parametrize("name", sorted({*Source._fields, *Options._fields} - {"model"}))
def test_every_setting_travels_or_is_refused_by_name(name: str) -> None:
    """A new setting belongs in one of the tables `SETTINGS` and `REFUSED`."""
    assert (name in SETTINGS) != (name in REFUSED)
    value = object()
    source, options = Source("model"), Options()
    if name in Source._fields:
        source = source._replace(**{name: value})  # type: ignore[arg-type]
    else:
        options = options._replace(**{name: value})  # type: ignore[arg-type]
    if name in SETTINGS:
        assert to_travel(source, options) == {name: value}
        return
    with pytest.raises(ConversionError, match=f"{name} can't be sent to a server: {REFUSED[name][:20]}") as caught:
        to_travel(source, options)
    assert caught.value.code == "wrong-option"
    with pytest.raises(ConversionError, match=f"'{name}' can't be set here: {REFUSED[name][:20]}"):
        check_settings({name: "x"})


def test_settings_of_iree_from_strangers() -> None:
    check_settings({"iree": {"backend": "vmvx", "flags": ["--x"], "cpu": "host"}})
    with pytest.raises(ConversionError, match="'flags' names files"):
        check_settings({"iree": {"flags": ["--iree-x=/etc"]}}, allow_paths=False)
    with pytest.raises(ConversionError, match="'cpu' can't be 'host' here"):
        check_settings({"iree": {"cpu": "host"}}, allow_paths=False)
    with pytest.raises(ConversionError, match="iree: 'backend' can't be 'tpu'"):
        check_settings({"iree": {"backend": "tpu"}})


def _schema() -> dict[str, Any]:
    properties = {name: setting.schema for name, setting in SETTINGS.items()}
    return {"type": "object", "properties": properties, "additionalProperties": False}
