"""Pass `separate-state`: gives each operator that overwrites its state its own state, created again at each run.

An operator that computes a sequence updates its state operands in place. So their values must be copied before, and no
other op may use the copy. A state of a known shape is copied by a cast to its own type.

Before:

    func.func @main(%x: tensor<1x3x2xf32>, %w: tensor<4x2xf32>, %r: tensor<4x4xf32>, %b: tensor<4xf32>)
        -> tensor<1x3x4xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<0.0> : tensor<1x4xf32>}> : () -> tensor<1x4xf32>
      %1 = "tfl.unidirectional_sequence_rnn"(%x, %w, %r, %b, %0) <{fused_activation_function = "TANH"}>
          : (tensor<1x3x2xf32>, tensor<4x2xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<1x4xf32>) -> tensor<1x3x4xf32>
      func.return %1 : tensor<1x3x4xf32>
    }

After:

    func.func @main(%x: tensor<1x3x2xf32>, %w: tensor<4x2xf32>, %r: tensor<4x4xf32>, %b: tensor<4xf32>)
        -> tensor<1x3x4xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<0.0> : tensor<1x4xf32>}> : () -> tensor<1x4xf32>
      %1 = "tfl.cast"(%0) <{in_data_type = "FLOAT32", out_data_type = "FLOAT32"}>
          : (tensor<1x4xf32>) -> tensor<1x4xf32>
      %2 = "tfl.unidirectional_sequence_rnn"(%x, %w, %r, %b, %1) <{fused_activation_function = "TANH"}>
          : (tensor<1x3x2xf32>, tensor<4x2xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<1x4xf32>) -> tensor<1x3x4xf32>
      func.return %2 : tensor<1x3x4xf32>
    }

The initial states of layers are mostly zeros. Where several are equal, one operator creates all of them.

Before:

    func.func @main(%x: tensor<1x3x2xf32>, %w: tensor<2x2xf32>, %b: tensor<2xf32>) -> tensor<1x3x2xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<0.0> : tensor<1x2xf32>}> : () -> tensor<1x2xf32>
      %1 = "tfl.unidirectional_sequence_rnn"(%x, %w, %w, %b, %0) <{fused_activation_function = "TANH"}>
          : (tensor<1x3x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<1x2xf32>) -> tensor<1x3x2xf32>
      %2 = "tfl.unidirectional_sequence_rnn"(%1, %w, %w, %b, %0) <{fused_activation_function = "TANH"}>
          : (tensor<1x3x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<1x2xf32>) -> tensor<1x3x2xf32>
      func.return %2 : tensor<1x3x2xf32>
    }

After:

    func.func @main(%x: tensor<1x3x2xf32>, %w: tensor<2x2xf32>, %b: tensor<2xf32>) -> tensor<1x3x2xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<0.0> : tensor<2x1x2xf32>}> : () -> tensor<2x1x2xf32>
      %1:2 = "tfl.unpack"(%0) <{num = 2 : i32, axis = 0 : i32}>
          : (tensor<2x1x2xf32>) -> (tensor<1x2xf32>, tensor<1x2xf32>)
      %2 = "tfl.unidirectional_sequence_rnn"(%x, %w, %w, %b, %1#0) <{fused_activation_function = "TANH"}>
          : (tensor<1x3x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<1x2xf32>) -> tensor<1x3x2xf32>
      %3 = "tfl.unidirectional_sequence_rnn"(%2, %w, %w, %b, %1#1) <{fused_activation_function = "TANH"}>
          : (tensor<1x3x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<1x2xf32>) -> tensor<1x3x2xf32>
      func.return %3 : tensor<1x3x2xf32>
    }

The memory of such a copy may not grow with the batch (`tfconvert/schema/dialects/tfl.py`). Where the shape is
open, the state is created by an operator that allocates its result at each run: its defining op, if that is such
an operator, else a `tfl.broadcast_to` to its shape. These do so unless they know the shape before the run. The runtime
computes sizes before the run where it can, more of them from version to version, so the shape goes through a
maximum with zero, which it leaves alone.

Before:

    func.func @main(%x: tensor<?x3x2xf32>, %w: tensor<4x2xf32>, %r: tensor<4x4xf32>, %b: tensor<4xf32>,
        %n: tensor<2xi32>) -> tensor<?x3x4xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
      %1 = "tfl.fill"(%n, %0) : (tensor<2xi32>, tensor<f32>) -> tensor<?x4xf32>
      %2 = "tfl.unidirectional_sequence_rnn"(%x, %w, %r, %b, %1) <{fused_activation_function = "TANH"}>
          : (tensor<?x3x2xf32>, tensor<4x2xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<?x4xf32>) -> tensor<?x3x4xf32>
      func.return %2 : tensor<?x3x4xf32>
    }

After:

    func.func @main(%x: tensor<?x3x2xf32>, %w: tensor<4x2xf32>, %r: tensor<4x4xf32>, %b: tensor<4xf32>,
        %n: tensor<2xi32>) -> tensor<?x3x4xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
      %1 = "tfl.pseudo_const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %2 = "tfl.maximum"(%n, %1) : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
      %3 = "tfl.fill"(%2, %0) : (tensor<2xi32>, tensor<f32>) -> tensor<?x4xf32>
      %4 = "tfl.unidirectional_sequence_rnn"(%x, %w, %r, %b, %3) <{fused_activation_function = "TANH"}>
          : (tensor<?x3x2xf32>, tensor<4x2xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<?x4xf32>) -> tensor<?x3x4xf32>
      func.return %4 : tensor<?x3x4xf32>
    }

With the option `recurrent-state=kept`, a state that begins with zeros is a variable of the file instead: zeros before
the first run, and then what the run before has left there. Its shape has to be fixed.

The pass is at the end of the pipeline: any other would merge two states that begin alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tfconvert.converter.ir.edit import erase
from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.schema.dialects import quant, tensor_data, tfl, tfl_file, types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import error_at, node_of
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import UnitAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.locations import NameLoc
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.settings.quantization import RecurrentState

_COPIED = "copied"
_RESIZED = "resized"
_KEPT = "kept"


# An operator, and the index of a state operand.
_Use = tuple[Operation, int]


@dataclass(frozen=True, slots=True)
class SeparateState:
    """Gives each operator that overwrites its state its own state, which is created again at each run."""

    # Whether states are `reset` at each run, or zero-initialized ones are `kept`.
    recurrent_state: RecurrentState = "reset"
    name: ClassVar[str] = "separate-state"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites the functions; returns the numbers of copied (static) and created (dynamic) states."""
        applied: Counter[str] = Counter()
        for function in module.ops:
            if isinstance(function, FuncOp):
                for block in function.body.blocks:
                    _Separation(block, applied, keeps=self.recurrent_state == "kept").run()
        return PassResult(applied)


