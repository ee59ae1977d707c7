"""Variables of a loop that always have the same value: they begin alike, and the body updates them alike.

Variables that begin alike are taken to be equal. Then the body is analysed under that assumption: those of which it
computes different values are separated, until the assumption holds after an iteration, too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from tfconvert.converter.control_flow.constructs import Construct, returned
from tfconvert.schema.dialects import tf_effects
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# How often a body is analysed, at most; variables that aren't proved equal by then stay separate.
_MAX_ROUNDS = 8


def merge_equal(found: Construct) -> int:
    """Replaces loop variables that are always equal by one of them, in the loop's functions and among its results.

    Args:
        found: A loop whose functions nothing else runs.

    Returns:
        How many variables are dead but for what computes them in the next iteration.
    """
    condition, body = (function.body.block for function in found.functions)
    classes = _classes(found, body)
    merged = 0
    for index, first in enumerate(classes):
        if first != index:
            merged += 1
            for values in (condition.args, body.args, found.op.results):
                values[index].replace_all_uses_with(values[first])
    return merged


def _classes(found: Construct, body: Block) -> list[int]:
    """Returns, for each variable, the first one that is always equal to it."""
    classes = _partition(
        (_start(value), value.type, argument.type, result.type)
        for value, argument, result in zip(found.given, body.args, found.op.results, strict=True)
    )
    for _ in range(_MAX_ROUNDS):
        if len(set(classes)) == len(classes):
            break
        numbers = _numbers(body, classes)
        refined = _partition((old, numbers[value]) for old, value in zip(classes, returned(body), strict=True))
        if refined == classes:
            return classes
        classes = refined
    return list(range(len(classes)))


def _partition(keys: Iterable[Hashable]) -> list[int]:
    """Returns, for each key, the place of the first that equals it."""
    places: dict[Hashable, int] = {}
    return [places.setdefault(key, index) for index, key in enumerate(keys)]


def _start(value: Value) -> Hashable:
    owner = value.owner
    if isinstance(owner, Operation) and owner.name == "tf.Const":
        return frozenset(owner.properties.items())
    return id(value)


def _numbers(body: Block, classes: Sequence[int]) -> dict[Value, int]:
    """Returns a number for each value of a body: values that are equal if variables of a class are have one number."""
    numbers: dict[Value, int] = {argument: -1 - classes[argument.index] for argument in body.args}
    known: dict[Hashable, int] = {}
    for op in body.ops:
        operands = tuple(numbers[value] for value in op.operands)
        is_pure = not op.regions and op.name.startswith("tf.") and tf_effects.is_pure(op)
        key: Hashable = (op.name, operands, frozenset(op.properties.items())) if is_pure else id(op)
        first = known.setdefault(key, len(numbers))
        # Results of one op have consecutive numbers, and those of different ops never meet.
        numbers.update((result, first + place) for place, result in enumerate(op.results))
    return numbers
