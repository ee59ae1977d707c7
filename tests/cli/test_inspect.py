"""`tfconvert inspect`: what it says of each kind of model is what the conversion and the runtime say."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from click.testing import CliRunner, Result

import tfconvert
from tests.support.control_flow import control_flow_v1
from tests.support.sample_models import traced
from tfconvert.cli.main import main
from tfconvert.importers.checkpoint.bundle import Checkpoint
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

UNSUPPORTED = """\
func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %0 = "tf.Relu"(%x) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %1 = "tf.BesselK0"(%0) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %2 = "tf.BesselY1"(%1) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %2 : tensor<?x3xf32>
}
"""


def inspect(*arguments: str | Path, status: int = 0) -> Result:
    """Runs the verb in this process."""
    result = CliRunner().invoke(main, ["inspect", *map(str, arguments)], prog_name="tfconvert")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == status, result.output
    return result


def found(*arguments: str | Path, status: int = 0) -> dict[str, Any]:
    """Returns what the verb prints as JSON."""
    data: dict[str, Any] = json.loads(inspect(*arguments, "--json", status=status).stdout)
    return data


@pytest.fixture(scope="module")
def stateful(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a SavedModel with a mutable and a frozen variable, a vocabulary and a loop."""
    folder = tmp_path_factory.mktemp("stateful")
    words = folder / "words.txt"
    words.write_text("a\nb\nc\n")
    module = tf.Module()
    module.count = tf.Variable(np.zeros([4], np.float32), name="count")
    module.scale = tf.Variable(np.full([4], 2, np.float32), name="scale")
    entries = tf.lookup.TextFileInitializer(
        str(words), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
    )
    module.table = tf.lookup.StaticHashTable(entries, -1)

    @traced(tf, tf.TensorSpec([4], tf.float32, name="x"), tf.TensorSpec([None], tf.string, name="words"))
    def call(x: Any, words: Any) -> Any:
        module.count.assign_add(x)

        def longer(each: Any) -> Any:
            return tf.reduce_sum(each) < 100.0

        def doubled(each: Any) -> Any:
            return (each * module.scale,)

        (looped,) = tf.while_loop(longer, doubled, (module.count.read_value(),))
        return {"looped": looped, "numbers": module.table.lookup(words)}

    module.call = call
    tf.saved_model.save(module, str(folder / "model"), signatures={"serving_default": call})
    return folder / "model"


def test_a_saved_model_is_described_as_the_conversion_finds_it(digits_model: Path) -> None:
    data = found(digits_model)
    converted = tfconvert.convert(digits_model)
    assert (data["schema_version"], data["tfconvert_version"]) == (1, tfconvert.__version__)
    assert (data["format"], data["converts"], data["errors"]) == ("SavedModel", True, [])
    assert data["size"] == sum(file.stat().st_size for file in digits_model.rglob("*") if file.is_file())
    assert data["graphs"][0]["tags"] == ["serve"]
    assert data["model"]["tensorflow_version"] == data["graphs"][0]["tensorflow_version"] != ""
    (signature,) = data["model"]["signatures"]
    assert signature["signatures"] == ["serve", "serving_default"]
    assert signature["arguments"] == [{"name": "pixels", "dtype": "float32", "shape": [None, 8, 8, 1]}]
    assert data["model"]["operations"]["Conv2D"] == 3
    assert data["model"]["variables"]["mutable"] == 0
    assert data["model"]["variables"]["frozen"] == converted.report.frozen_variables
    assert data["litert"]["size"] == len(converted)
    assert {use["name"]: use["calls"] for use in data["litert"]["operators"]} == dict(converted.report.operators)
    assert data["litert"]["min_runtime_version"] == converted.report.min_runtime_version


def test_what_it_says_of_the_result_is_what_it_says_of_the_file(digits_model: Path, tmp_path: Path) -> None:
    file = tmp_path / "digits.tflite"
    tfconvert.convert(digits_model).save(file)
    before, after = found(digits_model)["litert"], found(file)
    assert (after["format"], after["converts"], after["model"]) == ("LiteRT", None, None)
    assert after["size"] == before["size"] == file.stat().st_size
    assert after["litert"].pop("metadata").keys() == {"min_runtime_version", "CONVERSION_METADATA"}
    before.pop("metadata")
    assert after["litert"] == before
    text = inspect(file).stdout
    for part in ("CONV_2D", "version 1", "runtime: 2.9.0", "pixels", "float32 [?, 8, 8, 1]", "written by: tfconvert"):
        assert part in text, part


