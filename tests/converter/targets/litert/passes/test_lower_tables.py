"""The pass `lower-tables`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.targets.litert.passes.lower_tables import LowerTables
from tfconvert.schema.diagnostics import ConversionError

HANDLE = "tensor<!tf_type.resource>"


def table(key: str, value: str) -> str:
    return f"""%t = "tf.HashTableV2"() <{{container = "", shared_name = "t", use_node_name_sharing = false,
      key_dtype = {key}, value_dtype = {value}}}> : () -> {HANDLE}"""


def test_integers_by_far_integers_go_by_way_of_strings(filecheck: FileCheck) -> None:
    filecheck(
        LowerTables(),
        f"""
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
      %k = "tf.Const"() <{{value = dense<[5, 600]> : tensor<2xi32>}}> : () -> tensor<2xi32>
      "tf.LookupTableImportV2"(%t, %k, %k) : ({HANDLE}, tensor<2xi32>, tensor<2xi32>) -> ()
      %0 = "tf.LookupTableFindV2"(%t, %x, %d) : ({HANDLE}, tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
      %1 = "tf.LookupTableSizeV2"(%t) : ({HANDLE}) -> tensor<i64>
      func.return %0, %1 : tensor<2xi32>, tensor<i64>
    }}
    """,
    )


def test_integers_by_close_integers_are_gathered(filecheck: FileCheck) -> None:
    filecheck(
        LowerTables(),
        f"""
    // CHECK-NOT: HashTableV2
    // CHECK: [[LOW:%[0-9a-z_]+]] = "tf.Const"() <{{{{.*}}}}value = dense<4>
    // CHECK: [[ABOVE:%[0-9a-z_]+]] = "tf.Maximum"({{{{.*}}}}, [[LOW]])
    // CHECK: [[HIGH:%[0-9a-z_]+]] = "tf.Const"() <{{{{.*}}}}value = dense<8>
    // CHECK: [[NEAR:%[0-9a-z_]+]] = "tf.Minimum"([[ABOVE]], [[HIGH]])
    // CHECK: [[INDEX:%[0-9a-z_]+]] = "tf.Sub"([[NEAR]],
    // CHECK: dense<[9.000000e+00, 5.000000e-01, 9.000000e+00, 2.000000e+00, 9.000000e+00]>
    // CHECK: "tf.GatherV2"({{{{.*}}}}, [[INDEX]],
    func.func @main(%x: tensor<2xi32>) -> tensor<2xf32> {{
      {table("i32", "f32")}
      %k = "tf.Const"() <{{value = dense<[5, 7]> : tensor<2xi32>}}> : () -> tensor<2xi32>
      %v = "tf.Const"() <{{value = dense<[0.5, 2.0]> : tensor<2xf32>}}> : () -> tensor<2xf32>
      "tf.LookupTableImportV2"(%t, %k, %v) : ({HANDLE}, tensor<2xi32>, tensor<2xf32>) -> ()
      %d = "tf.Const"() <{{value = dense<9.0> : tensor<f32>}}> : () -> tensor<f32>
      %0 = "tf.LookupTableFindV2"(%t, %x, %d) : ({HANDLE}, tensor<2xi32>, tensor<f32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }}
    """,
    )


@pytest.mark.parametrize("keys", ["[5, 7]", "[5, 700]"])
def test_bits_of_doubles_are_gathered_and_so_are_those_of_a_default_value_that_is_not_known(
    filecheck: FileCheck, keys: str
) -> None:
    filecheck(
        LowerTables(),
        f"""
    // CHECK: [[BITS:%[0-9a-z_]+]] = "tf.Bitcast"(%d) <{{{{.*}}}}i64
    // CHECK: [[LAST:%[0-9a-z_]+]] = "tf.Reshape"([[BITS]],
    // CHECK: "tf.ConcatV2"({{{{.*}}}}, [[LAST]],
    // CHECK: [[FOUND:%[0-9a-z_]+]] = "tf.GatherV2"({{{{.*}}}}tensor<2xi64>
    // CHECK: "tf.Bitcast"([[FOUND]]) <{{{{.*}}}}f64
    func.func @main(%x: tensor<2xi64>, %d: tensor<f64>) -> tensor<2xf64> {{
      {table("i64", "f64")}
      %k = "tf.Const"() <{{value = dense<{keys}> : tensor<2xi64>}}> : () -> tensor<2xi64>
      %v = "tf.Const"() <{{value = dense<[0.5, 2.0]> : tensor<2xf64>}}> : () -> tensor<2xf64>
      "tf.LookupTableImportV2"(%t, %k, %v) : ({HANDLE}, tensor<2xi64>, tensor<2xf64>) -> ()
      %0 = "tf.LookupTableFindV2"(%t, %x, %d) : ({HANDLE}, tensor<2xi64>, tensor<f64>) -> tensor<2xf64>
      func.return %0 : tensor<2xf64>
    }}
    """,
    )


def test_an_empty_table_answers_its_default_value_and_tells_nothing(filecheck: FileCheck) -> None:
    filecheck(
        LowerTables(),
        f"""
    // CHECK-NOT: HashTableV2
    // CHECK: [[SHAPE:%[0-9a-z_]+]] = "tf.Shape"(%x)
    // CHECK: [[FOUND:%[0-9a-z_]+]] = "tf.Fill"([[SHAPE]], %d)
    // CHECK: func.return [[FOUND]], {{{{.*}}}} tensor<?xf32>, tensor<0xi64>, tensor<0xf32>
    func.func @main(%x: tensor<?xi64>, %d: tensor<f32>) -> (tensor<?xf32>, tensor<?xi64>, tensor<?xf32>) {{
      {table("i64", "f32")}
      %k = "tf.Const"() <{{value = dense<> : tensor<0xi64>}}> : () -> tensor<0xi64>
      %v = "tf.Const"() <{{value = dense<> : tensor<0xf32>}}> : () -> tensor<0xf32>
      "tf.LookupTableImportV2"(%t, %k, %v) : ({HANDLE}, tensor<0xi64>, tensor<0xf32>) -> ()
      %0 = "tf.LookupTableFindV2"(%t, %x, %d) : ({HANDLE}, tensor<?xi64>, tensor<f32>) -> tensor<?xf32>
      %1, %2 = "tf.LookupTableExportV2"(%t) : ({HANDLE}) -> (tensor<?xi64>, tensor<?xf32>)
      func.return %0, %1, %2 : tensor<?xf32>, tensor<?xi64>, tensor<?xf32>
    }}
    """,
    )


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


def filled(keys: str, values: str, find: str = "") -> str:
    one = "1.0" if values.endswith("f32") else "1"
    return f"""
    func.func @main(%x: tensor<2xi64>, %y: tensor<2xf32>, %d: tensor<i64>, %e: tensor<2xi64>) {{
      {table("i64", "i64")}
      %k = "tf.Const"() <{{value = dense<1> : tensor<{keys}>}}> : () -> tensor<{keys}>
      %v = "tf.Const"() <{{value = dense<{one}> : tensor<{values}>}}> : () -> tensor<{values}>
      "tf.LookupTableImportV2"(%t, %k, %v) : ({HANDLE}, tensor<{keys}>, tensor<{values}>) -> ()
      {find}
      func.return
    }}
    """


def lookup(keys: str, key: str, default: str, kind: str) -> str:
    types = f"({HANDLE}, tensor<2x{key}>, tensor<{kind}>) -> tensor<2xi64>"
    return f'%0 = "tf.LookupTableFindV2"(%t, {keys}, {default}) : {types}'


@pytest.mark.parametrize(
    "text",
    [
        filled("2xi64", "3xi64"),
        filled("2xi64", "2x1xi64"),
        filled("2xi64", "2xf32"),
        filled("2xi32", "2xi64"),
        filled("2xi64", "2xi64", lookup("%y", "f32", "%d", "i64")),
        filled("2xi64", "2xi64", lookup("%x", "i64", "%e", "2xi64")),
    ],
)
def test_tables_that_contradict_themselves_are_refused(filecheck: FileCheck, text: str) -> None:
    with pytest.raises(ConversionError) as caught:
        filecheck(LowerTables(), text)
    assert caught.value.code == "bad-table"
