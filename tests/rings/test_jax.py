"""Functions of JAX in each form in which they are converted, and models of Keras on JAX: LiteRT computes the same."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.repository.test_docs import blocks
from tests.support.composites import check_composites
from tests.support.litert import RunTFLite

jax = pytest.importorskip("jax")

WEIGHTS = np.random.default_rng(0).uniform(-1, 1, (8, 4)).astype(np.float32)
X = np.random.default_rng(1).uniform(-1, 1, (3, 8)).astype(np.float32)


def function(x: Any, options: Any) -> dict[str, Any]:
    jnp = jax.numpy
    return {"scores": jax.nn.softmax(jnp.tanh(x @ WEIGHTS) * options["scale"]), "sums": x.sum(-1)}


def _exported(shape: str, platforms: tuple[str, ...]) -> Any:
    from jax import export

    kind = jax.ShapeDtypeStruct(export.symbolic_shape(shape), "float32")
    scale = jax.ShapeDtypeStruct((), "float32")
    return export.export(jax.jit(function), platforms=platforms)(kind, {"scale": scale})


def _check(model: tfconvert.Model, run_tflite: RunTFLite) -> None:
    scale = np.float32(2)
    scores, sums = run_tflite(bytes(model), [X, np.array(scale)])
    expected = function(X, {"scale": scale})
    np.testing.assert_allclose(scores, expected["scores"], atol=1e-6)
    np.testing.assert_allclose(sums, expected["sums"], atol=1e-5)
    assert "x f32" in str(model.report)
    assert "scale f32" in str(model.report)


@pytest.mark.parametrize(
    ("shape", "platforms"),
    [("3, 8", ("cpu",)), ("b, 8", ("cpu",)), ("b, 8", ("tpu", "cpu"))],
    ids=["static", "dynamic", "several platforms"],
)
def test_exported_functions(shape: str, platforms: tuple[str, ...], tmp_path: Path, run_tflite: RunTFLite) -> None:
    found = _exported(shape, platforms)
    _check(tfconvert.convert(found, input_shapes={"x": [3, 8]}), run_tflite)
    path = tmp_path / "function.bin"
    path.write_bytes(found.serialize())
    _check(tfconvert.convert(path, input_shapes={"x": [3, 8]}), run_tflite)
    artifact = tmp_path / "function.mlirbc"
    artifact.write_bytes(found.mlir_module_serialized)
    _check(tfconvert.convert(artifact, input_shapes={"x": [3, 8]}), run_tflite)


def test_lowered_functions(tmp_path: Path, run_tflite: RunTFLite) -> None:
    lowered = jax.jit(function).lower(X, {"scale": np.float32(2)})
    _check(tfconvert.convert(lowered), run_tflite)
    path = tmp_path / "function.mlir"
    path.write_text(lowered.as_text(debug_info=True))
    _check(tfconvert.convert(path), run_tflite)


def test_functions_without_inputs_are_refused_with_advice() -> None:
    with pytest.raises(tfconvert.ConversionError, match="no inputs yet") as caught:
        tfconvert.convert(jax.jit(function))
    assert "args=" in caught.value.diagnostics[0].hint


def test_functions_of_the_official_class(run_tflite: RunTFLite) -> None:
    converter = tfconvert.TFLiteConverter.experimental_from_jax(
        [lambda image, bias: jax.numpy.tanh(image @ WEIGHTS) + bias], [[("image", X), ("bias", X[:, :4])]]
    )
    (found,) = run_tflite(converter.convert(), [X, X[:, :4]])
    np.testing.assert_allclose(found, np.tanh(X @ WEIGHTS) + X[:, :4], atol=1e-6)


_BLOCKED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("tensorflow", "tf_keras"):
            raise ImportError(f"{name} is imported")

sys.meta_path.insert(0, Blocker())
"""

