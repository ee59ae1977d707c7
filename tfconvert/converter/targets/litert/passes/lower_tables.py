"""Pass `lower-tables`: fills static tables with constants, and lowers them to the kinds that LiteRT supports.

LiteRT looks up 64-bit integers by strings and strings by 64-bit integers. Any other table becomes such tables with the
indices of entries and a gather, or only the gather if integer keys are dense
(`tfconvert/converter/targets/litert/hash_tables.py`). Vocabulary files are read now.

Before:

    func.func @main(%key: tensor<2x!tf_type.string>) -> tensor<2xf32> {
      %0 = "tf.Const"() <{value = dense<["a", "b"]> : tensor<2x!tf_type.string>}> : () -> tensor<2x!tf_type.string>
      %1 = "tf.Const"() <{value = dense<[0.5, 3.0]> : tensor<2xf32>}> : () -> tensor<2xf32>
      %2 = "tf.Const"() <{value = dense<-1.0> : tensor<f32>}> : () -> tensor<f32>
      %3 = "tf.HashTableV2"() <{container = "", shared_name = "t", use_node_name_sharing = false,
          key_dtype = !tf_type.string, value_dtype = f32}> : () -> tensor<!tf_type.resource>
      "tf.LookupTableImportV2"(%3, %0, %1)
          : (tensor<!tf_type.resource>, tensor<2x!tf_type.string>, tensor<2xf32>) -> ()
      %4 = "tf.LookupTableFindV2"(%3, %key, %2)
          : (tensor<!tf_type.resource>, tensor<2x!tf_type.string>, tensor<f32>) -> tensor<2xf32>
      func.return %4 : tensor<2xf32>
    }

After:

    func.func @main(%key: tensor<2x!tf_type.string>) -> tensor<2xf32> {
      %0 = "tf.Const"() <{value = dense<["a", "b"]> : tensor<2x!tf_type.string>}> : () -> tensor<2x!tf_type.string>
      %1 = "tf.Const"() <{value = dense<[0, 1]> : tensor<2xi64>}> : () -> tensor<2xi64>
      %2 = "tf.HashTableV2"() <{container = "", shared_name = "t", use_node_name_sharing = false,
          key_dtype = !tf_type.string, value_dtype = i64}> : () -> tensor<!tf_type.resource>
      "tf.LookupTableImportV2"(%2, %0, %1)
          : (tensor<!tf_type.resource>, tensor<2x!tf_type.string>, tensor<2xi64>) -> ()
      %3 = "tf.Const"() <{value = dense<2> : tensor<i64>}> : () -> tensor<i64>
      %4 = "tf.HashTableV2"() <{container = "", shared_name = "t", use_node_name_sharing = false,
          key_dtype = !tf_type.string, value_dtype = i64}> : () -> tensor<!tf_type.resource>
      %5 = "tf.LookupTableFindV2"(%4, %key, %3)
          : (tensor<!tf_type.resource>, tensor<2x!tf_type.string>, tensor<i64>) -> tensor<2xi64>
      %6 = "tf.Const"() <{value = dense<[0.5, 3.0, -1.0]> : tensor<3xf32>}> : () -> tensor<3xf32>
      %7 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %8 = "tf.GatherV2"(%6, %5, %7) <{batch_dims = 0}>
          : (tensor<3xf32>, tensor<2xi64>, tensor<i32>) -> tensor<2xf32>
      func.return %8 : tensor<2xf32>
    }
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from tfconvert.converter.lookup_tables.tables import Contents, lower_tables
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.converter.targets.litert import hash_tables
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation


class LowerTables:
    """Fills tables that LiteRT supports with the entries of static tables, and rewrites the lookups."""

    __slots__ = ()

    name: ClassVar[str] = "lower-tables"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the number of tables."""
        count = lower_tables(module, _lower)
        return PassResult.of({"tables": count}) if count else NOTHING_DONE


def _lower(contents: Contents, finds: Sequence[Operation]) -> Callable[[Operation], None]:
    made = hash_tables.lower(contents, finds)

    def fill(anchor: Operation) -> None:
        for name, keys, values in made:
            hash_tables.fill(anchor, name, keys, values)

    return fill
