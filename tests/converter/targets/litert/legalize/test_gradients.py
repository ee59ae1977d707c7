"""Gradients of layers, as functions that train have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import tfconvert
from tests.support.litert import RunTFLite
from tests.support.saved_function import save_function

BATCH = 2


class Layer(NamedTuple):
    """A layer, and the ops of its gradients that are tested by it.

    Attributes:
        ops: The ops, separated by spaces.
        run: The layer: takes TensorFlow, the input and the weights.
        image: The shape of an input.
        weights: The shape of the weights.
    """

    ops: str
    run: Callable[[Any, Any, Any], Any]
    image: tuple[int, ...] = (7, 8, 4)
    weights: tuple[int, ...] = (4,)


_INPUT_AND_FILTER = "Conv2DBackpropInput Conv2DBackpropFilter"
_DEPTHWISE = "DepthwiseConv2dNativeBackpropInput DepthwiseConv2dNativeBackpropFilter"
_DILATION = "Dilation2D Dilation2DBackpropInput Dilation2DBackpropFilter"
_3D = "Conv3DBackpropInputV2 Conv3DBackpropFilterV2"
_CUBE = (5, 6, 5, 2)
_PICKED = ("Mean", "SqrtN", "Sum")
_KERNEL, _FINE = (3, 2, 4, 3), (3, 3, 4, 2)


def _conv(stride: Any, padding: Any, dilation: int = 1) -> Callable[[Any, Any, Any], Any]:
    return lambda tf, x, w: tf.nn.conv2d(x, w, stride, padding, dilations=dilation)


def _depthwise(stride: int, padding: Any, dilation: int = 1) -> Callable[[Any, Any, Any], Any]:
    rate = (dilation, dilation)
    return lambda tf, x, w: tf.nn.depthwise_conv2d(x, w, (1, stride, stride, 1), padding, dilations=rate)


def _pool(kind: str, size: Any, stride: Any, padding: str) -> Callable[[Any, Any, Any], Any]:
    return lambda tf, x, w: getattr(tf.nn, kind)(
        tf.round(x) + x * 0 * w if kind[0] == "m" else x * w, size, stride, padding
    )


def _pool_with_argmax(*, batch: bool) -> Callable[[Any, Any, Any], Any]:
    return lambda tf, x, w: tf.nn.max_pool_with_argmax(x * w, (3, 2), 2, "SAME", include_batch_in_index=batch)[0]


def _twice_pooled(tf: Any, x: Any, w: Any) -> Any:
    how: dict[str, Any] = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
    whole = tf.round(x)
    pooled = tf.nn.max_pool2d(whole, **how)
    return tf.raw_ops.MaxPoolGradGrad(orig_input=whole, orig_output=pooled, grad=x * w, **how)


def _twice_pooled_cubes(tf: Any, x: Any, w: Any) -> Any:
    how: dict[str, Any] = {"ksize": [1, 2, 3, 2, 1], "strides": [1, 1, 2, 2, 1], "padding": "SAME"}
    whole = tf.round(x)
    pooled = tf.nn.max_pool3d(whole, **how)
    return tf.raw_ops.MaxPool3DGradGrad(orig_input=whole, orig_output=pooled, grad=x * w, **how)


def _dilation(stride: int, padding: str, rate: int = 1) -> Callable[[Any, Any, Any], Any]:
    return lambda tf, x, w: tf.nn.dilation2d(x, w, (1, stride, stride, 1), padding, "NHWC", (1, rate, rate, 1))


def _picked(how: str) -> Callable[[Any, Any, Any], Any]:
    indices, ids = [2, 0, 3, 0, 1], [0, 0, 1, 1, 3]
    return lambda tf, x, w: getattr(tf.raw_ops, f"SparseSegment{how}")(data=w, indices=indices, segment_ids=ids) * x[0]


def _norm(training: bool, version: str = "V3") -> Callable[[Any, Any, Any], Any]:
    def run(tf: Any, x: Any, w: Any) -> Any:
        given = (tf.zeros([0]),) * 2 if training else (w * 0.1, w * w + 0.5)
        return getattr(tf.raw_ops, f"FusedBatchNorm{version}")(
            x=x, scale=w, offset=w * 2, mean=given[0], variance=given[1], epsilon=0.01, is_training=training
        ).y

    return run


def _resize(method: str, size: tuple[int, int], **how: bool) -> Callable[[Any, Any, Any], Any]:
    return lambda tf, x, w: getattr(tf.raw_ops, f"Resize{method}")(images=x * w, size=size, **how)


LAYERS: Mapping[str, Layer] = {
    "conv": Layer(_INPUT_AND_FILTER, _conv(1, "SAME"), weights=_KERNEL),
    "strided conv": Layer(_INPUT_AND_FILTER, _conv((3, 2), "VALID"), weights=_KERNEL),
    "strided conv with padding": Layer(_INPUT_AND_FILTER, _conv(2, "SAME"), weights=_KERNEL),
    "conv with strides beyond the filter": Layer(_INPUT_AND_FILTER, _conv(3, "SAME"), weights=(1, 2, 4, 3)),
    "conv with explicit padding": Layer(_INPUT_AND_FILTER, _conv(2, [[0, 0], [2, 1], [0, 1], [0, 0]]), weights=_KERNEL),
    "conv of cubes": Layer(_3D, lambda tf, x, w: tf.nn.conv3d(x, w, (1, 1, 2, 2, 1), "SAME"), _CUBE, (3, 2, 3, 2, 3)),
    "depthwise": Layer(_DEPTHWISE, _depthwise(1, "SAME"), weights=_FINE),
    "strided depthwise": Layer(_DEPTHWISE, _depthwise(2, "SAME"), weights=(3, 3, 4, 1)),
    "dilated depthwise": Layer(_DEPTHWISE, _depthwise(1, "SAME", 2), weights=_FINE),
    "max pool": Layer("MaxPoolGrad", _pool("max_pool2d", 2, 2, "VALID")),
    "max pool of windows that overlap": Layer("MaxPoolGrad", _pool("max_pool2d", 3, 2, "SAME")),
    "max pool in single steps": Layer("MaxPoolGrad", _pool("max_pool2d", (2, 3), 1, "VALID")),
    "max pool v2": Layer(
        "MaxPoolGradV2",
        lambda tf, x, w: tf.raw_ops.MaxPoolV2(input=x * w, ksize=[1, 3, 2, 1], strides=[1, 1, 3, 1], padding="SAME"),
    ),
    "max pool of cubes": Layer("MaxPool3DGrad", _pool("max_pool3d", 2, 2, "SAME"), _CUBE, (2,)),
    "average pool": Layer("AvgPoolGrad", _pool("avg_pool2d", 2, 2, "SAME")),
    "average pool of windows that overlap": Layer("AvgPoolGrad", _pool("avg_pool2d", (3, 5), 2, "SAME")),
    "average pool of cubes": Layer("AvgPool3DGrad", _pool("avg_pool3d", (2, 3, 2), (2, 1, 3), "VALID"), _CUBE, (2,)),
    "slice": Layer("StridedSliceGrad", lambda tf, x, w: (x * w)[:, 1:-2, -1]),
    "slice in steps": Layer("StridedSliceGrad", lambda tf, x, w: (x * w)[:, ::3, 6:1:-2]),
    "slice backwards": Layer("StridedSliceGrad", lambda tf, x, w: (x * w)[::-1, ..., 1, None]),
    "slice of the batch": Layer("StridedSliceGrad", lambda tf, x, w: (x * w)[-1:, None]),
    "slice at a computed index": Layer(
        "StridedSliceGrad", lambda tf, x, w: (x * w)[:, tf.cast(x[0, 0, 0, 0] * 0, tf.int32) + 2, -6:]
    ),
    "mirror pad": Layer("MirrorPadGrad", lambda tf, x, w: tf.pad(x * w, [[0, 0], [2, 1], [0, 3], [1, 0]], "REFLECT")),
    "symmetric pad": Layer(
        "MirrorPadGrad", lambda tf, x, w: tf.pad(x * w, [[0, 0], [2, 1], [0, 3], [1, 0]], "SYMMETRIC")
    ),
    "bilinear": Layer("ResizeBilinearGrad", _resize("Bilinear", (14, 12), half_pixel_centers=True)),
    "nearest": Layer("ResizeNearestNeighborGrad", _resize("NearestNeighbor", (14, 5))),
    "bicubic": Layer("ResizeBicubicGrad", _resize("Bicubic", (9, 5), half_pixel_centers=True)),
    "batch norm in training": Layer("FusedBatchNormGradV3", _norm(True)),
    "batch norm": Layer("FusedBatchNormGradV3", _norm(False)),
    "batch norm v1": Layer("FusedBatchNormGrad", _norm(True, "")),
    "batch norm v2": Layer("FusedBatchNormGradV2", _norm(True, "V2")),
    "local response": Layer("LRNGrad", lambda tf, x, w: tf.nn.local_response_normalization(x * w, 1, 1.0, 0.3, 0.7)),
    "max pool with argmax": Layer("MaxPoolGradWithArgmax", _pool_with_argmax(batch=False)),
    "max pool with argmax of the batch": Layer("MaxPoolGradWithArgmax", _pool_with_argmax(batch=True)),
    "gradient of a max pool's gradient": Layer("MaxPoolGradGrad", _twice_pooled),
    "gradient of a max pool of cubes' gradient": Layer("MaxPool3DGradGrad", _twice_pooled_cubes, _CUBE, (2,)),
    "dilation": Layer(_DILATION, _dilation(1, "SAME"), weights=(3, 2, 4)),
    "strided dilation": Layer(_DILATION, _dilation(2, "VALID", 2), weights=(2, 3, 4)),
    "fake quant": Layer(
        "FakeQuantWithMinMaxArgsGradient",
        lambda tf, x, w: tf.quantization.fake_quant_with_min_max_args(x * w, -0.7, 1.2, 4),
        (5, 4),
    ),
    "fake quant of a computed range": Layer(
        "FakeQuantWithMinMaxVarsGradient",
        lambda tf, x, w: tf.quantization.fake_quant_with_min_max_vars(x, w[0] * 0 - 0.7, w[1] + 2, 3, True),
        (5, 4),
    ),
    "fake quant of channels": Layer(
        "FakeQuantWithMinMaxVarsPerChannelGradient",
        lambda tf, x, w: tf.quantization.fake_quant_with_min_max_vars_per_channel(x, w - 1.0, w + 1.1),
        (5, 4),
    ),
    "fake quant of ranges that are empty": Layer(
        "FakeQuantWithMinMaxVarsPerChannelGradient",
        lambda tf, x, w: tf.quantization.fake_quant_with_min_max_vars_per_channel(x, w * 0 - [0, 1, 0, 1], w * 0.0),
        (5, 4),
    ),
    **{f"{how} of picked rows": Layer(f"SparseSegment{how}Grad", _picked(how), (4, 3), (5, 3)) for how in _PICKED},
    "repeat": Layer("", lambda tf, x, w: tf.repeat(tf.repeat(x * w, 2, 1), 3, 2)),
    "tile": Layer("", lambda tf, x, w: tf.tile(x * w, [1, 2, 1, 3])),
    "map over the batch": Layer("", lambda tf, x, w: tf.map_fn(lambda row: tf.sin(row) * row * w, x), (3,), (3,)),
    "gather": Layer("", lambda tf, x, w: tf.gather(tf.transpose(w), tf.cast(tf.abs(x), tf.int32)), (3,), (5, 6)),
}

OPS = {op for layer in LAYERS.values() for op in layer.ops.split()}


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_layers(tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path, name: str) -> None:
    """The gradients by the input and by the weights, with batches of any size."""
    layer, random = LAYERS[name], np.random.default_rng(len(name))

    def gradients(x: Any, w: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch((x, w))
            loss = tf.reduce_sum(tf.sin(layer.run(tf, x, w)))
        return tuple(tf.convert_to_tensor(each) for each in tape.gradient(loss, (x, w), unconnected_gradients="zero"))

    signature = [tf.TensorSpec([None, *layer.image], name="x"), tf.TensorSpec(layer.weights, name="w")]
    concrete = tf.function(gradients, input_signature=signature).get_concrete_function()
    found = {op.type for op in concrete.graph.get_operations()}
    assert found >= set(layer.ops.split())
    x = random.uniform(-2, 2, (BATCH, *layer.image)).astype(np.float32)
    w = random.uniform(-1, 1, layer.weights).astype(np.float32)
    save_function(tf, tmp_path, concrete)
    model = tfconvert.convert(tmp_path)
    got = run_tflite(bytes(model), {"x": x, "w": w}, signature="serving_default")
    for value, wanted in zip(got, concrete(tf.constant(x), tf.constant(w)), strict=True):
        np.testing.assert_allclose(value, wanted.numpy(), 1e-4, 1e-4)
