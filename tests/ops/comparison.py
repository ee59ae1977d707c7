"""Compares kernels with TensorFlow itself, eagerly."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tests.converter.processor import skipped_without_kernel
from tfconvert.ops.call import Array
from tfconvert.schema.tensorflow import op_defs

Agree = Callable[..., None]
_DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "i1": np.bool_,
    "c64": np.complex64,
    "c128": np.complex128,
    **{f"i{width}": f"int{width}" for width in (8, 16, 32, 64)},
    **{f"ui{width}": f"uint{width}" for width in (8, 16, 32, 64)},
}
FLOATS = ("f32", "f64", "f16", "bf16")
SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("ui8", "ui16", "ui32", "ui64")
COMPLEX = ("c64", "c128")
EDGES = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 88.0, -88.0, 0.5, 1.5, 2.5, -0.5, -2.5], np.float32
)
"""Floats at which functions do something special."""

_SPEC = re.compile(r"(\w+)\[([\d,]*)\](?:@(-?[\d.]+):(-?[\d.]+))?")
_TOLERANCE = {
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
    "float32": 2e-6,
    "float64": 1e-13,
    "complex64": 5e-6,
    "complex128": 1e-13,
}


def operand(spec: Any, seed: int) -> Array:
    """Returns an operand: `f32[2,3]` is random, `i32[4]@0:9` random within bounds, all else is taken as it is.

    Python's own numbers and lists become int32, float32, bool or string tensors.
    """
    if isinstance(spec, np.ndarray):
        return spec
    if not isinstance(spec, str):
        array = np.asarray(spec)
        narrow = {"i": np.int32, "f": np.float32, "S": object}
        return array.astype(narrow.get(array.dtype.kind, array.dtype))
    match = _SPEC.fullmatch(spec)
    assert match is not None, spec
    dtype: np.dtype[Any] = np.dtype(_DTYPES[match[1]])
    shape = tuple(map(int, filter(None, match[2].split(","))))
    random = np.random.default_rng(seed)
    if dtype.kind == "b":
        return random.random(shape) < 0.5
    low, high = (float(match[3]), float(match[4])) if match[3] else (-4.0, 4.0)
    if match[3] is None and dtype.kind == "u":
        low, high = 0.0, 8.0
    values = random.uniform(low, high, shape)
    if dtype.kind in "iu":
        return np.floor(values).astype(dtype)
    if dtype.kind == "c":
        return (values + 1j * random.uniform(low, high, shape)).astype(dtype)
    return values.astype(dtype)


def tensorflow(op: str, inputs: Sequence[Array], attributes: Mapping[str, object]) -> list[Array | bytes]:
    """Returns what TensorFlow computes; a single string is bytes."""
    import tensorflow as tf

    op_def = op_defs.lookup(op)
    assert op_def is not None
    function = getattr(tf.raw_ops, op)
    own = [arg.name for arg in op_def.input_arg]
    theirs = [name for name in inspect.signature(function).parameters if name != "name"]
    attribute_names = {attr.name for attr in op_def.attr}
    # Python's binding calls a few arguments differently: `axis` for `reduction_indices`.
    own += [name for name in attributes if name in attribute_names]
    renamed = [name for name in theirs if name not in own and name not in attribute_names]
    python_names = dict(zip([name for name in own if name not in theirs], renamed, strict=False))
    lists = [bool(arg.number_attr or arg.type_list_attr) for arg in op_def.input_arg]
    length = (len(inputs) - lists.count(False)) // max(lists.count(True), 1)
    arguments: dict[str, Any] = {}
    rest = list(inputs)
    for arg, is_list in zip(op_def.input_arg, lists, strict=True):
        arguments[python_names.get(arg.name, arg.name)] = (
            [tf.constant(x) for x in rest[:length]] if is_list else tf.constant(rest[0])
        )
        del rest[: length if is_list else 1]
    for name, value in attributes.items():
        arguments[python_names.get(name, name)] = tf.as_dtype(value) if isinstance(value, np.dtype) else value
    with skipped_without_kernel(tf):
        given = function(**arguments)
    results = given if isinstance(given, list | tuple) else [given]
    return [result.numpy() for result in tf.nest.flatten(list(results)) if result is not None]


def compare(got: Array, expected: Array | bytes, tolerance: float | None = None) -> None:
    """Asserts that dtype, shape and values are the same, values of floats to the tolerance of their dtype."""
    expected = np.array(expected, object if isinstance(expected, bytes) else None)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    limit = tolerance if tolerance is not None else _TOLERANCE.get(expected.dtype.name, 0)
    if limit:
        as_wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        scale = np.abs(expected[np.isfinite(expected)].astype(as_wide)).max(initial=0)
        np.testing.assert_allclose(got.astype(as_wide), expected.astype(as_wide), limit, limit * min(scale, 1))
    else:
        np.testing.assert_array_equal(got, expected)
