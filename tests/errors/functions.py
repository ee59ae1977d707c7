"""Functions that can't be converted, as users write them, each with the signature of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple


class Function(NamedTuple):
    """A function that can't be converted.

    Attributes:
        arguments: Name, shape and element type of each argument.
        body: From TensorFlow and the arguments to the results.
        state: From TensorFlow to what the function refers to, which is then its first argument after TensorFlow.
        debug_info: Whether the model is saved with source lines.
    """

    arguments: Mapping[str, tuple[Sequence[int | None], str]]
    body: Callable[..., Any]
    state: Callable[[ModuleType], Any] | None = None
    debug_info: bool = False


_ROW = {"x": ([None, 4], "float32")}
_WORDS = {"words": ([None], "string")}
_SQUARE = {"x": ([2, 40, 40], "float32")}


def _hashing(tf: Any, words: Any) -> Any:
    return tf.strings.to_hash_bucket_fast(words, 100)


def _cleaning(tf: Any, words: Any) -> Any:
    return tf.strings.regex_replace(tf.strings.lower(words), "[^a-z]", "")


def _unicode(tf: Any, words: Any) -> Any:
    return tf.strings.unicode_decode(words, "UTF-8").to_tensor()


def _as_string(tf: Any, x: Any) -> Any:
    return tf.map_fn(lambda row: tf.strings.as_string(tf.reduce_sum(row)), x, fn_output_signature=tf.string)


def _split(tf: Any, words: Any) -> Any:
    return tf.strings.split(words, ",").to_tensor("")


def _ctc(decoder: str) -> Callable[..., Any]:
    def decode(tf: Any, x: Any, lengths: Any) -> Any:
        (decoded,), _ = getattr(tf.nn, decoder)(x, lengths, **({} if "greedy" in decoder else {"top_paths": 1}))
        return tf.sparse.to_dense(decoded)

    return decode


def _python(tf: Any, x: Any) -> Any:
    y = tf.py_function(lambda value: value.numpy() * 2, [x], tf.float32)
    return tf.nn.relu(tf.ensure_shape(y, [None, 4]))


def _numpy(tf: Any, x: Any) -> Any:
    return tf.numpy_function(lambda value: value + 1, [x], tf.float32)


def _counter(tf: Any) -> Any:
    return tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)


def _seen(tf: Any, table: Any, words: Any) -> Any:
    found = table.lookup(words)
    table.insert(words, found + 1)
    return found


def _parse(tf: Any, words: Any) -> Any:
    features = {"age": tf.io.FixedLenFeature([], tf.float32), "tags": tf.io.VarLenFeature(tf.int64)}
    parsed = tf.io.parse_example(words, features)
    return parsed["age"], tf.sparse.to_dense(parsed["tags"])


def _csv(tf: Any, words: Any) -> Any:
    return tf.io.decode_csv(words, [[0.0], [0.0]])


def _jpeg(tf: Any, image: Any) -> Any:
    pixels = tf.io.decode_jpeg(image, channels=3)
    return tf.image.resize(tf.cast(pixels, tf.float32)[None] / 255.0, [8, 8])


def _wav(tf: Any, sound: Any) -> Any:
    samples, rate = tf.audio.decode_wav(sound, desired_channels=1, desired_samples=1600)
    return tf.abs(tf.signal.stft(samples[:, 0], 256, 128)), rate


def _stateless(tf: Any, x: Any) -> Any:
    return x + tf.random.stateless_gamma([4], [1, 2], alpha=1.0)


def _algebra(tf: Any, x: Any) -> Any:
    q, r = tf.linalg.qr(x)
    singular = tf.linalg.svd(x, compute_uv=False)
    return q @ tf.linalg.inv(x), tf.linalg.cholesky(x @ tf.transpose(x, [0, 2, 1])), r, singular


def _special(tf: Any, x: Any) -> Any:
    return (
        tf.math.special.bessel_y0(x),
        tf.math.special.bessel_k0(x),
        tf.math.special.bessel_k0(x) + tf.math.special.bessel_k0(2.0),
    )


def _fft(tf: Any, x: Any) -> Any:
    return tf.abs(tf.signal.fft(tf.cast(x, tf.complex64)))


def _sets(tf: Any, x: Any) -> Any:
    return tf.sets.size(tf.sets.intersection(tf.cast(x, tf.int64), tf.constant([[1, 2, 3]], tf.int64)))


def _sparse(tf: Any, x: Any) -> Any:
    return tf.sparse.reduce_sum(tf.sparse.from_dense(x), axis=1)


def _morphology(tf: Any, image: Any) -> Any:
    y = tf.nn.erosion2d(image, tf.zeros([9, 9, 3]), [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1])
    return tf.nn.fractional_max_pool(y, [1.0, 1.4, 1.4, 1.0])[0]


def _transpose(tf: Any, x: Any) -> Any:
    return tf.transpose(x, list(range(9))[::-1])


def _determinant(tf: Any, x: Any) -> Any:
    y = x + 1.0
    return tf.linalg.det(y)


def _repeated(tf: Any, x: Any) -> Any:
    for index in range(6):
        with tf.name_scope(f"block_{index}"):
            x = tf.math.special.bessel_k0(x) + 1.0
    return x


def _chain(tf: Any, words: Any) -> Any:
    parts = tf.strings.split(words, " ")
    return tf.reduce_sum(tf.strings.to_number(parts.to_tensor("0")), axis=1)


def _complex(tf: Any, x: Any) -> Any:
    return tf.math.real(tf.reduce_prod(tf.complex(x, -x), axis=1))


def _serialize(tf: Any, x: Any) -> Any:
    return tf.io.serialize_tensor(x)


def _generator(tf: Any) -> Any:
    return tf.random.Generator.from_seed(3)


def _drawn(tf: Any, generator: Any, x: Any) -> Any:
    return x + tf.cast(generator.binomial([4], 5.0, 0.5), tf.float32)


def _weights(*shape: int, dtype: str = "float32") -> Callable[[ModuleType], Any]:
    return lambda tf: tf.Variable(tf.ones(shape, dtype))


# By the name of the file that holds the text of the error.
FUNCTIONS: Mapping[str, Function] = {
    "hashing": Function(_WORDS, _hashing),
    "strings": Function(_WORDS, _cleaning),
    "unicode": Function(_WORDS, _unicode),
    "map-as-string": Function(_ROW, _as_string),
    "string-split": Function(_WORDS, _split),
    "split-to-numbers": Function(_WORDS, _chain),
    "ctc-greedy": Function({"x": ([10, 1, 5], "float32"), "lengths": ([1], "int32")}, _ctc("ctc_greedy_decoder")),
    "ctc-beam": Function({"x": ([10, 1, 5], "float32"), "lengths": ([1], "int32")}, _ctc("ctc_beam_search_decoder")),
    "py-function": Function(_ROW, _python),
    "numpy-function": Function(_ROW, _numpy),
    "mutable-table": Function(_WORDS, _seen, _counter),
    "parse-example": Function(_WORDS, _parse),
    "decode-csv": Function(_WORDS, _csv),
    "decode-jpeg": Function({"image": ([], "string")}, _jpeg),
    "decode-wav": Function({"sound": ([], "string")}, _wav),
    "random-stateless": Function(_ROW, _stateless),
    "random-generator": Function(_ROW, _drawn, _generator),
    "linear-algebra": Function(_SQUARE, _algebra),
    "special-functions": Function(_ROW, _special),
    "fft": Function({"x": ([2, 2063], "float32")}, _fft),
    "sets": Function({"x": ([1, 3], "float32")}, _sets),
    "sparse": Function(_ROW, _sparse),
    "morphology": Function({"image": ([1, 8, 8, 3], "float32")}, _morphology),
    "transpose-9d": Function({"x": ([2, 3, 2, 3, 2, 3, 2, 3, 2], "float32")}, _transpose),
    "determinant-with-source": Function(_SQUARE, _determinant, debug_info=True),
    "repeated": Function(_ROW, _repeated),
    "complex": Function({"x": ([4, 4], "float32")}, _complex),
    "serialize": Function(_ROW, _serialize),
}
