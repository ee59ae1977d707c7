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
from tfconvert.converter.targets.litert.model_metadata import metadata_files
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
    text, *others = (block for language, block in blocks if language == "json")
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
    # The other one runs a program that is not ours: tests/rings/test_mediapipe.py.
    python = next(block for language, block in blocks if language == "python")
    subprocess.run([sys.executable, "-c", python], cwd=tmp_path, env=environment, check=True, timeout=120)
    assert "output_0_labels.txt" in archived((tmp_path / "digits.tflite").read_bytes())
    (tmp_path / "vocab.txt").write_text("".join(f"{each}\n" for each in BERT_VOCABULARY), "utf-8")
    labels.write_text("negative\npositive\n", "utf-8")
    for text, names, files in zip(
        others,
        ("input_word_ids,input_mask,input_type_ids", "text"),
        ({"labels.txt", "vocab.txt"}, {"labels.txt", "probability_calibration.txt"}),
        strict=True,
    ):
        (tmp_path / "metadata.json").write_text(text, "utf-8")
        content = _described(_text_model(tmp_path / "text.mlir", names), tmp_path / "metadata.json")
        assert archived(content).keys() == files


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
    with pytest.raises(ConversionError, match=r"two different files are called l\.txt"):
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


BERT_VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "bad", "film"]
WORDS = ["<PAD> 0", "<UNKNOWN> 1", "good 2", "bad 3"]
# A model of SentencePiece starts with its pieces.
PIECES = b"\n\x0e\n\x05<unk>\x15\0\0\0\0\x18\x02"
BERT = {"type": "bert", "vocabulary": BERT_VOCABULARY}
REGEX = {"type": "regex", "delimiters": r"[^\w']+", "vocabulary": WORDS}


def _text_model(path: Path, names: str, element: str = "i32") -> Path:
    """Writes a model of text inputs, which returns their sum as the score of two labels."""
    inputs = names.split(",")
    shape = f"tensor<1x8x{element}>"
    lines, last = [], "a0"
    for number in range(1, len(inputs)):
        lines.append(f'%s{number} = "tf.AddV2"(%{last}, %a{number}) : ({shape}, {shape}) -> {shape}')
        last = f"s{number}"
    path.write_text(
        f"""
func.func @main({", ".join(f"%a{number}: {shape}" for number in range(len(inputs)))}) -> tensor<1x2xf32> attributes {{
  tf.entry_function = {{inputs = "{names}", outputs = "probability"}}
}} {{
  {chr(10).join(lines)}
  %f = "tf.Cast"(%{last}) : ({shape}) -> tensor<1x8xf32>
  %start = "tf.Const"() <{{value = dense<0> : tensor<2xi32>}}> : () -> tensor<2xi32>
  %size = "tf.Const"() <{{value = dense<[1, 2]> : tensor<2xi32>}}> : () -> tensor<2xi32>
  %p = "tf.Slice"(%f, %start, %size) : (tensor<1x8xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<1x2xf32>
  func.return %p : tensor<1x2xf32>
}}
""",
        "utf-8",
    )
    return path


def _described(model: Path, metadata: Any) -> bytes:
    return bytes(tfconvert.convert(model, target=tfconvert.LiteRT(metadata=metadata)))


@pytest.mark.parametrize(
    ("names", "inputs", "expected"),
    [
        ("input_word_ids,input_mask,input_type_ids", {}, ["ids", "mask", "segment_ids"]),
        ("attention_mask,input_ids,token_type_ids", {}, ["mask", "ids", "segment_ids"]),
        ("padding_mask,segment_ids,token_ids", {}, ["mask", "segment_ids", "ids"]),
        ("c,input_ids,m", {"c": {"name": "segment_ids"}, "m": {"name": "mask"}}, ["segment_ids", "ids", "mask"]),
    ],
)
def test_a_tokenizer_of_three_inputs_names_them(tmp_path: Path, names: str, inputs: Any, expected: list[str]) -> None:
    content = _described(_text_model(tmp_path / "text.mlir", names), {"tokenizer": BERT, "inputs": inputs})
    found = stored(content)
    assert found["min_parser_version"] == "1.1.0"
    (subgraph,) = found["subgraph_metadata"]
    assert [each["name"] for each in subgraph["input_tensor_metadata"]] == expected
    assert subgraph["input_process_units"] == [
        {"options": ("BertTokenizerOptions", {"vocab_file": [{"name": "vocabulary.txt", "type": 5}]})}
    ]
    assert archived(content) == {"vocabulary.txt": "".join(f"{each}\n" for each in BERT_VOCABULARY).encode()}


