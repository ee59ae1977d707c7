"""Slices of a graph become functions of the module, for `tf.While`, `tf.If` and `tf.Case` to name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tfconvert.converter.functionalize.slices import replace_inputs
from tfconvert.converter.ir.symbol_table import FunctionMaker
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.dialects.tf_executor import CONTROL, FetchOp, GraphOp, IslandOp
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.locations import Location
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


@dataclass(frozen=True, slots=True)
class Body:
    """The parts of a new function.

    Attributes:
        name: What to call it; a number is added where the module has that name already.
        arguments: The values that are its arguments, with the arguments' types.
        ops: Its ops, in an order in which each op follows what it uses.
        results: The values that it returns: of `ops`, or among the arguments.
        controls: Control results of `ops` that must have run.
        stands_for: From a value to its replacement in the function; before it is looked up among the arguments.
        location: Where the function comes from.
    """

    name: str
    arguments: Mapping[Value, Attribute]
    ops: Sequence[Operation]
    results: Sequence[Value]
    controls: Iterable[Value]
    stands_for: Callable[[Value], Value]
    location: Location


class Outliner(FunctionMaker):
    """Creates private functions in a module from slices of its graphs."""

    def outline(self, body: Body, kept: Callable[[Operation], bool]) -> FuncOp:
        """Adds a function of some ops to the module.

        Args:
            body: The function's parts.
            kept: Returns the ops that something else needs too: they are copied, all others are moved.
        """
        block = Block()
        mapping: dict[Value, Value] = {
            value: block.insert_arg(kind, index) for index, (value, kind) in enumerate(body.arguments.items())
        }
        graph_block = Block()

        def mapped(value: Value) -> Value:
            value = body.stands_for(value)
            return mapping.get(value, value)

        inside = set(body.ops)
        for op in body.ops:
            if kept(op):
                copy = op.clone()
                mapping.update(zip(op.results, copy.results, strict=True))
            else:
                op.detach()
                copy = op
            _drop_outer_controls(copy, inside, body.stands_for)
            replace_inputs(copy, mapped)
            graph_block.add_op(copy)
        results = [mapped(value) for value in body.results]
        controls = [mapped(value) for value in body.controls]
        graph_block.add_op(FetchOp.create(operands=[*results, *controls], location=body.location))
        graph = GraphOp.build(graph_block, body.location)
        block.add_ops([graph, ReturnOp.of(graph.results)])
        return self.functions[self.add(body.name, block, body.location)]


def _drop_outer_controls(op: Operation, inside: set[Operation], stands_for: Callable[[Value], Value]) -> None:
    """Drops the control operands that come from outside: the op that calls the function has them."""
    operands = [value for value in op.operands if value.type != CONTROL or stands_for(value).owner in inside]
    if len(operands) != len(op.operands):
        op.set_operands(operands)


def wrap(op: Operation, controls: Iterable[Value]) -> IslandOp:
    """Returns an island of an op that runs after some controls, each named once."""
    return IslandOp.wrap(op, list(dict.fromkeys(controls)), op.location)
