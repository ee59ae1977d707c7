"""Pass `tables-to-gathers`: lookups in static tables of numbers become gathers, and the handles are removed.

Keys are sorted, so that a binary search finds the position of a key; the key at that position is compared with it.
Tables of strings stay.

Before:

    func.func @main(%key: tensor<2xi64>) -> tensor<2xf32> {
      %0 = "tf.Const"() <{value = dense<[30, -4]> : tensor<2xi64>}> : () -> tensor<2xi64>
      %1 = "tf.Const"() <{value = dense<[0.5, 3.0]> : tensor<2xf32>}> : () -> tensor<2xf32>
      %2 = "tf.Const"() <{value = dense<-1.0> : tensor<f32>}> : () -> tensor<f32>
      %3 = "tf.HashTableV2"() <{container = "", shared_name = "t", use_node_name_sharing = false, key_dtype = i64,
          value_dtype = f32}> : () -> tensor<!tf_type.resource>
      "tf.LookupTableImportV2"(%3, %0, %1) : (tensor<!tf_type.resource>, tensor<2xi64>, tensor<2xf32>) -> ()
      %4 = "tf.LookupTableFindV2"(%3, %key, %2)
          : (tensor<!tf_type.resource>, tensor<2xi64>, tensor<f32>) -> tensor<2xf32>
      func.return %4 : tensor<2xf32>
    }

After:

    func.func @main(%key: tensor<2xi64>) -> tensor<2xf32> {
      %0 = "tf.Const"() <{value = dense<-1.0> : tensor<f32>}> : () -> tensor<f32>
      %1 = "tf.Const"() <{value = dense<[-4, 30]> : tensor<2xi64>}> : () -> tensor<2xi64>
      %2 = "tf.Const"() <{value = dense<[3.0, 0.5]> : tensor<2xf32>}> : () -> tensor<2xf32>
      %3 = "tf.Const"() <{value = dense<[1, -1]> : tensor<2xi32>}> : () -> tensor<2xi32>
      %4 = "tf.Reshape"(%key, %3) : (tensor<2xi64>, tensor<2xi32>) -> tensor<1x2xi64>
      %5 = "tf.Const"() <{value = dense<[[-4, 30]]> : tensor<1x2xi64>}> : () -> tensor<1x2xi64>
      %6 = "tf.LowerBound"(%5, %4) : (tensor<1x2xi64>, tensor<1x2xi64>) -> tensor<1x2xi32>
      %7 = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %8 = "tf.Minimum"(%6, %7) : (tensor<1x2xi32>, tensor<i32>) -> tensor<1x2xi32>
      %9 = "tf.Shape"(%key) : (tensor<2xi64>) -> tensor<1xi32>
      %10 = "tf.Reshape"(%8, %9) : (tensor<1x2xi32>, tensor<1xi32>) -> tensor<2xi32>
      %11 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %12 = "tf.GatherV2"(%1, %10, %11) <{batch_dims = 0}>
          : (tensor<2xi64>, tensor<2xi32>, tensor<i32>) -> tensor<2xi64>
      %13 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %14 = "tf.GatherV2"(%2, %10, %13) <{batch_dims = 0}>
          : (tensor<2xf32>, tensor<2xi32>, tensor<i32>) -> tensor<2xf32>
      %15 = "tf.Equal"(%12, %key) <{incompatible_shape_error = true}>
          : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi1>
      %16 = "tf.SelectV2"(%15, %14, %0) : (tensor<2xi1>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
      func.return %16 : tensor<2xf32>
    }
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from tfconvert.converter.ir.edit import replace_op
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.lookup_tables.tables import Contents, lower_tables
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class TablesToGathers:
    """Replaces lookups in tables of numbers."""

    __slots__ = ()

    name: ClassVar[str] = "tables-to-gathers"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the number of tables."""
        count = lower_tables(module, _lower)
        return PassResult.of({"tables": count}) if count else NOTHING_DONE


def _lower(contents: Contents, finds: Sequence[Operation]) -> Callable[[Operation], None] | None:
    if types.STRING in (contents.key, contents.value):
        return None
    order = np.argsort(contents.keys, kind="stable")
    keys, values = contents.keys[order], contents.values[order]
    for op in finds:
        replace_op(op, _found(op, keys, values))
    return lambda anchor: None


def _found(op: Operation, keys: Array, values: Array) -> Value:
    """Inserts the lookup of keys, with the default for missing keys."""
    wanted, default = op.operands[1:]
    insert = TFBuilder(op)
    shape, result = wanted.shape, op.results[0].element
    if not len(keys):
        return insert.tf("Fill", (insert.shape(wanted), default), types.tensor(result, shape))
    known, entries = insert.constant(keys), insert.constant(values)
    index = types.tensor(types.I32, shape)
    count = int(np.prod(shape)) if shape is not None and types.is_static(shape) else -1
    key = wanted.element
    flat = insert.tf("Reshape", (wanted, insert.ints((1, -1))), types.tensor(key, (1, count)))
    row = types.tensor(types.I32, (1, count))
    place = insert.tf("LowerBound", (insert.constant(keys[np.newaxis]), flat), row)
    place = insert.tf("Minimum", (place, len(keys) - 1), row)
    place = insert.tf("Reshape", (place, insert.shape(wanted)), index)
    near = insert.tf("GatherV2", (known, place, 0), types.tensor(key, shape), {"batch_dims": 0})
    value = insert.tf("GatherV2", (entries, place, 0), types.tensor(result, shape), {"batch_dims": 0})
    is_it = insert.tf("Equal", (near, wanted), types.tensor(types.I1, shape), {"incompatible_shape_error": True})
    return insert.tf("SelectV2", (is_it, value, default), types.tensor(result, shape))
