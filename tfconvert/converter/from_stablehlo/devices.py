"""Ops between devices, of which there is one: collectives return their operands, and numbers of devices are 0."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.from_stablehlo.raised_op import RaisedOp, Rows
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.rewrite.pattern import need
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.stablehlo_properties import integer_of
from tfconvert.schema.ir.builtin import ModuleOp

_SEVERAL = "the module is for several devices, and a file for LiteRT is for one: export it for one, without shardings"

# Attributes of modules that are the numbers of devices.
_COUNTS = ("mhlo.num_partitions", "mhlo.num_replicas")


def _collective(raised: RaisedOp) -> Sequence[EmittedTensor]:
    """Returns the operands of a collective whose groups have one device."""
    groups = _numbers(raised, "replica_groups")
    need(groups.size == 0 or (groups == 0).all(), _SEVERAL)
    need(groups.size <= 1 and _is_for_one(raised), _SEVERAL)
    return _operands(raised)


def _numbers(raised: RaisedOp, name: str) -> tensor_data.Array:
    value = raised.op.properties.get(name)
    need(tensor_data.is_constant(value), "its groups of devices are of a form that isn't known")
    assert tensor_data.is_constant(value)
    return tensor_data.to_array(value)


def _is_for_one(raised: RaisedOp) -> bool:
    """Returns whether a module doesn't say that it is for several devices."""
    module = raised.op.parent_op()
    while module is not None and not isinstance(module, ModuleOp):
        module = module.parent_op()
    return module is None or all(integer_of(module.attributes.get(name), 1) == 1 for name in _COUNTS)


def _operands(raised: RaisedOp) -> Sequence[EmittedTensor]:
    """Returns the operands, which the results are on one device."""
    results = [result.type for result in raised.op.results]
    need(len(results) in (0, len(raised.operands)), "it has another number of results than of operands")
    need(not results or results == [each.value.type for each in raised.operands], _SEVERAL)
    return raised.operands if results else ()


def _permuted(raised: RaisedOp) -> EmittedTensor:
    """Returns what a device gets from itself: zeros if nothing is sent."""
    pairs = _numbers(raised, "source_target_pairs")
    need(not pairs.any() and _is_for_one(raised), _SEVERAL)
    (x,) = raised.operands
    return x if pairs.size else raised.filled(0, x)


def _sent(raised: RaisedOp) -> Sequence[EmittedTensor]:
    """Returns what the first device of a group has: zeros without a group."""
    if _numbers(raised, "replica_groups").size:
        return _collective(raised)
    need(_is_for_one(raised), _SEVERAL)
    return [raised.filled(0, each) for each in raised.operands]


def _number(raised: RaisedOp) -> EmittedTensor:
    need(_is_for_one(raised), _SEVERAL)
    return raised.constant(0)


# Custom calls of XLA's partitioners.
_CALLS = (
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "Sharding",
    "local_xla.sdy.GlobalToLocalShape",
    "local_xla.sdy.LocalToGlobalShape",
    "xla.sdy.FuncResultSharding",
    "xla.sdy.GlobalToLocalShape",
    "xla.sdy.LocalToGlobalShape",
    "xla.sdy.PropagationBarrier",
    "xla.sdy.ShardingGroup",
)

_COLLECTIVES = ("all_gather", "all_reduce", "all_to_all", "collective_reduce", "reduce_scatter")

ROWS: Rows = {
    **{f"@{name}": _operands for name in _CALLS},
    **dict.fromkeys(_COLLECTIVES, _collective),
    "collective_broadcast": _sent,
    "collective_permute": _permuted,
    "partition_id": _number,
    "replica_id": _number,
}
