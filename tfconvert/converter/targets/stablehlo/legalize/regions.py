"""Regions: those of conditions and loops, and of loops and sorts that lowerings insert.

Every function that branches or loops run has one caller, as the pass `unique-callees` ensures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tfconvert.converter.control_flow.calls import FunctionCall
from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.sizes import static_shape
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import stablehlo, types
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

_IF = frozenset({"tf.If", "tf.StatelessIf"})
_CASE = frozenset({"tf.Case", "tf.StatelessCase"})
_WHILE = frozenset({"tf.While", "tf.StatelessWhile"})

HANDLED = _IF | _CASE | _WHILE
"""The ops that become regions."""


def lower(emit: StableHLOBuilder, op: Operation, calls: Sequence[FunctionCall]) -> tuple[Sequence[Value], list[Block]]:
    """Emits the replacement of an op; returns its results and its blocks.

    Raises:
        Declined: There is no such form.
    """
    if op.name in _WHILE:
        return _while(emit, op, calls)
    condition = op.operands[0]
    wanted = types.I1 if op.name in _IF else types.I32
    if condition.element != wanted or emit.dims(condition):
        raise Declined(f"its condition is not a scalar of {wanted}")
    blocks = [_taken(call) for call in calls]
    for block in blocks:
        for argument, operand in zip(block.args, op.operands[1:], strict=True):
            argument.replace_all_uses_with(operand)
        for argument in reversed(block.args):
            block.erase_arg(argument)
    name = "if" if op.name in _IF else "case"
    return emit.op(name, (condition,), op.result_types, regions=[Region(each) for each in blocks]).results, blocks


def _while(emit: StableHLOBuilder, op: Operation, calls: Sequence[FunctionCall]) -> tuple[Sequence[Value], list[Block]]:
    condition, body = calls
    (decision,) = condition.returned
    if decision.element != types.I1 or decision.shape not in ((), None):
        raise Declined("its condition is not a scalar boolean")
    blocks = [_taken(call) for call in (condition, body)]
    regions = [Region(block) for block in blocks]
    return emit.op("while", op.operands[:], op.result_types, regions=regions).results, blocks


def _taken(call: FunctionCall) -> Block:
    """Returns a function's body, taken out of it, with a terminator that regions have."""
    block = call.block
    region = block.parent
    assert region is not None
    region.detach_block(block)
    last = block.last_op
    assert last is not None
    block.add_op(stablehlo.build(stablehlo.RETURN, last.operands[:], (), location=last.location))
    last.erase()
    return block


Body = Callable[[StableHLOBuilder, Sequence[Value]], Sequence[Value]]
"""Emits the ops of a region from its arguments, and returns what the region returns."""


def fill(emit: StableHLOBuilder, block: Block, body: Body) -> None:
    """Fills an empty block, which must be in its op already: sizes are looked for around it."""
    end = stablehlo.build(stablehlo.RETURN, block.args, (), location=emit.location)
    block.add_op(end)
    results = body(StableHLOBuilder(end, emit.sizes), block.args)
    end.erase()
    block.add_op(stablehlo.build(stablehlo.RETURN, results, (), location=emit.location))


def loop(emit: StableHLOBuilder, carried: Sequence[Value], condition: Body, body: Body) -> Sequence[OpResult]:
    """Inserts a loop; carried values keep their types and sizes.

    Args:
        emit: The emitter.
        carried: The initial values.
        condition: Returns whether to go on.
        body: Returns the next values.
    """
    dims = [emit.dims(value) for value in carried]
    kinds = [types.tensor(value.element, static_shape(each)) for value, each in zip(carried, dims, strict=True)]
    blocks = [Block(arg_types=kinds) for _ in range(2)]
    op = emit.op("while", carried, kinds, regions=[Region(block) for block in blocks])
    for block, run in zip(blocks, (condition, body), strict=True):
        for argument, each in zip(block.args, dims, strict=True):
            emit.sizes.note(argument, each)
        fill(emit, block, run)
    for result, each in zip(op.results, dims, strict=True):
        emit.sizes.note(result, each)
    return op.results


def sort(emit: StableHLOBuilder, values: Sequence[Value], axis: int, direction: str) -> Sequence[Value]:
    """Inserts a stable sort of values by the first of them.

    Args:
        emit: The emitter.
        values: Values of one shape.
        axis: The axis that is sorted.
        direction: The comparison of consecutive elements: `LT` or `GT`.
    """
    elements = [value.element for value in values]
    block = Block(arg_types=[types.tensor(element, ()) for element in elements for _ in range(2)])
    results = emit.several("sort", values, elements, {"dimension": axis, "is_stable": True}, (Region(block),))
    fill(emit, block, lambda inner, args: (inner.compare(direction, args[0], args[1]),))
    return results
