"""Variables and lookup tables behave as in TensorFlow."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.run_text import run_text
from tfconvert.schema.diagnostics import ConversionError

HANDLE = "tensor<!tf_type.resource<tensor<4x2xf32>>>"
START = np.arange(8, dtype=np.float32).reshape(4, 2)


def scattered(op: str, indices: Any, updates: Any) -> Any:
    """Returns a variable's value after an op."""
    index_type, update_type = (
        f"tensor<{'x'.join(map(str, value.shape))}x{element}>"
        for value, element in ((indices, "i32"), (updates, "f32"))
    )
    text = f"""
    "tf_saved_model.global_tensor"() <{{sym_name = "v", type = tensor<4x2xf32>, is_mutable,
      value = dense<{START.tolist()}> : tensor<4x2xf32>}}> : () -> ()
    func.func @main(%i: {index_type}, %u: {update_type}) -> tensor<4x2xf32> {{
      %v = "tf.VarHandleOp"() <{{container = "", shared_name = "v"}}> : () -> {HANDLE}
      "tf.{op}"(%v, %i, %u) : ({HANDLE}, {index_type}, {update_type}) -> ()
      %0 = "tf.ReadVariableOp"(%v) : ({HANDLE}) -> tensor<4x2xf32>
      func.return %0 : tensor<4x2xf32>
    }}
    """
    return run_text(text, [indices, updates])[0]


@pytest.mark.parametrize(
    "op", [f"ResourceScatter{what}" for what in ("Update", "Add", "Sub", "Mul", "Div", "Min", "Max")]
)
def test_rows_are_scattered_as_tensorflow_does(tf: ModuleType, op: str) -> None:
    indices = np.array([2, 0, 3] if op.endswith("Update") else [2, 0, 2], np.int32)
    updates = np.array([[1, 2], [3, 4], [0.5, 6]], np.float32)
    expected = tf.Variable(START)
    getattr(tf.raw_ops, op)(resource=expected.handle, indices=indices, updates=updates)
    np.testing.assert_array_equal(scattered(op, indices, updates), expected.numpy())


@pytest.mark.parametrize("op", [f"ResourceScatterNd{what}" for what in ("Update", "Add", "Sub", "Min", "Max")])
def test_elements_are_scattered_as_tensorflow_does(tf: ModuleType, op: str) -> None:
    indices, updates = np.array([[2, 1], [0, 0]], np.int32), np.array([1.5, 3], np.float32)
    expected = tf.Variable(START)
    getattr(tf.raw_ops, op)(ref=expected.handle, indices=indices, updates=updates)
    np.testing.assert_array_equal(scattered(op, indices, updates), expected.numpy())


def test_a_slice_is_assigned() -> None:
    vector = "tensor<2xi64>"
    text = f"""
    "tf_saved_model.global_tensor"() <{{sym_name = "v", type = tensor<4x2xf32>, is_mutable,
      value = dense<{START.tolist()}> : tensor<4x2xf32>}}> : () -> ()
    func.func @main(%b: {vector}, %e: {vector}, %s: {vector}, %u: tensor<2x2xf32>) -> tensor<4x2xf32> {{
      %v = "tf.VarHandleOp"() <{{container = "", shared_name = "v"}}> : () -> {HANDLE}
      "tf.ResourceStridedSliceAssign"(%v, %b, %e, %s, %u) <{{begin_mask = 0 : i64, ellipsis_mask = 0 : i64,
        end_mask = 2 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 0 : i64}}>
        : ({HANDLE}, {vector}, {vector}, {vector}, tensor<2x2xf32>) -> ()
      %0 = "tf.ReadVariableOp"(%v) : ({HANDLE}) -> tensor<4x2xf32>
      func.return %0 : tensor<4x2xf32>
    }}
    """
    updates = np.array([[-1, -2], [-3, -4]], np.float32)
    expected = START.copy()
    expected[3:0:-2] = updates
    np.testing.assert_array_equal(run_text(text, [[3, 0], [0, 0], [-2, 1], updates])[0], expected)