def test_a_model_of_sentencepiece_and_its_vocabulary_are_files(tmp_path: Path) -> None:
    (tmp_path / "p.model").write_bytes(PIECES)
    (tmp_path / "p.vocab").write_text("<unk>\t0\n", "utf-8")
    tokenizer = {"type": "sentencepiece", "model": "p.model", "vocabulary": "p.vocab"}
    (tmp_path / "m.json").write_text(json.dumps({"tokenizer": tokenizer}), "utf-8")
    content = _described(_text_model(tmp_path / "text.mlir", "ids,mask,segment_ids"), tmp_path / "m.json")
    (unit,) = stored(content)["subgraph_metadata"][0]["input_process_units"]
    files = {"sentencepiece_model": [{"name": "p.model"}], "vocab_file": [{"name": "p.vocab", "type": 5}]}
    assert unit == {"options": ("SentencePieceTokenizerOptions", files)}
    assert archived(content) == {"p.model": PIECES, "p.vocab": b"<unk>\t0\n"}
    found = metadata_files(tmp_path / "m.json")
    assert [path.name for path in found] == ["m.json", "p.vocab", "p.model"]


def test_a_tokenizer_of_words_stands_in_its_input(tmp_path: Path) -> None:
    model = _text_model(tmp_path / "text.mlir", "text")
    content = _described(model, {"tokenizer": REGEX})
    found = stored(content)
    assert found["min_parser_version"] == "1.2.1"
    (subgraph,) = found["subgraph_metadata"]
    assert "input_process_units" not in subgraph
    words = {"delim_regex_pattern": REGEX["delimiters"], "vocab_file": [{"name": "vocabulary.txt", "type": 5}]}
    assert subgraph["input_tensor_metadata"][0]["process_units"] == [{"options": ("RegexTokenizerOptions", words)}]
    # A class of characters of RE2, which Python doesn't know.
    assert _described(model, {"tokenizer": {**REGEX, "delimiters": r"[\pP\p{Greek}\s]+"}})


def test_scores_are_calibrated_and_have_a_threshold(tmp_path: Path) -> None:
    calibration = ["0.9,2,-1", ""]
    output = {
        "labels": ["no", "yes"],
        "calibration": calibration,
        "transformation": "log",
        "default_score": 0.25,
        "threshold": 0.5,
    }
    model = _text_model(tmp_path / "text.mlir", "text")
    content = _described(model, {"outputs": {"probability": output}})
    found = ports(content)[1]["probability"]
    assert found["process_units"] == [
        {"options": ("ScoreCalibrationOptions", {"score_transformation": 1, "default_score": 0.25})},
        {"options": ("ScoreThresholdingOptions", {"global_score_threshold": 0.5})},
    ]
    files = [("probability_labels.txt", 2), ("probability_calibration.txt", 4)]
    assert found["associated_files"] == [{"name": name, "type": kind} for name, kind in files]
    # Programs count what stands between newlines: one at the end would make a third line.
    assert archived(content)["probability_calibration.txt"] == b"0.9,2,-1\n"
    (tmp_path / "c.csv").write_bytes(b"0.9,2,-1\r\n1,2,3,0\r\n")
    content = _described(model, {"outputs": {"probability": {**output, "calibration": tmp_path / "c.csv"}}})
    assert archived(content)["c.csv"] == b"0.9,2,-1\n1,2,3,0"


@pytest.mark.parametrize(
    ("names", "metadata", "message"),
    [
        ("a", {"tokenizer": 1}, "tokenizer must be a table"),
        ("a", {"tokenizer": {}}, "type can't be None.*\n.*bert, sentencepiece, regex"),
        ("a", {"tokenizer": {"type": ["bert"]}}, "type can't be"),
        ("a", {"tokenizer": {"type": "bert"}}, "has no 'vocabulary'"),
        ("a", {"tokenizer": {"type": "sentencepiece"}}, "has no 'model'"),
        ("a", {"tokenizer": {"type": "regex", "vocabulary": WORDS}}, "has no 'delimiters'"),
        ("a", {"tokenizer": {**BERT, "delimiters": " "}}, "no key 'delimiters'"),
        ("a", {"tokenizer": {"type": "bert", "vocabulary": ["[UNK]", "x"]}}, r"lacks \[CLS\], \[SEP\]"),
        ("a", {"tokenizer": {"type": "bert", "vocabulary": 3}}, "tokenizer.vocabulary must be a file or a list"),
        ("a", {"tokenizer": {"type": "sentencepiece", "model": 3}}, "must be SentencePiece's .model file"),
        ("a", {"tokenizer": {**REGEX, "vocabulary": ["<PAD>"]}}, "line 1 is '<PAD>'.*\n.*number on each line"),
        ("a", {"tokenizer": {**REGEX, "vocabulary": ["<PAD> 0"]}}, "lacks <UNKNOWN>"),
        ("a", {"tokenizer": {**REGEX, "delimiters": ""}}, "it matches nothing"),
        ("a", {"tokenizer": {**REGEX, "delimiters": "("}}, "missing \\).*\n.*RE2"),
        ("a", {"tokenizer": {**REGEX, "delimiters": r" (?=\w)"}}, "looks around"),
        ("a", {"tokenizer": {**REGEX, "delimiters": r"(\s)\1"}}, "looks around or back"),
        ("a,b", {"tokenizer": REGEX}, "makes one input, and the model has 2"),
        ("a", {"tokenizer": BERT}, "ids, mask, segment_ids, and the model has 'a'.*\n.*say which is which"),
        ("ids,mask,b", {"tokenizer": BERT}, "the model has 'ids', 'mask', 'b'"),
        ("a", {"outputs": {"probability": {"threshold": "high"}}}, "threshold must be a number"),
        ("a", {"inputs": {"a": {"threshold": 1}}}, "no key 'threshold'"),
        ("a", {"outputs": {"probability": {"calibration": ["1,1,1"] * 2}}}, "its labels are missing"),
        ("a", {"outputs": {"probability": {"default_score": 1}}}, "its calibration are missing"),
    ],
)
def test_invalid_tokenizers_and_scores_are_reported(tmp_path: Path, names: str, metadata: Any, message: str) -> None:
    with pytest.raises(ConversionError, match=message) as caught:
        _described(_text_model(tmp_path / "text.mlir", names), metadata)
    assert caught.value.code == "bad-metadata"