def test_activations_are_what_the_runtime_takes(tf: ModuleType, tmp_path: Path) -> None:
    """A chain whose kernels ask for no memory of their own: the runtime's arena is exactly as large."""
    text = ["func.func @main(%x: tensor<1x1000xf32>) -> tensor<1x500xf32> {"]
    text.append('  %begin = "tf.Const"() <{value = dense<[0, 0]> : tensor<2xi32>}> : () -> tensor<2xi32>')
    text.append('  %size = "tf.Const"() <{value = dense<[1, 500]> : tensor<2xi32>}> : () -> tensor<2xi32>')
    text.append('  %a = "tf.Sin"(%x) : (tensor<1x1000xf32>) -> tensor<1x1000xf32>')
    text.append('  %b = "tf.Cos"(%a) : (tensor<1x1000xf32>) -> tensor<1x1000xf32>')
    text.append(
        '  %c = "tf.Slice"(%b, %begin, %size) : (tensor<1x1000xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<1x500xf32>'
    )
    text.append("  func.return %c : tensor<1x500xf32>\n}")
    source, file = tmp_path / "chain.mlir", tmp_path / "chain.tflite"
    source.write_text("\n".join(text))
    tfconvert.convert(source).save(file)
    plain = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(str(file), experimental_op_resolver_type=plain)
    interpreter.allocate_tensors()
    places = []
    for details in interpreter.get_tensor_details():
        if details["shape"].tolist() != [2]:
            array = interpreter.tensor(details["index"])()
            places.append((array.ctypes.data, array.nbytes))
    taken = max(start + size for start, size in places) - min(start for start, _ in places)
    (estimate,) = found(file)["litert"]["activations"].values()
    assert estimate - 64 < taken <= estimate
    assert found(source)["litert"]["activations"] == {"main": estimate}


def test_a_model_that_will_not_convert_names_every_op(tmp_path: Path) -> None:
    source = tmp_path / "gamma.mlir"
    source.write_text(UNSUPPORTED)
    data = found(source, status=1)
    with pytest.raises(tfconvert.ConversionError) as problem:
        tfconvert.convert(source)
    assert data["converts"] is False
    assert data["errors"] == problem.value.to_dict()["errors"]
    assert {each["op"] for each in data["errors"]} == {"tf.BesselK0", "tf.BesselY1"}
    assert data["model"]["operations"] == {"BesselY1": 1, "BesselK0": 1, "Relu": 1}
    assert data["litert"] is None
    text = inspect(source, status=1).stdout
    assert "converts: no, 2 problems" in text
    assert "tf.BesselK0" in text
    custom = found(source, "--allow-custom-ops")
    assert {use["name"] for use in custom["litert"]["operators"] if use["is_custom"]} == {"BesselK0", "BesselY1"}


def test_state_assets_and_control_flow_are_told(stateful: Path) -> None:
    data = found(stateful)
    assert data["converts"] is True
    assert data["model"]["variables"] == {"count": 2, "bytes": 32, "frozen": 1, "mutable": 1}
    assert [Path(asset).name for asset in data["model"]["assets"]] == ["words.txt"]
    assert sum(data["model"]["control_flow"].values()) == data["model"]["control_flow"]["While"] == 1
    assert data["litert"]["subgraphs"] > 2
    text = inspect(stateful).stdout
    assert "2, 32 B, 1 frozen, 1 mutable" in text
    assert "words.txt" in text
    assert "control flow: While 1" in text


