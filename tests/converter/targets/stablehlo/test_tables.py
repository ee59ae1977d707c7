"""Static tables in texts of StableHLO: those of numbers become gathers, those of strings are refused."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.stablehlo.engine import Program
from tfconvert.converter.executor import executor
from tfconvert.schema.dialects.parsing import IRParser


def _saved(tf: ModuleType, folder: Path, keys: Any, values: Any, default: Any, wanted: Any) -> Path:
    """Saves a model that looks up in a table."""
    module = tf.Module()
    module.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), default)
    kind = tf.constant(wanted).dtype

    def serve(x: Any) -> Any:
        return {"found": module.table.lookup(x), "size": module.table.size()}

    module.serve = tf.function(serve, input_signature=[tf.TensorSpec([None, 3], kind, name="x")])
    tf.saved_model.save(module, str(folder), signatures=module.serve)
    return folder


@pytest.mark.parametrize(
    ("keys", "values"),
    [
        (np.array([30, -4, 1 << 40], np.int64), np.array([0.5, 3, 9], np.float32)),
        (np.array([3, 1, 2], np.int32), np.array([7, 8, 9], np.int32)),
        (np.array([5], np.int64), np.array([-6], np.int64)),
    ],
    ids=["far", "near", "one"],
)
def test_tables_of_numbers_become_gathers(tf: ModuleType, tmp_path: Path, keys: np.ndarray, values: np.ndarray) -> None:
    inputs = np.array([[keys[0], 0, keys[-1]], [-5, 1 << 30, 2]]).astype(keys.dtype)
    folder = _saved(tf, tmp_path / "model", keys, values, values.dtype.type(-1), keys)
    converted = tfconvert.convert(folder, target="stablehlo")
    text = bytes(converted).decode()
    assert text.count("func.func") == 1
    entries = dict(zip(keys.tolist(), values.tolist(), strict=True))
    expected = np.array([[entries.get(each, -1) for each in row] for row in inputs.tolist()], values.dtype)
    for found in (
        executor.run(IRParser(text).parse_module(), "main", [inputs]),
        Program(text, [(values.dtype, (None, 3)), (np.int64, ())]).run([inputs]),
    ):
        np.testing.assert_array_equal(found[0], expected)
        assert found[0].dtype == values.dtype
        assert found[1] == len(keys)


EMPTY = """
func.func @main(%x: tensor<?xi64>, %default: tensor<i64>) -> tensor<?xi64> {
  %0 = "tf.Const"() <{value = dense<[]> : tensor<0xi64>}> : () -> tensor<0xi64>
  %1 = "tf.HashTableV2"() <{container = "", shared_name = "t", use_node_name_sharing = false, key_dtype = i64,
      value_dtype = i64}> : () -> tensor<!tf_type.resource>
  "tf.LookupTableImportV2"(%1, %0, %0) : (tensor<!tf_type.resource>, tensor<0xi64>, tensor<0xi64>) -> ()
  %2 = "tf.LookupTableFindV2"(%1, %x, %default)
    : (tensor<!tf_type.resource>, tensor<?xi64>, tensor<i64>) -> tensor<?xi64>
  func.return %2 : tensor<?xi64>
}
"""


def test_an_empty_table_has_the_default_only(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(EMPTY)
    module = IRParser(bytes(tfconvert.convert(path, target="stablehlo")).decode()).parse_module()
    (found,) = executor.run(module, "main", [np.array([1, 2, 3]), np.array(7)])
    assert found.tolist() == [7, 7, 7]


def test_tables_of_strings_are_refused(tf: ModuleType, tmp_path: Path) -> None:
    folder = _saved(tf, tmp_path / "model", ["a", "b"], np.array([1, 2]), -1, ["a"])
    with pytest.raises(tfconvert.ConversionError) as refused:
        tfconvert.convert(folder, target="stablehlo")
    found = next(each for each in refused.value.diagnostics if each.op == "tf.LookupTableFindV2")
    assert found.code == "unsupported-op"
    assert "StableHLO has no strings" in found.message
    assert "begins behind what works on texts" in found.hint
