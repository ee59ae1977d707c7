"""Settings as data are those of conversions, and checked before anything is done with them."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import tfconvert
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.settings.data import REFUSED, SETTINGS, check_data, from_data, to_data, uncached
from tfconvert.settings.options import Options
from tfconvert.settings.selection import Selection
from tfconvert.settings.setting import Setting, settings_of
from tfconvert.settings.targets import Iree, LiteRT, StableHLO

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
    ({"target": {"kind": "iree"}}, r"hint: use one of litert, stablehlo, iree"),
    ({"order": "x" * 1000}, r"x\.\.\.\n  hint: use one of written"),
]


@pytest.mark.parametrize("settings", GOOD, ids=str)
def test_settings_are_taken(settings: dict[str, Any]) -> None:
    check_data(settings)
    jsonschema.validate(settings, _schema())


@pytest.mark.parametrize(("settings", "message"), BAD, ids=[str(each)[:40] for each, _ in BAD])
def test_others_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConversionError, match=message) as caught:
        check_data(settings, "here")
    assert caught.value.code == "bad-config"
    assert caught.value.diagnostics[0].message.startswith("here: ")


def test_files_are_named_only_where_that_is_allowed() -> None:
    for name in ("patterns", "composites", "asset_root", "verify_data"):
        value = "rules.py" if name == "asset_root" else ["rules.py"]
        check_data({name: value})
        with pytest.raises(ConversionError, match="names files, which is not allowed here"):
            check_data({name: value}, allow_paths=False)
    check_data({"tune": "host"})
    with pytest.raises(ConversionError, match="'tune' can't be 'host' here: the server is not the device"):
        check_data({"tune": "host"}, allow_paths=False)
    with pytest.raises(ConversionError, match="'tune' names files"):
        check_data({"tune": "table.tsv"}, allow_paths=False)
    with pytest.raises(ConversionError, match="verify: 'data' names files"):
        check_data({"verify": {"data": ["/etc"]}}, allow_paths=False)
    with pytest.raises(ConversionError, match="'samples' names files"):
        check_data({"quantize": {"mode": "int8", "samples": ["/etc"]}}, allow_paths=False)
    tensor, tokenizer = (
        {"labels": ["cat", "dog"], "calibration": ["1,2,3", ""]},
        {"type": "bert", "vocabulary": ["[CLS]"]},
    )
    tables: dict[str, Any] = {"inputs": {"x": {}}, "outputs": {"y": tensor}, "tokenizer": tokenizer}
    check_data({"metadata": tables}, allow_paths=False)
    for changed in (
        {"outputs": {"y": {"labels": "/etc/passwd"}}},
        {"outputs": {"y": {"calibration": "/etc/passwd"}}},
        {"inputs": {"x": {"labels": "/etc/passwd"}}},
        {"tokenizer": {"type": "bert", "vocabulary": "/etc/passwd"}},
        {"tokenizer": {"type": "sentencepiece", "model": "/etc/passwd"}},
    ):
        check_data({"metadata": tables | changed})
        with pytest.raises(ConversionError, match="'metadata' names a file, '/etc/passwd'"):
            check_data({"metadata": tables | changed}, allow_paths=False)


SHORT = {"target", "iree", "verify_data", "compare_layers"}
"""Settings that are a target, or short for fields of `verify`."""

VALUES: dict[str, Any] = {"boolean": True, "string": "text", "array": ["text"], "integer": 3, "object": {"x": "y"}}

ROWS: list[tuple[Any, Setting]] = [
    (cls, row) for cls in (Selection, Options, LiteRT, StableHLO, Iree) for row in settings_of(cls).values()
]
NAMES = [f"{cls.__name__}.{row.name}" for cls, row in ROWS]


def test_they_are_all_of_the_classes() -> None:
    rows = [row.data for cls, row in ROWS if cls is not Iree]
    assert len(rows) == len(set(rows))
    assert set(rows) == {*SETTINGS, *REFUSED} - SHORT
    assert set(inspect.signature(tfconvert.convert).parameters) - {"model", "args", "samples"} <= set(SETTINGS)
    assert set(SETTINGS["quantize"].schema["oneOf"][1]["properties"]) == set(settings_of(tfconvert.Quantize))
    assert {field.name for field in fields(tfconvert.Quantize)} - set(settings_of(tfconvert.Quantize)) == {"progress"}
    assert set(SETTINGS["iree"].schema["properties"]) == {field.name for field in fields(tfconvert.Iree)}


def _value(row: Setting) -> Any:
    """Returns a value of a setting that is not its default."""
    special = {"verify": tfconvert.Verify(), "quantize": tfconvert.Quantize("int8"), "check_indices": False}
    special |= {"limits": tfconvert.Limits(operations=9), "input_shapes": {"x": [1]}, "origin": {"x": "y"}}
    special |= {"accelerator": ["gpu"], "on": ["gpu"]}
    choices = [each for each in row.schema.get("enum", ()) if each != row.default]
    return special.get(row.name, choices[0] if choices else VALUES.get(str(row.schema.get("type"))))


@pytest.mark.parametrize(("cls", "row"), ROWS, ids=NAMES)
def test_every_setting_travels_or_is_refused_by_name(cls: Any, row: Setting) -> None:
    given = {row.name: _value(row)}
    source = Source("model", **given) if cls is Selection else Source("model")
    options = Options(**given) if cls is Options else Options()
    if cls not in (Selection, Options):
        options = Options(target=cls(**given))
    if row.stays:
        with pytest.raises(ConversionError, match=f"{row.name} can't be sent to a server: {row.stays}") as caught:
            to_data(source, options)
        assert caught.value.code == "wrong-option"
        with pytest.raises(ConversionError, match=f"'{row.name}' can't be set here: {row.stays}"):
            check_data({row.data: "x"})
        return
    data = to_data(source, options)
    check_data(data)
    selection, again = from_data(data)
    assert Source("model", **selection) == source
    assert again == options
    assert row.data in (data.get("iree") or data)


@pytest.mark.parametrize(("name", "value"), [("is_raw", True), ("prepared", object())])
def test_what_the_package_sets_itself_does_not_travel(name: str, value: Any) -> None:
    source = Source("model")
    object.__setattr__(source, name, value)
    with pytest.raises(ConversionError, match=f"{name} can't be sent"):
        to_data(source, Options())
    with pytest.raises(ConversionError, match="verify_each can't be sent"):
        to_data(Source("model"), Options(verify_each=True))


@pytest.mark.parametrize("name", ["litert", "stablehlo", "iree"])
@pytest.mark.parametrize(("cls", "row"), ROWS, ids=NAMES)
def test_a_setting_of_another_target_is_refused_by_name(cls: Any, row: Setting, name: str) -> None:
    if cls in (Selection, Options) or cls.name == name or row.stays:
        return
    data = to_data(Source("model"), Options(target=cls(**{row.name: _value(row)})))
    own = "iree" if cls is Iree else row.data
    with pytest.raises(ConversionError, match=f"^{own}.* is a setting of {cls.__name__}, and the target is ") as caught:
        from_data({**data, "target": name})
    assert caught.value.code == "wrong-option"


def test_short_forms_are_those_of_verify() -> None:
    assert from_data({"verify_data": ["x.npz"]})[1].verify == tfconvert.Verify(["x.npz"])
    found = from_data({"compare_layers": True, "verify": {"min_snr": 3}})[1].verify
    assert found == tfconvert.Verify(min_snr=3, compare_layers=True)
    assert from_data({"verify": {}})[1].verify == tfconvert.Verify()
    assert from_data({"verify": False})[1].verify is None
    with pytest.raises(ConversionError, match="both given"):
        from_data({"verify": {"data": ["a"]}, "verify_data": ["b"]})


def test_settings_of_iree_from_strangers() -> None:
    check_data({"iree": {"backend": "vmvx", "flags": ["--x"], "cpu": "host"}})
    with pytest.raises(ConversionError, match="'flags' names files"):
        check_data({"iree": {"flags": ["--iree-x=/etc"]}}, allow_paths=False)
    with pytest.raises(ConversionError, match="'cpu' can't be 'host' here"):
        check_data({"iree": {"cpu": "host"}}, allow_paths=False)
    with pytest.raises(ConversionError, match="iree: 'backend' can't be 'tpu'"):
        check_data({"iree": {"backend": "tpu"}})


def _schema() -> dict[str, Any]:
    properties = {name: setting.schema for name, setting in SETTINGS.items()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def test_composites_of_our_own_name_no_files() -> None:
    check_data({"composites": ["odml"]}, allow_paths=False)
    with pytest.raises(ConversionError, match="names files"):
        check_data({"composites": ["odml", "fusions.py"]}, allow_paths=False)
    _, options = from_data({"composites": ["odml"]})
    assert uncached(Selection(), options) == ""
    _, options = from_data({"composites": ["odml", "fusions.py"]})
    assert "--composites" in uncached(Selection(), options)


def test_results_of_measured_times_are_not_cached(tmp_path: Path) -> None:
    table = tmp_path / "table.tsv"
    for tune, reason in (("host", "--tune"), (tmp_path, "--tune"), (table, "--tune")):
        assert reason in uncached(Selection(), Options(target=LiteRT(tune=tune)))
    table.write_text("")
    assert uncached(Selection(), Options(target=LiteRT(tune=table))) == ""
