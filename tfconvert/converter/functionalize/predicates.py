"""Identity of predicates."""

from __future__ import annotations

from tfconvert.schema.dialects.tf_executor import EnterOp, IslandOp, SwitchOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def root_of(value: Value) -> Value:
    """Returns the value that another one merely forwards, through `Identity`s, `Switch`es and `Enter`s."""
    while True:
        owner = value.owner
        if not isinstance(owner, Operation) or value is owner.results[-1]:
            return value
        if isinstance(owner, IslandOp):
            wrapped = owner.wrapped
            if wrapped is None or wrapped.name != "tf.Identity":
                return value
            value = wrapped.operands[0]
        elif isinstance(owner, SwitchOp | EnterOp):
            value = owner.data
        else:
            return value
