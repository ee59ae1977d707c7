"""Wrong and unusable results: LiteRT gives what TensorFlow gives, or the conversion says that it won't."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.litert import RunTFLite
from tests.support.run_text import parse
from tfconvert.converter.passes.verify_control_flow import VerifyControlFlow
from tfconvert.converter.targets.litert import legalize
from tfconvert.converter.targets.litert.legalize.entry import BuiltinRow
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import types
from tfconvert.schema.tflite import kernels
from tfconvert.schema.tflite.versions import Operand

Array = np.ndarray[Any, np.dtype[Any]]
Function = Callable[[ModuleType, Any], Any]

SEVEN = (2, 1, 3, 2, 2, 1, 2)
EIGHT = (2, 3, 1, 2, 2, 2, 3, 2)


def numbers(shape: Sequence[int], dtype: str) -> Array:
    """Returns small numbers, some of them negative if the type has such, and half of them zero."""
    values = np.arange(int(np.prod(shape))) * 7 % 11 - (0 if dtype.startswith("u") else 5)
    values[::2] = 0
    return values.reshape(shape).astype(dtype)


CASES: dict[str, tuple[Function, Array]] = {
    "silent_compare_int16": (lambda tf, x: tf.not_equal(x, x[::-1]), numbers((4, 3), "int16")),
    "silent_compare_int16 with a row": (lambda tf, x: tf.not_equal(x, x[0]), numbers((4, 3), "int16")),
    "nan_handling: count_nonzero": (lambda tf, x: tf.math.count_nonzero(x), numbers((14,), "int16")),
    "refused_onehot_uint8": (lambda tf, x: tf.one_hot(x, 9), numbers((6,), "uint8")),
    "one_hot of int8": (lambda tf, x: tf.one_hot(x, 9, dtype=tf.int32), numbers((6,), "int8")),
    "empty tuples of indices": (
        lambda tf, x: tf.gather_nd(x, tf.zeros([tf.shape(x)[0], 0], tf.int32)),
        numbers((3, 2), "float32"),
    ),
    "mean of seven": (lambda tf, x: tf.reduce_mean(x, [1, 3]), numbers(SEVEN, "float32")),
    "mean of eight": (lambda tf, x: tf.reduce_mean(x, [0, 3, 5, 7], keepdims=True), numbers(EIGHT, "float32")),
    "concat of eight": (lambda tf, x: tf.concat([x, -x], 5), numbers(EIGHT, "float32")),
    "softmax of seven": (lambda tf, x: tf.nn.softmax(x), numbers(SEVEN, "float32")),
    "greatest of eight": (lambda tf, x: tf.reduce_max(x, [2, 6]), numbers(EIGHT, "float32")),
    "split of seven": (lambda tf, x: tf.concat(tf.split(x, 3, 2)[::-1], 1), numbers(SEVEN, "float32")),
    "pad of six": (lambda tf, x: tf.pad(x, [[1, 0], [0, 1]] * 3), numbers(EIGHT[:6], "float32")),
    "slice of eight": (lambda tf, x: tf.slice(x, [1, 0] * 4, [1, 2] * 4), numbers((2, 3) * 4, "int32")),
    "strided slice of eight": (lambda tf, x: x[:, ::2, 0, ..., 1:], numbers(EIGHT, "float32")),
    "matrices of seven": (lambda tf, x: tf.matmul(x, x, transpose_b=True), numbers(SEVEN, "float32")),
    "layer of seven": (lambda tf, x: tf.matmul(x, tf.ones([2, 3])), numbers(SEVEN, "float32")),
    "transpose of eight": (lambda tf, x: tf.transpose(x, [7, 0, 6, 1, 5, 2, 4, 3]), numbers(EIGHT, "float32")),
    "mean of bytes": (lambda tf, x: tf.reduce_mean(x, 1), np.full((2, 9), 100, "int8")),
}


@pytest.mark.parametrize("name", CASES)
def test_litert_gives_what_tensorflow_gives(tf: ModuleType, run_tflite: RunTFLite, name: str) -> None:
    function, x = CASES[name]
    called = tf.function(lambda value: function(tf, value), input_signature=[tf.TensorSpec(x.shape, x.dtype)])
    converted = tfconvert.convert(called)
    (found,) = run_tflite(bytes(converted), [x])
    np.testing.assert_allclose(found, called(tf.constant(x)).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "function", [lambda tf, x: tf.math.is_nan(x * 2), lambda tf, x: tf.where(tf.math.is_finite(x), x, tf.zeros_like(x))]
)
def test_not_a_number_equals_itself_when_verified(tf: ModuleType, function: Function) -> None:
    signature = [tf.TensorSpec((3,), tf.float32)]
    nan = tf.function(lambda x: (x - x) / (x - x), input_signature=signature)
    assert bytes(tfconvert.convert(nan, verify=True))
    asking = tf.function(lambda x: function(tf, x), input_signature=signature)
    notes = tfconvert.convert(asking, verify=True).report.notes
    assert any("infinite numbers and NaN" in str(note) for note in notes)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda tf, x: tf.cast(x, tf.uint8), True),
        (lambda tf, x: tf.cast(tf.round(x), tf.int8), True),
        (lambda tf, x: tf.cast(tf.clip_by_value(x, 0.0, 255.0), tf.uint8), False),
        (lambda tf, x: tf.cast(x, tf.int32), False),
    ],
)
def test_casts_that_may_be_out_of_range_have_a_note(tf: ModuleType, function: Function, expected: bool) -> None:
    called = tf.function(lambda x: function(tf, x), input_signature=[tf.TensorSpec((3,), tf.float32)])
    report = tfconvert.convert(called).report
    assert any("out of the integer type's range" in str(note) for note in report.notes) is expected


LOOP = """
func.func @main(%i: tensor<i32>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0:2 = "tf.While"(%i, %x) <{cond = @cond, body = @body, is_stateless = true}>
      : (tensor<i32>, tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>)
  func.return %0#1 : tensor<2xf32>
}
"""
COND = """
func.func private @cond(%i: tensor<i32>, %x: tensor<2xf32>) -> tensor<i1> {
  %0 = "tf.Less"(%i, %i) : (tensor<i32>, tensor<i32>) -> tensor<i1>
  func.return %0 : tensor<i1>
}
"""
CHOICE = """
func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  {condition}
  %0 = "tf.If"({p}, %x) <{then_branch = @body, else_branch = @other, is_stateless = true}>
      : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
