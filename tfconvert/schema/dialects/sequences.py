"""LiteRT's operators that keep state among their operands: which there are, and how a state may be created.

A state operand is a tensor that the operator overwrites. The memory of such a *variable* tensor grows with the batch
only in models all of whose sizes follow from those of the inputs. Where an earlier operator has a result whose size is
only known at run time, a larger batch later writes past the state, undetected. A tensor is safe if the operator
that produces it allocates it anew at each run, because the shape is not known earlier.
"""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

STEPS = frozenset({"lstm", "rnn", "svdf"})
"""Operators that compute one step of a sequence, and keep their state from run to run."""

SEQUENCES = frozenset(
    {
        "unidirectional_sequence_lstm",
        "bidirectional_sequence_lstm",
        "unidirectional_sequence_rnn",
        "bidirectional_sequence_rnn",
    }
)
"""Operators that compute a whole sequence, which starts anew at each run of the model."""

COPY, COPIES = "cast", "unpack"
"""The operators that create a state of a known shape, or several. Others that copy may share memory instead."""

RESIZED: Mapping[str, int] = {"fill": 0, "broadcast_to": 1}
"""Operators that can create a state of any shape, and which of their operands is the shape.

They allocate their result at each run, provided that the shape is not known before the first one.
"""

BARRIER = "maximum"
"""An operator that LiteRT never folds when it prepares the model, even if its operands (shapes) are known by then."""


def state_operands(op: Operation) -> tuple[int, ...]:
    """Returns the indices of an op's operands that hold state and are there; none for most ops."""
    if not isinstance(op, tfl.TFLOp) or not (op.op_name in SEQUENCES or op.op_name in STEPS) or op.operator is None:
        return ()
    return tuple(index for index in op.operator.variables if tfl.has_operand(op, index))


def initial_value(value: Value) -> Value:
    """Returns what a state begins with: what is copied to it, or what it is filled with."""
    owner = value.owner
    if isinstance(owner, tfl.TFLOp):
        if owner.op_name in (COPY, COPIES):
            return owner.operands[0]
        if owner.op_name in RESIZED:
            return owner.operands[1 - RESIZED[owner.op_name]]
    return value


def is_own_state(value: Value) -> bool:
    """Returns whether nothing but the one operator that uses a value as its state will ever see it.

    It also has to be allocated anew at each run, with the right size.
    """
    owner = value.owner
    if not isinstance(owner, tfl.TFLOp) or not value.has_one_use():
        return False
    if owner.op_name in (COPY, COPIES):
        return types.is_static(types.shape_of(value.type))
    shape = RESIZED.get(owner.op_name)
    if shape is None:
        return False
    barrier = owner.operands[shape].owner
    return isinstance(barrier, tfl.TFLOp) and barrier.op_name == BARRIER


def keeps_state(op: Operation, value: Value) -> bool:
    """Returns whether a state operand is the runtime's own tensor, zero before the first run and never set again.

    Operators that compute single steps start so, if their state operand is zeros.
    """
    constant = tensor_data.constant_of(value)
    if constant is None or op.name.removeprefix(tfl.PREFIX) not in STEPS:
        return False
    return not tensor_data.to_array(constant).any()
