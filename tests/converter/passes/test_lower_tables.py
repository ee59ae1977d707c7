"""The pass `lower-tables`."""

from __future__ import annotations

from pathlib import Path

import pytest

from converter.passes.lower_tables import LowerTables
from schema.diagnostics import ConversionError
from tests.converter.passes.conftest import FileCheck

HANDLE = "tensor<!tf_type.resource>"


def table(key: str, value: str) -> str:
    return f"""%t = "tf.HashTableV2"() <{{container = "", shared_name = "t", use_node_name_sharing = false,
      key_dtype = {key}, value_dtype = {value}}}> : () -> {HANDLE}"""


def test_integers_by_integers_go_by_way_of_strings(filecheck: FileCheck) -> None:
    filecheck(LowerTables(), f"""
    // CHECK: func.func @main
    // CHECK: shared_name = "t"
    // CHECK: "tf.LookupTableImportV2"
    // CHECK: shared_name = "t/second"
    // CHECK: "tf.LookupTableImportV2"
    // CHECK: [[KEYS:%[0-9a-z_]+]] = "tf.Cast"(%{{{{.*}}}}) {{{{.*}}}}tensor<2xi64>
    // CHECK: [[NAMES:%[0-9a-z_]+]] = "tf.LookupTableFindV2"({{{{.*}}}}, [[KEYS]], {{{{.*}}}}tensor<2x!tf_type.string>
    // CHECK: [[INDEX:%[0-9a-z_]+]] = "tf.LookupTableFindV2"({{{{.*}}}}, [[NAMES]], {{{{.*}}}}tensor<2xi64>
    // CHECK: "tf.GatherV2"({{{{.*}}}}, [[INDEX]],
    func.func @main(%x: tensor<2xi32>, %d: tensor<i32>) -> (tensor<2xi32>, tensor<i64>) {{
      {table("i32", "i32")}
      %k = "tf.Const"() <{{value = dense<[5, 6]> : tensor<2xi32>}}> : () -> tensor<2xi32>
      "tf.LookupTableImportV2"(%t, %k, %k) : ({HANDLE}, tensor<2xi32>, tensor<2xi32>) -> ()
      %0 = "tf.LookupTableFindV2"(%t, %x, %d) : ({HANDLE}, tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
      %1 = "tf.LookupTableSizeV2"(%t) : ({HANDLE}) -> tensor<i64>
      func.return %0, %1 : tensor<2xi32>, tensor<i64>
    }}
    """)  # fmt: skip


def find(fill: str) -> str:
    return f"""
    func.func @main(%x: tensor<2x!tf_type.string>) -> tensor<2xi64> {{
      {table("!tf_type.string", "i64")}
      {fill}
      %d = "tf.Const"() <{{value = dense<-1> : tensor<i64>}}> : () -> tensor<i64>
      %0 = "tf.LookupTableFindV2"(%t, %x, %d) : ({HANDLE}, tensor<2x!tf_type.string>, tensor<i64>) -> tensor<2xi64>
      func.return %0 : tensor<2xi64>
    }}
    """


def from_file(path: Path) -> str:
    return f"""%f = "tf.Const"() <{{value = dense<"{path}"> : tensor<!tf_type.string>}}> : () -> tensor<!tf_type.string>
      "tf.InitializeTableFromTextFileV2"(%t, %f) <{{
        key_index = -2, value_index = -1, vocab_size = -1, delimiter = "\\09", offset = 0
      }}> : ({HANDLE}, tensor<!tf_type.string>) -> ()"""


def test_a_vocabulary_file_is_read(filecheck: FileCheck, tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("a\nb\n")
    asset = f'"tf_saved_model.asset"() <{{sym_name = "a", filename = "{file}"}}> : () -> ()'
    filecheck(
        LowerTables(),
        f"""
    // CHECK-NOT: tf_saved_model.asset
    // CHECK: dense<["a", "b"]>
    // CHECK: dense<[0, 1]>
    {asset} {find(from_file(file))}""",
    )


@pytest.mark.parametrize(("fill", "code"), [("", "empty-table"), (from_file(Path("/x/w.txt")), "missing-asset")])
def test_what_is_not_known_is_told(filecheck: FileCheck, fill: str, code: str) -> None:
    with pytest.raises(ConversionError) as caught:
        filecheck(LowerTables(), find(fill))
    assert caught.value.code == code
