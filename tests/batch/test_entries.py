"""The models of a batch: patterns, lists and manifests, and the places of results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tfconvert.batch.entries import Entry, to_entries
from tfconvert.batch.models_file import read_list, read_models
from tfconvert.schema.diagnostics import ConversionError


def names(entries: list[Entry]) -> dict[str, str]:
    return {entry.name: entry.output for entry in entries}


@pytest.mark.parametrize(
    ("models", "template", "expected"),
    [
        (["a/m.pb"], "{name}.tflite", {"m": "m.tflite"}),
        (["a/net/"], "out/{name}.tflite", {"net": "out/net.tflite"}),
        (["a/net/saved_model"], "{name}.tflite", {"net": "net.tflite"}),
        (["a/net.v2/1"], "{name}.tflite", {"net.v2": "net.v2.tflite"}),
        (["a/x.pb", "b/x.pb"], "{parent}/{name}.tflite", {"a/x.pb": "a/x.tflite", "b/x.pb": "b/x.tflite"}),
        (["x.pb", "y.pb"], "{number:03}.tflite", {"x": "001.tflite", "y": "002.tflite"}),
        (["s3://bucket/models/x.pb"], "s3://out/{name}.tflite", {"x": "s3://out/x.tflite"}),
    ],
)
def test_results_have_places(models: list[str], template: str, expected: dict[str, str]) -> None:
    assert names(to_entries([{"model": model} for model in models], template, {})) == expected


def test_patterns_are_expanded_in_order(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        (tmp_path / name / "saved_model").mkdir(parents=True)
    entries = to_entries([{"model": f"{tmp_path}/*/saved_model"}], "{name}.tflite", {"verify": True})
    assert [entry.name for entry in entries] == ["a", "b", "c"]
    assert entries[0].settings == {"verify": True}


@pytest.mark.parametrize(
    ("models", "template", "message"),
    [
        ([], "{name}", "there are no models to convert"),
        (["/nowhere/*.pb"], "{name}", "nothing fits '/nowhere/"),
        (["a.pb", "b/a.pb"], "{name}.tflite", r"several results would be a\.tflite"),
        (["a.pb", "b.pb"], "x.tflite", "several results would be x"),
        (["a.pb"], "{nam}.tflite", r"has \{nam\}\n.*known are: name, parent, number"),
        (["a.pb"], "{name.x}.tflite", "has {name.x}"),
        (["a.pb"], "{name", "can't be filled in"),
        (["a.pb"], "{number:q}", "can't be filled in"),
    ],
)
def test_mistakes_are_told(models: list[str], template: str, message: str) -> None:
    with pytest.raises(ConversionError, match=message) as caught:
        to_entries([{"model": model} for model in models], template, {})
    assert caught.value.code == "bad-config"


def test_lists_have_comments_and_their_own_folder(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("# all of them\n\nx.pb  # the first\n/abs/y.pb\ns3://bucket/z.pb\n")
    found = [each["model"] for each in read_list(str(tmp_path / "list.txt"))]
    assert found == [str(tmp_path / "x.pb"), "/abs/y.pb", "s3://bucket/z.pb"]


MANIFEST = """
output: out/{name}.tflite
settings: {verify: true}
models:
  - x.pb
  - model: y.pb
    name: small
    output: s3://bucket/small.tflite
    settings: {quantize: dynamic, verify: false}
"""

TOML = """
output = "out/{name}.tflite"
settings.verify = true

[[models]]
model = "x.pb"

[[models]]
model = "y.pb"
name = "small"
output = "s3://bucket/small.tflite"
settings = {quantize = "dynamic", verify = false}
"""


def test_manifests_have_settings_of_all_and_of_each(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(MANIFEST)
    first, second = to_entries(read_models(str(path)), "unused", {"allow_flex": True})
    where = f"{path}:5: model 1 (x.pb)"
    settings = {"allow_flex": True, "verify": True}
    output = str(tmp_path / "out/x.tflite")
    assert first == Entry("x", str(tmp_path / "x.pb"), output, settings, directory=str(tmp_path), where=where)
    assert second.name == "small"
    assert second.output == "s3://bucket/small.tflite"
    assert second.settings == {"allow_flex": True, "quantize": "dynamic", "verify": False}
    assert second.where == f"{path}:6: model 2 (small)"
    import yaml

    (tmp_path / "models.json").write_text(json.dumps(yaml.safe_load(MANIFEST)))
    (tmp_path / "models.toml").write_text(TOML)
    for name, place in (("models.json", ""), ("models.toml", ":5")):
        other = str(tmp_path / name)
        same, small = to_entries(read_models(other), "", {"allow_flex": True})
        assert same == first._replace(where=f"{other}{place}: model 1 (x.pb)")
        assert small._replace(where="") == second._replace(where="")


def test_a_string_is_a_list_of_one(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(
        "models: [{model: x.pb, settings: {outputs: y, quantize: {mode: int8, samples: x.npy}, order: official}}]"
    )
    (entry,) = to_entries(read_models(str(path)), None, {})
    assert entry.settings == {"outputs": ["y"], "quantize": {"mode": "int8", "samples": ["x.npy"]}, "order": "official"}


def test_other_keys_have_defaults_and_paths_beside_the_file(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.write_text("{cache_dir: cache, report: 'pages/{name}.html', models: [x.pb, {model: y.pb, cache_dir: /c}]}")
    first, second = to_entries(read_models(str(path)), None, {})
    assert first.extras == {"cache_dir": str(tmp_path / "cache"), "report": str(tmp_path / "pages/x.html")}
    assert second.extras == {"cache_dir": "/c", "report": str(tmp_path / "pages/y.html")}
    inside, _ = to_entries(read_models(str(path), directory=""), None, {})
    assert (inside.model, inside.extras["report"], inside.directory) == ("x.pb", "pages/x.html", "")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "lists no models"),
        ("models: x", "lists no models"),
        ("[", "while parsing"),
        ("models: [{name: x}]", "model 1 has no string 'model'"),
        ("models: [x, {model: y, outptu: z}]", r"models.yaml:1: model 2 \(y\): 'outptu' is not known\n.*'output'"),
        ("models: [{model: y, settings: [1]}]", r"model 1 \(y\): 'settings' can't be \[1\]"),
        ("models: [{model: y, settings: {quantise: dynamic}}]", r"model 1 \(y\): the setting 'quantise' is not known"),
        ("settings: {quantise: 1}\nmodels: [x]", "models.yaml: the setting 'quantise' is not known"),
        ("models: [x, {model: y, quantize: int8}]", "put 'quantize' into 'settings'"),
        ("x", "lists no models"),
        ("{modles: [], models: []}", "'modles' is not known"),
        ("!!python/object/apply:os.system [ls]", "could not determine a constructor"),
    ],
)
def test_wrong_manifests_are_refused(tmp_path: Path, content: Any, message: str) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(content)
    with pytest.raises(ConversionError, match=message) as caught:
        read_models(str(path))
    assert caught.value.code == "bad-config"


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    (tmp_path / "bytes.json").write_bytes(b"\xff")
    for name in ("deep.json", "deep.yaml"):
        (tmp_path / name).write_text("[" * 100_000)
    (tmp_path / "deep.toml").write_text(f"x = {'[' * 100_000}")
    for name in ("none.yaml", "bytes.json", "deep.json", "deep.toml", "deep.yaml"):
        with pytest.raises(ConversionError) as caught:
            read_models(str(tmp_path / name))
        assert caught.value.code == "bad-config"
