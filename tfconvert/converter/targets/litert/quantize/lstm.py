"""Quantization of an LSTM besides its weights: integer states, and the types of its intermediates.

    outputs, and the state of outputs     8 bits, one mapping for both
    cell state                            16 bits, a power of two as its scale
    weights of the cell state, if any     16 bits

The kernel does not check: with another activation, or a cell state of a larger scale, its results are wrong. It
overwrites its states, which start as zeros here: integers that represent zeros. `separate-state` creates them for each
operator.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import combinations

import numpy as np

from tfconvert.converter.ir.edit import erase
from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.targets.litert.quantize.groups import Groups
from tfconvert.converter.targets.litert.quantize.parameters import range_of, range_of_integers
from tfconvert.schema.dialects import quant, tensor_data, tfl, tfl_file, types
from tfconvert.schema.dialects.quant import Uniform
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import I16
from tfconvert.schema.ir.values import OpResult, Value

GATES = ((1, 12), (2, 13), (3, 14), (4, 15), (5, None), (6, None), (7, None), (8, None))
"""Indices of the weights, each with that of its bias. An input gate that follows from another has none."""

# Indices of the peephole weights, which multiply the cell state.
_PEEPHOLES = (9, 10, 11)

_OUTPUT_STATE, _CELL_STATE = 18, 19

OTHERS = (*_PEEPHOLES, _OUTPUT_STATE, _CELL_STATE)
"""Indices of the operands that are neither activations nor weights of 8 bits."""

TOO_WIDE = "the range of its cell state is too wide for its kernel"

# Operands that must be absent, and the reason.
_ABSENT = (
    ((16, 17), "its kernel would need the ranges of what is projected"),
    ((20, 21, 22, 23), "its kernel would need the ranges of what is normalized"),
)

_FINEST, _COARSEST = -11, -9
"""Exponents of a cell state's scale: ranges from 16, enough for functions that saturate, to 64."""

# The factor that the scales of two layers may grow by, so that one operator creates both states.
_ALIKE = 1.05


def problem(op: Operation) -> str:
    """Returns why an LSTM can't be quantized with any ranges, or an empty string."""
    if tfl.attribute(op, "fused_activation_function") != "TANH":
        return "its kernel for integers knows no other activation than tanh"
    if tfl.attribute(op, "diagonal_recurrent_tensors"):
        return "its kernel for integers takes no vectors as recurrent weights"
    for indices, reason in _ABSENT:
        if _present(op, indices):
            return reason
    if any(tensor_data.constant_of(op.operands[index]) is None for index in _present(op, _PEEPHOLES)):
        return "its weights of the cell state are computed"
    if not all(_begins_with_zeros(op.operands[index]) for index in (_OUTPUT_STATE, _CELL_STATE)):
        return "its state does not begin with zeros"
    return ""


def cell_state(op: Operation) -> Value:
    """Returns the operand with the memory of the cell state; after a run it has the last step's."""
    return op.operands[_CELL_STATE]


def creates_state(op: Operation) -> bool:
    """Returns whether all results of an op are states of other ops."""
    uses = [use for result in op.results for use in result.uses]
    return bool(uses) and all(use.index in tfl.state_operands(use.operation) for use in uses)


def is_cell_seen(op: Operation) -> bool:
    """Returns whether the range of the cell state is known."""
    seen = range_of(cell_state(op))
    return seen is not None and seen.is_finite


def cell_uniform(op: Operation) -> Uniform | None:
    """Returns the mapping of the cell state, `None` if its range is unknown, or too wide for 16 bits."""
    seen = range_of(cell_state(op))
    if seen is None or not seen.is_finite:
        return None
    largest = max(-seen.low, seen.high)
    exponent = math.ceil(math.log2(largest / (2**15 - 1))) if largest else _FINEST
    return Uniform(I16, (2.0 ** max(exponent, _FINEST),), (0,)) if exponent <= _COARSEST else None


