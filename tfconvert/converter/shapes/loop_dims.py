"""Passes dimensions that a loop reads in each iteration as variables, if they are known before the loop."""

from __future__ import annotations

from collections.abc import Callable

from tfconvert.converter.control_flow.calls import Calls
from tfconvert.converter.control_flow.constructs import change_signature
from tfconvert.converter.ir.edit import erase_dead, update_function_type
from tfconvert.converter.shapes.symbolic import Symbols
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.dims import UNKNOWN
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_SCALAR = types.tensor(types.I32, ())


def pass_dims(op: Operation, calls: Calls, symbols: Symbols, known: Callable[[int], Value | None]) -> Operation:
    """Passes dimensions to a loop as loop-invariant variables.

    Args:
        op: The loop.
        calls: The module's calls.
        symbols: Its symbolic shapes; those of new values are added.
        known: Returns a dimension as a scalar that is available before the loop, or `None`.

    Returns:
        The loop that replaces it, or the loop itself.
    """
    blocks = [call.block for call in calls.of[op]]
    if any(len(calls.to[block]) > 1 for block in blocks):
        return op
    read = [_read_dims(block, symbols) for block in blocks]
    scalars = {dim: known(dim) for dim in sorted({dim for dims in read for dim in dims})}
    passed = {dim: scalar for dim, scalar in scalars.items() if scalar is not None}
    if not passed:
        return op
    for block, dims in zip(blocks, read, strict=True):
        for dim in passed:
            argument = block.insert_arg(_SCALAR, len(block.args))
            symbols.known.note(argument, ())
            symbols.known.partials[argument] = (dim,)
            for value in dims.get(dim, ()):
                value.replace_all_uses_with(argument)
        erase_dead(block)
    body = blocks[-1]
    assert body.last_op is not None
    body.last_op.set_operands([*body.last_op.operands, *body.args[len(body.args) - len(passed) :]])
    for block in blocks:
        function = block.parent_op()
        assert isinstance(function, FuncOp)
        for key in ("arg_attrs", "res_attrs"):
            function.properties.pop(key, None)  # nothing reads the value names of a private function
        update_function_type(function)
    return _extended(op, list(passed.values()), symbols)


def _read_dims(block: Block, symbols: Symbols) -> dict[int, list[Value]]:
    """Returns the scalars of a block that are unknown dimensions, by their symbols."""
    found: dict[int, list[Value]] = {}
    for op in block.ops:
        if op.name == "tf.StridedSlice" and op.results[0].type == _SCALAR:
            elements = symbols.known.partials.get(op.results[0])
            if elements and elements[0] < UNKNOWN:
                found.setdefault(elements[0], []).append(op.results[0])
    return found


def _extended(op: Operation, scalars: list[Value], symbols: Symbols) -> Operation:
    """Returns a loop with additional variables, and the known facts of the loop that it replaces."""
    shapes = [symbols.known.shapes.get(result) for result in op.results]
    partials = [symbols.known.partials.get(result) for result in op.results]
    made = change_signature(op, [*op.operands, *scalars], (), [_SCALAR] * len(scalars))
    made.properties.pop("output_shapes", None)
    for result, shape, partial in zip(made.results, shapes, partials, strict=False):
        symbols.known.note(result, shape)
        if partial is not None:
            symbols.known.partials[result] = partial
    return made
