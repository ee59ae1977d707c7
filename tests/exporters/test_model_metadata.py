"""Metadata of inputs and outputs: what is stored is read back, and the file still runs."""

from __future__ import annotations

import io
import json
import re
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tfconvert
from tests.importers.tflite.written_files import Tree, build_file
from tests.support.litert import RunTFLite
from tfconvert.cli.main import main
from tfconvert.exporters.tflite.model_metadata import MODEL_METADATA, archive
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.importers.tflite.outline import outline
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tfl_file
from tfconvert.schema.tflite.associated_files import moved
from tfconvert.schema.tflite.reader import TFLITE_IDENTIFIER, read, read_model
from tfconvert.schema.tflite.tables import TFLITE
from tfconvert.schema.tflite.writer import encode
from tfconvert.tools.diff import changes

LABELS = [f"digit {number}" for number in range(10)]
TWO = """
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xi64>) attributes {
  tf.entry_function = {inputs = "a,b", outputs = "sum,best"}
} {
  %axis = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
  %0 = "tf.AddV2"(%a, %b) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "tf.ArgMax"(%a, %axis) : (tensor<2x3xf32>, tensor<i32>) -> tensor<2xi64>
  func.return %0, %1 : tensor<2x3xf32>, tensor<2xi64>
}
"""


def stored(content: bytes) -> dict[str, Any]:
    """Returns the metadata of a file."""
    model = read_model(content).tree()
    entries = {entry["name"]: model["buffers"][entry["buffer"]]["data"] for entry in model["metadata"]}
    data = bytes(entries["TFLITE_METADATA"])
    assert data[4:8] == b"M001"
    return read(MODEL_METADATA, data).tree()


def ports(content: bytes) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Returns the metadata of the inputs and outputs of a file's first subgraph by name."""
    subgraph = stored(content)["subgraph_metadata"][0]
    inputs, outputs = subgraph["input_tensor_metadata"], subgraph["output_tensor_metadata"]
    return {each["name"]: each for each in inputs}, {each["name"]: each for each in outputs}


