"""Composites from layers of Keras and from functions of TensorFlow: recognised, and the file computes the same."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.composites import Composite, check_composites
from tests.support.flat_settings import converted
from tests.support.litert import RunTFLite, run_compiled

Function = Callable[..., Any]
Build = Callable[[Any, Any], Function]

RNG = np.random.default_rng(3)
VECTOR = np.linspace(0.5, 1.5, 8, dtype=np.float32)
FREQUENCIES = (10000.0 ** -(np.arange(4) / 4)).astype(np.float32)
ANGLES = np.arange(6, dtype=np.float32)[:, None] * np.concatenate([FREQUENCIES] * 2)
HEADS, HEADS_FIRST = (1, 6, 4, 8), (1, 4, 6, 8)
CAUSAL = np.tril(np.ones((6, 6), bool))

ATTENTION, GROUP_NORM, RMS_NORM = "odml.scaled_dot_product_attention", "odml.group_norm", "odml.rms_norm"
ROPE, SWIGLU = "odml.rope", "odml.swiglu"
AXES = {"TENSOR_DATA": [1, 2, 3], "TENSOR_TYPE": "i64"}


@pytest.fixture(scope="module")
def keras() -> Any:
    return pytest.importorskip("keras")


def _traced(tf: ModuleType, function: Function, shapes: list[tuple[int, ...]]) -> Any:
    specs = [tf.TensorSpec(shape, tf.float32, f"a{index}") for index, shape in enumerate(shapes)]
    return tf.function(lambda *arguments: {"y": function(*arguments)}).get_concrete_function(*specs)


def _check(tf: ModuleType, run_tflite: RunTFLite, function: Function, *shapes: tuple[int, ...]) -> list[Composite]:
    """Returns the composites of a function, after its file was compared with the one without them."""
    traced = _traced(tf, function, list(shapes))
    plain, model = converted(traced), converted(traced, composites=["odml"])
    inputs = [RNG.normal(size=shape).astype(np.float32) for shape in shapes]
    expected = run_tflite(bytes(plain), inputs)
    for results in (run_tflite(bytes(model), inputs), run_compiled(bytes(model), inputs, expected)):
        assert np.abs(results[0] - expected[0]).max() <= 1e-6 * max(1, np.abs(expected[0]).max())
    assert "STABLEHLO_COMPOSITE" not in plain.report.operators
    found = check_composites(bytes(model))
    assert model.report.operators.get("STABLEHLO_COMPOSITE", 0) == len(found)
    assert sum(model.report.rewrites.get("outline-composites", {}).values()) == len(found)
    return found


def _layer(keras: Any, layer: Any, shape: tuple[int, ...]) -> Any:
    """Builds a layer with weights at random."""
    layer.build(shape)
    for weight in layer.weights:
        weight.assign(weight.numpy() + RNG.normal(0, 0.3, weight.shape))
    return layer


NORMS: list[tuple[str, tuple[int, ...], dict[str, Any], int, dict[str, Any]]] = [
    ("LayerNormalization", (1, 5, 8), {}, 3, {"sub_type": 1}),
    ("LayerNormalization", (3, 8), {"epsilon": 1e-5}, 3, {"sub_type": 1}),
    ("LayerNormalization", (2, 4, 4, 8), {}, 3, {"sub_type": 1}),
    ("LayerNormalization", (1, 5, 8), {"scale": False}, 3, {"sub_type": 1}),
    ("LayerNormalization", (1, 5, 8), {"center": False}, 3, {"sub_type": 1}),
    ("LayerNormalization", (1, 5, 8), {"scale": False, "center": False}, 1, {}),
    ("RMSNormalization", (1, 5, 8), {}, 2, {}),
    ("RMSNormalization", (2, 4, 4, 8), {"epsilon": 1e-5}, 2, {}),
    ("GroupNormalization", (1, 4, 4, 8), {"groups": 2}, 3, {"num_groups": 2}),
    ("GroupNormalization", (2, 4, 3, 8), {"groups": 1}, 3, {"num_groups": 1}),
    ("GroupNormalization", (1, 4, 4, 8), {"groups": -1}, 3, {"num_groups": 8}),
    ("GroupNormalization", (1, 4, 4, 8), {"groups": 4, "scale": False}, 3, {"num_groups": 4}),
]


@pytest.mark.parametrize(("name", "shape", "options", "operands", "attributes"), NORMS)
def test_normalizations_of_keras(
    name: str,
    shape: tuple[int, ...],
    options: dict[str, Any],
    operands: int,
    attributes: dict[str, Any],
    tf: ModuleType,
    keras: Any,
    run_tflite: RunTFLite,
) -> None:
    layer = _layer(keras, getattr(keras.layers, name)(**options), shape)
    (found,) = _check(tf, run_tflite, layer, shape)
    assert found.name == (RMS_NORM if name.startswith("RMS") else GROUP_NORM)
    assert list(found.shapes) == [shape, *[(8,)] * (operands - 1)]
    epsilon = found.attributes["epsilon"]
    assert epsilon == pytest.approx(layer.epsilon)
    if "num_groups" in attributes:
        attributes = {"channel_axis": 3, "sub_type": 0, "_TENSOR_V1_reduction_axes": AXES, **attributes}
    assert dict(found.attributes) == {"epsilon": epsilon, **attributes}


def test_a_scale_that_a_following_layer_absorbs(tf: ModuleType, keras: Any, run_tflite: RunTFLite) -> None:
    for name, shapes in (("RMSNormalization", [(1, 5, 8), (8,)]), ("LayerNormalization", [(1, 5, 8)])):
        norm = _layer(keras, getattr(keras.layers, name)(), (1, 5, 8))
        dense = _layer(keras, keras.layers.Dense(3), (1, 5, 8))
        (found,) = _check(tf, run_tflite, lambda x, norm=norm, dense=dense: dense(norm(x)), (1, 5, 8))
        assert list(found.shapes) == shapes


def _moments(tf: Any, axes: list[int]) -> Function:
    def function(x: Any) -> Any:
        mean, variance = tf.nn.moments(x, axes, keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, VECTOR * 0.1, VECTOR, 1e-5)

    return function


def _by_hand(tf: Any, keras: Any) -> Function:
    def function(x: Any) -> Any:
        centered = x - tf.reduce_mean(x, -1, keepdims=True)
        return centered / tf.sqrt(tf.reduce_mean(centered**2, -1, keepdims=True) + 1e-5) * VECTOR + 0.25

    return function


def _fast(tf: Any, keras: Any) -> Function:
    def function(x: Any) -> Any:
        mean = tf.reduce_sum(x, -1, keepdims=True) / 8
        variance = tf.maximum(tf.reduce_mean(x * x, -1, keepdims=True) - mean * mean, 0)
        return (x - mean) * (tf.math.rsqrt(variance + 1e-5) * VECTOR)

    return function


WRITTEN: list[tuple[str, str, Build, list[tuple[int, ...]]]] = [
    ("moments", GROUP_NORM, lambda tf, keras: _moments(tf, [-1]), [(1, 5, 8)]),
    ("instances", GROUP_NORM, lambda tf, keras: _moments(tf, [1, 2]), [(1, 4, 4, 8)]),
    ("one group", GROUP_NORM, lambda tf, keras: _moments(tf, [1, 2, 3]), [(1, 4, 4, 8)]),
    ("by hand", GROUP_NORM, _by_hand, [(1, 5, 8)]),
    ("squares", GROUP_NORM, _fast, [(1, 5, 8)]),
    (
        "mean of squares",
        RMS_NORM,
        lambda tf, keras: lambda x: x * tf.math.rsqrt(tf.reduce_mean(x * x, -1, keepdims=True) + 1e-5) * VECTOR,
        [(1, 5, 8)],
    ),
    ("silu", SWIGLU, lambda tf, keras: lambda x, y: tf.nn.silu(x) * y, [(1, 5, 8)] * 2),
    ("logistic", SWIGLU, lambda tf, keras: lambda x, y: x * (tf.sigmoid(x) * y), [(1, 5, 8)] * 2),
    ("gated rank 4", SWIGLU, lambda tf, keras: lambda x, y: y * keras.ops.silu(x), [(1, 2, 5, 8)] * 2),
]


@pytest.mark.parametrize(("name", "build", "shapes"), [each[1:] for each in WRITTEN], ids=[each[0] for each in WRITTEN])
def test_functions_of_tensorflow(
    name: str, build: Build, shapes: list[tuple[int, ...]], tf: ModuleType, keras: Any, run_tflite: RunTFLite
) -> None:
    (found,) = _check(tf, run_tflite, build(tf, keras), *shapes)
    assert found.name == name


@pytest.mark.parametrize("activation", ["relu", "relu6"])
def test_activations_stay_outside(activation: str, tf: ModuleType, keras: Any, run_tflite: RunTFLite) -> None:
    for name, shape in (("LayerNormalization", (1, 5, 8)), ("GroupNormalization", (1, 4, 4, 8))):
        options = {"groups": 2} if name[0] == "G" else {}
        layer = _layer(keras, getattr(keras.layers, name)(**options), shape)
        apply = getattr(tf.nn, activation)
        (found,) = _check(tf, run_tflite, lambda x, layer=layer, apply=apply: apply(layer(x)), shape)
        assert f"tfl.{activation}" not in found.operators


# Attention.


def _attention(tf: Any, q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """Computes attention with heads before time."""
    scores = tf.matmul(q, k, transpose_b=True) * 8**-0.5
    return tf.matmul(tf.nn.softmax(scores if mask is None else scores + mask), v)


@pytest.mark.parametrize(
    ("heads", "options", "operands"),
    [(4, {}, 3), (4, {"use_causal_mask": True}, 4), (1, {}, 3), (1, {"use_causal_mask": True}, 4)],
)
def test_attention_layers(
    heads: int, options: dict[str, bool], operands: int, tf: ModuleType, keras: Any, run_tflite: RunTFLite
) -> None:
    layer = keras.layers.MultiHeadAttention(heads, 8)
    layer.build((1, 6, 8), (1, 6, 8))
    (found,) = _check(tf, run_tflite, lambda x: layer(x, x, **options), (1, 6, 8))
    assert found.name == ATTENTION
    assert list(found.shapes) == [*[(1, 6, heads, 8)] * 3, (1, 1, 6, 6)][:operands]
    assert found.attributes["scale"] == 1  # The weights of the layer before have absorbed it.


def test_attention_to_another_sequence_with_a_mask(tf: ModuleType, keras: Any, run_tflite: RunTFLite) -> None:
    layer = keras.layers.MultiHeadAttention(4, 8)
    layer.build((1, 6, 8), (1, 9, 8))

    def function(x: Any, y: Any, mask: Any) -> Any:
        return layer(x, y, attention_mask=mask > 0)

    (found,) = _check(tf, run_tflite, function, (1, 6, 8), (1, 9, 8), (1, 6, 9))
    assert list(found.shapes) == [(1, 6, 4, 8), (1, 9, 4, 8), (1, 9, 4, 8), (1, 1, 6, 9)]


def test_the_heads_of_keys_are_repeated_first(tf: ModuleType, keras: Any, run_tflite: RunTFLite) -> None:
    layer = keras.layers.GroupQueryAttention(8, 4, 2)
    layer.build((1, 6, 8), (1, 6, 8))
    (found,) = _check(tf, run_tflite, lambda x: layer(x, x, use_causal_mask=True), (1, 6, 8))
    assert list(found.shapes) == [*[HEADS] * 3, (1, 1, 6, 6)]


@pytest.mark.parametrize("mask", [None, (1, 1, 6, 6), (6, 6), (1, 1, 1, 6)], ids=str)
@pytest.mark.parametrize("shape", [HEADS_FIRST, (1, 1, 6, 8), (2, 4, 6, 8)], ids=str)
def test_heads_before_time(
    shape: tuple[int, ...], mask: tuple[int, ...] | None, tf: ModuleType, run_tflite: RunTFLite
) -> None:
    masks = [] if mask is None else [mask]
    (found,) = _check(tf, run_tflite, lambda *given: _attention(tf, *given), *[shape] * 3, *masks)
    examples, heads, count, size = shape
    assert list(found.shapes) == [*[(examples, count, heads, size)] * 3, *[(1, 1, 6, 6)] * len(masks)]


def test_sequences_without_heads(tf: ModuleType, keras: Any, run_tflite: RunTFLite) -> None:
    def function(q: Any, v: Any) -> Any:
        return keras.layers.Attention()([q, v])

    (found,) = _check(tf, run_tflite, function, (1, 6, 8), (1, 9, 8))
    assert list(found.shapes) == [(1, 6, 1, 8), (1, 9, 1, 8), (1, 9, 1, 8)]
    assert found.attributes["scale"] == 1
    # XNNPACK would compute another result.
    assert not _check(tf, run_tflite, function, (2, 6, 8), (2, 9, 8))


@pytest.mark.parametrize("otherwise", [-1e9, -3e38, float("-inf")])
def test_scores_that_a_constant_mask_chooses(otherwise: float, tf: ModuleType, run_tflite: RunTFLite) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        scores = tf.where(CAUSAL, tf.einsum("bthd,bshd->bhts", q / 8**0.5, k), otherwise)
        return tf.einsum("bhts,bshd->bthd", tf.nn.softmax(scores), v)

    (found,) = _check(tf, run_tflite, function, *[HEADS] * 3)
    assert list(found.shapes) == [*[HEADS] * 3, (1, 1, 6, 6)]
    assert found.attributes["scale"] == pytest.approx(8**-0.5)


def _other_attentions(tf: Any) -> dict[str, Function]:
    bias = RNG.normal(size=(1, 4, 6, 6)).astype(np.float32)
    rows = CAUSAL.copy()
    rows[2] = False
    return {
        "a bias for each head": lambda q, k, v: _attention(tf, q, k, v, bias),
        "a cap": lambda q, k, v: _attention(tf, q, k, v, tf.tanh(tf.matmul(q, k, transpose_b=True))),
        "values of another size": lambda q, k, v: _attention(tf, q, k, v[..., :4]),
        "fewer heads of keys": lambda q, k, v: _attention(tf, q, k[:, :1], v[:, :1]),
        "rows without keys": lambda q, k, v: tf.matmul(
            tf.nn.softmax(tf.where(rows, tf.matmul(q, k, transpose_b=True), -1e9)), v
        ),
        "weights that are used elsewhere": lambda q, k, v: tf.concat(
            [tf.matmul(weights := tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), v), weights], -1
        ),
        "another axis": lambda q, k, v: tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True), -2), v),
    }


@pytest.mark.parametrize(
    "name",
    [
        "a bias for each head",
        "a cap",
        "values of another size",
        "fewer heads of keys",
        "rows without keys",
        "weights that are used elsewhere",
        "another axis",
    ],
)
def test_other_attention_stays(name: str, tf: ModuleType, run_tflite: RunTFLite) -> None:
    assert not _check(tf, run_tflite, _other_attentions(tf)[name], *[HEADS_FIRST] * 3)


# Rotary embeddings.


def _turned(tf: Any, x: Any, cosine: Any, sine: Any) -> Any:
    return x * cosine + tf.concat([-x[..., 4:], x[..., :4]], -1) * sine


def _rotated(tf: Any, x: Any, angles: Any) -> Any:
    a, b = tf.split(x, 2, -1)
    cosine, sine = tf.cos(angles), tf.sin(angles)
    return tf.concat([a * cosine - b * sine, b * cosine + a * sine], -1)


def _ropes(tf: Any) -> dict[str, Function]:
    return {
        "tables": lambda x, p: _turned(tf, x, np.cos(ANGLES), np.sin(ANGLES)) + 0 * tf.reduce_sum(p),
        "halves": lambda x, p: _rotated(tf, x, p[:, None, :, None] * FREQUENCIES),
        "whole": lambda x, p: _turned(
            tf, x, *(f(tf.concat([p[:, None, :, None] * FREQUENCIES] * 2, -1)) for f in (tf.cos, tf.sin))
        ),
    }


@pytest.mark.parametrize("name", ["tables", "halves", "whole"])
def test_rotary_embeddings(name: str, tf: ModuleType, run_tflite: RunTFLite) -> None:
    (found,) = _check(tf, run_tflite, _ropes(tf)[name], HEADS_FIRST, (1, 6))
    assert found.name == ROPE
    assert found.shapes[0] == HEADS_FIRST
    assert found.shapes[1] in ((1, 6), (1, 6, 1), (1, 1, 6, 1))
    assert dict(found.attributes) == {"min_timescale": 1, "max_timescale": 10000}


def test_other_rotations_stay(tf: ModuleType, run_tflite: RunTFLite) -> None:
    uneven = ANGLES * np.linspace(1, 0.9, 8, dtype=np.float32)
    for angles, shape in ((ANGLES[:, None], HEADS), (uneven, HEADS_FIRST), (ANGLES + 1, HEADS_FIRST)):
        tables = np.cos(angles), np.sin(angles)
        assert not _check(tf, run_tflite, lambda x, tables=tables: _turned(tf, x, *tables), shape)


def test_a_decoder(tf: ModuleType, keras: Any, run_tflite: RunTFLite) -> None:
    ops, layers = keras.ops, keras.layers
    norm, dense = _layer(keras, layers.RMSNormalization(), (1, 6, 32)), _layer(keras, layers.Dense(96), (1, 6, 32))
    gate, up = (_layer(keras, layers.Dense(64), (1, 6, 32)) for _ in range(2))

    def function(x: Any) -> Any:
        parts = ops.split(dense(norm(x)), 3, -1)
        q, k, v = (ops.transpose(ops.reshape(each, (1, 6, 4, 8)), (0, 2, 1, 3)) for each in parts)
        q, k = (_turned(tf, each, np.cos(ANGLES), np.sin(ANGLES)) for each in (q, k))
        mask = np.where(CAUSAL, 0, -1e9).astype(np.float32)
        y = x + ops.reshape(ops.transpose(_attention(tf, q, k, v, mask), (0, 2, 1, 3)), (1, 6, 32))
        return ops.silu(gate(y)) * up(y)

    found = sorted(each.name for each in _check(tf, run_tflite, function, (1, 6, 32)))
    assert found == sorted([RMS_NORM, ROPE, ROPE, ATTENTION, SWIGLU])


@pytest.mark.parametrize("heads", [1, 4])
def test_open_batches(heads: int, keras: Any, run_tflite: RunTFLite) -> None:
    x = keras.Input((6, 8))
    y = keras.layers.LayerNormalization()(x)
    network = keras.Model(x, keras.layers.MultiHeadAttention(heads, 8)(y, y))
    model, plain = converted(network, composites=["odml"]), converted(network)
    assert model.report.operators["STABLEHLO_COMPOSITE"] == (1 if heads == 1 else 2)
    for batch in (1, 3):
        sample = [RNG.normal(size=(batch, 6, 8)).astype(np.float32)]
        expected = run_tflite(bytes(plain), sample)[0]
        np.testing.assert_allclose(run_tflite(bytes(model), sample)[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["dynamic", "float16", "weights", "int8"])
def test_quantized_parts_stay(mode: Any, tf: ModuleType, keras: Any, run_tflite: RunTFLite) -> None:
    norm, dense = (
        _layer(keras, keras.layers.LayerNormalization(), (1, 6, 8)),
        _layer(keras, keras.layers.Dense(64), (1, 6, 8)),
    )
    traced = _traced(tf, lambda x: norm(x) + dense(x)[..., :8], [(1, 6, 8)])
    samples = [{"a0": RNG.normal(size=(1, 6, 8)).astype(np.float32)} for _ in range(3)]
    # Without `strict`, a file for processors alone has other floats.
    int8: dict[str, Any] = {"samples": samples, "strict": True}
    quantize = tfconvert.Quantize(mode, **(int8 if mode == "int8" else {}))
    plain, model = converted(traced, quantize=quantize), converted(traced, quantize=quantize, composites=["odml"])
    assert model.report.operators.get("STABLEHLO_COMPOSITE", 0) == (0 if mode == "int8" else 1)
    x = [samples[0]["a0"]]
    np.testing.assert_allclose(run_tflite(bytes(model), x)[0], run_tflite(bytes(plain), x)[0], atol=1e-6)


def test_the_report_and_inspect_tell(tf: ModuleType, keras: Any) -> None:
    layer = _layer(keras, keras.layers.LayerNormalization(), (1, 5, 8))
    model = converted(_traced(tf, layer, [(1, 5, 8)]), composites=["odml"])
    assert "  composites:\n    layer norms     1" in str(model.report)
