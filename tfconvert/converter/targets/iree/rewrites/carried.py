"""What loops carry: as many values go into a step as come out of it, whatever IREE simplifies.

IREE 3.13 moves the condition of a loop behind its step. Then it removes what the step doesn't read from what goes in,
and what is the same after each step, or is carried twice, from what comes out. Where the two differ, its next stage
crashes or fails. So such a value becomes a choice between the new one and the old one, and a barrier hides that it is
always the new one. So it is with a variable's value that a loop begins with: IREE takes its size for one that changes
in the first step.
"""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.targets.iree.rewrites.context import is_open, shape_of
from tfconvert.converter.targets.iree.rewrites.linalg_builder import LinalgBuilder
from tfconvert.converter.targets.iree.rewrites.unsigned import bits, is_unsigned
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.arith import ConstantOp
from tfconvert.schema.ir.attributes import IntegerAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value


def keep(loop: Operation) -> int:
    """Makes choices of the values that IREE would remove on one side only; returns how many there are."""
    step = loop.regions[1].block
    end = step.last_op
    assert end is not None
    changed = [number for number, arg in enumerate(step.args) if end.operands[number] is not arg]
    places = _removable(loop, step, changed, end.operands)
    variables = [number for number in changed if _is_variable(loop.operands[number])]
    if places or variables:
        before, inside = LinalgBuilder(loop), LinalgBuilder(end)
        true = before.create(ConstantOp, properties={"value": IntegerAttr.get(1, types.I1)}).results[0]
        # A barrier for tensors would not do: programs of IREE 3.13 don't wait for what is behind one.
        hidden = before.one("util.optimization_barrier", (true,), types.I1)
        for number in places:
            end.set_operand(number, _chosen(inside, hidden, end.operands[number], step.args[number]))
        for number in variables:
            value = loop.operands[number]
            zero = before.scalar(0, types.element_of(value.type))
            none = before.one("stablehlo.broadcast_in_dim", (zero,), value.type, {"broadcast_dimensions": ()})
            loop.set_operand(number, _chosen(before, hidden, value, none))
    return len(places) + len(variables)


def _is_variable(value: Value) -> bool:
    return isinstance(value, OpResult) and value.op.name == "ml_program.global_load" and not is_open(value)


def _removable(loop: Operation, step: Block, changed: Sequence[int], values: Sequence[Value]) -> list[int]:
    """Returns which carried values IREE would remove from what goes into a step, or from what comes out."""
    varying = _varying(step, changed)
    found: list[int] = []
    seen: set[Value] = set()
    for number in changed:
        value = values[number]
        is_unread = all(use.operation.name == _SIZE for use in step.args[number].uses)
        if (is_unread and not loop.results[number].is_unused) or value not in varying or value in seen:
            found.append(number)
        seen.add(value)
    return found


# The op that reads no element; the size is often known from elsewhere.
_SIZE = "stablehlo.get_dimension_size"


def _varying(step: Block, changed: Sequence[int]) -> set[Value]:
    """Returns the values of a step that depend on what the step before has changed."""
    found: set[Value] = {step.args[number] for number in changed}
    for op in step.ops:
        if any(operand in found for inner in op.walk() for operand in inner.operands):
            found.update(op.results)
    return found


def _chosen(emit: LinalgBuilder, condition: Value, new: Value, old: Value) -> Value:
    """Inserts a choice of each element, the new one if the condition holds."""
    one, other = (bits(emit, each) if is_unsigned(each) else each for each in (old, new))
    everything = list(range(len(shape_of(new))))

    def body(inside: LinalgBuilder, arguments: Sequence[Value]) -> Value:
        element, by_now = arguments
        return inside.choose(condition, by_now, element)

    found = emit.loops([(one, everything)], (other, everything), "p" * len(everything), body)
    return emit.one("stablehlo.bitcast_convert", (found,), new.type) if other is not new else found
