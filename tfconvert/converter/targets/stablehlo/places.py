"""Placement of ops: the host computes sizes, and the device everything else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tfconvert.converter.targets.stablehlo.shape_functions import is_small
from tfconvert.converter.targets.stablehlo.size_rules import NUMBERS
from tfconvert.schema.dialects import stablehlo
from tfconvert.schema.dialects.func import ARGUMENT_ATTRIBUTES, FuncOp
from tfconvert.schema.ir.attributes import TRUE, ArrayAttr, DictionaryAttr, StringAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

PLACE = "dhlo.place"
"""The attribute with the place of ops and arguments."""

READ_BACK = "dhlo.read_back"
"""The attribute of ops on the device whose results the host reads: sizes that depend on data."""

HOST, DEVICE = "host", "device"

# Op -> the operands that are sizes; for assertions, all operands.
_SIZES: Mapping[str, Sequence[int]] = {
    **stablehlo.SIZE_OPERANDS,
    "cf.assert": (0,),
    "stablehlo.custom_call": tuple(range(32)),
}

# Ops without a place, and assertions, on which XLA accepts only its own attributes.
_UNPLACED = ("func.return", "stablehlo.return", "stablehlo.custom_call")

# The host needs only the size, not the value that has it.
_OF_A_SHAPE = "stablehlo.get_dimension_size"


def place(function: FuncOp) -> Counter[str]:
    """Marks a function's ops and the arguments that are sizes; returns the number of ops in each place."""
    host = _on_host(function)
    counts = Counter[str]()
    for op in _ops(function):
        if op.name not in _UNPLACED:
            where = HOST if op in host else DEVICE
            op.attributes[PLACE] = StringAttr.get(where)
            counts[where] += 1
    read = {value for op in host for value in _read(op)} | {value for op in _ops(function) for value in _sizes_of(op)}
    for value in read:
        if isinstance(value.owner, Operation) and value.owner not in host:
            value.owner.attributes[READ_BACK] = TRUE
    _mark_arguments(function, read)
    return counts


def violations(function: FuncOp) -> list[Operation]:
    """Returns the ops on the host that read values of the device without `dhlo.read_back`."""
    return [
        op
        for op in _ops(function)
        if op.attributes.get(PLACE) is StringAttr.get(HOST)
        for operand in _read(op)
        if isinstance(operand.owner, Operation)
        and operand.owner.attributes.get(PLACE) is StringAttr.get(DEVICE)
        and READ_BACK not in operand.owner.attributes
    ]


def _ops(function: FuncOp) -> Iterator[Operation]:
    """Yields a function's ops, including those in branches and loops, but not those in bodies of reductions."""
    waiting = [function.body.block]
    while waiting:
        for op in waiting.pop().ops:
            yield op
            if op.name in ("stablehlo.if", "stablehlo.case", "stablehlo.while"):
                waiting += [region.block for region in op.regions]


def _sizes_of(op: Operation) -> list[Value]:
    return [op.operands[index] for index in _SIZES.get(op.name, ()) if index < len(op.operands)]


def _read(op: Operation) -> Sequence[Value]:
    """Returns the values that an op of the host reads."""
    return () if op.name == _OF_A_SHAPE else op.operands


def _on_host(function: FuncOp) -> set[Operation]:
    """Returns the ops that compute sizes, found backwards from the ops that need them."""
    host: set[Operation] = set()
    waiting = [operand for op in _ops(function) for operand in _sizes_of(op)]
    while waiting:
        op = waiting.pop().owner
        if isinstance(op, Operation) and op not in host and _can_be_host(op):
            host.add(op)
            waiting += _read(op)
    host.update(op for op in _ops(function) if op.name in ("cf.assert", "stablehlo.custom_call"))
    return host


def _can_be_host(op: Operation) -> bool:
    if op.name == _OF_A_SHAPE:
        return True
    values = (*op.operands, *op.results)
    return op.name in NUMBERS and all(is_small(value.type, allow_two=True) for value in values)


def _mark_arguments(function: FuncOp, sizes: set[Value]) -> None:
    """Marks the arguments that are sizes."""
    args = function.body.block.args
    if not any(arg in sizes for arg in args):
        return
    held = function.properties.get(ARGUMENT_ATTRIBUTES)
    known = list(held.data) if isinstance(held, ArrayAttr) else [DictionaryAttr.get({})] * len(args)
    for number, arg in enumerate(args):
        own = known[number]
        if arg in sizes and isinstance(own, DictionaryAttr):
            known[number] = DictionaryAttr.get({**own.data, PLACE: StringAttr.get(HOST)})
    function.properties[ARGUMENT_ATTRIBUTES] = ArrayAttr.get(known)
