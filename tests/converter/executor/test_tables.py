"""Tables in the reference executor: filled by initializers or on the way, looked up, empty."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.run_text import run_text
from tfconvert.schema.diagnostics import ConversionError

HANDLE = "tensor<!tf_type.resource>"
TABLE = f"""%t = "tf.HashTableV2"() <{{
      container = "", shared_name = "t", use_node_name_sharing = false, key_dtype = i64, value_dtype = f32
    }}> : () -> {HANDLE}"""
FILL = f"""{TABLE}
    %k = "tf.Const"() <{{value = dense<[5, -1, 7]> : tensor<3xi64>}}> : () -> tensor<3xi64>
    %v = "tf.Const"() <{{value = dense<[0.5, 2.0, 4.0]> : tensor<3xf32>}}> : () -> tensor<3xf32>
    "tf.LookupTableImportV2"(%t, %k, %v) : ({HANDLE}, tensor<3xi64>, tensor<3xf32>) -> ()
    func.return"""
FIND = f"""func.func @main(%x: tensor<2x2xi64>) -> (tensor<2x2xf32>, tensor<i64>) {{
    {TABLE}
    %d = "tf.Const"() <{{value = dense<-3.0> : tensor<f32>}}> : () -> tensor<f32>
    %0 = "tf.LookupTableFindV2"(%t, %x, %d) : ({HANDLE}, tensor<2x2xi64>, tensor<f32>) -> tensor<2x2xf32>
    %1 = "tf.LookupTableSizeV2"(%t) : ({HANDLE}) -> tensor<i64>
    func.return %0, %1 : tensor<2x2xf32>, tensor<i64>
  }}"""
X = np.array([[7, 5], [0, -1]], np.int64)


def test_a_table_is_filled_by_the_initializer() -> None:
    initializer = '"tf_saved_model.session_initializer"() <{initializers = [@fill]}> : () -> ()'
    found, size = run_text(f"{initializer} func.func private @fill() {{ {FILL} }} {FIND}", [X])
    np.testing.assert_array_equal(found, np.array([[4, 0.5], [-3, 2]], np.float32))
    assert size == 3


def test_a_table_that_nothing_fills_answers_nothing() -> None:
    with pytest.raises(ConversionError, match="nothing has filled the table 't'"):
        run_text(FIND, [X])