@pytest.mark.parametrize("line", ["1,2", "1,2,3,4,5", "-1,2,3", "a,b,c", "1,2,inf"])
def test_a_line_that_calibrates_nothing_is_reported(tmp_path: Path, line: str) -> None:
    output = {"labels": ["no", "yes"], "calibration": ["1,2,3", line]}
    with pytest.raises(ConversionError, match=f"line 2 is '{line}'.*\n.*SCALE,SLOPE,OFFSET"):
        _described(_text_model(tmp_path / "text.mlir", "a"), {"outputs": {"probability": output}})


def test_lines_of_a_calibration_are_those_of_labels(tmp_path: Path) -> None:
    output = {"labels": ["no", "yes"], "calibration": ["1,2,3"] * 3}
    with pytest.raises(ConversionError, match="has 3 lines, and there are 2 labels"):
        _described(_text_model(tmp_path / "text.mlir", "a"), {"outputs": {"probability": output}})


def test_a_tokenizer_makes_int32(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match="the input 'a' is int64"):
        _described(_text_model(tmp_path / "text.mlir", "a", "i64"), {"tokenizer": REGEX})
    (tmp_path / "p.model").write_bytes(b"<unk>\t0\n")
    with pytest.raises(ConversionError, match="not a model of SentencePiece"):
        _described(
            _text_model(tmp_path / "text.mlir", "a"),
            {"tokenizer": {"type": "sentencepiece", "model": tmp_path / "p.model"}},
        )


def test_a_file_keeps_tokenizers_and_what_else_it_has(tmp_path: Path) -> None:
    first = _described(_text_model(tmp_path / "text.mlir", "ids,mask,segment_ids"), {"tokenizer": BERT})
    tree = stored(first)
    tree["min_parser_version"] = "1.5.0"
    (subgraph,) = tree["subgraph_metadata"]
    subgraph |= {
        "output_tensor_groups": [{"name": "detections", "tensor_names": ["probability"]}],
        "output_process_units": [{"options": ("ScoreThresholdingOptions", {"global_score_threshold": 0.5})}],
        "custom_metadata": [{"name": "own", "data": tuple(range(40))}],
    }
    subgraph["input_tensor_metadata"][1]["content"] = {
        "content_properties": ("AudioProperties", {"sample_rate": 16000, "channels": 1})
    }
    subgraph["output_tensor_metadata"][0]["content"] = {
        "content_properties": ("BoundingBoxProperties", {"index": (1, 0, 3, 2), "type": 1, "coordinate_type": 1})
    }
    subgraph["output_tensor_metadata"][0]["associated_files"] = [{"name": "d.txt", "type": 1, "version": "2"}]
    entry = bytes(encode(MODEL_METADATA, tree, b"M001").data)
    model = read_model(first).tree()
    (place,) = (each["buffer"] for each in model["metadata"] if each["name"] == "TFLITE_METADATA")
    model["buffers"][place] = {"data": entry}
    path = tmp_path / "text.tflite"
    path.write_bytes(bytes(encode(TFLITE, model, TFLITE_IDENTIFIER).data) + archive(archived(first)))
    assert stored(bytes(tfconvert.convert(path))) == tree
    assert archived(bytes(tfconvert.convert(path))) == archived(first)
    named = {"ids": {"name": "ids"}, "mask": {"name": "mask"}, "segment_ids": {"name": "segment_ids"}}
    (tmp_path / "p.model").write_bytes(PIECES)
    tokenizer = {"type": "sentencepiece", "model": tmp_path / "p.model"}
    scores = {"probability": {"labels": ["no", "yes"], "threshold": 0.25}}
    content = _described(path, {"tokenizer": tokenizer, "inputs": named, "outputs": scores})
    (changed,) = stored(content)["subgraph_metadata"]
    assert stored(content)["min_parser_version"] == "1.5.0"
    (unit,) = changed.pop("input_process_units")
    assert unit == {"options": ("SentencePieceTokenizerOptions", {"sentencepiece_model": [{"name": "p.model"}]})}
    (output,), (before,) = changed.pop("output_tensor_metadata"), subgraph.pop("output_tensor_metadata")
    assert output["associated_files"] == [*before["associated_files"], {"name": "probability_labels.txt", "type": 2}]
    assert output["content"] == before["content"]
    del subgraph["input_process_units"]
    assert changed == subgraph
