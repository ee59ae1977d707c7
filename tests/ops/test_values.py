"""Shape arithmetic, followed element by element, against TensorFlow and against what must hold for every batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf

from tests.ops.tiny_graphs import Infer, operand, output_shapes

raw: Any = tf.raw_ops

# What becomes of the shape of x: [?, 6, 4], as a target of a reshape of x.
TARGETS: dict[str, Callable[[Any], Any]] = {
    "strided slice": lambda s: tf.stack([s[0], 24]),
    "negative index": lambda s: tf.stack([s[-3], s[-2] * s[-1]]),
    "slice": lambda s: tf.concat([tf.slice(s, [0], [1]), [24]], 0),
    "gather": lambda s: tf.concat([tf.gather(s, [0]), [tf.reduce_prod(tf.gather(s, [1, 2]))]], 0),
    "left over": lambda s: tf.stack([s[0], -1]),
    "unstacked": lambda s: tf.stack([tf.unstack(s, 3)[0], 24]),
    "split": lambda s: tf.concat([tf.split(s, 3)[0], [24]], 0),
    "identities": lambda s: tf.stack([raw.IdentityN(input=[s, s])[1][0], 24]),
    "remainder": lambda s: tf.stack([s[0] + s[0] % 1, s[1] * s[2] + s[1] % 4 - 2]),
    "taken from one value": lambda s: tf.stack([s[0], tf.maximum(s[1:2], [0, 24])[1]]),
    "smallest": lambda s: tf.stack([tf.minimum(s[0], s[0]), tf.minimum(24, s[1] * 5)]),
    "largest": lambda s: tf.stack([s[0], tf.reduce_max(s[1:]) * tf.reduce_min(s[1:])]),
    "joined as ever": lambda s: raw.Concat(concat_dim=0, values=[s[:1], [24]]),
    "cast": lambda s: tf.cast(tf.stack([tf.cast(s[0], tf.int64), 24]), tf.int32),
    "times one": lambda s: tf.stack([s[0] * 1 + 0, 24]),
    "divided by one": lambda s: tf.stack([s[0] // 1, s[1] * 8 // 2]),
    "maximum": lambda s: tf.stack([tf.maximum(s[0], 0), tf.maximum(s[1], 24)]),
    "minus itself": lambda s: tf.stack([s[0] + (s[0] - s[0]), 24]),
    "expanded and squeezed": lambda s: tf.stack([tf.squeeze(tf.expand_dims(s[0], 0)), 24]),
    "reversed": lambda s: tf.stack([tf.reverse(s, [0])[2], 24]),
    "tiled": lambda s: tf.stack([tf.tile(s[:1], [2])[1], 24]),
    "where": lambda s: tf.stack([tf.raw_ops.SelectV2(condition=True, t=s[0], e=s[1]), 24]),
    "fill": lambda s: tf.concat([tf.fill([1], s[0]), tf.fill([1], 24)], 0),
    "range": lambda s: tf.stack([s[0], tf.reduce_sum(tf.range(7)) + 3]),
    "broadcast": lambda s: raw.BroadcastArgs(s0=tf.stack([s[0], 1]), s1=tf.constant([1, 24])),
    "product of shape": lambda s: tf.stack([s[0], tf.reduce_prod(s[1:])]),
}


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_is_followed(name: str, infer: Infer) -> None:
    def build() -> Any:
        x = operand("f32[?,6,4]")
        return raw.Reshape(tensor=x, shape=TARGETS[name](raw.Shape(input=x)))

    module = infer(build)
    assert output_shapes(module) == [(-1, 24)]
    assert not any(op.name in ("tf.Shape", "tf.Pack", "tf.ConcatV2", "tf.StridedSlice") for op in module.walk())


def test_equal_unknown_dimensions_are_told_from_others(infer: Infer) -> None:
    def build() -> Any:
        x, y = operand("f32[?,6]"), operand("f32[?,6]")
        same = raw.Reshape(tensor=x, shape=tf.stack([raw.Shape(input=x)[0], -1]))
        other = raw.Reshape(tensor=x, shape=tf.stack([raw.Shape(input=y)[0], -1]))
        return same, other

    assert output_shapes(infer(build)) == [(-1, 6), (-1, -1)]


def test_symbols_pass_through_a_network(infer: Infer) -> None:
    """The batch that comes out of convolutions and pooling is the one that went in."""

    def build() -> Any:
        x = operand("f32[?,8,8,3]")
        y = raw.Conv2D(input=x, filter=operand("f32[3,3,3,4]"), strides=[1, 2, 2, 1], padding="SAME")
        z = raw.MaxPool(input=raw.Relu(features=y), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
        return raw.Reshape(tensor=z, shape=tf.stack([raw.Shape(input=x)[0], -1]))

    module = infer(build)
    assert output_shapes(module) == [(-1, 16)]
    assert not any(op.name == "tf.Pack" for op in module.walk())


def test_arithmetic_that_overflows_is_not_followed(infer: Infer) -> None:
    def build() -> Any:
        x = operand("f32[65536,65536]")
        s = raw.Shape(input=x)
        return raw.Fill(dims=tf.stack([s[0] * s[1] * operand("i32[]")]), value=1.0)

    assert output_shapes(infer(build)) == [(-1,)]


@pytest.mark.parametrize(("said", "shape"), [([-1, 3], (-1, 3)), ([2], (2,)), ([], ()), (-1, None)])
def test_what_reads_a_list_says_what_it_expects(said: Any, shape: Any, infer: Infer) -> None:
    def build() -> Any:
        wanted = tf.constant(said, tf.int32)
        made = raw.TensorListReserve(element_shape=wanted, num_elements=2, element_dtype=tf.float32)
        return raw.TensorListGetItem(input_handle=made, index=0, element_shape=wanted, element_dtype=tf.float32)

    assert output_shapes(infer(build)) == [shape]
