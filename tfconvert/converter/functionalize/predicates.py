"""Which values are the same predicate."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from tfconvert.schema.dialects.tf_executor import EnterOp, IslandOp, SwitchOp


def root_of(value: SSAValue) -> SSAValue:
    """Returns the value that another one merely hands on, through `Identity`s, `Switch`es and `Enter`s."""
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