def join_alike(ops: Iterable[Operation], groups: Groups) -> None:
    """Joins the outputs of layers whose ranges differ little, so that one operator creates their states."""
    for one, other in combinations([op for op in ops if op.name == "tfl.unidirectional_sequence_lstm"], 2):
        first, second = one.results[0], other.results[0]
        uniforms = groups.uniform(first), groups.uniform(second)
        if uniforms[0] is None or uniforms[1] is None or groups.given(first) or groups.given(second):
            continue
        if one.operands[_OUTPUT_STATE].type is not other.operands[_OUTPUT_STATE].type:
            continue
        spans = [range_of_integers(uniform) for uniform in uniforms if uniform is not None]
        both = spans[0].joined(spans[1])
        if both.high - both.low <= _ALIKE * min(span.high - span.low for span in spans):
            groups.join(first, second)


def finish(op: Operation, output: Uniform, cell: Uniform) -> None:
    """Quantizes an LSTM's states, and sets the types of its intermediates.

    Args:
        op: The operator.
        output: The mapping of its outputs.
        cell: The mapping of its cell state.
    """
    for index, uniform in ((_OUTPUT_STATE, output), (_CELL_STATE, cell)):
        value = op.operands[index]
        op.set_operand(index, _zeros(op, value, uniform))
        _drop(value)
    # One for each gate, for normalizations only, and one for the outputs before the projection.
    nothing = DictionaryAttr.get({"tensor": types.tensor(types.F32, (0,))})
    hidden = DictionaryAttr.get({"tensor": quant.tensor(output, (0,))})
    op.attributes[tfl_file.INTERMEDIATES] = ArrayAttr.get([nothing] * 4 + [hidden])


def peepholes(op: Operation) -> list[int]:
    """Returns the indices of the peephole weights that are present."""
    return _present(op, _PEEPHOLES)


def _present(op: Operation, indices: Iterable[int]) -> list[int]:
    return [index for index in indices if tfl.has_operand(op, index)]


def _begins_with_zeros(value: Value) -> bool:
    """Returns whether a state starts as zeros and has one use."""
    constant = tensor_data.constant_of(tfl.initial_value(value))
    if constant is None or types.element_of(constant.type) is not types.F32:
        return False
    if tfl_file.is_variable(value) and not value.has_one_use():
        return False
    return not tensor_data.to_array(constant).any()


def _zeros(op: Operation, value: Value, uniform: Uniform) -> Value:
    owner = value.owner
    builder = TFLBuilder(op)
    if isinstance(owner, tfl.TFLOp) and owner.op_name in tfl.RESIZED:
        builder = TFLBuilder(owner)
        builder.location = owner.location
        at = 1 - tfl.RESIZED[owner.op_name]
        operands = list(owner.operands)
        operands[at] = _filled(builder, operands[at], uniform).results[0]
        return builder.tfl(owner.op_name, operands, quant.tensor(uniform, value.shape), owner.properties)
    made = _filled(builder, value, uniform)
    if tfl_file.is_variable(value):
        # The runtime sets it to the zero point.
        assert isinstance(owner, Operation)
        made.attributes.update(owner.attributes)
    return made.results[0]


def _filled(builder: TFLBuilder, like: Value, uniform: Uniform) -> Operation:
    """Inserts a constant of a value's shape, all zeros as integers."""
    shape = like.shape
    assert shape is not None, "states have known ranks"
    stored = np.full(shape, uniform.zero_points[0], np.int8 if uniform.storage.width == 8 else np.int16)
    return builder.insert(tfl.constant(tensor_data.of_array(stored), result_type=quant.tensor(uniform, shape)))


def _drop(value: Value) -> None:
    """Removes the op that created a state; its other states become constants again."""
    if not isinstance(value, OpResult):
        return
    owner = value.op
    if owner.name in (tfl.PREFIX + tfl.COPY, tfl.PREFIX + tfl.COPIES):
        for result in owner.results:
            if not result.is_unused:
                zeros = np.zeros(result.shape or (), np.float32)
                result.replace_all_uses_with(TFLBuilder(owner).constant(zeros))
    if all(result.is_unused for result in owner.results):
        erase(owner)