def test_graphs_of_tensorflow_1_are_told(tf: ModuleType, tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None, 3], "x")
        with control_flow_v1(tf):
            choice = tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2, lambda: x + 1)
        tf.identity(choice, "y")
    file = tmp_path / "graph.pb"
    file.write_bytes(graph.as_graph_def().SerializeToString())
    data = found(file, "--output", "y")
    assert (data["format"], data["converts"], data["size"]) == ("GraphDef", True, file.stat().st_size)
    assert data["model"]["control_flow"]["Merge"] == 1
    assert data["model"]["signatures"][0]["arguments"] == [{"name": "x", "dtype": "float32", "shape": [None, 3]}]
    assert data["model"]["variables"]["count"] == 0
    assert found(file, "--output", "y", "--input-shape", "x=5,3")["litert"]["signatures"][0]["arguments"][0][
        "shape"
    ] == [5, 3]


def test_a_checkpoint_with_its_graph_is_told(tf: ModuleType, tmp_path: Path) -> None:
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None, 3], "x")
        weights = tf.compat.v1.get_variable("w", [3, 2], use_resource=False)
        tf.matmul(x, weights, name="y")
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            tf.compat.v1.train.Saver().save(session, str(tmp_path / "model.ckpt"))
    data = found(tmp_path / "model.ckpt.meta", "--output", "y")
    assert (data["format"], data["converts"]) == ("MetaGraph", True)
    assert data["size"] == sum(file.stat().st_size for file in tmp_path.glob("model.ckpt.*"))
    assert data["model"]["variables"] == {"count": 1, "bytes": 24, "frozen": 1, "mutable": 0}


def test_a_saved_model_may_be_named_by_its_file(digits_model: Path) -> None:
    named, folder = found(digits_model / "saved_model.pb"), found(digits_model)
    assert named.pop("source") != folder.pop("source")
    assert named == folder


def test_quantized_files_say_so(digits_model: Path, tmp_path: Path) -> None:
    file = tmp_path / "small.tflite"
    samples = [{"pixels": np.random.default_rng(0).random((1, 8, 8, 1), np.float32)} for _ in range(3)]
    tfconvert.convert(digits_model, quantize=tfconvert.Quantize("int8", samples=samples, io="int8")).save(file)
    litert = found(file)["litert"]
    argument = litert["signatures"][0]["arguments"][0]
    assert (argument["dtype"], argument["scale"] > 0, -128 <= argument["zero_point"] <= 127) == ("int8", True, True)
    assert litert["constant_types"]["int8 per channel"] > 2
    assert set(litert["computed_types"]) == {"int8 per tensor"}
    assert "zero point" in inspect(file).stdout


@pytest.mark.parametrize("name", ["none.tflite", "none", "none.mlir"])
def test_what_is_not_there_is_an_error(tmp_path: Path, name: str) -> None:
    result = inspect(tmp_path / name, "--json", status=2)
    assert json.loads(result.stdout)["errors"][0]["code"] == "model-not-found"


def test_damaged_files_are_an_error(digits_model: Path, tmp_path: Path) -> None:
    file = tmp_path / "digits.tflite"
    whole = bytes(tfconvert.convert(digits_model))
    random = np.random.default_rng(1)
    codes: set[str] = set()
    for _ in range(200):
        data = bytearray(whole)
        for place in random.integers(0, 4000, 40):
            data[place] = int(random.integers(256))
        file.write_bytes(data)
        result = CliRunner().invoke(main, ["inspect", str(file), "--json"])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        codes.update(each["code"] for each in json.loads(result.stdout)["errors"])
    assert "malformed-tflite" in codes


def test_no_large_weight_is_read(digits_model: Path, tmp_path: Path) -> None:
    """Weights with a wrong checksum fail the conversion's writing, which isn't done here."""
    model = tmp_path / "model"
    for file in digits_model.rglob("*"):
        if file.is_file():
            copy = model / file.relative_to(digits_model)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
    (shard,) = model.glob("variables/*.data-*")
    data = bytearray(shard.read_bytes())
    for place in _largest_weights(model):
        data[place] ^= 0xFF
    shard.write_bytes(bytes(data))
    with pytest.raises(tfconvert.ConversionError, match="CRC-32C"):
        bytes(tfconvert.convert(model))
    assert found(model)["converts"] is True