@pytest.mark.parametrize("index", [4, -1])
def test_an_index_out_of_range_is_an_error(index: int) -> None:
    with pytest.raises(ConversionError) as caught:
        scattered("ResourceScatterAdd", np.array([index], np.int32), np.ones((1, 2), np.float32))
    assert caught.value.code == "bad-operand"


def test_refs_stand_for_the_value_at_the_moment() -> None:
    text = """
    func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %v = "tf.VariableV2"() <{container = "", shared_name = "v", shape = #tf_type.shape<2>}>
        : () -> tensor<2x!tf_type.f32ref>
      %a = "tf.Assign"(%v, %x) <{use_locking = true, validate_shape = true}>
        : (tensor<2x!tf_type.f32ref>, tensor<2xf32>) -> tensor<2x!tf_type.f32ref>
      %old = "tf.Neg"(%v) : (tensor<2x!tf_type.f32ref>) -> tensor<2xf32>
      %b = "tf.AssignAdd"(%a, %x) <{use_locking = false}>
        : (tensor<2x!tf_type.f32ref>, tensor<2xf32>) -> tensor<2x!tf_type.f32ref>
      %new = "tf.Identity"(%v) : (tensor<2x!tf_type.f32ref>) -> tensor<2xf32>
      func.return %old, %new : tensor<2xf32>, tensor<2xf32>
    }
    """
    old, new = run_text(text, [np.array([1, 2], np.float32)])
    np.testing.assert_array_equal(old, [-1, -2])
    np.testing.assert_array_equal(new, [2, 4])


TABLE_HANDLE = "tensor<!tf_type.resource>"
TABLE = f"""%t = "tf.HashTableV2"() <{{
      container = "", shared_name = "t", use_node_name_sharing = false, key_dtype = i64, value_dtype = f32
    }}> : () -> {TABLE_HANDLE}"""
FILL = f"""{TABLE}
    %k = "tf.Const"() <{{value = dense<[5, -1, 7]> : tensor<3xi64>}}> : () -> tensor<3xi64>
    %v = "tf.Const"() <{{value = dense<[0.5, 2.0, 4.0]> : tensor<3xf32>}}> : () -> tensor<3xf32>
    "tf.LookupTableImportV2"(%t, %k, %v) : ({TABLE_HANDLE}, tensor<3xi64>, tensor<3xf32>) -> ()
    func.return"""
FIND = f"""func.func @main(%x: tensor<2x2xi64>) -> (tensor<2x2xf32>, tensor<i64>) {{
    {TABLE}
    %d = "tf.Const"() <{{value = dense<-3.0> : tensor<f32>}}> : () -> tensor<f32>
    %0 = "tf.LookupTableFindV2"(%t, %x, %d) : ({TABLE_HANDLE}, tensor<2x2xi64>, tensor<f32>) -> tensor<2x2xf32>
    %1 = "tf.LookupTableSizeV2"(%t) : ({TABLE_HANDLE}) -> tensor<i64>
    func.return %0, %1 : tensor<2x2xf32>, tensor<i64>
  }}"""
X = np.array([[7, 5], [0, -1]], np.int64)


def test_a_table_is_filled_by_the_initializer() -> None:
    initializer = '"tf_saved_model.session_initializer"() <{initializers = [@fill]}> : () -> ()'
    found, size = run_text(f"{initializer} func.func private @fill() {{ {FILL} }} {FIND}", [X])
    np.testing.assert_array_equal(found, np.array([[4, 0.5], [-3, 2]], np.float32))
    assert size == 3


def test_a_table_that_nothing_fills_answers_nothing() -> None:
    with pytest.raises(ConversionError, match="the table 't' is not initialized"):
        run_text(FIND, [X])
