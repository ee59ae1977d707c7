"""Pass `widen-halves`: computes models of `f16` and `bf16` as `f32`.

LiteRT's kernels compute no halves on processors. If each op was widened by itself, there would be two casts for each,
and none would be fused with its neighbours. So all values between a function's inputs and outputs become `f32`. Results
are more exact, because they are not rounded in between, which XLA doesn't do either by default (excess precision).

Models stay as they are if they only store and copy halves, as do tables whose rows are looked up, bits that are read
as integers, and random numbers whose digits depend on the type.

Before:

    func.func @main(%x: tensor<2x3xf32>) -> tensor<2x4xf16> {
      %w = "tf.Const"() <{value = dense<0.5> : tensor<3x4xf16>}> : () -> tensor<3x4xf16>
      %0 = "tf.Cast"(%x) <{Truncate = false}> : (tensor<2x3xf32>) -> tensor<2x3xf16>
      %1 = "tf.MatMul"(%0, %w) : (tensor<2x3xf16>, tensor<3x4xf16>) -> tensor<2x4xf16>
      %2 = "tf.Relu"(%1) : (tensor<2x4xf16>) -> tensor<2x4xf16>
      func.return %2 : tensor<2x4xf16>
    }

After:

    func.func @main(%x: tensor<2x3xf32>) -> tensor<2x4xf16> {
      %w = "tf.Const"() <{value = dense<0.5> : tensor<3x4xf32>}> : () -> tensor<3x4xf32>
      %0 = "tf.MatMul"(%x, %w) : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
      %1 = "tf.Relu"(%0) : (tensor<2x4xf32>) -> tensor<2x4xf32>
      %2 = "tf.Cast"(%1) <{Truncate = false}> : (tensor<2x4xf32>) -> tensor<2x4xf16>
      func.return %2 : tensor<2x4xf16>
    }
"""

from __future__ import annotations

from typing import ClassVar

from tfconvert.converter.ir import symbol_table
from tfconvert.converter.ir.edit import erase, replace_op, update_function_types
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.call_interfaces import KINDS
from tfconvert.schema.dialects.func import functions_of
from tfconvert.schema.dialects.tf_traits import full_names
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators

_HALVES = frozenset({types.F16, types.BF16})

_CONST, _CAST, _RETURN = "tf.Const", "tf.Cast", "func.return"

# Ops that read the bits of their operand, or make other numbers of the same random bits for each type.
_OF_BITS = frozenset({"tf.Bitcast", "tf.NextAfter", "tf.StatelessRandomUniform", "tf.StatelessRandomUniformV2"})

# Ops that LiteRT does for halves, too. Of the moves that are left out no kernel takes halves, or only XNNPACK, or up to
# rank 4; and images are resized as floats.
_COPIES = full_names(
    operators.moving_ops().keys()
    - {"BatchToSpaceND", "DepthToSpace", "ReverseSequence", "SpaceToDepth"}
    - {"ResizeNearestNeighbor"}
    | {"ConcatV2", "Identity", "Pack", "Pad", "PadV2", "Shape"}
)


