"""Pass `share-shapes`: computes equal shapes and dimensions once, from the first value that has them.

Dynamic shapes are often read from values that are computed for no other purpose: a masked layer of Keras repeats its
first step for the shape of zeros. Dynamic dimensions are symbols, which are followed through loops and branches
(`tfconvert/converter/shapes/symbolic.py`). If two shape tensors have equal elements, the first one replaces the other.
Dimensions that are known before a loop are passed to it as variables.

Before:

    func.func @main(%x: tensor<?x3xf32>, %w: tensor<3x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
      %0 = "tf.Const"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
      %1 = "tf.Const"() <{value = dense<1> : tensor<1xi32>}> : () -> tensor<1xi32>
      %2 = "tf.Const"() <{value = dense<4> : tensor<i32>}> : () -> tensor<i32>
      %3 = "tf.Const"() <{value = dense<1.0> : tensor<f32>}> : () -> tensor<f32>
      %4 = "tf.Shape"(%x) : (tensor<?x3xf32>) -> tensor<2xi32>
      %5 = "tf.StridedSlice"(%4, %0, %1, %1) <{begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64,
        new_axis_mask = 0 : i64, shrink_axis_mask = 1 : i64}>
        : (tensor<2xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32>
      %6 = "tf.Pack"(%5, %2) <{axis = 0 : i64}> : (tensor<i32>, tensor<i32>) -> tensor<2xi32>
      %7 = "tf.Fill"(%6, %3) : (tensor<2xi32>, tensor<f32>) -> tensor<?x4xf32>
      %8 = "tf.MatMul"(%x, %w) <{transpose_a = false, transpose_b = false}>
        : (tensor<?x3xf32>, tensor<3x4xf32>) -> tensor<?x4xf32>
      %9 = "tf.ZerosLike"(%8) : (tensor<?x4xf32>) -> tensor<?x4xf32>
      func.return %7, %9 : tensor<?x4xf32>, tensor<?x4xf32>
    }

After:

    func.func @main(%x: tensor<?x3xf32>, %w: tensor<3x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
      %0 = "tf.Const"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
      %1 = "tf.Const"() <{value = dense<1> : tensor<1xi32>}> : () -> tensor<1xi32>
      %2 = "tf.Const"() <{value = dense<4> : tensor<i32>}> : () -> tensor<i32>
      %3 = "tf.Const"() <{value = dense<1.0> : tensor<f32>}> : () -> tensor<f32>
      %4 = "tf.Shape"(%x) : (tensor<?x3xf32>) -> tensor<2xi32>
      %5 = "tf.StridedSlice"(%4, %0, %1, %1) <{begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64,
        new_axis_mask = 0 : i64, shrink_axis_mask = 1 : i64}>
        : (tensor<2xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32>
      %6 = "tf.Pack"(%5, %2) <{axis = 0 : i64}> : (tensor<i32>, tensor<i32>) -> tensor<2xi32>
      %7 = "tf.Fill"(%6, %3) : (tensor<2xi32>, tensor<f32>) -> tensor<?x4xf32>
      %8 = "tf.Const"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
      %9 = "tf.Fill"(%6, %8) : (tensor<2xi32>, tensor<f32>) -> tensor<?x4xf32>
      func.return %7, %9 : tensor<?x4xf32>, tensor<?x4xf32>
    }
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tfconvert.converter.control_flow.calls import Calls
from tfconvert.converter.ir import symbol_table as names
from tfconvert.converter.ir.edit import erase_dead
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.converter.shapes.loop_dims import pass_dims
from tfconvert.converter.shapes.symbolic import Symbols
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.dims import UNKNOWN, Partial
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# Op -> the value that it fills its operand's shape with.
_LIKE = {"tf.OnesLike": 1, "tf.ZerosLike": 0}

# Ops that read shapes or compute with them. Without them, there is nothing to share.
_ASKING = frozenset({"tf.Minimum", "tf.Shape", *_LIKE})

_SCALAR = types.tensor(types.I32, ())


class ShareShapes:
    """Computes equal shapes once."""

    __slots__ = ()

    name: ClassVar[str] = "share-shapes"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function with at most one caller; returns the number of replaced shapes."""
        calls = Calls(module)
        if not any(op.name in _ASKING for function in calls.functions.values() for op in function.body.block.ops):
            return NOTHING_DONE
        symbols = Symbols(calls, {}, supposes=False)
        shared = 0
        for function in calls.functions.values():
            callers = calls.to.get(function.body.block, ())
            # With several callers, dimensions may be equal for only one of them.
            if not callers or (len(callers) == 1 and names.is_private(function)):
                shared += _Block(function.body.block, calls, symbols).share()
        return PassResult.of({self.name: shared})


