"""The graphs of a function, and their repair after ops have been replaced."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.converter.functionalize.slices import in_order
from tfconvert.converter.ir.edit import update_function_type
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tf_executor import FetchOp, GraphOp, IslandOp
from tfconvert.schema.ir.operation import Operation


def graphs_with(function: FuncOp, kinds: frozenset[type[Operation]]) -> list[GraphOp]:
    """Returns the graphs in a function's body, those in islands too, that hold ops of some classes.

    Nearly every model has none, so this only looks.
    """
    found: list[GraphOp] = []
    pending = list(function.body.blocks)
    while pending:
        for op in pending.pop().ops:
            if isinstance(op, GraphOp):
                inside = list(op.body.ops)
                if not kinds.isdisjoint(map(type, inside)):
                    found.append(op)
                pending += [inner.body for inner in inside if type(inner) is IslandOp and _may_nest(inner)]
            elif op.regions:
                pending += [block for region in op.regions for block in region.blocks]
    return found


def _may_nest(island: IslandOp) -> bool:
    """Returns whether an island holds more than one op without regions, as nearly every one does."""
    first = island.body.first_op
    return first is not None and (bool(first.regions) or first.next_op is not island.body.last_op)


def restore(function: FuncOp, graph: GraphOp, position: Mapping[Operation, int]) -> None:
    """Sorts a graph's ops so that each follows what it uses, and updates types from the fetched values.

    Args:
        function: The function that the graph is in.
        graph: The graph.
        position: Its ops' former positions, or new ops' preferred ones.
    """
    block = graph.body
    fetch = next(op for op in block.ops if isinstance(op, FetchOp))  # no terminator while new ops stand behind it
    order = [*in_order((op for op in block.ops if op is not fetch), position), fetch]
    for op in order:
        op.detach()
    block.add_ops(order)
    for result, value in zip(graph.results, fetch.operands, strict=False):
        result.type = value.type
    if graph.parent is function.body.blocks[0]:
        update_function_type(function)
