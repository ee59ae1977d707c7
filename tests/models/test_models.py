"""The fourth ring: whole models as users save them, converted without TensorFlow, run in LiteRT, compared with it."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from benchmarks import export_model, litert
from benchmarks.architectures import NORMALIZED, PIXELS, SYMMETRIC, Flavour
from benchmarks.samples import images, relative_error
from tests.support import sample_models
from tests.support.litert import RunTFLite
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

TOLERANCE = 1e-4
SEED = 7


@dataclass(frozen=True, slots=True)
class Network:
    """A network of keras.applications, made small.

    Attributes:
        name: Its name there; of a constructor of several sizes the module too.
        flavour: The library that exports it.
        side: Height and width of its images.
        numbers: The least and greatest number in them.
        options: The other arguments of its constructor.
        official: Whether to compare with the official converter's result too, which takes seconds.
    """

    name: str
    flavour: Flavour
    side: int
    numbers: tuple[float, float] = PIXELS
    options: Mapping[str, Any] = field(default_factory=dict)
    official: bool = False

    def __str__(self) -> str:
        return f"{self.flavour}-{self.name}"

    def build(self) -> Any:
        """Returns the network with random weights that make its answers differ."""
        library = importlib.import_module("keras" if self.flavour == "k3" else "tf_keras")
        library.utils.set_random_seed(SEED)
        random = np.random.default_rng(SEED)
        shape = (self.side, self.side, 3)
        family, _, name = self.name.rpartition(".")
        # The constructors of whole families are not among the public names.
        home = importlib.import_module(f"{library.__name__}.src.applications.{family}") if family else None
        constructor = getattr(home or library.applications, name)
        model = constructor(weights=None, input_shape=shape, classes=20, **self.options)
        export_model.randomize(model, random)
        export_model.calibrate(model, images(SEED, 8, shape, self.numbers))
        export_model.sharpen(model, images(SEED + 2, 4, shape, self.numbers), random)
        return model

    def batch(self, size: int) -> np.ndarray:
        """Returns images for it."""
        return images(SEED + 1, size, (self.side, self.side, 3), self.numbers)


_SHORT = {"width_coefficient": 1.0, "default_size": 64}

NETWORKS = (
    Network("MobileNetV2", "k3", 96, SYMMETRIC, {"alpha": 0.35}, official=True),
    Network("MobileNetV3Small", "k3", 64),
    Network("efficientnet.EfficientNet", "k3", 64, options={**_SHORT, "depth_coefficient": 0.4}, official=True),
    Network("efficientnet.EfficientNet", "tfk", 64, options={**_SHORT, "depth_coefficient": 0.1}),
    Network("densenet.DenseNet", "tfk", 64, NORMALIZED, {"blocks": [1, 2, 2, 1]}, official=True),
)


def _operators(content: bytes, folder: Path) -> Counter[str]:
    file = folder / "counted.tflite"
    file.write_bytes(content)
    return litert.operators(file)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_network(network: Network, tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite) -> None:
    folder = tmp_path / "saved_model"
    model = network.build()
    export_model.export(model, network.flavour, folder)
    converted = tfconvert.convert(folder)
    content = bytes(converted)
    saved = pb.SavedModel.FromString((folder / "saved_model.pb").read_bytes()).meta_graphs[0]
    signature = saved.signature_def["serving_default"]
    assert [each.name for each in converted.report.interfaces[0].outputs] == list(signature.outputs)
    (name,) = signature.inputs
    for size in (2, 1):
        batch = network.batch(size)
        expected = np.asarray(model(batch, training=False))
        (got,) = run_tflite(content, {name: batch}, signature="serving_default")
        assert relative_error(got, expected) < TOLERANCE
        if size == 2:
            first, second = expected
            assert np.abs(first - second).max() > 0.01 * first.max(), "the network answers the same to any image"
    if network.official:
        official = tf.lite.TFLiteConverter.from_saved_model(str(folder)).convert()
        assert _operators(content, tmp_path).total() <= _operators(official, tmp_path).total()
        assert len(content) <= len(official)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_frozen_graph(tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite) -> None:
    """The result of `convert_variables_to_constants_v2` for a network is converted like its SavedModel."""
    network = NETWORKS[0]
    model = network.build()
    spec = tf.TensorSpec([None, network.side, network.side, 3], tf.float32, name="image")
    function = tf.function(lambda image: model(image, training=False)).get_concrete_function(spec)
    freezer = importlib.import_module("tensorflow.python.framework.convert_to_constants")
    frozen = freezer.convert_variables_to_constants_v2(function)
    graph = tmp_path / "frozen.pb"
    graph.write_bytes(frozen.graph.as_graph_def().SerializeToString())
    converted = tfconvert.convert(graph, inputs=["image"], outputs=[frozen.outputs[0].name])
    batch = network.batch(2)
    (got,) = run_tflite(bytes(converted), [batch])
    assert relative_error(got, np.asarray(model(batch, training=False))) < TOLERANCE
    assert converted.report.operators["CONV_2D"] + converted.report.operators["DEPTHWISE_CONV_2D"] == 52


def _value(spec: Any, tf: ModuleType) -> np.ndarray:
    shape = [2 if dim is None else dim for dim in spec.shape]
    random = np.random.default_rng(SEED)
    if spec.dtype == tf.string:
        return np.array([b"one", b"", b"\xff\x00", b"drei"], object)
    if spec.dtype == tf.bool:
        return random.uniform(size=shape) > 0.5
    value: np.ndarray = random.normal(0, 2, shape).astype(spec.dtype.as_numpy_dtype)
    return value


@pytest.mark.parametrize("name", sample_models.MODELS)
def test_small_model(name: str, tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite) -> None:
    """Every signature answers as TensorFlow's does."""
    folder = sample_models.save(tf, sample_models.MODELS[name], tmp_path / name)
    content = bytes(tfconvert.convert(folder))
    signatures = tf.saved_model.load(str(folder)).signatures
    for key, signature in signatures.items():
        inputs = {each: _value(spec, tf) for each, spec in signature.structured_input_signature[1].items()}
        answers = signature(**{each: tf.constant(value) for each, value in inputs.items()})
        got = dict(zip(sorted(answers), run_tflite(content, inputs, signature=key), strict=True))
        for output, answer in answers.items():
            expected = answer.numpy()
            assert got[output].dtype == expected.dtype
            if expected.dtype.kind == "f":
                assert relative_error(got[output], expected) < 1e-5, output
            else:
                np.testing.assert_array_equal(got[output], expected)


