"""Tools that read a `.tflite` file after its conversion: they take ours, and compute what LiteRT does.

Converters to ONNX, Arm's compiler for Ethos-U, the runtime for microcontrollers, an older release of the runtime, and
the library that writes metadata. The last two need an older NumPy or protobuf: they are in an environment of their own,
`.venv/old-tools`, that `make test-all` sets up.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.litert.quantize.runs import Array, run_model

NETWORKS = ("convolutions", "attention", "perceptron")
MODES = ("float", "dynamic", "int8")
OLD_TOOLS = Path(sys.prefix) / "old-tools" / "bin" / "python"


def _convolutions(layers: Any) -> Iterator[Any]:
    x = layers.Input((16, 16, 3), batch_size=1)
    h = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(64, 3, 2, padding="same", use_bias=False)(x)))
    h = layers.ReLU(6.0)(layers.BatchNormalization()(layers.DepthwiseConv2D(3, padding="same")(h)))
    # The small filters that stay floats, then filters and a matrix that become integers.
    h = layers.Conv2D(64, 1, activation="relu")(h)
    yield x
    yield layers.Dense(10, activation="softmax")(layers.Flatten()(layers.AveragePooling2D(8)(h)))


def _attention(layers: Any) -> Iterator[Any]:
    x = layers.Input((8, 32), batch_size=1)
    h = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 16)(x, x))
    h = layers.LayerNormalization()(h + layers.Dense(32)(layers.Dense(64, activation="relu")(h)))
    yield x
    yield layers.Dense(4)(layers.Flatten()(h))


def _perceptron(layers: Any) -> Iterator[Any]:
    x = layers.Input((4, 64), batch_size=1)
    # Rows, as the last layer of small networks has them, and a product without a bias.
    rows = layers.Reshape((1, 1, 64))(layers.Dense(16, use_bias=False)(x))
    yield x
    yield layers.Dense(4)(layers.Dense(64, activation="relu")(layers.Reshape((64,))(rows)))


@pytest.fixture(scope="module")
def folder(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with each network in each mode, and an input of each."""
    keras = tf.keras
    keras.utils.set_random_seed(1)
    folder = tmp_path_factory.mktemp("tools")
    for name, build in zip(NETWORKS, (_convolutions, _attention, _perceptron), strict=True):
        model = keras.Model(*build(keras.layers))
        samples = [np.random.default_rng(at).standard_normal(model.inputs[0].shape, "f") for at in range(8)]
        np.save(folder / f"{name}.npy", samples[0])
        model.export(folder / name, verbose=False)
        for mode in MODES:
            quantize: Any = None if mode == "float" else mode
            if mode == "int8":
                quantize = tfconvert.Quantize("int8", samples=[[each] for each in samples], io="int8")
            converted = tfconvert.convert(folder / name, signatures="serving_default", quantize=quantize)
            converted.save(folder / f"{name}-{mode}.tflite")
    return folder


class File:
    """One of the files, with its input and what LiteRT computes from it.

    Attributes:
        path: The file.
        input: The input, as integers if the file takes those.
        expected: The result.
        tolerance: By how much others may differ: some steps of integers, or rounding.
    """

    def __init__(self, folder: Path, name: str, mode: str) -> None:
        from ai_edge_litert.interpreter import Interpreter

        self.path = folder / f"{name}-{mode}.tflite"
        self.input = np.load(folder / f"{name}.npy")
        if mode == "int8":
            scale, zero_point = Interpreter(str(self.path)).get_input_details()[0]["quantization"]
            self.input = np.clip(np.round(self.input / scale + zero_point), -128, 127).astype(np.int8)
        self.expected = run_model(self.path.read_bytes(), [self.input])
        self.tolerance = 4.0 if mode == "int8" else 1e-5 if mode == "float" else 0.1

    def check(self, result: Array) -> None:
        """Asserts that a tool computes the same."""
        assert np.abs(result.ravel().astype("f") - self.expected.ravel().astype("f")).max() <= self.tolerance


@pytest.fixture
def file(folder: Path) -> Callable[[str, str], File]:
    """Returns a function from the names of a network and a mode to the file."""
    return lambda name, mode: File(folder, name, mode)


def _run_onnx(path: Path, file: File, *, channels_first: bool = False) -> None:
    session = pytest.importorskip("onnxruntime").InferenceSession(str(path))
    (value,) = session.get_inputs()
    inputs = np.moveaxis(file.input, -1, 1) if channels_first else file.input
    file.check(session.run(None, {value.name: np.ascontiguousarray(inputs)})[0])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NETWORKS)
