"""Transformers for `latency_models.py`, in the forms in which libraries write them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


class Weights:
    """Makes the random variables of a function."""

    def __init__(self, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)

    def __call__(self, *shape: int, scale: float = 0.05, base: float = 0.0) -> Any:
        """Returns a variable."""
        import tensorflow as tf

        return tf.Variable(self._random.normal(base, scale, shape).astype("f"))


def _encoder(x: Any, heads: int, width: int, activation: str = "gelu", before: bool = True, **attention: Any) -> Any:
    """A block of Keras' own layers."""
    from keras import layers

    depth = x.shape[-1]
    y = layers.LayerNormalization(epsilon=1e-6)(x) if before else x
    y = x + layers.MultiHeadAttention(heads, depth // heads)(y, y, **attention)
    y = y if before else layers.LayerNormalization(epsilon=1e-6)(y)
    z = layers.LayerNormalization(epsilon=1e-6)(y) if before else y
    z = y + layers.Dense(depth)(layers.Dense(width, activation=activation)(z))
    return z if before else layers.LayerNormalization(epsilon=1e-6)(z)


def keras_bert(length: int = 64, depth: int = 128) -> Any:
    """Token and position embeddings, a mask, and Keras' attention layers."""
    import keras
    from keras import Model, layers

    tokens, mask = layers.Input((length,), dtype="int32"), layers.Input((length,), dtype="int32")
    x = layers.Embedding(1000, depth)(tokens) + layers.Embedding(length, depth)(keras.ops.arange(length))
    x = layers.LayerNormalization()(x)
    for _ in range(2):
        x = _encoder(x, 4, depth * 4, before=False, attention_mask=keras.ops.cast(mask[:, None], "bool"))
    return Model([tokens, mask], layers.Dense(2)(layers.Dense(depth, activation="tanh")(x[:, 0])))


def keras_vit() -> Any:
    """Patches by a convolution, a class token, and Keras' attention layers."""
    import keras
    from keras import Model, layers

    inputs = layers.Input((64, 64, 3))
    x = layers.Reshape((64, 128))(layers.Conv2D(128, 8, 8)(inputs))
    x = x + layers.Embedding(64, 128)(keras.ops.arange(64))
    for _ in range(3):
        x = _encoder(x, 4, 256)
    x = layers.LayerNormalization()(x)
    return Model(inputs, layers.Dense(100)(layers.GlobalAveragePooling1D()(x)))


def keras_decoder() -> Any:
    """A causal language model of Keras' attention layers, with the embedding's weights at the end."""
    import keras
    from keras import Model, layers

    tokens = layers.Input((48,), dtype="int32")
    embedding = layers.Embedding(1000, 96)
    x = embedding(tokens) + layers.Embedding(48, 96)(keras.ops.arange(48))
    for _ in range(2):
        x = _encoder(x, 3, 384, use_causal_mask=True)
    x = layers.LayerNormalization()(x)
    return Model(tokens, keras.ops.matmul(x, keras.ops.transpose(embedding.embeddings)))


def translation() -> Any:
    """An encoder and a decoder with attention across."""
    import keras
    from keras import Model, layers

    source, target = layers.Input((32,), dtype="int32"), layers.Input((24,), dtype="int32")
    x = layers.Embedding(1000, 96)(source) * math.sqrt(96)
    for _ in range(2):
        x = _encoder(x, 4, 192, "relu", before=False)
    y = layers.Embedding(1000, 96)(target) * math.sqrt(96)
    for _ in range(2):
        y = layers.LayerNormalization()(y + layers.MultiHeadAttention(4, 24)(y, y, use_causal_mask=True))
        y = layers.LayerNormalization()(y + layers.MultiHeadAttention(4, 24)(y, x))
        y = layers.LayerNormalization()(y + layers.Dense(96)(layers.Dense(192, activation="relu")(y)))
    return Model([source, target], keras.ops.softmax(layers.Dense(500)(y)))


def _norm(tf: Any, x: Any, gamma: Any, beta: Any) -> Any:
    """A layer norm by moments, as Hugging Face's TensorFlow models compute it."""
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-6)


def _gelu(tf: Any, x: Any, approximate: bool) -> Any:
    if approximate:
        return 0.5 * x * (1.0 + tf.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * tf.pow(x, 3))))
    return 0.5 * x * (1.0 + tf.math.erf(x / tf.cast(math.sqrt(2.0), x.dtype)))