def _largest_weights(model: Path) -> list[int]:
    """Returns a position in each of the largest matrices or filters of a checkpoint; it may have several copies."""
    entries = [
        entry for entry in Checkpoint(model / "variables" / "variables").entries().values() if len(entry.shape) > 1
    ]
    largest = max(entry.size for entry in entries)
    return [entry.offset + largest // 2 for entry in entries if entry.size == largest]


DENSE = """\
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x3xf32> {
  %0 = "tf.Const"() <{value = dense<0.5> : tensor<8x3xf32>}> : () -> tensor<8x3xf32>
  %1 = "tf.Const"() <{value = dense<0.25> : tensor<4x8xf32>}> : () -> tensor<4x8xf32>
  %2 = "tf.MatMul"(%x, %1) : (tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>
  %3 = "tf.Relu"(%2) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %4 = "tf.MatMul"(%3, %0) : (tensor<?x8xf32>, tensor<8x3xf32>) -> tensor<?x3xf32>
  func.return %4 : tensor<?x3xf32>
}
"""


def test_memory_is_a_formula_of_open_sizes_and_a_number_of_known_ones(tmp_path: Path) -> None:
    path = tmp_path / "dense.mlir"
    path.write_text(DENSE)
    text = inspect(path, "--memory").output
    # The wider layer and, beside it, the zero of each element that its activation compares it with.
    assert "    64*x.0  at " in text
    assert "x f32[?,4]" in text
    (open_,) = found(path, "--memory")["functions"]
    (known,) = found(path, "--memory", "x=10,4")["functions"]
    assert open_["weight_bytes"] == known["weight_bytes"] == 4 * (4 * 8 + 8 * 3)
    assert open_["result_bytes"] == "12*x.0"
    assert known["result_bytes"] == 120
    assert open_["peak_bytes"] == "64*x.0"
    assert known["peak_bytes"] == 640
    assert known["operations"] == 10 * (2 * 4 * 8 + 8 + 2 * 8 * 3)
    calls = [(call["routine"], call["sizes"]) for call in open_["library_calls"]]
    assert calls == [
        ("lib_gemm_f32", [["x.0", 4], [4, 8], ["x.0", 8]]),
        ("lib_gemm_f32", [["x.0", 8], [8, 3], ["x.0", 3]]),
    ]


@pytest.mark.parametrize("shape", ["y=1,4", "x=1,5", "x=1"])
def test_memory_of_inputs_that_the_model_does_not_have(tmp_path: Path, shape: str) -> None:
    path = tmp_path / "dense.mlir"
    path.write_text(DENSE)
    assert "[wrong-option]" in inspect(path, "--memory", shape, status=2).output


@pytest.mark.parametrize("extension", ["pb", "tflite", "mlir"])
def test_standard_input_is_a_file(extension: str, digits_model: Path, tmp_path: Path) -> None:
    path = tmp_path / f"model.{extension}"
    if extension == "pb":
        graph = pb.GraphDef()
        graph.node.add(name="x", op="Placeholder").attr["dtype"].type = pb.DT_FLOAT
        graph.node.add(name="y", op="Relu", input=["x"]).attr["T"].type = pb.DT_FLOAT
        path.write_bytes(graph.SerializeToString())
    else:
        assert CliRunner().invoke(main, [str(digits_model), "-o", str(path), "-q"]).exit_code == 0
    from_file = CliRunner().invoke(main, ["inspect", str(path)])
    piped = CliRunner().invoke(main, ["inspect", "-"], input=path.read_bytes())
    assert (from_file.exit_code, piped.exit_code) == (0, 0), piped.output
    assert piped.stdout == from_file.stdout.replace(str(path), "standard input")


def test_standard_input_that_is_no_model() -> None:
    done = CliRunner().invoke(main, ["inspect", "-"], input=b"")
    assert done.exit_code == 2
    assert "standard input.pb is empty" in done.stderr


def test_a_page_is_of_another_command(digits_model: Path) -> None:
    done = CliRunner().invoke(main, ["inspect", str(digits_model), "--report", "page.html"])
    assert done.exit_code == 2
    assert "tfconvert view MODEL -o page.html" in done.stderr
    assert "--report" not in CliRunner().invoke(main, ["inspect", "--help"]).stdout
