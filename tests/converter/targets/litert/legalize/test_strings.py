"""Tensors of strings in LiteRT against TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.litert import RunTFLite
from tests.support.saved_function import save_function
from tfconvert.schema.diagnostics import ConversionError

OPS = ("StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong")
"""The ops on strings alone that models here have."""

Array = np.ndarray[Any, np.dtype[Any]]

STRINGS = np.array([[b"a", b"bb", b""], [b"d", b"e", b"\xff\0"]], object)
NUMBERS = np.array([0, 2, 1])

Results = Sequence[Any]
MOVES: dict[str, Callable[[Any, Any], Results]] = {
    "transpose": lambda tf, x: [tf.transpose(x)],
    "reverse": lambda tf, x: [tf.reverse(x, [1])],
    "broadcast-to": lambda tf, x: [tf.broadcast_to(x, [2, 2, 3])],
    "unstack": lambda tf, x: tf.unstack(x, 3, axis=1),
    "split": lambda tf, x: tf.split(x, 3, axis=1),
    "split-sizes": lambda tf, x: tf.split(x, [1, 2], axis=1),
    "roll": lambda tf, x: [tf.roll(x, 1, 1)],
    "mirror-pad": lambda tf, x: [tf.pad(x, [[0, 0], [1, 1]], "REFLECT")],
    "reverse-sequence": lambda tf, x: [tf.reverse_sequence(x, [2, 3], 1, 0)],
    "gather": lambda tf, x: [tf.gather(x, [[1, 0]]), tf.gather(x, [2], axis=1), tf.gather(x, 0)],
    "gather-vector": lambda tf, x: [tf.gather(x[0], [[2], [0]]), tf.gather_nd(x, [[1, 2]])],
    "strided-slice": lambda tf, x: [x[:, 1:], x[0], x[..., None], x[:, ::-2], tf.tile(x, [2, 1]), tf.reshape(x, [-1])],
    "equal": lambda tf, x: [x == "a", x != "bb", x[:, :, None] == tf.constant(["a", "d"])],
    "size-shape-fill": lambda tf, x: [tf.size(x), tf.shape(x), tf.fill([2], x[0, 1])],
    "string-to-hash-bucket": lambda tf, x: [
        tf.strings.to_hash_bucket_fast(x, 1),
        tf.strings.to_hash_bucket(x, 1),
        tf.strings.to_hash_bucket_strong(x, 1, [1, 2]),
    ],
}

CHOICES: dict[str, Callable[[Any, Any], Results]] = {
    "where": lambda tf, i: [tf.where(i > 0, "yes", "no"), tf.where(i > 0, tf.gather(["u", "v", "w"], i), "no")],
    "select": lambda tf, i: [tf.compat.v1.where(i > 0, tf.gather(["u", "v", "w"], i), tf.fill([3], "no"))],
    "concat": lambda tf, i: [tf.concat([tf.gather(["u", "v", "w"], i), ["no"]], 0)],
    "stack": lambda tf, i: [tf.stack([tf.gather(["u", "v", "w"], i), tf.gather(["q", "r", "s"], i)], 1)],
    "write": lambda tf, i: [tf.strings.to_hash_bucket_fast(tf.strings.as_string(i), 1)],
}


def save(tf: ModuleType, folder: Path, function: Callable[[Any, Any], Results], x: Array, shape: Any) -> Any:
    signature = [tf.TensorSpec(shape, tf.string if x.dtype == object else x.dtype, name="x")]
    run = tf.function(
        lambda x: {f"y{at:02}": each for at, each in enumerate(function(tf, x))}, input_signature=signature
    ).get_concrete_function()
    save_function(tf, folder, run)
    return run


Compare = Callable[[Callable[[Any, Any], Results], Array, Any], None]


@pytest.fixture
def compare(tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path) -> Compare:
    """Returns a function that asserts that a function of one operand gives the same in LiteRT."""

    def run(function: Callable[[Any, Any], Results], x: Array, shape: Any) -> None:
        expected = save(tf, tmp_path, function, x, shape)(tf.constant(x))
        results = run_tflite(bytes(tfconvert.convert(tmp_path)), {"x": x}, signature="serving_default")
        for got, name in zip(results, sorted(expected), strict=True):
            np.testing.assert_array_equal(np.asarray(got, object), np.asarray(expected[name].numpy(), object))

    return run


@pytest.mark.parametrize("shape", [(2, 3), (None, 3)], ids=["static", "open"])
@pytest.mark.parametrize("name", MOVES)
def test_elements_move_as_their_numbers_do(compare: Compare, name: str, shape: Any) -> None:
    compare(MOVES[name], STRINGS, shape)


@pytest.mark.parametrize("name", ["transpose", "reverse", "gather", "unstack", "string-to-hash-bucket"])
def test_ranks_need_not_be_known(compare: Compare, name: str) -> None:
    compare(MOVES[name], STRINGS, None)


@pytest.mark.parametrize("shape", [(3,), (None,)], ids=["static", "open"])
@pytest.mark.parametrize("name", CHOICES)
def test_known_strings_are_joined_and_chosen_from(compare: Compare, name: str, shape: Any) -> None:
    compare(CHOICES[name], NUMBERS, shape)


REFUSED: dict[str, tuple[Callable[[Any, Any], Results], str]] = {
    "join": (lambda tf, x: [tf.concat([x, x], 0)], "LiteRT doesn't join strings"),
    "choose": (lambda tf, x: [tf.where(x == "a", x, "b")], "LiteRT doesn't join strings"),
    "hash": (lambda tf, x: [tf.strings.to_hash_bucket_fast(x, 2)], "LiteRT doesn't hash strings"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_unknown_strings_are_neither_joined_nor_hashed(tf: ModuleType, tmp_path: Path, name: str) -> None:
    function, reason = REFUSED[name]
    save(tf, tmp_path, function, STRINGS, (2, 3))
    with pytest.raises(ConversionError, match=reason):
        tfconvert.convert(tmp_path)