class _Block:
    """The shape tensors of a block, each after those before it.

    Attributes:
        shared: How many were replaced.
    """

    def __init__(self, block: Block, calls: Calls, symbols: Symbols) -> None:
        self.shared = 0
        self._block = block
        self._calls = calls
        self._symbols = symbols
        self._seen: dict[tuple[Attribute, Partial], Value] = {}
        self._origin: dict[int, tuple[Value, int]] = {}
        self._shape_of: dict[Value, Value] = {}
        for argument in block.args:
            self._originate(argument)
            elements = self._elements(argument)
            if elements is not None:
                self._seen.setdefault((argument.type, elements), argument)

    def share(self) -> int:
        """Sweeps the block; returns how many shape tensors were replaced."""
        for op in tuple(self._block.ops):
            called = self._calls.of.get(op)
            if called and called[0].is_loop:
                op = self._with_dims(op)
            value = self._filled(op) if op.name in _LIKE else _absorbed(op) or self._packed(op) or self._picked(op)
            if value is not None:
                self.shared += 1
                op.results[0].replace_all_uses_with(value)
            else:
                for result in op.results:
                    self._note(result)
        if self.shared:
            erase_dead(self._block)
        return self.shared

    def _with_dims(self, op: Operation) -> Operation:
        """Passes dimensions to a loop that reads them; returns the loop."""
        made = pass_dims(op, self._calls, self._symbols, lambda dim: self._seen.get((_SCALAR, (dim,))))
        self.shared += made is not op
        return made

    def _elements(self, value: Value) -> Partial | None:
        """Returns a shape tensor's elements if all are known and at least one is a dynamic dimension."""
        elements = self._symbols.known.partials.get(value)
        return elements if elements and UNKNOWN not in elements and min(elements) < UNKNOWN else None

    def _originate(self, value: Value) -> None:
        """Records the dynamic dimensions that appear first in this value."""
        for axis, dim in enumerate(self._symbols.known.shapes.get(value) or ()):
            if dim < UNKNOWN:
                self._origin.setdefault(dim, (value, axis))

    def _note(self, result: Value) -> None:
        self._originate(result)
        elements = self._elements(result)
        if elements is None:
            return
        first = self._seen.setdefault((result.type, elements), result)
        if first is not result:
            result.replace_all_uses_with(first)
            self.shared += 1

    def _filled(self, op: Operation) -> Value | None:
        """Returns an op that fills an existing shape instead of reading the shape of a value."""
        shape = self._symbols.known.shapes.get(op.operands[0])
        if not shape or -1 in shape or min(shape) >= UNKNOWN:
            return None
        insert = TFBuilder(op)
        vector = self._seen.get((types.tensor(types.I32, (len(shape),)), shape)) or self._pack(insert, shape)
        if vector is None:
            return None
        kind = op.results[0].type
        element = types.element_of(kind)
        number = insert.constant(np.array(_LIKE[op.name], types.numpy_dtype(element)), element)
        return insert.tf("Fill", (vector, number), kind)

    def _packed(self, op: Operation) -> Value | None:
        """Returns a vector of existing scalars instead of a concatenation of vectors."""
        elements = self._elements(op.results[0]) if op.name == "tf.ConcatV2" else None
        if elements is None or op.results[0].element != types.I32:
            return None
        return self._seen.get((op.results[0].type, elements)) or self._pack(TFBuilder(op), elements)

    def _pack(self, insert: TFBuilder, elements: Partial) -> Value | None:
        found = [insert.number(one) if one > UNKNOWN else self._seen.get((_SCALAR, (one,))) for one in elements]
        scalars = [scalar for scalar in found if scalar is not None]
        return insert.pack(scalars) if len(scalars) == len(elements) else None

    def _picked(self, op: Operation) -> Value | None:
        """Returns a dimension of the first value that has it instead of a later value's."""
        elements = self._elements(op.results[0]) if op.name == "tf.StridedSlice" else None
        if elements is None or op.results[0].type != _SCALAR or (_SCALAR, elements) in self._seen:
            return None
        producer, origin = op.operands[0].owner, self._origin.get(elements[0])
        if origin is None or not isinstance(producer, Operation) or producer.name != "tf.Shape":
            return None
        value, axis = origin
        if producer.operands[0] is value:
            return None
        insert = TFBuilder(op)
        if value not in self._shape_of:
            self._shape_of[value] = insert.shape(value)
        picked = self._seen[_SCALAR, elements] = insert.pick(self._shape_of[value], axis)
        return picked


def _absorbed(op: Operation) -> Value | None:
    """Returns `n` for `min(n, max(n, m))`, the bound of TensorFlow 1's loops."""
    if op.name != "tf.Minimum" or op.results[0].type != _SCALAR:
        return None
    for value, other in (op.operands, reversed(op.operands)):
        producer = other.owner
        if isinstance(producer, Operation) and producer.name == "tf.Maximum" and value in producer.operands:
            return value
    return None
