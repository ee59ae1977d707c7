"""Conditionals and loops: their regions become those of `tf` ops, and are raised after them.

Loops keep the shapes of what they carry: JAX has one symbol for a size before, in and after a loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.from_stablehlo.raised_op import RaisedOp
from tfconvert.converter.ir.edit import inline_block, replace_op, take_regions, yield_instead
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builder import OpBuilder
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

HANDLED = frozenset({"case", "if", "while"})
"""The ops with regions that run as they are, without a prefix."""

CONDITIONALS = frozenset({"stablehlo.case", "stablehlo.if"})
"""Those that choose a region."""

# Branches up to which as many comparisons choose one; more are a tree over their index.
_MAX_COMPARED = 8

Raised = tuple[Sequence[EmittedTensor], Sequence[Block]]


def raised(view: RaisedOp) -> Raised:
    """Returns the results of the op that replaces one of `HANDLED`, and its blocks, which are to be raised."""
    name = view.op.name.removeprefix("stablehlo.")
    if name == "while":
        return _while(view)
    return _if(view) if name == "if" else _case(view)


def _while(view: RaisedOp) -> Raised:
    computed = _computed(view)
    if computed is not None:
        return computed, ()
    carried = view.operands
    regions = _taken(view.op)
    for region in regions:
        for argument, operand in zip(region.block.args, carried, strict=True):
            view.note(argument, view.sizes(operand))
    made = _insert(view, "WhileRegion", [each.value for each in carried], regions, {"parallel_iterations": 10})
    for result, operand in zip(made.results, carried, strict=True):
        view.note(result, view.sizes(operand))
    return [view.tensor(result) for result in made.results], [region.block for region in regions]


# A loop of constants that runs longer than this stays one.
_MAX_ITERATIONS = 1000


def _computed(view: RaisedOp) -> Sequence[EmittedTensor] | None:
    """Returns the results of a loop that depends on constants alone: JAX's random numbers of a key are made by one."""
    inputs = [array for each in view.operands if (array := view.known(each, of_any_size=True)) is not None]
    if len(inputs) < len(view.operands):
        return None
    from tfconvert.converter.executor import control_flow, executor, tasks  # few models have such a loop

    values = {value: tensor_data.constant_of(value) for value in control_flow.captures(view.op, {})}
    arrays = {value: tensor_data.to_array(constant) for value, constant in values.items() if constant is not None}
    if len(arrays) < len(values) or any(executor.obstacles(op) for op in view.op.walk()):
        return None
    machine = executor.Executor(ModuleOp.of(()), max_iterations=_MAX_ITERATIONS)
    try:
        task = control_flow.OPS["stablehlo.while"](machine, view.op, tuple(inputs), arrays)
        found = tasks.run_task(task, machine.deadline)
    except ConversionError:
        return None
    return [view.constant(value, view.dtype(index)) for index, value in enumerate(found)]


def _if(view: RaisedOp) -> Raised:
    (condition,) = view.operands
    return _conditional(view, "IfRegion", condition.value, _taken(view.op))


def _case(view: RaisedOp) -> Raised:
    """Raises a choice of a branch by its number; the last one is that of all other numbers, as for TensorFlow's op."""
    (index,) = view.operands
    regions = _taken(view.op)
    owner = index.value.owner
    if len(regions) == 2 and isinstance(owner, Operation) and owner.name == "tf.Cast" and _is_flag(owner.operands[0]):
        return _conditional(view, "IfRegion", owner.operands[0], regions[::-1])
    number = _clamped(view, index, len(regions) - 1)
    if number is not None and len(regions) <= _MAX_COMPARED:
        return _compared(view, number, regions)
    return _conditional(view, "CaseRegion", index.value, regions)


def _compared(view: RaisedOp, number: EmittedTensor, regions: Sequence[Region]) -> Raised:
    """Chooses by comparisons, for which a number need not be limited: smaller ones are below the first branch's."""
    conditions = [number.op("Less", number, view.constant(at, number.dtype)).value for at in range(1, len(regions))]
    half = len(regions) // 2
    halves = [_half(view, conditions[: half - 1], regions[:half]), _half(view, conditions[half:], regions[half:])]
    made = _insert(view, "IfRegion", [conditions[half - 1]], halves, {})
    return [view.tensor(result) for result in made.results], [region.block for region in regions]


def _half(view: RaisedOp, conditions: Sequence[Value], regions: Sequence[Region]) -> Region:
    """Returns the region that chooses one of several."""
    if len(regions) == 1:
        return regions[0]
    half = len(regions) // 2
    inner = [_half(view, conditions[: half - 1], regions[:half]), _half(view, conditions[half:], regions[half:])]
    op = _built(view, "IfRegion", [conditions[half - 1]], inner, {})
    return Region([Block(ops=[op, tf.build("Yield", op.results)])])


def _clamped(view: RaisedOp, index: EmittedTensor, last: int) -> EmittedTensor | None:
    """Returns the number that an index is, limited to those of branches, `None` if it isn't."""
    for name, limit in (("tf.Minimum", last), ("tf.Maximum", 0)):
        owner = index.value.owner
        if not isinstance(owner, Operation) or owner.name != name:
            return None
        index, other = map(view.tensor, owner.operands)
        known = view.known(other)
        if known is None or known != limit:
            return None
    return index


def _is_flag(value: Value) -> bool:
    return value.element is types.I1


def _conditional(view: RaisedOp, name: str, condition: Value, regions: Sequence[Region]) -> Raised:
    made = _insert(view, name, [condition], regions, {})
    return [view.tensor(result) for result in made.results], [region.block for region in regions]


def chosen_region(view: RaisedOp) -> Region | None:
    """Returns the region of one of `CONDITIONALS` that always runs, `None` if that isn't known."""
    regions = view.op.regions
    known = view.known(view.operands[0])
    if known is None:
        return regions[0] if len(regions) == 1 else None
    number = int(known.item())
    if view.op.name == "stablehlo.if":
        return regions[0 if number else 1]
    return regions[number if 0 <= number < len(regions) else -1]


def inline(op: Operation, region: Region) -> None:
    """Replaces a conditional by the ops of one of its regions."""
    replace_op(op, inline_block(op, region.block))


def _taken(op: Operation) -> Sequence[Region]:
    """Returns an op's regions, taken out of it, with terminators of `tf`."""
    regions = take_regions(op)
    for region in regions:
        last = region.block.last_op
        assert last is not None
        yield_instead(last)
    return regions


def _insert(
    view: RaisedOp, name: str, operands: Sequence[Value], regions: Sequence[Region], properties: dict[str, int]
) -> Operation:
    return OpBuilder(view.op).insert(_built(view, name, operands, regions, properties))


def _built(
    view: RaisedOp, name: str, operands: Sequence[Value], regions: Sequence[Region], properties: dict[str, int]
) -> Operation:
    return tf.build(
        name,
        operands=operands,
        result_types=view.op.result_types,
        properties={"is_stateless": True, **properties},
        regions=regions,
        location=view.op.location,
    )