_MODELS = """
import keras
import numpy as np
import tfconvert

layers, ops = keras.layers, keras.ops

class Sampling(layers.Layer):
    def __init__(self):
        super().__init__()
        self.seed_generator = keras.random.SeedGenerator(7)

    def call(self, x):
        return x + keras.random.uniform(ops.shape(x), seed=self.seed_generator)

class Model(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(3)

    def call(self, x, training=None):
        return {"b": ops.relu(self.dense(x["left"])), "a": x["right"] * 2}

def images():
    return keras.Sequential([
        layers.Input((8, 8, 3)),
        layers.Conv2D(4, 3, padding="same"),
        layers.BatchNormalization(),
        layers.ReLU(),
        layers.Dropout(0.5),
        layers.Flatten(),
        layers.Dense(5, activation="softmax"),
    ])

def several():
    left, right = layers.Input((None, 4), name="left"), layers.Input((6,), name="right")
    row = layers.LSTM(5)(left)
    return keras.Model([left, right], [layers.Dense(2)(row), layers.Concatenate()([row, right])])

def sampled():
    x = layers.Input((4,))
    return keras.Model(x, Sampling()(x))

def called():
    model = Model()
    model({"left": np.zeros((2, 4), np.float32), "right": np.zeros((2, 5), np.float32)})
    return model
"""

_KERAS = """
model = images()
report = tfconvert.convert(model, verify=True).report
assert dict(report.operators) == {"CONV_2D": 1, "RESHAPE": 1, "FULLY_CONNECTED": 1, "SOFTMAX": 1}, report
assert " f32[?,8,8,3] -> output_0 f32[?,5]" in str(report), report
report = tfconvert.convert(several()).report
assert "left f32[?,?,4], right f32[?,6] -> output_0 f32[?,2], output_1 f32[?,11]" in str(report), report
report = tfconvert.convert(called()).report
assert "left f32[?,4], right f32[?,5] -> a f32[?,5], b f32[?,3]" in str(report), report
report = tfconvert.convert(called(), signatures="serve", inputs=["right", "left"], outputs=["b", "a"]).report
assert "serve: right f32[?,5], left f32[?,4] -> b f32[?,3], a f32[?,5]" in str(report), report
report = tfconvert.convert(called(), outputs=["b"], rename={"b": "scores"}).report
assert " -> scores f32[?,3]" in str(report), report
assert dict(report.operators) == {"FULLY_CONNECTED": 1}, report
model = images()
inner = f"jit(stateless_fn)/{model.name}/{model.layers[2].name}/jit(relu)"
assert dict(tfconvert.convert(model, outputs=[inner]).report.operators) == {"CONV_2D": 1}
assert "ASSIGN_VARIABLE" in tfconvert.convert(sampled(), batch=2).report.operators
assert "tensorflow" not in sys.modules
"""

# A model is the same in memory and as the SavedModel that Keras writes with TensorFlow.
_KERAS_EXPORTED = """
import sys
from ai_edge_litert.interpreter import Interpreter

for make in (images, several, sampled):
    model = make()
    model.export(sys.argv[1], verbose=False)
    batch = 2 if make is sampled else None
    one, other = tfconvert.convert(model, batch=batch), tfconvert.convert(sys.argv[1], batch=batch)
    assert one.report.operators == other.report.operators
    each = [Interpreter(model_content=bytes(model)) for model in (one, other)]
    tensors, others = ([(tensor["name"], tensor["dtype"]) for tensor in it.get_tensor_details()] for it in each)
    assert make is sampled or tensors == others
    for _ in range(2):
        found = []
        for interpreter in each:
            runner = interpreter.get_signature_runner("serving_default")
            details = runner.get_input_details()
            inputs = {name: np.full([3 if size < 0 else size for size in each["shape_signature"]], 0.5, np.float32)
                      for name, each in details.items()}
            found.append(runner(**inputs))
        for name, value in found[0].items():
            np.testing.assert_array_equal(value, found[1][name])
"""


def _keras(code: str, *arguments: str) -> None:
    """Runs models of Keras on JAX; the conversion prints nothing."""
    pytest.importorskip("keras")
    run = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "KERAS_BACKEND": "jax", "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert not run.stdout


