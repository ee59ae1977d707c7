"""Workarounds for branches and loops: bounds of sizes, carried values, and assertions.

Bounds: IREE 3.13 puts tensors into a common buffer, and tracks the offsets in it that a branch or a loop may get. If it
can't rule out that the size of a tensor overflows 64 bits, it mistakes the offset of the next one for a constant, and
the program reads foreign memory. So functions check that sizes are below a bound, and tell IREE the bound.

Carried values: IREE 3.13 moves the condition of a loop behind its step. Then it removes what the step doesn't read from
the loop's inputs, and what no step changes, or is carried twice, from its outputs. If the two differ, its next stage
crashes or fails. So such a value becomes a choice between the new one and the old one, and a barrier hides that it is
always the new one. The same is done for a loop that starts with the value of a variable: IREE takes its size for one
that changes in the first step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tfconvert.converter.targets.iree.rewrites.linalg_builder import LinalgBuilder, bits, is_unsigned
from tfconvert.converter.targets.iree.rewrites.numbers import Context, is_dynamic, shape_of
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.arith import ConstantOp
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.attributes import DictionaryAttr, IntegerAttr, StringAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import INDEX
from tfconvert.schema.ir.values import OpResult, Value

_HOLDERS = frozenset({"stablehlo.case", "stablehlo.if", "stablehlo.while"})

# The maximum number of bits of a tensor's byte count; the remaining bits are for sums of several.
_MAX_TENSOR_BITS = 58

# The bits of the largest size: TensorFlow computes sizes as 32-bit integers.
_MAX_SIZE_BITS = 31

# The bits of the smallest bound: larger sizes are common.
_MIN_SIZE_BITS = 12


def bound_sizes(function: FuncOp) -> bool:
    """Makes a function check the sizes of its arguments if it needs to; returns whether they are bounded."""
    ops = list(function.walk())
    if not any(op.name in _HOLDERS and is_dynamic(*op.operands, *op.results) for op in ops):
        return True
    block = function.regions[0].block
    values = [*block.args, *[result for op in ops for result in op.results]]
    dynamic = [value for value in values if _is_dynamic_tensor(value)]
    # A size may be the product of all others, if a tensor of many dynamic dimensions was reshaped to few.
    width = (_MAX_TENSOR_BITS - max(map(_known_bits, dynamic))) // max([shape_of(value).count(-1) for value in dynamic])
    width = min(width, _MAX_SIZE_BITS)
    if width < _MIN_SIZE_BITS:
        return False
    emit = LinalgBuilder(block.first_op)
    for argument in block.args:
        if _is_dynamic_tensor(argument):
            _bound(emit, argument, (1 << width) - 1)
    return True


def _known_bits(value: Value) -> int:
    """Returns the bits of a tensor's byte count, if its dynamic sizes were 1."""
    count = math.prod([dim for dim in shape_of(value) if dim > 0])
    return int(count * types.numpy_dtype(value.element).itemsize).bit_length()


def _bound(emit: LinalgBuilder, argument: Value, most: int) -> None:
    """Checks the dynamic sizes of an argument, and tells IREE their range."""
    uses = tuple(argument.uses)
    held = bits(emit, argument) if is_unsigned(argument) else argument
    sizes: list[Value] = []
    for axis, dim in enumerate(shape_of(argument)):
        if dim < 0:
            size = emit.one("tensor.dim", (held, emit.index(axis)), INDEX)
            emit.op("cf.assert", (emit.is_("LE", size, emit.index(most)),), (), {"msg": f"a size is above {most}"})
            sizes.append(emit.index(emit.clamped(size, 0, most)))
    tied = emit.one("flow.tensor.tie_shape", (held, *sizes), held.type)
    if held is not argument:
        tied = emit.one("stablehlo.bitcast_convert", (tied,), argument.type)
    for use in uses:
        use.operation.set_operand(use.index, tied)


def _is_dynamic_tensor(value: Value) -> bool:
    shape = value.shape
    return shape is not None and -1 in shape