def test_tf2onnx_converts_them(name: str, mode: str, file: Callable[[str, str], File], tmp_path: Path) -> None:
    made = file(name, mode)
    path = tmp_path / "model.onnx"
    pytest.importorskip("tf2onnx").convert.from_tflite(str(made.path), opset=18, output_path=str(path))
    _run_onnx(path, made)


@pytest.mark.filterwarnings("ignore")
def test_tflite2onnx_converts_convolutions(file: Callable[[str, str], File], tmp_path: Path) -> None:
    made = file("convolutions", "float")
    path = tmp_path / "model.onnx"
    pytest.importorskip("tflite2onnx").convert(str(made.path), str(path))
    _run_onnx(path, made, channels_first=True)


@pytest.mark.parametrize("mode", ["float", "int8"])
@pytest.mark.parametrize("name", NETWORKS)
def test_microcontrollers_run_them(name: str, mode: str, file: Callable[[str, str], File]) -> None:
    made = file(name, mode)
    runtime = pytest.importorskip("tflite_micro").runtime
    interpreter = runtime.Interpreter.from_file(str(made.path), arena_size=1 << 20)
    interpreter.set_input(made.input, 0)
    interpreter.invoke()
    made.check(interpreter.get_output(0))


@pytest.mark.parametrize("name", NETWORKS)
def test_ethos_u_runs_all_operators(name: str, folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("ethosu.vela")
    vela: list[str | Path] = [Path(sys.executable).with_name("vela"), "--accelerator-config", "ethos-u55-128"]
    vela += ["--output-dir", tmp_path, folder / f"{name}-int8.tflite"]
    done = subprocess.run(vela, capture_output=True, text=True, check=True)
    assert "CPU operators = 0 " in done.stdout


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NETWORKS)
def test_recipes_of_the_quantizer(name: str, file: Callable[[str, str], File]) -> None:
    quantizer = pytest.importorskip("ai_edge_quantizer.quantizer")
    recipe = pytest.importorskip("ai_edge_quantizer.recipe")
    made = file(name, "float")
    names = [each for each in dir(recipe) if each.startswith(("dynamic_wi8", "weight_only", "static", "hadamard"))]
    assert len(names) >= 5
    ((key, signature),) = tfconvert.Interpreter(str(made.path)).get_signature_list().items()
    samples = {key: [{signature["inputs"][0]: made.input}]}
    for each in names:
        work = quantizer.Quantizer(str(made.path), getattr(recipe, each)())
        calibrated = work.calibrate(samples) if work.need_calibration else None
        interpreter = tfconvert.Interpreter(model_content=bytes(work.quantize(calibrated).quantized_model))
        interpreter.allocate_tensors()
        interpreter.invoke()


def _with_old_tools(script: str, *arguments: object) -> str:
    if not OLD_TOOLS.exists():
        pytest.skip("there is no environment of old tools: make test-all sets it up")
    done = subprocess.run([OLD_TOOLS, "-c", script, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NETWORKS)
def test_runtime_2_14_runs_them(name: str, mode: str, folder: Path, tmp_path: Path) -> None:
    script = """
import sys
from tflite_runtime.interpreter import Interpreter, OpResolverType
for resolver in (OpResolverType.AUTO, OpResolverType.BUILTIN_REF):
    interpreter = Interpreter(sys.argv[1], experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    interpreter.invoke()
"""
    path = folder / f"{name}-{mode}.tflite"
    if mode == "dynamic":
        # It has no kernel for dense layers with a scale for each output.
        path = tmp_path / "dynamic.tflite"
        quantize = tfconvert.Quantize("dynamic", per_channel="not-dense")
        tfconvert.convert(folder / name, quantize=quantize, target=tfconvert.LiteRT(target_runtime="2.14")).save(path)
    _with_old_tools(script, path)


@pytest.mark.parametrize("mode", MODES)
def test_metadata_is_written_and_read(mode: str, folder: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.txt"
    labels.write_text("".join(f"label {at}\n" for at in range(10)))
    script = """
import sys
from tflite_support import metadata
from tflite_support.metadata_writers import image_classifier, writer_utils
content = writer_utils.load_file(sys.argv[1])
writer = image_classifier.MetadataWriter.create_for_inference(content, [127.5], [127.5], [sys.argv[2]])
writer_utils.save_file(writer.populate(), sys.argv[3])
print(*metadata.MetadataDisplayer.with_model_file(sys.argv[3]).get_packed_associated_file_list())
"""
    named = tmp_path / "named.tflite"
    assert _with_old_tools(script, folder / f"convolutions-{mode}.tflite", labels, named).strip() == "labels.txt"
    assert run_model(named.read_bytes(), [File(folder, "convolutions", mode).input]).shape == (1, 10)
