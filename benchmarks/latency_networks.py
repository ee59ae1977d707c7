"""Networks for `latency_models.py`: convolutions, sequences, audio, and tables of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np


def application(name: str, size: int) -> Any:
    """Returns a network of keras.applications without pretrained weights."""
    import keras

    return getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3), classes=100)


def _conv(x: Any, filters: int, kernel: Any = 3, strides: int = 1, activation: str = "relu", **settings: Any) -> Any:
    """A convolution, a batch norm and an activation."""
    from keras import layers

    x = layers.Conv2D(filters, kernel, strides, padding="same", use_bias=False, **settings)(x)
    x = layers.BatchNormalization()(x)
    return layers.Activation(activation)(x) if activation else x


def small_cnn() -> Any:
    """The convolutional network of the tutorials."""
    from keras import Sequential, layers

    return Sequential(
        [
            layers.Input((28, 28, 1)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )


def vgg() -> Any:
    """Plain convolutions and large dense layers."""
    from keras import Sequential, layers

    stack: list[Any] = [layers.Input((64, 64, 3)), layers.Rescaling(1 / 255)]
    for filters, count in ((32, 2), (64, 2), (128, 3)):
        stack += [layers.Conv2D(filters, 3, padding="same", activation="relu") for _ in range(count)]
        stack.append(layers.MaxPooling2D())
    stack += [layers.Flatten(), layers.Dense(512, activation="relu"), layers.Dense(100, activation="softmax")]
    return Sequential(stack)


def squeezenet() -> Any:
    """Fire modules: a 1x1 convolution and two beside each other."""
    from keras import Model, layers

    inputs = x = layers.Input((96, 96, 3))
    x = layers.Conv2D(48, 3, 2, activation="relu")(x)
    x = layers.MaxPooling2D(3, 2)(x)
    for squeeze, expand in ((16, 64), (16, 64), (32, 128), (48, 192), (64, 256)):
        x = layers.Conv2D(squeeze, 1, activation="relu")(x)
        left = layers.Conv2D(expand, 1, activation="relu")(x)
        right = layers.Conv2D(expand, 3, padding="same", activation="relu")(x)
        x = layers.Concatenate()([left, right])
    x = layers.Conv2D(100, 1)(x)
    return Model(inputs, layers.Softmax()(layers.GlobalAveragePooling2D()(x)))


def shufflenet() -> Any:
    """Channel shuffles: reshapes and transposes between depthwise convolutions."""
    import keras
    from keras import Model, layers

    def shuffle(x: Any) -> Any:
        height, width, channels = x.shape[1:]
        x = keras.ops.reshape(x, (-1, height, width, 2, channels // 2))
        return keras.ops.reshape(keras.ops.transpose(x, (0, 1, 2, 4, 3)), (-1, height, width, channels))

    inputs = layers.Input((96, 96, 3))
    x = _conv(inputs, 24, 3, 2)
    for channels, count in ((48, 3), (96, 4), (192, 3)):
        left = layers.BatchNormalization()(layers.DepthwiseConv2D(3, 2, padding="same", use_bias=False)(x))
        left = _conv(left, channels // 2, 1)
        right = _conv(x, channels // 2, 1)
        right = layers.BatchNormalization()(layers.DepthwiseConv2D(3, 2, padding="same", use_bias=False)(right))
        x = shuffle(layers.Concatenate()([left, _conv(right, channels // 2, 1)]))
        for _ in range(count):
            left, right = keras.ops.split(x, 2, axis=-1)
            right = _conv(right, channels // 2, 1)
            right = layers.BatchNormalization()(layers.DepthwiseConv2D(3, padding="same", use_bias=False)(right))
            x = shuffle(layers.Concatenate()([left, _conv(right, channels // 2, 1)]))
    return Model(inputs, layers.Dense(100)(layers.GlobalAveragePooling2D()(_conv(x, 512, 1))))


def grouped(size: int = 64) -> Any:
    """Bottlenecks with grouped convolutions (ResNeXt)."""
    from keras import Model, layers

    inputs = layers.Input((size, size, 3))
    x = _conv(inputs, 32, 3, 2)
    for filters, strides in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2)):
        branch = _conv(_conv(_conv(x, filters, 1), filters, 3, strides, groups=8), filters * 2, 1, activation="")
        x = layers.Activation("relu")(layers.Add()([branch, _conv(x, filters * 2, 1, strides, activation="")]))
    return Model(inputs, layers.Dense(100, activation="softmax")(layers.GlobalAveragePooling2D()(x)))


def squeeze_excite(activation: str = "hard_swish") -> Any:
    """Inverted residuals with gates, of functions of one's own for the activation."""
    import keras
    from keras import Model, layers

    def act(x: Any) -> Any:
        return x * keras.ops.relu6(x + 3.0) / 6.0 if activation == "hard_swish" else x * keras.ops.sigmoid(x)

    inputs = layers.Input((96, 96, 3))
    x = act(_conv(inputs, 16, 3, 2, ""))
    for filters, strides in ((24, 2), (24, 1), (40, 2), (40, 1), (80, 2), (80, 1)):
        width = x.shape[-1] * 4
        y = act(_conv(x, width, 1, activation=""))
        y = act(layers.BatchNormalization()(layers.DepthwiseConv2D(5, strides, padding="same", use_bias=False)(y)))
        gate = layers.GlobalAveragePooling2D(keepdims=True)(y)
        gate = layers.Conv2D(width, 1, activation="sigmoid")(layers.Conv2D(width // 4, 1, activation="relu")(gate))
        y = _conv(y * gate, filters, 1, activation="")
        x = layers.Add()([x, y]) if x.shape == y.shape else y
    return Model(inputs, layers.Dense(100)(layers.GlobalAveragePooling2D()(x)))


def mixed_padding() -> Any:
    """Explicit pads before strided convolutions, as networks from PyTorch have them, with leaky activations."""
    from keras import Model, layers

    inputs = x = layers.Input((96, 96, 3))
    for filters in (32, 64, 96, 128):
        x = layers.ZeroPadding2D(1)(x)
        x = layers.Conv2D(filters, 3, 2, use_bias=False)(x)
        x = layers.LeakyReLU(0.1)(layers.BatchNormalization()(x))
        y = layers.Conv2D(filters, 3, padding="same")(x)
        x = x + layers.PReLU(shared_axes=[1, 2])(y)
    return Model(inputs, layers.Dense(50)(layers.Flatten()(x)))


def channels_first() -> Any:
    """Convolutions over channels-first images by transposes, as converters from PyTorch write them."""
    import tensorflow as tf

    random = np.random.default_rng(3)
    weights = [
        tf.Variable(random.normal(0, 0.1, s).astype("f")) for s in ((3, 3, 3, 32), (3, 3, 32, 64), (1, 1, 64, 128))
    ]
    dense = tf.Variable(random.normal(0, 0.1, (128, 50)).astype("f"))
    scale, shift = (tf.Variable(random.normal(1, 0.1, (1, 128, 1, 1)).astype("f")) for _ in range(2))

    def call(x: Any) -> Any:
        for weight in weights:
            y = tf.transpose(x, (0, 2, 3, 1))
            y = tf.nn.conv2d(y, weight, 2, "SAME")
            x = tf.nn.relu(tf.transpose(y, (0, 3, 1, 2)))
        x = x * scale + shift
        return tf.reduce_mean(x, (2, 3)) @ dense

    return call


def unet(norm: str = "batch") -> Any:
    """An encoder and a decoder with transposed convolutions."""
    from keras import Model, layers

    def block(x: Any, filters: int) -> Any:
        for _ in range(2):
            x = layers.Conv2D(filters, 3, padding="same")(x)
            x = layers.BatchNormalization()(x) if norm == "batch" else layers.GroupNormalization(8)(x)
            x = layers.Activation("relu" if norm == "batch" else "silu")(x)
        return x

    inputs = layers.Input((64, 64, 3))
    one = block(inputs, 16)
    two = block(layers.MaxPooling2D()(one), 32)
    x = block(layers.MaxPooling2D()(two), 64)
    x = block(layers.Concatenate()([layers.Conv2DTranspose(32, 2, 2)(x), two]), 32)
    x = block(layers.Concatenate()([layers.Conv2DTranspose(16, 3, 2, padding="same")(x), one]), 16)
    return Model(inputs, layers.Conv2D(5, 1, activation="softmax")(x))


def deeplab() -> Any:
    """Dilated convolutions side by side, image pooling, resizing, classes of pixels."""
    import keras
    from keras import Model, layers

    inputs = layers.Input((96, 96, 3))
    low = _conv(_conv(inputs, 24, 3, 2), 32, 3, 2)
    x = _conv(low, 64, 3, 2)
    branches = [_conv(x, 48, 1), *(_conv(x, 48, 3, dilation_rate=rate) for rate in (2, 4, 6))]
    pooled = _conv(layers.GlobalAveragePooling2D(keepdims=True)(x), 48, 1)
    branches.append(keras.ops.image.resize(pooled, (12, 12), interpolation="bilinear"))
    x = _conv(layers.Concatenate()(branches), 64, 1)
    x = layers.UpSampling2D(2, interpolation="bilinear")(x)
    x = _conv(layers.Concatenate()([x, _conv(low, 24, 1)]), 48)
    x = layers.UpSampling2D(4, interpolation="bilinear")(layers.Conv2D(8, 1)(x))
    return Model(inputs, keras.ops.argmax(x, axis=-1))


def detector() -> Any:
    """A pyramid of features, heads with sigmoids, and the boxes of all levels (YOLO)."""
    import keras
    from keras import Model, layers

    def silu(x: Any, filters: int, kernel: int = 3, strides: int = 1) -> Any:
        return _conv(x, filters, kernel, strides, "silu")

    inputs = layers.Input((128, 128, 3))
    x = silu(silu(inputs, 16, 3, 2), 32, 3, 2)
    features = []
    for filters in (48, 64, 96):
        x = silu(x, filters, 3, 2)
        left, right = silu(x, filters // 2, 1), silu(x, filters // 2, 1)
        right = right + silu(silu(right, filters // 2, 1), filters // 2)
        x = silu(layers.Concatenate()([left, right]), filters, 1)
        features.append(x)
    top = features[-1]
    outputs = []
    for feature in reversed(features):
        if feature is not top:
            top = silu(layers.Concatenate()([layers.UpSampling2D()(silu(top, 48, 1)), feature]), 64)
        size = feature.shape[1]
        raw = layers.Conv2D(3 * 15, 1)(top)
        raw = keras.ops.reshape(raw, (-1, size, size, 3, 15))
        grid = np.stack(np.meshgrid(np.arange(size), np.arange(size)), -1)[None, :, :, None].astype("f")
        anchors = np.array([[10, 13], [16, 30], [33, 23]], "f")
        centre = (keras.ops.sigmoid(raw[..., :2]) * 2 - 0.5 + grid) * (128 / size)
        extent = keras.ops.square(keras.ops.sigmoid(raw[..., 2:4]) * 2) * anchors
        scores = keras.ops.sigmoid(raw[..., 4:])
        outputs.append(
            keras.ops.reshape(keras.ops.concatenate([centre, extent, scores], -1), (-1, size * size * 3, 15))
        )
    return Model(inputs, keras.ops.concatenate(outputs, 1))


def ssd() -> Any:
    """Depthwise features, boxes decoded from anchors, softmax over classes."""
    import keras
    from keras import Model, layers

    def separable(x: Any, filters: int, strides: int) -> Any:
        x = layers.DepthwiseConv2D(3, strides, padding="same", use_bias=False)(x)
        return _conv(layers.ReLU(6)(layers.BatchNormalization()(x)), filters, 1, activation="relu6")

    inputs = layers.Input((128, 128, 3))
    x = _conv(inputs / 127.5 - 1.0, 16, 3, 2, "relu6")
    boxes, classes = [], []
    for filters in (32, 64, 96, 128):
        x = separable(separable(x, filters, 2), filters, 1)
        if filters > 32:
            boxes.append(layers.Reshape((-1, 4))(layers.Conv2D(6 * 4, 3, padding="same")(x)))
            classes.append(layers.Reshape((-1, 11))(layers.Conv2D(6 * 11, 3, padding="same")(x)))
    box, score = keras.ops.concatenate(boxes, 1), keras.ops.softmax(keras.ops.concatenate(classes, 1))
    anchors = np.random.default_rng(1).uniform(0.1, 1, (1, box.shape[1], 4)).astype("f")
    centre = box[..., :2] / 10.0 * anchors[..., 2:] + anchors[..., :2]
    half = keras.ops.exp(box[..., 2:] / 5.0) * anchors[..., 2:] / 2.0
    return Model(inputs, [keras.ops.concatenate([centre - half, centre + half], -1), score[..., 1:]])


def generator() -> Any:
    """A vector that becomes an image by transposed convolutions."""
    from keras import Sequential, layers

    stack: list[Any] = [layers.Input((64,)), layers.Dense(8 * 8 * 64), layers.Reshape((8, 8, 64))]
    for filters in (64, 32, 16):
        stack += [layers.BatchNormalization(), layers.LeakyReLU(0.2)]
        stack.append(layers.Conv2DTranspose(filters, 4, 2, padding="same"))
    return Sequential([*stack, layers.Conv2D(3, 3, padding="same", activation="tanh")])


def super_resolution() -> Any:
    """Residual blocks and depth to space."""
    import tensorflow as tf
    from keras import Model, layers

    inputs = layers.Input((32, 32, 3))
    x = first = layers.Conv2D(32, 3, padding="same")(inputs)
    for _ in range(4):
        x = x + layers.Conv2D(32, 3, padding="same")(layers.Conv2D(32, 3, padding="same", activation="relu")(x)) * 0.1
    x = layers.Conv2D(12, 3, padding="same")(x + first)
    return Model(inputs, layers.Lambda(lambda value: tf.nn.depth_to_space(value, 2))(x))


def style() -> Any:
    """Reflecting pads, instance norms, resizing to nearest."""
    import keras
    from keras import Model, layers

    def conv(x: Any, filters: int, kernel: int, strides: int = 1) -> Any:
        border = kernel // 2
        x = keras.ops.pad(x, ((0, 0), (border, border), (border, border), (0, 0)), mode="reflect")
        return layers.Conv2D(filters, kernel, strides)(x)

    def norm(x: Any) -> Any:
        return layers.GroupNormalization(groups=-1, epsilon=1e-5)(x)

    inputs = layers.Input((64, 64, 3))
    x = keras.ops.relu(norm(conv(inputs, 16, 9)))
    x = keras.ops.relu(norm(conv(x, 32, 3, 2)))
    for _ in range(2):
        x = x + norm(conv(keras.ops.relu(norm(conv(x, 32, 3))), 32, 3))
    x = keras.ops.relu(norm(conv(layers.UpSampling2D(2)(x), 16, 3)))
    return Model(inputs, keras.ops.tanh(conv(x, 3, 9)))


def autoencoder() -> Any:
    """Dense layers around a sampled vector (without the sampling)."""
    from keras import Sequential, layers

    return Sequential(
        [layers.Input((784,)), *(layers.Dense(n, "relu") for n in (256, 64, 16, 64, 256)), layers.Dense(784, "sigmoid")]
    )


def keyword_spotting(size: int = 64) -> Any:
    """Depthwise separable convolutions over a spectrogram (DS-CNN)."""
    from keras import Model, layers

    inputs = layers.Input((49, 10))
    x = layers.Reshape((49, 10, 1))(inputs)
    x = _conv(x, size, (10, 4), 2)
    for _ in range(4):
        x = layers.DepthwiseConv2D(3, padding="same")(x)
        x = _conv(layers.Activation("relu")(layers.BatchNormalization()(x)), size, 1)
    return Model(inputs, layers.Dense(12, activation="softmax")(layers.GlobalAveragePooling2D()(x)))


def temporal(causal: str = "causal") -> Any:
    """Dilated convolutions over time with residuals (TCN)."""
    from keras import Model, layers

    inputs = x = layers.Input((200, 16))
    for rate in (1, 2, 4, 8):
        y = layers.Conv1D(32, 3, padding=causal, dilation_rate=rate)(x)
        y = layers.Activation("relu")(layers.LayerNormalization()(y))
        y = layers.Conv1D(32, 3, padding=causal, dilation_rate=rate, activation="relu")(y)
        x = layers.Activation("relu")(layers.Conv1D(32, 1)(x) + y)
    return Model(inputs, layers.Dense(5)(x[:, -1]))


def wavenet() -> Any:
    """Gated dilated convolutions with sums of skips."""
    import keras
    from keras import Model, layers

    inputs = layers.Input((256, 1))
    x, skips = layers.Conv1D(24, 2, padding="causal")(inputs), []
    for rate in (1, 2, 4, 8, 16, 32):
        gate = layers.Conv1D(24, 2, padding="causal", dilation_rate=rate, activation="sigmoid")(x)
        y = layers.Conv1D(24, 2, padding="causal", dilation_rate=rate, activation="tanh")(x) * gate
        skips.append(layers.Conv1D(32, 1)(y))
        x = x + layers.Conv1D(24, 1)(y)
    x = keras.ops.relu(layers.Add()(skips))
    return Model(inputs, layers.Conv1D(64, 1, activation="softmax")(layers.Conv1D(32, 1, activation="relu")(x)))


def wav2vec() -> Any:
    """Strided convolutions over samples with norms and GELU."""
    from keras import Model, layers

    inputs = x = layers.Input((4000, 1))
    for index, (kernel, strides) in enumerate(((10, 5), (3, 2), (3, 2), (3, 2), (2, 2))):
        x = layers.Conv1D(64, kernel, strides, use_bias=False)(x)
        x = layers.GroupNormalization(groups=64, axis=-1)(x) if not index else layers.LayerNormalization()(x)
        x = layers.Activation("gelu")(x)
    x = layers.Dense(96)(layers.LayerNormalization()(x))
    position = layers.Conv1D(96, 16, padding="same", groups=8, activation="gelu")(x)
    return Model(inputs, layers.LayerNormalization()(x + position))


def spectrogram() -> Any:
    """A spectrogram on a mel scale and a small convolutional network."""
    import tensorflow as tf

    random = np.random.default_rng(2)
    mel = tf.constant(random.uniform(0, 1, (129, 40)).astype("f"))
    kernels = [tf.Variable(random.normal(0, 0.2, s).astype("f")) for s in ((3, 3, 1, 16), (3, 3, 16, 32))]
    dense = tf.Variable(random.normal(0, 0.2, (32, 10)).astype("f"))

    def call(wave: Any) -> Any:
        power = tf.abs(tf.signal.stft(wave, 256, 128)) ** 2
        x = tf.math.log(tf.tensordot(power, mel, 1) + 1e-6)[..., None]
        for kernel in kernels:
            x = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME")), 2, 2, "SAME")
        return tf.nn.softmax(tf.reduce_mean(x, (1, 2)) @ dense)

    return call


def recurrent(cell: str, units: int, steps: int, **settings: Any) -> Any:
    """One recurrent layer and a dense one."""
    from keras import Sequential, layers

    bidirectional = settings.pop("bidirectional", False)
    layer = getattr(layers, cell)(units, **settings)
    if bidirectional:
        layer = layers.Bidirectional(layer)
    return Sequential([layers.Input((steps, 16)), layer, layers.Dense(8, activation="softmax")])


def text_reader() -> Any:
    """Convolutions, then a recurrent layer over columns (CRNN)."""
    from keras import Model, layers

    inputs = x = layers.Input((32, 96, 1))
    for filters in (16, 32, 48):
        x = layers.MaxPooling2D()(_conv(x, filters))
    x = layers.Reshape((12, 4 * 48))(layers.Permute((2, 1, 3))(x))
    x = layers.Bidirectional(layers.LSTM(48, return_sequences=True))(x)
    return Model(inputs, layers.Dense(37, activation="softmax")(x))


def text_classifier(cell: str = "") -> Any:
    """Embeddings, then convolutions of several widths or a recurrent layer."""
    from keras import Model, layers

    inputs = layers.Input((64,), dtype="int32")
    x = layers.Embedding(1000, 64)(inputs)
    if cell:
        x = getattr(layers, cell)(64)(x)
    else:
        x = layers.Concatenate()(
            [layers.GlobalMaxPooling1D()(layers.Conv1D(64, width, activation="relu")(x)) for width in (3, 4, 5)]
        )
    return Model(inputs, layers.Dense(4, activation="softmax")(x))


def forecaster() -> Any:
    """A stacked recurrent network over a series, with its mean removed."""
    import keras
    from keras import Model, layers

    inputs = layers.Input((48, 8))
    mean = keras.ops.mean(inputs, axis=1, keepdims=True)
    deviation = keras.ops.std(inputs, axis=1, keepdims=True) + 1e-5
    x = layers.GRU(32, return_sequences=True)((inputs - mean) / deviation)
    x = layers.Dense(8)(layers.GRU(32)(x))
    return Model(inputs, x[:, None] * deviation + mean)


def tabular() -> Any:
    """Embeddings of categories, numbers, crossings and dense layers (wide and deep)."""
    import keras
    from keras import Model, layers

    numbers, categories = layers.Input((13,)), layers.Input((8,), dtype="int32")
    embedded = [layers.Embedding(100, 16)(categories[:, index]) for index in range(8)]
    bottom = layers.Dense(16, activation="relu")(layers.Dense(64, activation="relu")(numbers))
    stacked = keras.ops.stack([*embedded, bottom], axis=1)
    products = keras.ops.matmul(stacked, keras.ops.transpose(stacked, (0, 2, 1)))
    x = layers.Concatenate()([layers.Flatten()(products), bottom])
    for units in (128, 64):
        x = layers.BatchNormalization()(layers.Dense(units, activation="relu")(x))
    return Model([numbers, categories], layers.Dense(1, activation="sigmoid")(x))


def graph_network() -> Any:
    """Two graph convolutions and attention over neighbours."""
    import keras
    from keras import Model, layers

    nodes, adjacency = layers.Input((64, 32)), layers.Input((64, 64))
    x = nodes
    for _ in range(2):
        x = keras.ops.relu(keras.ops.matmul(adjacency, layers.Dense(64)(x)))
    hidden = layers.Dense(32, use_bias=False)(x)
    scores = layers.Dense(1)(hidden) + keras.ops.transpose(layers.Dense(1)(hidden), (0, 2, 1))
    scores = keras.ops.softmax(keras.ops.leaky_relu(scores, 0.2) + (1.0 - adjacency) * -1e9)
    return Model([nodes, adjacency], layers.Dense(4)(keras.ops.matmul(scores, hidden)))


def point_network() -> Any:
    """The same dense layers for each point, and a maximum over them (PointNet)."""
    from keras import Model, layers

    inputs = x = layers.Input((256, 3))
    for units in (64, 64, 128):
        x = layers.Activation("relu")(layers.BatchNormalization()(layers.Conv1D(units, 1)(x)))
    x = layers.Dense(64, activation="relu")(layers.GlobalMaxPooling1D()(x))
    return Model(inputs, layers.Dense(10, activation="softmax")(x))


def volumes() -> Any:
    """Convolutions over volumes."""
    from keras import Sequential, layers

    stack: list[Any] = [layers.Input((16, 32, 32, 1))]
    for filters in (8, 16, 32):
        stack += [layers.Conv3D(filters, 3, padding="same", activation="relu"), layers.MaxPooling3D()]
    return Sequential([*stack, layers.GlobalAveragePooling3D(), layers.Dense(10)])


def policy() -> Any:
    """A policy of a game: frames, dense layers, two heads, the sampled action's logarithms."""
    import keras
    from keras import Model, layers

    inputs = layers.Input((84, 84, 4), dtype="uint8")
    x = keras.ops.cast(inputs, "float32") / 255.0
    for filters, kernel, strides in ((16, 8, 4), (32, 4, 2), (32, 3, 1)):
        x = layers.Conv2D(filters, kernel, strides, activation="relu")(x)
    x = layers.Dense(256, activation="relu")(layers.Flatten()(x))
    return Model(inputs, [keras.ops.log_softmax(layers.Dense(6)(x)), layers.Dense(1)(x)])


def audio_unet() -> Any:
    """An encoder and a decoder over samples, with transposed convolutions of one dimension (Demucs)."""
    import keras
    from keras import Model, layers

    inputs = x = layers.Input((1024, 1))
    skips = []
    for filters in (16, 32, 48):
        x = layers.Conv1D(filters, 8, 4, padding="same", activation="relu")(x)
        left, gate = keras.ops.split(layers.Conv1D(2 * filters, 1)(x), 2, axis=-1)
        x = left * keras.ops.sigmoid(gate)
        skips.append(x)
    for filters in (32, 16, 8):
        x = layers.Conv1DTranspose(filters, 8, 4, padding="same", activation="relu")(x + skips.pop())
    return Model(inputs, layers.Conv1D(1, 1)(x))


def attention_gates() -> Any:
    """Gates by channels and by pixels (CBAM), and enlarging by the nearest pixels."""
    import keras
    from keras import Model, layers

    def gated(x: Any) -> Any:
        dense = [layers.Dense(x.shape[-1] // 4, activation="relu"), layers.Dense(x.shape[-1])]
        pooled = [layers.GlobalAveragePooling2D(keepdims=True)(x), layers.GlobalMaxPooling2D(keepdims=True)(x)]
        x = x * keras.ops.sigmoid(sum(dense[1](dense[0](each)) for each in pooled))
        pixels = [keras.ops.mean(x, -1, keepdims=True), keras.ops.max(x, -1, keepdims=True)]
        return x * layers.Conv2D(1, 7, padding="same", activation="sigmoid")(layers.Concatenate()(pixels))

    inputs = layers.Input((64, 64, 3))
    one = gated(_conv(inputs, 16, 3, 2))
    two = gated(_conv(one, 32, 3, 2))
    three = gated(_conv(two, 48, 3, 2))
    x = _conv(layers.UpSampling2D()(three), 32) + two
    x = _conv(layers.UpSampling2D()(x), 16) + one
    return Model(inputs, layers.Conv2D(3, 1, activation="softmax")(x))


def pyramid() -> Any:
    """Weighted sums of features of several sizes (BiFPN), with a focus of pixels at the beginning."""
    import keras
    import tensorflow as tf
    from keras import Model, layers

    inputs = layers.Input((128, 128, 3))
    phases = [inputs[:, row::2, column::2] for row, column in ((0, 0), (1, 0), (0, 1), (1, 1))]
    x = _conv(keras.ops.concatenate(phases, -1), 24, 3, 2, "silu")
    levels = []
    for _ in range(3):
        x = layers.SeparableConv2D(48, 3, 2, padding="same")(x)
        x = layers.Activation("silu")(layers.BatchNormalization()(x))
        levels.append(x)
    top = levels[-1]
    outputs = []
    for level in reversed(levels[:-1]):
        size = level.shape[1:3]
        enlarged = layers.Lambda(lambda value, size=size: tf.image.resize(value, size, "nearest"))(top)
        top = _conv(0.6 * level + 0.4 * enlarged, 48, 3, 1, "silu")
        outputs.append(layers.Reshape((-1, 9))(layers.Conv2D(27, 1)(top)))
    return Model(inputs, keras.ops.softmax(keras.ops.concatenate(outputs, 1)))


def branches() -> Any:
    """Convolutions of nine pixels and of one, and the image itself, that are added up (RepVGG)."""
    from keras import Model, layers

    inputs = x = layers.Input((96, 96, 3))
    for filters, count in ((32, 1), (48, 2), (96, 3)):
        for index in range(count):
            y = _conv(x, filters, 3, 1 if index else 2, "") + _conv(x, filters, 1, 1 if index else 2, "")
            x = layers.ReLU()(y + layers.BatchNormalization()(x) if index else y)
    return Model(inputs, layers.Dense(50)(layers.GlobalAveragePooling2D()(x)))


def split_groups() -> Any:
    """Grouped convolutions by splits of the channels, as they are written where a framework has none."""
    import keras
    from keras import Model, layers

    inputs = layers.Input((64, 64, 3))
    x = _conv(inputs, 32, 3, 2)
    for filters, strides in ((64, 1), (128, 2), (128, 1)):
        parts = keras.ops.split(_conv(x, filters, 1), 16, axis=-1)
        parts = [layers.Conv2D(filters // 16, 3, strides, padding="same", use_bias=False)(part) for part in parts]
        y = layers.ReLU()(layers.BatchNormalization()(layers.Concatenate()(parts)))
        x = layers.ReLU()(_conv(y, filters * 2, 1, activation="") + _conv(x, filters * 2, 1, strides, ""))
    return Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def optical_flow() -> Any:
    """The products of one image's features with the neighbours of another's (PWC-Net)."""
    import tensorflow as tf

    random = np.random.default_rng(4)
    shapes = ((3, 3, 3, 16), (3, 3, 16, 32), (3, 3, 81 + 32, 48), (3, 3, 48, 2))
    weights = [tf.Variable(random.normal(0, 0.1, shape).astype("f")) for shape in shapes]

    def call(one: Any, other: Any) -> Any:
        for weight in weights[:2]:
            one, other = (tf.nn.leaky_relu(tf.nn.conv2d(each, weight, 2, "SAME"), 0.1) for each in (one, other))
        padded = tf.pad(other, [[0, 0], [4, 4], [4, 4], [0, 0]])
        moved = [tf.slice(padded, [0, row, column, 0], [-1, 16, 16, -1]) for row in range(9) for column in range(9)]
        costs = tf.nn.leaky_relu(tf.concat([tf.reduce_mean(one * each, 3, keepdims=True) for each in moved], 3), 0.1)
        x = tf.nn.leaky_relu(tf.nn.conv2d(tf.concat([costs, one], 3), weights[2], 1, "SAME"), 0.1)
        return tf.image.resize(tf.nn.conv2d(x, weights[3], 1, "SAME"), (64, 64)) * 20.0

    return call


def distances() -> Any:
    """Boxes whose sides are means over bins of distances (the head of YOLOv8)."""
    import keras
    from keras import Model, layers

    inputs = layers.Input((96, 96, 3))
    x = _conv(_conv(_conv(inputs, 16, 3, 2, "silu"), 32, 3, 2, "silu"), 64, 3, 2, "silu")
    outputs = []
    for step in (8, 16):
        size = 96 // step
        box = layers.Reshape((size * size, 4, 16))(layers.Conv2D(64, 1)(_conv(x, 32, 3, 1, "silu")))
        score = layers.Reshape((size * size, 10))(layers.Conv2D(10, 1)(_conv(x, 32, 3, 1, "silu")))
        sides = keras.ops.sum(keras.ops.softmax(box) * keras.ops.arange(16, dtype="float32"), -1)
        grid = np.stack(np.meshgrid(np.arange(size), np.arange(size)), -1).reshape(1, -1, 2).astype("f") + 0.5
        first = keras.ops.subtract(grid, sides[..., :2])
        second = keras.ops.add(grid, sides[..., 2:])
        outputs.append(keras.ops.concatenate([first * step, second * step, keras.ops.sigmoid(score)], -1))
        x = _conv(x, 96, 3, 2, "silu")
    return Model(inputs, keras.ops.concatenate(outputs, 1))


def separation() -> Any:
    """Norms over whole sequences, depthwise convolutions over time, and masks of two voices (Conv-TasNet)."""
    import keras
    from keras import Model, layers

    inputs = layers.Input((1600, 1))
    encoded = layers.Conv1D(64, 16, 8, activation="relu", use_bias=False)(inputs)
    x, skips = layers.Conv1D(32, 1)(layers.GroupNormalization(1, epsilon=1e-8)(encoded)), []
    for rate in (1, 2, 4, 8):
        y = layers.PReLU(shared_axes=[1, 2])(layers.Conv1D(64, 1)(x))
        y = layers.DepthwiseConv1D(3, padding="same", dilation_rate=rate)(layers.GroupNormalization(1)(y))
        y = layers.GroupNormalization(1)(layers.PReLU(shared_axes=[1, 2])(y))
        skips.append(layers.Conv1D(32, 1)(y))
        x = x + layers.Conv1D(32, 1)(y)
    masks = layers.Reshape((-1, 2, 64))(layers.Conv1D(128, 1, activation="sigmoid")(layers.Add()(skips)))
    voices = keras.ops.expand_dims(encoded, 2) * masks
    return Model(inputs, [layers.Conv1DTranspose(1, 16, 8)(voices[:, :, index]) for index in range(2)])