def keep_carried(loop: Operation) -> int:
    """Inserts choices for the values that IREE would remove on one side only; returns their number."""
    step = loop.regions[1].block
    end = step.last_op
    assert end is not None
    changed = [number for number, arg in enumerate(step.args) if end.operands[number] is not arg]
    places = _removable(loop, step, changed, end.operands)
    variables = [number for number in changed if _is_variable(loop.operands[number])]
    if places or variables:
        before, inside = LinalgBuilder(loop), LinalgBuilder(end)
        true = before.create(ConstantOp, properties={"value": IntegerAttr.get(1, types.I1)}).results[0]
        # Not a barrier for tensors: programs of IREE 3.13 don't wait for their values.
        hidden = before.one("util.optimization_barrier", (true,), types.I1)
        for number in places:
            end.set_operand(number, _chosen(inside, hidden, end.operands[number], step.args[number]))
        for number in variables:
            value = loop.operands[number]
            zero = before.scalar(0, value.element)
            none = before.one("stablehlo.broadcast_in_dim", (zero,), value.type, {"broadcast_dimensions": ()})
            loop.set_operand(number, _chosen(before, hidden, value, none))
    return len(places) + len(variables)


def _is_variable(value: Value) -> bool:
    return isinstance(value, OpResult) and value.op.name == "ml_program.global_load" and not is_dynamic(value)


def _removable(loop: Operation, step: Block, changed: Sequence[int], values: Sequence[Value]) -> list[int]:
    """Returns the carried values that IREE would remove from a step's inputs only, or from its results only."""
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


# An op that reads no element.
_SIZE = "stablehlo.get_dimension_size"


def _varying(step: Block, changed: Sequence[int]) -> set[Value]:
    """Returns the values of a step that depend on values that the previous step changed."""
    found: set[Value] = {step.args[number] for number in changed}
    for op in step.ops:
        if any(operand in found for inner in op.walk() for operand in inner.operands):
            found.update(op.results)
    return found


def _chosen(emit: LinalgBuilder, condition: Value, new: Value, old: Value) -> Value:
    """Chooses the new elements if the condition holds, else the old ones."""
    one, other = (bits(emit, each) if is_unsigned(each) else each for each in (old, new))
    everything = list(range(len(shape_of(new))))

    def body(inside: LinalgBuilder, arguments: Sequence[Value]) -> Value:
        element, by_now = arguments
        return inside.choose(condition, by_now, element)

    found = emit.loops([(one, everything)], (other, everything), "p" * len(everything), body)
    return emit.one("stablehlo.bitcast_convert", (found,), new.type) if other is not new else found


_ASSERTION = "shape_assertion"


def optimization_barrier(op: Operation, context: Context) -> Sequence[Value]:
    return op.operands


def custom_call(op: Operation, context: Context) -> Sequence[Value] | None:
    """Replaces an assertion about sizes, which IREE ignores, by `cf.assert`."""
    name = op.properties.get("call_target_name")
    if not isinstance(name, StringAttr) or name.data != _ASSERTION:
        return None
    message = _message(op)
    context.emit.op(_CHECK, (context.numbers.truth(op.operands[0]),), (), {"msg": message})
    return ()


def _message(op: Operation) -> str:
    found = op.attributes.get("error_message")
    config = op.properties.get("backend_config")
    if found is None and isinstance(config, DictionaryAttr):
        found = dict(config.data).get("error_message")
    return found.data if isinstance(found, StringAttr) else "sizes contradict each other"


def late(module: ModuleOp) -> Iterator[Operation]:
    """Yields the checks in loops that come after work on tensors.

    IREE 3.13 doesn't wait for those: the loop then silently carries wrong values.
    """
    found = dict.fromkeys(op for loop in module.walk() if loop.name == "stablehlo.while" for op in _late_in(loop))
    yield from found


def _late_in(loop: Operation) -> Iterator[Operation]:
    for region in loop.regions:
        has_worked = False
        for op in (inner for each in region.block.ops for inner in each.walk()):
            if op.name == _CHECK and has_worked:
                yield op
            has_worked = has_worked or not (op.name in _NO_WORK or op.dialect == "arith")


def mixed_up(function: FuncOp) -> Iterator[Operation]:
    """Yields the loops that carry several tensors of dynamic sizes; IREE 3.13 may mistake one for another."""
    for loop in list(function.walk()):
        if loop.name == "stablehlo.while" and sum(is_dynamic(operand) for operand in loop.operands) > 1:
            yield loop


_CHECK = "cf.assert"
_NO_WORK = frozenset(
    (
        _CHECK,
        "stablehlo.constant",
        "stablehlo.get_dimension_size",
        "tensor.cast",
        "tensor.dim",
        "tensor.extract",
        "tensor.from_elements",
    )
)