def archived(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as files:
        assert files.testzip() is None
        return {name: files.read(name) for name in files.namelist()}


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.txt"
    path.write_text("".join(f"{label}\n" for label in LABELS), "utf-8")
    return path


@pytest.fixture
def two(tmp_path: Path) -> Path:
    path = tmp_path / "two.mlir"
    path.write_text(TWO, "utf-8")
    return path


def test_labels_are_in_the_file_which_runs_as_before(
    digits_model: Path, labels: Path, tmp_path: Path, run_tflite: RunTFLite
) -> None:
    bare, model = (
        tfconvert.convert(digits_model),
        tfconvert.convert(digits_model, target=tfconvert.LiteRT(metadata=labels)),
    )
    content = bytes(model)
    _, outputs = ports(content)
    assert outputs["output_0"]["associated_files"] == [{"name": "labels.txt", "type": 2}]
    assert archived(content) == {"labels.txt": labels.read_bytes()}
    pixels = np.random.default_rng(1).random((3, 8, 8, 1), np.float32)
    (got,), (expected,) = run_tflite(content, [pixels]), run_tflite(bytes(bare), [pixels])
    np.testing.assert_array_equal(got, expected)
    model.save(tmp_path / "model.tflite")
    assert (tmp_path / "model.tflite").read_bytes() == content
    assert len(model) == len(content) == model.report.size
    listed = subprocess.run(["unzip", "-l", "model.tflite"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "labels.txt" in listed.stdout
    assert listed.stderr == ""


def test_the_command_stores_labels_and_normalization(digits_model: Path, labels: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tfconvert", str(digits_model), "-q", "--verify", "-o", str(tmp_path / "m.tflite")]
    flags = ["--metadata", f"output_0={labels}", "--metadata-normalization", "0,16"]
    subprocess.run([*command, *flags], check=True, timeout=120)
    content = (tmp_path / "m.tflite").read_bytes()
    inputs, outputs = ports(content)
    assert inputs["pixels"]["process_units"] == [{"options": ("NormalizationOptions", {"mean": (0,), "std": (16,)})}]
    image = {"color_space": 2, "default_size": {"height": 8, "width": 8}}
    assert inputs["pixels"]["content"] == {"content_properties": ("ImageProperties", image)}
    assert outputs["output_0"]["associated_files"][0]["name"] == "labels.txt"


def test_a_json_file_holds_everything(digits_model: Path, tmp_path: Path) -> None:
    (tmp_path / "metadata.JSON").write_text('{"name": "digits", "inputs": {"pixels": {"mean": 0, "std": 16}}}')
    command = [str(digits_model), "-q", "-o", str(tmp_path / "m.tflite"), "--metadata", str(tmp_path / "metadata.JSON")]
    assert CliRunner().invoke(main, command).exit_code == 0
    assert stored((tmp_path / "m.tflite").read_bytes())["name"] == "digits"
    for more, reason in (
        (["--metadata", "labels.txt"], "holds everything"),
        (["--metadata-normalization", "0,16"], "holds everything"),
        (["--metadata-normalization", "pixels=0"], "'pixels=0' is not [INPUT=]MEAN,STD"),
    ):
        refused = CliRunner().invoke(main, [*command, *more])
        assert (refused.exit_code, reason in " ".join(refused.output.split())) == (2, True), refused.output


def test_the_page_is_true(digits_model: Path, root: Path, labels: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"```(\w*)\n(.*?)```", (root / "docs" / "metadata.md").read_text("utf-8"), re.DOTALL)
    (text,) = (block for language, block in blocks if language == "json")
    (tmp_path / "metadata.json").write_text(text, "utf-8")
    content = bytes(tfconvert.convert(digits_model, target=tfconvert.LiteRT(metadata=tmp_path / "metadata.json")))
    said = json.loads(text)
    found = stored(content)
    assert {key: found[key] for key in ("name", "description", "version", "author", "license")} == {
        key: value for key, value in said.items() if isinstance(value, str)
    }
    inputs, outputs = ports(content)
    assert inputs["pixels"]["description"] == said["inputs"]["pixels"]["description"]
    assert inputs["pixels"]["stats"] == {"max": (1,), "min": (0,)}
    assert outputs["output_0"]["description"] == said["outputs"]["output_0"]["description"]
    assert archived(content) == {"labels.txt": labels.read_bytes()}
    (shell,) = (block for language, block in blocks if not language)
    (tmp_path / "examples").symlink_to(root / "examples")
    program = f'set -e; tfconvert() {{ {sys.executable} -m tfconvert "$@"; }}\n{shell}'
    environment = {"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["bash", "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    (python,) = (block for language, block in blocks if language == "python")
    subprocess.run([sys.executable, "-c", python], cwd=tmp_path, env=environment, check=True, timeout=120)
    assert "output_0_labels.txt" in archived((tmp_path / "digits.tflite").read_bytes())


def test_each_output_has_its_own(two: Path, labels: Path) -> None:
    metadata = {
        "inputs": {"b": {"min": [0, 1, 2]}},
        "outputs": {"sum": {"labels": ["x", "y", "z"]}, "best": {"labels": labels}},
    }
    content = bytes(tfconvert.convert(two, target=tfconvert.LiteRT(metadata=metadata)))
    inputs, outputs = ports(content)
    assert "stats" not in inputs["a"]
    assert inputs["b"]["stats"] == {"min": (0, 1, 2)}
    # Numbers of classes may be of more classes than an axis is long.
    assert outputs["best"]["associated_files"] == [{"name": "labels.txt", "type": 3}]
    assert outputs["sum"]["associated_files"] == [{"name": "sum_labels.txt", "type": 2}]
    assert archived(content)["sum_labels.txt"] == b"x\ny\nz\n"


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"outputs": {"": {"labels": ["a"]}}}, "2 outputs.*\n.*sum, best"),
        ({"outputs": {"nope": {}}}, "no output 'nope'.*\n.*sum, best"),
        ({"outputs": {"sum": {"labels": ["a"]}}}, "has 1 labels, and the output 'sum' has 3 scores"),
        ({"outputs": {"sum": {"labels": [1]}}}, "labels must be"),
        ({"outputs": {"sum": 3}}, "outputs.sum must be a table"),
        ({"outputs": []}, "outputs must be a table"),
        ({"inputs": {"a": {"mean": 1}}}, "both mean and std"),
        ({"inputs": {"a": {"mean": 1, "std": 0}}}, "std must not be 0"),
        ({"inputs": {"a": {"min": "low"}}}, "must be a number"),
        ({"inputs": {"a": {"min": float("nan")}}}, "must be a number"),
        ({"inputs": {"a": {"content": "sound"}}}, "can't be 'sound'"),
        ({"inputs": {"a": {"colour": "red"}}}, "no key 'colour'"),
        ({"title": "x"}, "no key 'title'"),
        ({"name": 1}, "name must be a string"),
    ],
)
def test_invalid_metadata_is_reported(two: Path, metadata: Any, message: str) -> None:
    with pytest.raises(ConversionError, match=message) as caught:
        tfconvert.convert(two, target=tfconvert.LiteRT(metadata=metadata))
    assert caught.value.code == "bad-metadata"


@pytest.mark.parametrize("text", ["{", "[]", '{"name": "\\ud800"', "[" * 100_000])
def test_a_file_that_is_not_metadata_is_refused(two: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "m.json").write_text(text, "utf-8")
    with pytest.raises(ConversionError, match="metadata"):
        tfconvert.convert(two, target=tfconvert.LiteRT(metadata=tmp_path / "m.json"))


def test_files_of_one_name_must_be_one(two: Path, tmp_path: Path) -> None:
    for folder, text in (("x", "1\n2\n3\n"), ("y", "3\n2\n1\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "l.txt").write_text(text, "utf-8")
    metadata = {name: {"labels": tmp_path / folder / "l.txt"} for name, folder in (("sum", "x"), ("best", "y"))}
    with pytest.raises(ConversionError, match=r"two different files of labels are called l\.txt"):
        tfconvert.convert(two, target=tfconvert.LiteRT(metadata={"outputs": metadata}))


def test_equal_archives_are_equal_bytes_and_in_their_place() -> None:
    files = {"a": b"1", "b": b"2" * 1000}
    assert archive(files) == archive(files)
    content = b"\xff" * 1000 + moved(archive(files), 1000)
    assert archived(content) == files
    with zipfile.ZipFile(io.BytesIO(content)) as found:
        assert found.getinfo("a").header_offset == 1000


def _check_offsets(content: bytes) -> None:
    """Asserts that the archive's offsets count from the start of the file, as strict readers require."""
    end = content.rfind(b"PK\5\6")
    count, length, offset = struct.unpack_from("<HLL", content, end + 10)
    assert offset + length == end
    with zipfile.ZipFile(io.BytesIO(content)) as files:
        assert len(files.namelist()) == count
        for entry in files.infolist():
            assert content[entry.header_offset : entry.header_offset + 4] == b"PK\3\4"


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize(
    "settings",
    [{}, {"quantize": "dynamic"}, {"target": tfconvert.LiteRT(accelerator=["gpu"])}],
    ids=["plain", "dynamic", "gpu"],
)
def test_an_archive_of_a_file_is_kept(
    digits_model: Path, tmp_path: Path, settings: dict[str, Any], relative: bool, compressed: bool
) -> None:
    path, files = tmp_path / "digits.tflite", {"labels.txt": b"zero\n" * 100, "vocabulary.txt": b"one\n"}
    path.write_bytes(bytes(tfconvert.convert(digits_model)))
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    stream = io.BytesIO(b"" if relative else path.read_bytes())
    with zipfile.ZipFile(stream, "a", method) as target:
        target.comment = b"by hand"
        for name, content in files.items():
            target.writestr(name, content)
    path.write_bytes((path.read_bytes() if relative else b"") + stream.getvalue())
    result = bytes(tfconvert.convert(path, **settings))
    assert archived(result) == files
    _check_offsets(result)
    assert not list(changes(outline(path.read_bytes()), outline(bytes(tfconvert.convert(path)))))
    bare = bytes(tfconvert.convert(digits_model))
    assert {change.section for change in changes(outline(path.read_bytes()), outline(bare))} == {"files"}


def test_new_metadata_of_a_file_keeps_the_rest(two: Path, tmp_path: Path) -> None:
    described = {"sum": {"labels": ["x", "y", "z"], "description": "the sum"}, "best": {"labels": ["a", "b"]}}
    path = tmp_path / "two.tflite"
    model = tfconvert.convert(two, target=tfconvert.LiteRT(metadata={"author": "me", "outputs": described}))
    path.write_bytes(bytes(model))
    again = {"name": "second", "outputs": {"sum": {"labels": ["1", "2", "3"]}}}
    result = bytes(tfconvert.convert(path, target=tfconvert.LiteRT(metadata=again)))
    assert archived(result) == {"sum_labels.txt": b"1\n2\n3\n", "best_labels.txt": b"a\nb\n"}
    _check_offsets(result)
    assert (stored(result)["author"], stored(result)["name"]) == ("me", "second")
    outputs = ports(result)[1]
    assert outputs["sum"]["description"] == "the sum"
    assert [outputs[name]["associated_files"][0]["name"] for name in ("sum", "best")] == [
        "sum_labels.txt",
        "best_labels.txt",
    ]


def _file(tensors: list[Tree], buffers: list[Tree]) -> bytes:
    tree = read_model(build_file(tensors, [], [])).tree()
    return bytes(encode(TFLITE, {**tree, "buffers": buffers}, TFLITE_IDENTIFIER).data)


def test_a_constant_that_is_an_archive_stays_one() -> None:
    inner = archive({"a.txt": b"text"})
    tensors = [{}, {"shape": (len(inner),), "type": "UINT8", "buffer": 1}]

    def content(start: int) -> bytes:
        buffers = [{}, {"offset": start, "size": len(inner)}]
        return _file(tensors, buffers) + inner

    whole = content(len(content(1000)) - len(inner))
    assert tfl_file.ARCHIVE not in import_tflite(whole).attributes
    assert tfl_file.ARCHIVE in import_tflite(whole + inner).attributes
