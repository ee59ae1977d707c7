"""Small networks on images of any number and size as texts of StableHLO, against TensorFlow, in XLA."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.stablehlo.engine import Program

SHAPES = ((1, 16, 16, 3), (2, 17, 23, 3), (3, 9, 31, 3), (1, 20, 13, 3), (2, 8, 8, 3))

Tensor = Any


class _Layers:
    """Layers of random weights."""

    def __init__(self, tf: ModuleType) -> None:
        self._tf = tf
        self._draw = np.random.default_rng(0)

    def _weight(self, *shape: int) -> Tensor:
        count = np.prod(shape[:-1])
        return self._tf.constant((self._draw.normal(size=shape) / np.sqrt(count)).astype(np.float32))

    def conv(self, x: Tensor, outputs: int, size: int = 3, stride: int = 1, padding: str = "SAME") -> Tensor:
        """Returns a convolution and its normalization."""
        x = self._tf.nn.conv2d(x, self._weight(size, size, x.shape[-1], outputs), stride, padding)
        return self.norm(x)

    def depthwise(self, x: Tensor, stride: int) -> Tensor:
        """Returns a depthwise convolution and its normalization."""
        strides = (1, stride, stride, 1)
        return self.norm(self._tf.nn.depthwise_conv2d(x, self._weight(3, 3, x.shape[-1], 1), strides, "SAME"))

    def norm(self, x: Tensor) -> Tensor:
        """Returns a normalization as it is in inference."""
        scale, offset, mean = (self._draw.normal(1, 0.1, x.shape[-1]).astype(np.float32) for _ in range(3))
        variance = self._draw.uniform(0.5, 1.5, x.shape[-1]).astype(np.float32)
        return self._tf.raw_ops.FusedBatchNormV3(
            x=x, scale=scale, offset=offset, mean=mean, variance=variance, is_training=False
        ).y

    def dense(self, x: Tensor, outputs: int) -> Tensor:
        """Returns a product with a matrix."""
        return self._tf.matmul(x, self._weight(x.shape[-1], outputs))


def _residual(tf: ModuleType, x: Tensor) -> Tensor:
    """Bottlenecks with shortcuts, the first of each stage with a stride, as in ResNet."""
    layers = _Layers(tf)
    x = layers.conv(tf.pad(x, [[0, 0], [3, 3], [3, 3], [0, 0]]), 8, 7, 2, "VALID")
    x = tf.nn.max_pool2d(tf.pad(tf.nn.relu(x), [[0, 0], [1, 1], [1, 1], [0, 0]]), 3, 2, "VALID")
    for stride in (1, 2):
        shortcut = layers.conv(x, 16, 1, stride, "VALID")
        inner = tf.nn.relu(layers.conv(x, 4, 1, stride, "VALID"))
        inner = layers.conv(tf.nn.relu(layers.conv(inner, 4)), 16, 1)
        x = tf.nn.relu(shortcut + inner)
    return layers.dense(tf.reduce_mean(x, [1, 2]), 5)


def _inverted(tf: ModuleType, x: Tensor) -> Tensor:
    """Wide depthwise blocks between narrow ends, as in MobileNetV2."""
    layers = _Layers(tf)
    x = tf.nn.relu6(layers.conv(x, 8, 3, 2))
    for stride in (1, 2, 1):
        wide = tf.nn.relu6(layers.conv(x, 24, 1))
        narrow = layers.conv(tf.nn.relu6(layers.depthwise(wide, stride)), 8, 1)
        x = x + narrow if stride == 1 else narrow
    return tf.nn.softmax(layers.dense(tf.reduce_mean(x, [1, 2]), 5))


def _segmenting(tf: ModuleType, x: Tensor) -> Tensor:
    """Downsampling, and upsampling to the sizes of the skip connections, as in U-Net."""
    layers = _Layers(tf)
    levels = [tf.nn.relu(layers.conv(x, 6))]
    for width in (8, 10):
        levels.append(tf.nn.relu(layers.conv(tf.nn.max_pool2d(levels[-1], 2, 2, "SAME"), width)))
    x = levels.pop()
    while levels:
        other = levels.pop()
        x = tf.concat([tf.image.resize(x, tf.shape(other)[1:3]), other], 3)
        x = tf.nn.relu(layers.conv(x, 6))
    return tf.nn.softmax(layers.conv(x, 4, 1))


@pytest.mark.parametrize(("build", "rank"), [(_residual, 2), (_inverted, 2), (_segmenting, 4)])
def test_a_network_of_open_batch_and_size(tf: ModuleType, build: Callable[..., Any], rank: int) -> None:
    function = tf.function(lambda x: build(tf, x), autograph=False).get_concrete_function(
        tf.TensorSpec([None, None, None, 3], tf.float32, name="x")
    )
    text = bytes(tfconvert.convert(function, target=tfconvert.StableHLO(weights="inline"))).decode()
    program = Program(text, [(tf.float32, (None,) * rank)])
    for shape in SHAPES:
        images = np.random.default_rng(1).normal(size=shape).astype(np.float32)
        (found,) = program.run([images])
        np.testing.assert_allclose(found, function(tf.constant(images)).numpy(), rtol=1e-5, atol=2e-5)