class WidenHalves:
    """Computes models of `f16` and `bf16` as `f32`."""

    __slots__ = ()

    name: ClassVar[str] = "widen-halves"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the number of ops that computed halves."""
        functions = list(functions_of(module).values())
        outside = {*symbol_table.names_outside(module)}
        outside.update(each.sym_name for each in functions if not symbol_table.is_private(each))
        computing = sum(_computes(op, outside) for function in functions for op in function.body.walk())
        if not computing:
            return NOTHING_DONE
        for function in functions:
            for index, block in enumerate(function.body.blocks):
                is_boundary = not index and function.sym_name in outside
                _Widening(block, outside, is_boundary=is_boundary).apply()
        update_function_types(functions)
        return PassResult.of({"widened": computing})


def _is_half(value: Value) -> bool:
    return value.element in _HALVES


def _stays(op: Operation, outside: set[str]) -> bool:
    """Returns whether an op needs halves: it looks up rows, is about bits, types or variables, or has effects."""
    if op.name in KINDS:
        return not outside.isdisjoint(symbol_table.names(op))
    if op.name == "tf.GatherV2":
        return tensor_data.constant_of(op.operands[0]) is not None
    if any(isinstance(value.element, types.HandleType) for value in (*op.operands, *op.results)):
        return True
    is_about_types = op.name in _OF_BITS or any(value in _HALVES for value in op.properties.values())
    return is_about_types or not isinstance(op, tf.TFOp) or tf.has_side_effects(op)


def _computes(op: Operation, outside: set[str]) -> bool:
    if op.name in _COPIES or op.name in KINDS or op.name in (_CONST, _CAST, _RETURN):
        return False
    return any(map(_is_half, (*op.operands, *op.results))) and not _stays(op, outside)


class _Widening:
    """The ops of a block.

    Args:
        block: The block.
        outside: The names of functions with types that must stay.
        is_boundary: Whether the types of the block's arguments, and of what it returns, must stay.
    """

    def __init__(self, block: Block, outside: set[str], *, is_boundary: bool) -> None:
        self._block = block
        self._is_boundary = is_boundary
        self._constants: dict[Value, Value] = {}
        self._staying = {
            op: [operand.element for operand in op.operands]
            for op in block.ops
            if (is_boundary if op.name == _RETURN else op.name != _CAST and _stays(op, outside))
        }

    def apply(self) -> None:
        """Widens all values but those of ops that stay."""
        ops = list(self._block.ops)
        for argument in self._block.args:
            if _is_half(argument) and not self._is_boundary:
                _widen(argument)
            elif _is_half(argument):
                self._read_wide(argument, TFBuilder.at_block_begin(self._block))
        for op in ops:
            if op in self._staying:
                self._keep(op)
            elif op.name == _CAST:
                self._forward(op)
            elif op.name != _CONST:
                self._widen_op(op)
        for half in self._constants:
            if half.first_use is None and isinstance(half.owner, Operation):
                erase(half.owner)

    def _read_wide(self, half: Value, builder: TFBuilder, wide: Value | None = None) -> None:
        """Makes the users of a half that don't stay read it as `f32`."""
        uses = [use for use in half.uses if use.operation not in self._staying]
        if uses:
            wide = builder.cast(half, types.F32) if wide is None else wide
            for use in uses:
                use.operation.set_operand(use.index, wide)

    def _widen_op(self, op: Operation) -> None:
        for index, operand in enumerate(op.operands):
            if _is_half(operand):
                op.set_operand(index, self._constant(operand))
        for result in filter(_is_half, op.results):
            _widen(result)

    def _constant(self, half: Value) -> Value:
        """Returns a constant as `f32`; nothing else is a half here."""
        if half not in self._constants:
            constant, shape = tensor_data.constant_of(half), half.shape
            assert constant is not None
            assert shape is not None
            data = tensor_data.defer("cast", (constant,), shape, element=types.F32)
            self._constants[half] = TFBuilder.at_block_begin(self._block).constant(data)
        return self._constants[half]

    def _forward(self, op: Operation) -> None:
        """Makes users of a cast between halves and `f32` read its operand."""
        (operand,), (result,) = op.operands, op.results
        if _is_half(operand):
            operand = self._constant(operand)
            op.set_operand(0, operand)
        if _is_half(result):
            builder = TFBuilder(op)
            self._read_wide(result, builder, builder.cast(operand, types.F32))
            if result.first_use is None:
                erase(op)
        elif operand.element == result.element:
            replace_op(op, operand)

    def _keep(self, op: Operation) -> None:
        """Gives an op the halves that it had, and makes its users read its results as `f32`."""
        builder = TFBuilder(op)
        for index, (operand, element) in enumerate(zip(op.operands, self._staying[op], strict=True)):
            if operand.element != element:
                op.set_operand(index, builder.cast(operand, element))
        for result in filter(_is_half, op.results):
            assert op.next_op is not None
            self._read_wide(result, TFBuilder(op.next_op))


def _widen(value: Value) -> None:
    value.type = types.tensor(types.F32, value.shape)
