"""Branches by index, and ops of models that run on several devices."""

from __future__ import annotations

import math

from tfconvert.ops.declaration import op, ops_like
from tfconvert.ops.shape_functions import same
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.relations.rules import is_scalar
from tfconvert.schema.dialects.relations.view import View


def _partitions(view: View) -> None:
    dims, is_packed = view.list("partition_dims"), bool(view.attribute("is_packed"))
    expected = 1 if is_packed else math.prod(dims)
    if (dims or is_packed) and len(view.values("inputs")) != expected:
        view.fail(f"expected {expected} operands, found {len(view.values('inputs'))}")


def _updated_variables(view: View) -> None:
    count = sum(isinstance(value.element, types.ResourceType) for value in view.values("args"))
    for name, minimum in (("device_var_reads_indices", 0), ("device_var_updates_indices", -1)):
        found = view.list(name)
        if len(found) != count:
            view.fail(
                f"the attribute {name!r} must have an item for each resource of 'args', {count}, found {len(found)}"
            )
        if min(found, default=minimum) < minimum:
            view.fail(f"the attribute {name!r} must be at least {minimum}, found {found}")


OPS = (
    *ops_like("Case StatelessCase", relations=(is_scalar("branch_index"),)),
    *ops_like("CollectiveReduce CrossReplicaSum NcclAllReduce", shape=same, verified=True),
    op("TPUExecuteAndUpdateVariables", relations=(_updated_variables,)),
    op("TPUPartitionedInputV2", relations=(_partitions,)),
)