def _dense(tf: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    """A dense layer over a sequence by a tensor product, as Keras 2 did it."""
    y = tf.tensordot(x, weight, [[2], [0]])
    return y if bias is None else tf.nn.bias_add(y, bias)


def hugging_bert(length: int = 64, depth: int = 128, heads: int = 4, layers: int = 3, approximate: bool = False) -> Any:
    """BERT as Hugging Face's TensorFlow models write it: reshapes and transposes around batch products."""
    import tensorflow as tf

    make = Weights()
    blocks = [
        {
            **{name: (make(depth, depth), make(depth)) for name in ("query", "key", "value", "output")},
            "first": (make(depth, depth * 4), make(depth * 4)),
            "second": (make(depth * 4, depth), make(depth)),
            "norms": [(make(depth, base=1), make(depth)) for _ in range(2)],
        }
        for _ in range(layers)
    ]
    words, positions, kinds = make(1000, depth), make(length, depth), make(2, depth)
    gamma, beta = make(depth, base=1), make(depth)
    pooler = make(depth, depth), make(depth)

    def split(x: Any) -> Any:
        return tf.transpose(tf.reshape(x, (tf.shape(x)[0], -1, heads, depth // heads)), (0, 2, 1, 3))

    def call(tokens: Any, mask: Any, types: Any) -> Any:
        x = tf.gather(words, tokens) + tf.gather(positions, tf.range(length))[None] + tf.gather(kinds, types)
        x = _norm(tf, x, gamma, beta)
        bias = (1.0 - tf.cast(mask[:, None, None, :], tf.float32)) * -10000.0
        for block in blocks:
            query, key, value = (split(_dense(tf, x, *block[name])) for name in ("query", "key", "value"))
            scores = tf.matmul(query, key, transpose_b=True) / tf.cast(math.sqrt(depth // heads), tf.float32)
            probabilities = tf.nn.softmax(scores + bias, axis=-1)
            context = tf.transpose(tf.matmul(probabilities, value), (0, 2, 1, 3))
            context = tf.reshape(context, (tf.shape(x)[0], -1, depth))
            x = _norm(tf, _dense(tf, context, *block["output"]) + x, *block["norms"][0])
            y = _gelu(tf, _dense(tf, x, *block["first"]), approximate)
            x = _norm(tf, _dense(tf, y, *block["second"]) + x, *block["norms"][1])
        return x, tf.tanh(tf.matmul(x[:, 0], pooler[0]) + pooler[1])

    return call


def _joint_layer(make: Weights, depth: int) -> tuple[Any, ...]:
    """The weights of two norms, of one product for query, key and value, and of three dense layers."""
    return (
        [(make(depth, base=1), make(depth)) for _ in range(2)],
        (make(depth, 3 * depth), make(3 * depth)),
        (make(depth, depth), make(depth)),
        (make(depth, 4 * depth), make(4 * depth)),
        (make(4 * depth, depth), make(depth)),
    )


def gpt(length: int = 48, depth: int = 96, heads: int = 4) -> Any:
    """GPT-2: one product for query, key and value, a mask by a band of ones, the approximate GELU."""
    import tensorflow as tf

    make = Weights(1)
    blocks = [_joint_layer(make, depth) for _ in range(2)]
    words, positions, last = make(1000, depth), make(length, depth), (make(depth, base=1), make(depth))

    def product(x: Any, weight: Any, bias: Any) -> Any:
        """A product over flattened rows, as Conv1D of GPT-2 computes it."""
        flat = tf.reshape(x, (-1, weight.shape[0]))
        return tf.reshape(tf.matmul(flat, weight) + bias, (1, length, weight.shape[1]))

    def call(tokens: Any) -> Any:
        x = tf.gather(words, tokens) + positions
        rows, columns = tf.range(length)[:, None], tf.range(length)
        allowed = tf.cast(rows >= columns, tf.float32)[None, None]
        for norms, joint, output, first, second in blocks:
            parts = tf.split(product(_norm(tf, x, *norms[0]), *joint), 3, axis=2)
            query, key, value = (
                tf.transpose(tf.reshape(part, (1, length, heads, depth // heads)), (0, 2, 1, 3)) for part in parts
            )
            scores = tf.matmul(query, key, transpose_b=True) * (1 / math.sqrt(depth // heads))
            scores = scores * allowed - 1e4 * (1 - allowed)
            context = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), (0, 2, 1, 3))
            x = x + product(tf.reshape(context, (1, length, depth)), *output)
            x = x + product(_gelu(tf, product(_norm(tf, x, *norms[1]), *first), True), *second)
        return tf.matmul(_norm(tf, x, *last), words, transpose_b=True)

    return call


def llama(length: int = 48, depth: int = 96, heads: int = 4, groups: int = 2, step: bool = False) -> Any:
    """Rotated queries and keys, fewer keys than queries, RMS norms, gated layers; a step uses given keys and values."""
    import tensorflow as tf

    make = Weights(2)
    width, hidden = depth // heads, 256
    count = 2
    blocks = [
        (
            [make(depth, base=1) for _ in range(2)],
            make(depth, depth),
            make(depth, groups * width),
            make(depth, groups * width),
            make(depth, depth),
            (make(depth, hidden), make(depth, hidden), make(hidden, depth)),
        )
        for _ in range(count)
    ]
    words, last = make(1000, depth), make(depth, base=1)
    angles = np.arange(length)[:, None] / 10000 ** (np.arange(0, width, 2) / width)
    cosines = tf.constant(np.cos(np.concatenate([angles, angles], -1)).astype("f"))
    sines = tf.constant(np.sin(np.concatenate([angles, angles], -1)).astype("f"))
    current = 1 if step else length

    def norm(x: Any, weight: Any) -> Any:
        return weight * (x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True) + 1e-6))

    def rotate(x: Any, cosine: Any, sine: Any) -> Any:
        left, right = x[..., : width // 2], x[..., width // 2 :]
        return x * cosine + tf.concat([-right, left], -1) * sine

    def repeat(x: Any) -> Any:
        return tf.reshape(tf.tile(x[:, :, None], (1, 1, heads // groups, 1, 1)), (1, heads, length, width))

    def call(tokens: Any, *caches: Any) -> Any:
        x, updated = tf.gather(words, tokens), []
        cosine, sine = (cosines[-1:], sines[-1:]) if step else (cosines, sines)
        mask = tf.where(tf.range(length)[:, None] >= tf.range(length), 0.0, -1e9)
        for index, (norms, query_weight, key_weight, value_weight, output, (gate, up, down)) in enumerate(blocks):
            y = norm(x, norms[0])
            query, key, value = (
                tf.transpose(tf.reshape(tf.einsum("bld,de->ble", y, weight), (1, current, -1, width)), (0, 2, 1, 3))
                for weight in (query_weight, key_weight, value_weight)
            )
            query, key = rotate(query, cosine, sine), rotate(key, cosine, sine)
            if step:
                key = tf.concat([caches[2 * index][:, :, 1:], key], 2)
                value = tf.concat([caches[2 * index + 1][:, :, 1:], value], 2)
                updated += [key, value]
            scores = tf.einsum("bhqd,bhkd->bhqk", query, repeat(key)) / math.sqrt(width)
            scores = tf.nn.softmax(scores if step else scores + mask)
            context = tf.einsum("bhqk,bhkd->bqhd", scores, repeat(value))
            x = x + tf.einsum("bld,de->ble", tf.reshape(context, (1, current, depth)), output)
            y = norm(x, norms[1])
            y = tf.nn.silu(tf.einsum("bld,de->ble", y, gate)) * tf.einsum("bld,de->ble", y, up)
            x = x + tf.einsum("bld,de->ble", y, down)
        return tf.einsum("bld,vd->blv", norm(x, last), words), *updated

    return call


def llama_step() -> Any:
    """One step of generating, with caches of keys and values."""
    return llama(step=True)


def t5() -> Any:
    """RMS norms, no scale, a bias by buckets of relative positions, ReLU."""
    import tensorflow as tf

    make, length, depth, heads = Weights(3), 48, 96, 4
    blocks = [
        (
            [make(depth, base=1) for _ in range(2)],
            [make(depth, depth) for _ in range(4)],
            make(depth, 256),
            make(256, depth),
        )
        for _ in range(2)
    ]
    words, table, last = make(1000, depth), make(32, heads), make(depth, base=1)

    def norm(x: Any, weight: Any) -> Any:
        variance = tf.math.reduce_mean(tf.math.square(x), axis=-1, keepdims=True)
        return weight * (x * tf.math.rsqrt(variance + 1e-6))

    def call(tokens: Any, mask: Any) -> Any:
        x = tf.gather(words, tokens)
        distance = tf.range(length)[None] - tf.range(length)[:, None]
        small = tf.abs(distance)
        far = 8 + tf.cast(tf.math.log(tf.cast(small, tf.float32) / 8 + 1e-9) / math.log(16) * 8, tf.int32)
        bucket = tf.where(small < 8, small, tf.minimum(far, 15)) + tf.where(distance > 0, 16, 0)
        bias = tf.transpose(tf.gather(table, bucket), (2, 0, 1))[None]
        bias += (1.0 - tf.cast(mask[:, None, None], tf.float32)) * -1e9
        for norms, weights, first, second in blocks:
            y = norm(x, norms[0])
            query, key, value = (
                tf.transpose(tf.reshape(tf.matmul(y, weight), (1, length, heads, depth // heads)), (0, 2, 1, 3))
                for weight in weights[:3]
            )
            scores = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) + bias)
            context = tf.reshape(tf.transpose(tf.matmul(scores, value), (0, 2, 1, 3)), (1, length, depth))
            x = x + tf.matmul(context, weights[3])
            x = x + tf.matmul(tf.nn.relu(tf.matmul(norm(x, norms[1]), first)), second)
        return norm(x, last)

    return call


def swin() -> Any:
    """Attention in shifted windows, with merged patches."""
    import keras
    from keras import Model, layers

    def windows(x: Any, size: int) -> Any:
        height, width, depth = x.shape[1:]
        x = keras.ops.reshape(x, (-1, height // size, size, width // size, size, depth))
        return keras.ops.reshape(keras.ops.transpose(x, (0, 1, 3, 2, 4, 5)), (-1, size * size, depth))

    def joined(x: Any, size: int, height: int, width: int) -> Any:
        depth = x.shape[-1]
        x = keras.ops.reshape(x, (-1, height // size, width // size, size, size, depth))
        return keras.ops.reshape(keras.ops.transpose(x, (0, 1, 3, 2, 4, 5)), (-1, height, width, depth))

    def attention(x: Any, heads: int, bias: Any) -> Any:
        length, depth = x.shape[1:]
        joint = keras.ops.reshape(layers.Dense(3 * depth)(x), (-1, length, 3, heads, depth // heads))
        joint = keras.ops.transpose(joint, (2, 0, 3, 1, 4))
        query, key, value = joint[0] * (depth // heads) ** -0.5, joint[1], joint[2]
        scores = keras.ops.softmax(query @ keras.ops.transpose(key, (0, 1, 3, 2)) + bias)
        context = keras.ops.reshape(keras.ops.transpose(scores @ value, (0, 2, 1, 3)), (-1, length, depth))
        return layers.Dense(depth)(context)

    random = np.random.default_rng(4)
    inputs = layers.Input((64, 64, 3), batch_size=1)
    x = layers.LayerNormalization()(layers.Conv2D(48, 4, 4)(inputs))
    for stage, heads in enumerate((3, 6)):
        height, width, depth = x.shape[1:]
        for shift in (0, 2):
            y = layers.LayerNormalization()(x)
            y = keras.ops.roll(y, (-shift, -shift), (1, 2)) if shift else y
            bias = random.normal(0, 1, (1, heads, 16, 16)).astype("f")
            y = joined(attention(windows(y, 4), heads, bias), 4, height, width)
            y = keras.ops.roll(y, (shift, shift), (1, 2)) if shift else y
            x = x + y
            x = x + layers.Dense(depth)(layers.Dense(4 * depth, activation="gelu")(layers.LayerNormalization()(x)))
        if not stage:
            parts = [x[:, row::2, column::2] for row, column in ((0, 0), (1, 0), (0, 1), (1, 1))]
            x = layers.Dense(2 * depth, use_bias=False)(layers.LayerNormalization()(keras.ops.concatenate(parts, -1)))
    return Model(inputs, layers.Dense(50)(keras.ops.mean(layers.LayerNormalization()(x), (1, 2))))


def mobile_vit() -> Any:
    """Inverted residuals, and transformers over unfolded patches."""
    import keras
    from keras import Model, layers

    def inverted(x: Any, filters: int, strides: int) -> Any:
        y = layers.Conv2D(x.shape[-1] * 2, 1, use_bias=False)(x)
        y = keras.ops.silu(layers.BatchNormalization()(y))
        y = layers.DepthwiseConv2D(3, strides, padding="same", use_bias=False)(y)
        y = layers.Conv2D(filters, 1, use_bias=False)(keras.ops.silu(layers.BatchNormalization()(y)))
        y = layers.BatchNormalization()(y)
        return x + y if x.shape == y.shape else y

    def block(x: Any, depth: int, count: int) -> Any:
        size, channels = x.shape[1], x.shape[-1]
        y = layers.Conv2D(channels, 3, padding="same", activation="silu")(x)
        y = layers.Conv2D(depth, 1)(y)
        y = keras.ops.reshape(y, (-1, size // 2, 2, size // 2, 2, depth))
        y = keras.ops.reshape(keras.ops.transpose(y, (0, 2, 4, 1, 3, 5)), (-1, 4, size * size // 4, depth))
        for _ in range(count):
            y = _encoder(y, 2, depth * 2, "silu")
        y = keras.ops.reshape(y, (-1, 2, 2, size // 2, size // 2, depth))
        y = keras.ops.reshape(keras.ops.transpose(y, (0, 3, 1, 4, 2, 5)), (-1, size, size, depth))
        y = layers.Conv2D(channels, 1, activation="silu")(y)
        return layers.Conv2D(channels, 3, padding="same", activation="silu")(keras.ops.concatenate([x, y], -1))

    inputs = layers.Input((64, 64, 3))
    x = layers.Conv2D(16, 3, 2, padding="same", activation="silu")(inputs)
    x = inverted(inverted(x, 24, 2), 24, 1)
    x = block(x, 64, 1)
    x = block(inverted(x, 32, 2), 80, 2)
    return Model(inputs, layers.Dense(50)(layers.GlobalAveragePooling2D()(x)))


def mixer() -> Any:
    """Dense layers over patches and over channels in turns (MLP-Mixer)."""
    import keras
    from keras import Model, layers

    inputs = layers.Input((64, 64, 3))
    x = layers.Reshape((64, 96))(layers.Conv2D(96, 8, 8)(inputs))
    for _ in range(3):
        y = keras.ops.transpose(layers.LayerNormalization()(x), (0, 2, 1))
        y = layers.Dense(64)(layers.Dense(48, activation="gelu")(y))
        x = x + keras.ops.transpose(y, (0, 2, 1))
        x = x + layers.Dense(96)(layers.Dense(192, activation="gelu")(layers.LayerNormalization()(x)))
    return Model(inputs, layers.Dense(50)(layers.GlobalAveragePooling1D()(x)))


def conformer() -> Any:
    """Halved dense layers, attention, and a gated depthwise convolution over time."""
    import keras
    from keras import Model, layers

    inputs = layers.Input((64, 40))
    x = layers.Dense(96)(inputs)
    for _ in range(2):
        y = layers.Dense(384, activation="silu")(layers.LayerNormalization()(x))
        x = x + 0.5 * layers.Dense(96)(y)
        y = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(4, 24)(y, y)
        left, right = keras.ops.split(layers.Conv1D(192, 1)(layers.LayerNormalization()(x)), 2, axis=-1)
        y = layers.DepthwiseConv1D(15, padding="same")(left * keras.ops.sigmoid(right))
        x = x + layers.Conv1D(96, 1)(keras.ops.silu(layers.BatchNormalization()(y)))
        y = layers.Dense(384, activation="silu")(layers.LayerNormalization()(x))
        x = layers.LayerNormalization()(x + 0.5 * layers.Dense(96)(y))
    return Model(inputs, keras.ops.log_softmax(layers.Dense(30)(x)))


def detr() -> Any:
    """A convolutional network, positions, an encoder, and queries that are learned."""
    import keras
    from keras import Model, layers

    inputs = x = layers.Input((96, 96, 3))
    for filters in (24, 48, 64, 96):
        x = layers.Conv2D(filters, 3, 2, padding="same", use_bias=False)(x)
        x = layers.Activation("relu")(layers.BatchNormalization()(x))
    x = layers.Reshape((36, 96))(x) + layers.Embedding(36, 96)(keras.ops.arange(36))
    x = _encoder(x, 4, 192, "relu")
    queries = layers.Embedding(20, 96)(keras.ops.arange(20))
    y = keras.ops.repeat(queries[None], 1, axis=0)
    y = y + layers.MultiHeadAttention(4, 24)(y, x)
    y = layers.LayerNormalization()(y)
    y = layers.LayerNormalization()(y + layers.Dense(96)(layers.Dense(192, activation="relu")(y)))
    return Model(inputs, [layers.Dense(12)(y), layers.Dense(4, activation="sigmoid")(y)])


def diffusion() -> Any:
    """Residual blocks with group norms, time embeddings, and attention over pixels."""
    import keras
    from keras import Model, layers

    images, time = layers.Input((16, 16, 4)), layers.Input((1,))
    frequencies = np.exp(-np.log(10000) * np.arange(16) / 16).astype("f")
    angles = time * frequencies
    embedded = keras.ops.concatenate([keras.ops.sin(angles), keras.ops.cos(angles)], -1)
    embedded = layers.Dense(64)(layers.Dense(64, activation="silu")(embedded))
    x = layers.Conv2D(64, 3, padding="same")(images)
    for _ in range(2):
        y = layers.Conv2D(64, 3, padding="same")(keras.ops.silu(layers.GroupNormalization(8)(x)))
        y = y + layers.Dense(64)(keras.ops.silu(embedded))[:, None, None]
        x = x + layers.Conv2D(64, 3, padding="same")(keras.ops.silu(layers.GroupNormalization(8)(y)))
        y = layers.Reshape((256, 64))(layers.GroupNormalization(8)(x))
        x = x + layers.Reshape((16, 16, 64))(layers.MultiHeadAttention(2, 32)(y, y))
    return Model([images, time], layers.Conv2D(4, 3, padding="same")(keras.ops.silu(layers.GroupNormalization(8)(x))))


def timm_vit() -> Any:
    """A class token, one product for query, key and value that indices take apart, and the token's row at the end."""
    import tensorflow as tf

    make, depth, heads, count = Weights(5), 96, 3, 50
    patches, position, token = make(8, 8, 3, depth), make(1, count, depth), make(1, 1, depth)
    blocks = [_joint_layer(make, depth) for _ in range(3)]
    last, head = (make(depth, base=1), make(depth)), make(depth, 50)

    def call(images: Any) -> Any:
        x = tf.reshape(tf.nn.conv2d(images, patches, 8, "VALID"), (-1, count - 1, depth))
        x = tf.concat([tf.tile(token, (tf.shape(x)[0], 1, 1)), x], 1) + position
        for norms, joint, output, first, second in blocks:
            y = tf.matmul(_norm(tf, x, *norms[0]), joint[0]) + joint[1]
            y = tf.transpose(tf.reshape(y, (-1, count, 3, heads, depth // heads)), (2, 0, 3, 1, 4))
            query, key, value = y[0], y[1], y[2]
            scores = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) * (depth // heads) ** -0.5)
            context = tf.reshape(tf.transpose(tf.matmul(scores, value), (0, 2, 1, 3)), (-1, count, depth))
            x = x + tf.matmul(context, output[0]) + output[1]
            y = _gelu(tf, tf.matmul(_norm(tf, x, *norms[1]), first[0]) + first[1], False)
            x = x + tf.matmul(y, second[0]) + second[1]
        return tf.matmul(_norm(tf, x, *last)[:, 0], head)

    return call


def gpt_j() -> Any:
    """Pairs of neighbours that are rotated, attention and dense layers side by side."""
    import tensorflow as tf

    make, length, depth, heads = Weights(6), 48, 128, 4
    width = depth // heads
    blocks = [
        ((make(depth, base=1), make(depth)), [make(depth, depth) for _ in range(4)], make(depth, 512), make(512, depth))
        for _ in range(2)
    ]
    words = make(1000, depth)
    angles = np.arange(length)[:, None] / 10000 ** (np.arange(0, width, 2) / width)
    cosines, sines = (tf.constant(np.repeat(f(angles), 2, -1).astype("f")) for f in (np.cos, np.sin))

    def rotate(x: Any) -> Any:
        turned = tf.reshape(tf.stack([-x[..., 1::2], x[..., ::2]], -1), tf.shape(x))
        return x * cosines + turned * sines

    def call(tokens: Any) -> Any:
        x = tf.gather(words, tokens)
        mask = tf.linalg.band_part(tf.ones((length, length), tf.bool), -1, 0)
        for norm, weights, first, second in blocks:
            y = _norm(tf, x, *norm)
            query, key, value = (
                tf.transpose(tf.reshape(tf.matmul(y, weight), (1, length, heads, width)), (0, 2, 1, 3))
                for weight in weights[:3]
            )
            scores = tf.matmul(rotate(query), rotate(key), transpose_b=True) / math.sqrt(width)
            scores = tf.nn.softmax(tf.where(mask, scores, scores.dtype.min))
            context = tf.reshape(tf.transpose(tf.matmul(scores, value), (0, 2, 1, 3)), (1, length, depth))
            x = x + tf.matmul(context, weights[3]) + tf.matmul(_gelu(tf, tf.matmul(y, first), True), second)
        return tf.matmul(x[:, -1], words, transpose_b=True)

    return call


def _layer(make: Weights, depth: int) -> dict[str, Any]:
    """The weights of a layer with four products, two dense layers and two norms."""
    return {
        "products": [(make(depth, depth), make(depth)) for _ in range(4)],
        "norms": [(make(depth, base=1), make(depth)) for _ in range(2)],
        "dense": [(make(depth, 4 * depth), make(4 * depth)), (make(4 * depth, depth), make(depth))],
    }


def clip_text(length: int = 160, depth: int = 96, heads: int = 3) -> Any:
    """CLIP's text encoder: a mask from a filled diagonal, heads in the batch, the row of the largest token."""
    import tensorflow as tf

    make = Weights(7)
    blocks = [_layer(make, depth) for _ in range(2)]
    words, positions = make(1000, depth), make(length, depth)
    last, projection = (make(depth, base=1), make(depth)), make(depth, 64)

    def call(tokens: Any) -> Any:
        x = tf.gather(words, tokens) + positions
        mask = tf.linalg.set_diag(tf.fill((length, length), -1e4), tf.zeros(length))
        mask = tf.linalg.band_part(mask, 0, -1)[None, None]
        for block in blocks:
            y = _norm(tf, x, *block["norms"][0])
            query, key, value = (
                tf.reshape(
                    tf.transpose(tf.reshape(_dense(tf, y, *each), (1, length, heads, -1)), (0, 2, 1, 3)),
                    (heads, length, -1),
                )
                for each in block["products"][:3]
            )
            scores = tf.matmul(query * (depth // heads) ** -0.5, key, transpose_b=True)
            scores = tf.reshape(tf.reshape(scores, (1, heads, length, length)) + mask, (heads, length, length))
            context = tf.reshape(tf.matmul(tf.nn.softmax(scores), value), (1, heads, length, -1))
            context = tf.reshape(tf.transpose(context, (0, 2, 1, 3)), (1, length, depth))
            x = x + _dense(tf, context, *block["products"][3])
            y = _dense(tf, _norm(tf, x, *block["norms"][1]), *block["dense"][0])
            x = x + _dense(tf, y * tf.sigmoid(1.702 * y), *block["dense"][1])
        indices = tf.stack([tf.range(1), tf.argmax(tokens, -1, output_type=tf.int32)], 1)
        pooled = tf.matmul(tf.gather_nd(_norm(tf, x, *last), indices), projection)
        return pooled / tf.norm(pooled, axis=-1, keepdims=True)

    return call


def beit(grid: int = 8, depth: int = 96, heads: int = 3) -> Any:
    """BEiT: biases by relative positions from a table, scaled layers, the mean of all tokens but the first."""
    import tensorflow as tf

    make, count = Weights(8), grid * grid + 1
    blocks = [
        {**_layer(make, depth), "table": make((2 * grid - 1) ** 2 + 3, heads), "scales": [make(depth), make(depth)]}
        for _ in range(2)
    ]
    patches, token, last = make(8, 8, 3, depth), make(1, 1, depth), (make(depth, base=1), make(depth))
    rows, columns = np.divmod(np.arange(grid * grid), grid)
    offsets = np.full((count, count), (2 * grid - 1) ** 2, np.int32)
    offsets[1:, 1:] = (rows[:, None] - rows + grid - 1) * (2 * grid - 1) + columns[:, None] - columns + grid - 1

    def call(images: Any) -> Any:
        x = tf.reshape(tf.nn.conv2d(images, patches, 8, "VALID"), (1, grid * grid, depth))
        x = tf.concat([token, x], 1)
        for block in blocks:
            y = _norm(tf, x, *block["norms"][0])
            query, key, value = (
                tf.transpose(tf.reshape(_dense(tf, y, *each), (1, count, heads, -1)), (0, 2, 1, 3))
                for each in block["products"][:3]
            )
            bias = tf.reshape(tf.gather(block["table"], offsets.ravel()), (count, count, heads))
            scores = tf.matmul(query, key, transpose_b=True) / math.sqrt(depth // heads)
            scores = tf.nn.softmax(scores + tf.transpose(bias, (2, 0, 1))[None])
            context = tf.reshape(tf.transpose(tf.matmul(scores, value), (0, 2, 1, 3)), (1, count, depth))
            x = x + block["scales"][0] * _dense(tf, context, *block["products"][3])
            y = _gelu(tf, _dense(tf, _norm(tf, x, *block["norms"][1]), *block["dense"][0]), False)
            x = x + block["scales"][1] * _dense(tf, y, *block["dense"][1])
        return _norm(tf, tf.reduce_mean(x[:, 1:], 1), *last)

    return call


def bloom(length: int = 64, depth: int = 128, heads: int = 4) -> Any:
    """BLOOM: query, key and value of each head beside each other, biases that grow with the distance."""
    import tensorflow as tf

    make = Weights(9)
    blocks = [{**_layer(make, depth), "joint": (make(depth, 3 * depth), make(3 * depth))} for _ in range(2)]
    words, last = make(1000, depth), (make(depth, base=1), make(depth))
    slopes = (2.0 ** (-8 * np.arange(1, heads + 1) / heads)).astype("f")

    def call(tokens: Any, mask: Any) -> Any:
        x = tf.gather(words, tokens)
        seen = tf.cast(mask, tf.float32)
        bias = slopes[None, :, None, None] * ((tf.cumsum(seen, -1) - 1.0) * seen)[:, None, None]
        steps = tf.range(length)
        allowed = tf.logical_and(steps[:, None] >= steps, tf.cast(mask, tf.bool)[:, None])[:, None]
        for block in blocks:
            joint = _dense(tf, _norm(tf, x, *block["norms"][0]), *block["joint"])
            parts = tf.reshape(joint, (1, length, heads, 3, depth // heads))
            query, key, value = (tf.transpose(parts[..., index, :], (0, 2, 1, 3)) for index in range(3))
            scores = tf.matmul(query, tf.transpose(key, (0, 1, 3, 2))) * (depth // heads) ** -0.5 + bias
            scores = tf.nn.softmax(tf.where(allowed, scores, tf.float32.min))
            context = tf.reshape(tf.transpose(tf.matmul(scores, value), (0, 2, 1, 3)), (1, length, depth))
            x = x + _dense(tf, context, *block["products"][3])
            y = _gelu(tf, _dense(tf, _norm(tf, x, *block["norms"][1]), *block["dense"][0]), True)
            x = x + _dense(tf, y, *block["dense"][1])
        return tf.matmul(_norm(tf, x, *last)[:, -1], words, transpose_b=True)

    return call


def cosine_attention(length: int = 64, depth: int = 64, heads: int = 2) -> Any:
    """Swin 2: vectors of length one, a factor for each head, norms after the layers."""
    import tensorflow as tf

    make = Weights(10)
    blocks = [{**_layer(make, depth), "scale": make(heads, 1, 1, base=2)} for _ in range(2)]

    def call(x: Any) -> Any:
        for block in blocks:
            query, key, value = (
                tf.transpose(tf.reshape(_dense(tf, x, *each), (4, length, heads, -1)), (0, 2, 1, 3))
                for each in block["products"][:3]
            )
            scores = tf.matmul(tf.math.l2_normalize(query, -1), tf.math.l2_normalize(key, -1), transpose_b=True)
            scores = tf.nn.softmax(scores * tf.exp(tf.minimum(block["scale"], math.log(100.0))))
            context = tf.reshape(tf.transpose(tf.matmul(scores, value), (0, 2, 1, 3)), (4, length, depth))
            x = x + _norm(tf, _dense(tf, context, *block["products"][3]), *block["norms"][0])
            y = _gelu(tf, _dense(tf, x, *block["dense"][0]), False)
            x = x + _norm(tf, _dense(tf, y, *block["dense"][1]), *block["norms"][1])
        return x

    return call


def perceiver() -> Any:
    """Few learned rows that read a long input, and the mean of them at the end."""
    import keras
    from keras import Model, layers

    inputs = layers.Input((256, 48))
    x = layers.Embedding(32, 96)(keras.ops.arange(32))[None]
    given = layers.LayerNormalization()(inputs)
    for _ in range(2):
        x = x + layers.MultiHeadAttention(1, 48)(layers.LayerNormalization()(x), given)
        x = x + layers.Dense(96)(layers.Dense(96, activation="gelu")(layers.LayerNormalization()(x)))
        x = _encoder(x, 4, 384)
    return Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))