def test_signatures_share_their_weights(tf: ModuleType, tmp_path: Path) -> None:
    folder = sample_models.save(tf, sample_models.two_heads, tmp_path / "model")
    both = len(tfconvert.convert(folder))
    one = len(tfconvert.convert(folder, signatures=["embed"]))
    trunk = 4 * 64 * 256
    assert trunk < one < both < 1.5 * trunk


def test_half_weights_are_not_widened_at_each_run(tf: ModuleType, tmp_path: Path) -> None:
    folder = sample_models.save(tf, sample_models.half_weights, tmp_path / "model")
    operators = tfconvert.convert(folder).report.operators
    assert operators == {"FULLY_CONNECTED": 1}


def test_version_1_model(tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite) -> None:
    """A model as TensorFlow 1's SavedModelBuilder writes it, its variables trained away from their initial values."""
    folder = tmp_path / "model"
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 6, 6, 2], "x")
        kernel = v1.get_variable("kernel", [3, 3, 2, 4], tf.float32, v1.zeros_initializer(), use_resource=True)
        offset = v1.get_variable("offset", [4], tf.float32, v1.zeros_initializer(), use_resource=True)
        y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, 2, "SAME"), offset), name="y")
        session.run(v1.global_variables_initializer())
        random = np.random.default_rng(SEED)
        session.run([kernel.assign(random.normal(size=[3, 3, 2, 4])), offset.assign(random.normal(size=[4]))])
        v1.saved_model.simple_save(session, str(folder), {"x": x}, {"y": y})
        value = random.normal(size=(3, 6, 6, 2)).astype(np.float32)
        expected = session.run(y, {x: value})
    converted = tfconvert.convert(folder)
    (got,) = run_tflite(bytes(converted), {"x": value}, signature="serving_default")
    assert relative_error(got, expected) < 1e-5
    assert converted.report.operators == {"CONV_2D": 1}


def test_input_shapes_are_pinned(tf: ModuleType, tmp_path: Path) -> None:
    folder = sample_models.save(tf, sample_models.nested, tmp_path / "model")
    content = bytes(tfconvert.convert(folder, input_shapes={"x": [5, 4]}))
    interpreter = importlib.import_module("ai_edge_litert.interpreter").Interpreter(model_content=content)
    (detail,) = interpreter.get_input_details()
    assert detail["shape"].tolist() == detail["shape_signature"].tolist() == [5, 4]
    assert interpreter.get_output_details()[0]["shape_signature"].tolist() == [5, 4]


def test_conversion_needs_no_tensorflow(digits_model: Path, tmp_path: Path) -> None:
    program = (
        "import json, sys, tfconvert\n"
        f"tfconvert.convert({str(digits_model)!r}).save({str(tmp_path / 'digits.tflite')!r})\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    imported = set(json.loads(done.stdout))
    assert {"tfconvert", "numpy"} <= imported
    assert not imported & {"tensorflow", "keras", "tf_keras", "ai_edge_litert", "jax", "absl"}
