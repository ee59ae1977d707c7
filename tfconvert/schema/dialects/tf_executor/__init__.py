"""The `tf_executor` dialect: TensorFlow's executor as IR.

A `graph` holds islands and the executor's own ops in one block; its values may be dead. An `island` runs ordinary ops
once all that it needs is alive, so nothing in it is dead. Data operands come first, control operands after them. The
dialect is closed: the ops of `OPS` are all there are. The text is TensorFlow's own, both ways.
"""

from __future__ import annotations

from tfconvert.schema.dialects.tf_executor.base import (
    CONTROL,
    TOKEN,
    ControlType,
    ExecutorOp,
    ExecutorTokenType,
    is_control,
)
from tfconvert.schema.dialects.tf_executor.flow import (
    ControlTriggerOp,
    EnterOp,
    ExitOp,
    LoopCondOp,
    MergeOp,
    NextIterationSinkOp,
    NextIterationSourceOp,
    RecvOp,
    SendOp,
    SwitchNOp,
    SwitchOp,
)
from tfconvert.schema.dialects.tf_executor.graph import FetchOp, GraphOp, IslandOp, YieldOp
from tfconvert.schema.ir.dialect import Dialect

__all__ = [
    "CONTROL",
    "OPS",
    "TF_EXECUTOR",
    "TOKEN",
    "ControlTriggerOp",
    "ControlType",
    "EnterOp",
    "ExecutorOp",
    "ExecutorTokenType",
    "ExitOp",
    "FetchOp",
    "GraphOp",
    "IslandOp",
    "LoopCondOp",
    "MergeOp",
    "NextIterationSinkOp",
    "NextIterationSourceOp",
    "RecvOp",
    "SendOp",
    "SwitchNOp",
    "SwitchOp",
    "YieldOp",
    "is_control",
]

OPS: tuple[type[ExecutorOp], ...] = (
    GraphOp,
    FetchOp,
    IslandOp,
    YieldOp,
    SwitchOp,
    SwitchNOp,
    MergeOp,
    EnterOp,
    ExitOp,
    NextIterationSourceOp,
    NextIterationSinkOp,
    LoopCondOp,
    ControlTriggerOp,
    SendOp,
    RecvOp,
)

TF_EXECUTOR = Dialect("tf_executor", OPS, types={"control": lambda parser: CONTROL, "token": lambda parser: TOKEN})