class _Separation:
    """One block's operators with state.

    Args:
        block: The block.
        applied: Counts the rewrites.
        keeps: Whether zero-initialized states are kept between runs.
    """

    def __init__(self, block: Block, applied: Counter[str], *, keeps: bool) -> None:
        self._block = block
        self._applied = applied
        self._keeps = keeps
        self._shapes: dict[Value, Value] = {}
        """Values that hold a shape, and those that hold the same behind a barrier."""
        self._shape_of: dict[Value, Value] = {}

    def run(self) -> None:
        alike: dict[tuple[Hashable, Attribute], list[_Use]] = {}
        for op in tuple(self._block.ops):
            for index in tfl.state_operands(op):
                value = op.operands[index]
                if tfl_file.is_variable(value) or tfl.keeps_state(op, value) or tfl.is_own_state(value):
                    continue
                if self._keeps and self._keep(op, index):
                    continue
                constant = _shared(value)
                if constant is not None:
                    alike.setdefault((_key(constant), value.type), []).append((op, index))
                else:
                    self._separate(op, index)
        for uses in alike.values():
            self._separate_alike(uses)

    def _keep(self, op: Operation, index: int) -> bool:
        """Makes a state a variable of the file; returns whether it starts as zeros, as such variables do."""
        value = op.operands[index]
        constant = tensor_data.constant_of(tfl.initial_value(value))
        if constant is None or tensor_data.to_array(constant).any():
            return False
        shape = value.shape
        if shape is None or not types.is_static(shape):
            raise error_at(
                op,
                "variable-shape",
                "its state can't be kept from run to run: its batch is open",
                "fix the batch (`batch=1`, `--batch 1`), or leave `recurrent_state` out",
            )
        zeros = tensor_data.of_array(np.zeros(shape, np.float32))
        made = _builder(op).insert(tfl.constant(zeros, result_type=value.type))
        made.attributes[tfl_file.IS_VARIABLE] = UnitAttr.intern()
        op.set_operand(index, made.results[0])
        self._applied[_KEPT] += 1
        _drop(value)
        return True

    def _separate(self, op: Operation, index: int) -> None:
        """Replaces an operator's state by a copy."""
        value = op.operands[index]
        op.set_operand(index, self._separated(op, value))
        _drop(value)

    def _separate_alike(self, uses: list[_Use]) -> None:
        """Creates states with equal initial constants; the first one comes first in the block."""
        before, place = uses[0]
        state_type, constant = before.operands[place].type, _shared(before.operands[place])
        assert constant is not None, "checked by the caller"
        first = tensor_data.to_array(constant)
        # States that one operator creates are all in the file, so many large ones are copied from one instead.
        if len(uses) == 1 or len(uses) * first.nbytes > tensor_data.MAX_READ_BYTES:
            for op, index in uses:
                self._separate(op, index)
            return
        self._applied[_COPIED] += len(uses)
        insert = _builder(before)
        stacked = np.stack([first] * len(uses))
        whole_type = types.tensor(types.element_of(state_type), stacked.shape)
        whole = insert.insert(tfl.constant(tensor_data.of_array(stacked), result_type=whole_type)).results[0]
        options = {"num": len(uses), "axis": 0}
        states = insert.tfl_op(tfl.COPIES, (whole,), [state_type] * len(uses), options)
        for (op, index), state in zip(uses, states.results, strict=True):
            value = op.operands[index]
            op.set_operand(index, state)
            _drop(value)

    def _separated(self, op: Operation, value: Value) -> Value:
        """Returns a state with an initial value, for one operator only."""
        insert = _builder(op)
        if types.is_static(value.shape):
            self._applied[_COPIED] += 1
            row = types.from_mlir(quant.storage_of(value.element))
            kind = row.tflite if row is not None else ""
            options = {"in_data_type": kind, "out_data_type": kind}
            return insert.tfl(tfl.COPY, (value,), value.type, options)
        self._applied[_RESIZED] += 1
        return self._resized(insert, op, value)

    def _resized(self, insert: TFLBuilder, op: Operation, value: Value) -> Value:
        """Returns a copy of a value of dynamic shape that is allocated at each run."""
        defining_op = value.owner
        position = tfl.RESIZED.get(defining_op.op_name) if isinstance(defining_op, tfl.TFLOp) else None
        if isinstance(defining_op, tfl.TFLOp) and position is not None:
            operands = list(defining_op.operands)
            operands[position] = self._behind_barrier(operands[position], op)
            return insert.tfl(defining_op.op_name, operands, value.type, defining_op.properties)
        shape = self._behind_barrier(self._shape(value, op), op)
        return insert.tfl("broadcast_to", (value, shape), value.type)

    def _shape(self, value: Value, before: Operation) -> Value:
        known = self._shape_of.get(value)
        if known is None:
            known = self._shape_of[value] = TFLBuilder(before).shape(value)
        return known

    def _behind_barrier(self, shape: Value, before: Operation) -> Value:
        """Returns a shape as a value that is only known at run time."""
        hidden = self._shapes.get(shape)
        if hidden is None:
            dtype = np.int64 if shape.element == types.I64 else np.int32
            insert = TFLBuilder(before)
            zero = insert.constant(np.array(0, dtype))
            hidden = self._shapes[shape] = insert.tfl(tfl.BARRIER, (shape, zero), shape.type)
        return hidden


def _shared(value: Value) -> Constant | None:
    """Returns a state's initial constant, as floats or integers, if one operator may create several states."""
    element, owner = value.element, value.owner
    if not isinstance(owner, Operation) or owner.name not in tensor_data.CONSTANT_OPS:
        return None
    if element is not types.F32 and not isinstance(element, quant.UniformType):
        return None
    constant = owner.properties.get("value")
    return constant if tensor_data.is_constant(constant) else None


def _key(constant: Constant) -> Hashable:
    """Returns the key of a constant: its elements, unless it is large."""
    return tensor_data.to_array(constant).tobytes() if tensor_data.is_small(constant) else constant


def _builder(op: Operation) -> TFLBuilder:
    """Returns a builder for a state, at the location of its operator with a descriptive name."""
    node = node_of(op.location) or op.name.removeprefix(tfl.PREFIX)
    builder = TFLBuilder(op)
    builder.location = NameLoc.get(f"{node}/state", op.location)
    return builder


def _drop(value: Value) -> None:
    """Erases the defining op of a dead value."""
    owner = value.owner
    if (
        isinstance(owner, tfl.TFLOp)
        and not tfl.has_side_effects(owner)
        and all(result.is_unused for result in owner.results)
    ):
        erase(owner)
