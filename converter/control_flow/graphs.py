"""The graphs of a function, and how they become valid again after their ops have been exchanged."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import FunctionType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from converter.control_flow.slices import in_order
from schema.dialects.tf_executor import GraphOp


def graphs_of(function: FuncOp) -> list[GraphOp]:
    """Returns the graphs in a function's body, those in islands too."""
    return [op for op in function.body.walk() if isinstance(op, GraphOp)] if function.body.blocks else []


def restore(function: FuncOp, graph: GraphOp, position: Mapping[Operation, int]) -> None:
    """Sorts a graph's ops so that each follows what it uses, and lets types follow those of the fetched values.

    Args:
        function: The function that the graph is in.
        graph: The graph.
        position: Where its ops stood, or where new ones would like to.

    Raises:
        ConversionError: The ops use each other in a circle (`cyclic-graph`).
    """
    block = graph.body
    order = in_order(block.ops, {**position, graph.terminator: len(position) + 1})
    for op in order:
        op.detach()
    block.add_ops(order)
    for result, value in zip(graph.results, graph.terminator.operands, strict=False):
        result._type = value.type  # noqa: SLF001  # xDSL has no setter for a value's type
    if graph.parent is function.body.blocks[0]:
        returned = function.body.block.last_op
        assert returned is not None
        inputs = list(function.function_type.inputs)
        function.properties["function_type"] = FunctionType.from_lists(
            inputs, [value.type for value in returned.operands]
        )