func.func private @other(%x: tensor<2xf32>) -> tensor<2xf32> {
  func.return %x : tensor<2xf32>
}
"""
FED = CHOICE.replace("{p}", "%p").replace("{condition}", "")
DECIDED = CHOICE.replace("{p}", "%c").replace(
    "{condition}", '%c = "tf.Const"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>'
)
ONE_LESS = """
func.func private @body(%i: tensor<i32>, %x: tensor<2xf32>) -> tensor<i32> {
  func.return %i : tensor<i32>
}
"""
OTHER_TYPES = """
func.func private @body(%i: tensor<i32>, %x: tensor<2xf32>) -> (tensor<f32>, tensor<2xf32>) {
  %0 = "tf.Cast"(%i) <{Truncate = false}> : (tensor<i32>) -> tensor<f32>
  func.return %0, %x : tensor<f32>, tensor<2xf32>
}
"""
TWO = """
func.func private @body(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  func.return %x, %x : tensor<2xf32>, tensor<2xf32>
}
"""
INTEGERS = """
func.func private @body(%x: tensor<2xf32>) -> tensor<2xi32> {
  %0 = "tf.Cast"(%x) <{Truncate = false}> : (tensor<2xf32>) -> tensor<2xi32>
  func.return %0 : tensor<2xi32>
}
"""
NOTHING_TAKEN = """
func.func private @body() -> tensor<2xf32> {
  %0 = "tf.Const"() <{value = dense<1.0> : tensor<2xf32>}> : () -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
"""
FITS = """
func.func private @body(%i: tensor<i32>, %x: tensor<?xf32>) -> (tensor<i32>, tensor<?xf32>) {
  func.return %i, %x : tensor<i32>, tensor<?xf32>
}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LOOP + COND + ONE_LESS, "'body' returns 1 values, not 2"),
        (LOOP + COND + OTHER_TYPES, "'body' returns tensor<f32> as number 0, not tensor<i32>"),
        (LOOP + COND + NOTHING_TAKEN, "'body' takes 0 values, not 2"),
        (FED + TWO, "'body' returns 2 values, not 1"),
        (DECIDED + TWO, "'body' returns 2 values, not 1"),
        (DECIDED + INTEGERS, "'body' returns tensor<2xi32> as number 0, not tensor<2xf32>"),
        (DECIDED + NOTHING_TAKEN, "'body' takes 0 values, not 1"),
    ],
    ids=["one less", "other types", "takes nothing", "two", "two, never run", "integers, never run", "never run"],
)
def test_functions_must_fit_the_runtime(tmp_path: Path, text: str, expected: str) -> None:
    model = tmp_path / "model.mlir"
    model.write_text(text)
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(model)
    assert caught.value.code == "invalid-ir"
    with pytest.raises(ConversionError) as caught:
        VerifyControlFlow().apply(parse(text, with_relations=False))
    assert caught.value.code == "bad-call"
    assert expected in str(caught.value)


def test_functions_that_fit_are_let_through() -> None:
    VerifyControlFlow().apply(parse(LOOP + COND + FITS))


def _first_forms(operator: str, position: int) -> set[str]:
    """Returns the types that the table has as computed right at some rank, of one operand."""
    rows = kernels.table().rows(operator)
    right = [each for each, found in rows.items() if any(row.is_ok and row.low <= 4 for row in found)]
    inputs = [each.partition(">")[0].split(",") for each in right]
    return {forms[position] for forms in inputs if len(forms) > position}


def test_legalization_emits_only_operators_of_the_table() -> None:
    """Each type that an entry lists is one that LiteRT computes right."""
    elements = {str(row.mlir): row.tflite for row in types.ELEMENT_TYPES}
    modules = [
        importlib.import_module(f"{legalize.__name__}.{each.name}") for each in pkgutil.iter_modules(legalize.__path__)
    ]
    tables = [getattr(module, "ENTRIES", ()) for module in modules]
    entries = [entry for table in tables for entry in table if isinstance(entry, BuiltinRow) and entry.types]
    assert len(entries) > 80
    wrong = []
    for entry in entries:
        position = entry.typed if entry.operands is None else entry.operands.index(entry.typed)
        right = _first_forms(entry.target.upper(), position)
        if not kernels.table().rows(entry.target.upper()):
            continue  # What depends on chance, or on state, has no one answer.
        forms = {kernels.form(Operand(elements[each])) for each in entry.types.split()}
        wrong += [f"{entry.op} {form}" for form in forms - right]
    assert not wrong