def test_models_of_keras_on_jax_need_no_tensorflow() -> None:
    """Variables become constants, so that layers are fused; those that the model changes are its state."""
    _keras(_BLOCKED + _MODELS + _KERAS)


# A stateful layer has the batch of the input, and keeps its state between runs.
_KERAS_STATEFUL = """
import keras
import numpy as np
import tfconvert
from ai_edge_litert.interpreter import Interpreter

inputs = keras.Input((6, 4), batch_size=2)
model = keras.Model(inputs, keras.layers.LSTM(5, stateful=True)(inputs))
interpreter = Interpreter(model_content=bytes(tfconvert.convert(model)))
runner = interpreter.get_signature_runner("serving_default")
(name,) = runner.get_input_details()
sample = np.random.default_rng(0).normal(size=(2, 6, 4)).astype(np.float32)
for _ in range(2):
    np.testing.assert_allclose(runner(**{name: sample})["output_0"], model(sample), atol=1e-6)
"""


def test_stateful_models_of_keras_on_jax() -> None:
    _keras(_KERAS_STATEFUL)


def test_models_of_keras_on_jax_are_those_that_it_exports(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    _keras(_MODELS + _KERAS_EXPORTED, str(tmp_path / "model"))


def test_files_of_keras_on_jax_need_no_tensorflow(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    code = f"images().save({str(path)!r})\nassert len(tfconvert.convert({str(path)!r}).report.operators) == 4"
    _keras(f"{_BLOCKED}{_MODELS}{code}")


def _example(title: str, language: str, code: str) -> str:
    """Runs a block of the guide, a script or commands, and returns what it prints."""
    if language == "python":
        Path(title).write_text(code, "utf-8")
        command = [sys.executable, title]
    else:
        command = ["bash", "-ec", code.replace("tfconvert ", f"{sys.executable} -m tfconvert ")]
    run = subprocess.run(
        command, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, f"{code}\n{run.stderr}"
    return run.stdout


def test_the_guide_works_as_pasted(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("keras", "tensorflow"):
        pytest.importorskip(package)
    monkeypatch.setenv("PYTHONPATH", str(root))
    monkeypatch.chdir(tmp_path)
    printed = ""
    for language, title, code in blocks((root / "docs" / "jax.md").read_text("utf-8")):
        if language == "output":
            assert printed == code
        else:
            printed = _example(title, language, code)


def test_functions_with_examples_of_their_arguments(run_tflite: RunTFLite) -> None:
    from jax import export

    kind = jax.ShapeDtypeStruct(export.symbolic_shape("b, 8"), "float32")
    scale = {"scale": jax.ShapeDtypeStruct((), "float32")}
    _check(tfconvert.convert(function, args=(kind, scale), input_shapes={"x": [3, 8]}), run_tflite)
    _check(tfconvert.convert(jax.jit(function), args=(X, {"scale": np.float32(1)})), run_tflite)


@pytest.mark.parametrize(
    "example", [X, jax.ShapeDtypeStruct(X.shape, X.dtype), jax.numpy.array(X)], ids=["numpy", "shape", "jax"]
)
def test_one_array_is_the_only_argument(example: Any, run_tflite: RunTFLite) -> None:
    model = tfconvert.convert(lambda x: x @ WEIGHTS, args=example)
    (found,) = run_tflite(bytes(model), [X])
    np.testing.assert_allclose(found, X @ WEIGHTS, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "args", "message"),
    [
        (jax.jit(function), None, "has no inputs yet"),
        ("model.mlirbc", (X,), "args is for functions of JAX"),
        (int, (X,), "JAX can't export the function"),
    ],
    ids=["without arguments", "file", "not traceable"],
)
def test_what_is_wrong_with_arguments(model: Any, args: Any, message: str) -> None:
    with pytest.raises(tfconvert.ConversionError, match=message):
        tfconvert.convert(model, args=args)


def _rotated(x: Any, positions: Any) -> Any:
    jnp = jax.numpy
    angles = positions[:, None, :, None] * 10000.0 ** -(jnp.arange(4) / 4)
    a, b = jnp.split(x, 2, -1)
    cosine, sine = jnp.cos(angles), jnp.sin(angles)
    return jnp.concatenate([a * cosine - b * sine, b * cosine + a * sine], -1)


def _with_weights(module: Any, *inputs: Any) -> Any:
    weights = module.init(jax.random.PRNGKey(0), *inputs)
    random = np.random.default_rng(5)
    weights = jax.tree.map(lambda each: each + random.normal(0, 0.2, each.shape).astype(np.float32), weights)
    return lambda *given: module.apply(weights, *given)


COMPOSITES: dict[str, tuple[str, Sequence[tuple[int, ...]]]] = {
    "flax LayerNorm": ("odml.group_norm", [(1, 5, 8)]),
    "flax LayerNorm slow": ("odml.group_norm", [(1, 5, 8)]),
    "flax GroupNorm": ("odml.group_norm", [(1, 4, 4, 8)]),
    "flax InstanceNorm": ("odml.group_norm", [(1, 4, 4, 8)]),
    "flax RMSNorm": ("odml.rms_norm", [(1, 5, 8)]),
    "flax attention": ("odml.scaled_dot_product_attention", [(1, 6, 8)]),
    "attention": ("odml.scaled_dot_product_attention", [(1, 6, 4, 8), (1, 9, 4, 8), (1, 9, 4, 8)]),
    "causal attention": ("odml.scaled_dot_product_attention", [(1, 6, 4, 8)] * 3),
    "biased attention": ("odml.scaled_dot_product_attention", [(1, 6, 4, 8)] * 3 + [(1, 1, 6, 6)]),
    "rotary": ("odml.rope", [(1, 2, 6, 8), (1, 6)]),
    "rotary table": ("odml.rope", [(1, 2, 6, 8)]),
    "gated": ("odml.swiglu", [(1, 5, 8)] * 2),
}


def _function_with_composite(name: str, inputs: list[Any]) -> Any:
    nn, attention = jax.nn, jax.nn.dot_product_attention
    if name.startswith("flax"):
        linen = pytest.importorskip("flax.linen")
        modules = {
            "flax LayerNorm": linen.LayerNorm(),
            "flax LayerNorm slow": linen.LayerNorm(use_fast_variance=False),
            "flax GroupNorm": linen.GroupNorm(num_groups=2),
            "flax InstanceNorm": linen.InstanceNorm(),
            "flax RMSNorm": linen.RMSNorm(),
            "flax attention": linen.MultiHeadDotProductAttention(num_heads=4, qkv_features=32),
        }
        return _with_weights(modules[name], *inputs)
    return {
        "attention": attention,
        "causal attention": lambda q, k, v: attention(q, k, v, is_causal=True),
        "biased attention": lambda q, k, v, bias: attention(q, k, v, bias=bias),
        "rotary": _rotated,
        "rotary table": lambda x: _rotated(x, jax.numpy.arange(6.0)[None]),
        "gated": lambda gate, up: nn.silu(gate) * up,
    }[name]


@pytest.mark.parametrize("name", COMPOSITES)
def test_composites(name: str, run_tflite: RunTFLite) -> None:
    wanted, shapes = COMPOSITES[name]
    inputs = [np.random.default_rng(index).normal(size=shape).astype(np.float32) for index, shape in enumerate(shapes)]
    compiled = jax.jit(_function_with_composite(name, inputs))
    plain = tfconvert.convert(compiled, args=inputs)
    model = tfconvert.convert(compiled, args=inputs, target=tfconvert.LiteRT(composites=["odml"]))
    (found,) = check_composites(bytes(model))
    assert found.name == wanted
    (expected,) = run_tflite(bytes(plain), inputs)
    np.testing.assert_allclose(run_tflite(bytes(model), inputs)[0], expected, atol=1e-6)
    np.testing.assert_allclose(expected, compiled(*inputs), atol=1e-5)
