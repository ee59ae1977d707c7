"""Tensors of strings: LiteRT looks them up, compares, cuts, repeats and gathers them, and does nothing else.

Ops that only move elements move their indices instead, and a gather follows. Ops that join or choose between strings
of which all possible ones are known gather from all these. Joins of unknown strings are sunk: their parts are
looked up or compared, and the results of that are joined.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, tf, tfl, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_STRING = "!tf_type.string"

# Ops that only move elements -> which of their operands holds these.
_MOVED: Mapping[str, int] = {
    "BroadcastTo": 0,
    "Gather": 0,
    "GatherV2": 0,
    "MirrorPad": 0,
    "ReverseSequence": 0,
    "ReverseV2": 0,
    "Split": 1,
    "SplitV": 0,
    "Transpose": 0,
    "Unpack": 0,
}

# Ops that only move elements -> the operands that the elements come from.
_CHOOSING: Mapping[str, slice] = {
    "ConcatV2": slice(0, -1),
    "Pack": slice(0, None),
    "Select": slice(1, None),
    "SelectV2": slice(1, None),
}

_GATHERING = ("Gather", "GatherV2")
_JOINING = ("ConcatV2", "Pack")
_HASHES = ("StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong")


def _vector(emit: LiteRTBuilder, value: Value) -> Value:
    shape = value.shape
    if shape is not None and len(shape) == 1:
        return value
    return emit.reshape(value, (-1 if shape is None or -1 in shape else math.prod(shape),))


def _places(emit: LiteRTBuilder, value: Value) -> Value:
    """Returns the numbers of a tensor's elements, in its shape."""
    shape = value.shape
    if shape is not None and -1 not in shape:
        return emit.constant(np.arange(math.prod(shape), dtype=np.int32).reshape(shape))
    size = emit.tf("Size", (value,), types.tensor(types.I32, ()))
    limits = (emit.scalar(0, types.I32), size, emit.scalar(1, types.I32))
    count = emit.tf("Range", limits, types.tensor(types.I32, (-1,)))
    return emit.tf("Reshape", (count, emit.shape(value)), types.tensor(types.I32, shape))


def _as_numbers(emit: LiteRTBuilder, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    """Applies an op to indices instead of strings."""
    results = [types.tensor(types.I32, result.shape) for result in op.results]
    return emit.tf_op(op.name.removeprefix("tf."), operands, results, op.properties).results


def _gathered(emit: LiteRTBuilder, strings: Value, places: Value) -> Value:
    result = types.tensor(types.STRING, places.shape)
    return emit.tfl("gather", (strings, places), result, {"axis": 0, "batch_dims": 0})


def _move(op: Operation, emit: LiteRTBuilder) -> Sequence[Value]:
    name = op.name.removeprefix("tf.")
    strings, operands = op.operands[_MOVED[name]], list(op.operands)
    shape = strings.shape
    if name in _GATHERING and shape is not None and len(shape) == 1:
        return [_gathered(emit, strings, op.operands[1])]
    operands[_MOVED[name]] = _places(emit, strings)
    flat = _vector(emit, strings)
    return [_gathered(emit, flat, places) for places in _as_numbers(emit, op, operands)]


def _choices(value: Value) -> tensor_data.Constant | None:
    """Returns the constant that all elements of a value come from, or `None`."""
    constant = tensor_data.constant_of(value)
    if constant is not None:
        return constant
    owner = value.owner
    if not isinstance(owner, Operation) or owner.name != "tfl.gather":
        return None
    strings = tensor_data.constant_of(owner.operands[0])
    is_vector = strings is not None and len(strings.shape or ()) == 1
    return strings if is_vector and not (tfl.attribute(owner, "axis") or tfl.attribute(owner, "batch_dims")) else None


def _chosen(op: Operation) -> Sequence[Value]:
    return op.operands[_CHOOSING[op.name.removeprefix("tf.")]]


def _are_known(op: Operation) -> Failure | None:
    known = all(_choices(value) is not None for value in _chosen(op))
    return None if known else Failure("LiteRT doesn't join strings, and which strings these may be is not known")


def _choose(op: Operation, emit: LiteRTBuilder) -> Sequence[Value]:
    """Gathers from the strings of all operands; their indices there are joined or chosen from instead."""
    operands = {value: value for value in op.operands}
    everything: list[tensor_data.Array] = []
    count = 0
    for value in dict.fromkeys(_chosen(op)):
        choices = _choices(value)
        assert choices is not None, "checked by the constraint"
        array = tensor_data.to_array(choices)
        if tensor_data.constant_of(value) is not None:
            operands[value] = emit.constant(np.arange(count, count + array.size, dtype=np.int32).reshape(array.shape))
        else:
            assert isinstance(value.owner, Operation)
            operands[value] = emit.binary("AddV2", emit.i32(value.owner.operands[1]), count)
        everything.append(array.reshape(-1))
        count += array.size
    (places,) = _as_numbers(emit, op, [operands[value] for value in op.operands])
    return [_gathered(emit, emit.constant(np.concatenate(everything)), places)]


def _joined(value: Value) -> Operation | None:
    """Returns the op that joins strings."""
    owner = value.owner
    is_join = isinstance(owner, Operation) and owner.name.removeprefix("tf.") in _JOINING
    return owner if is_join and value.element == types.STRING else None  # type: ignore[return-value]


def _keys_are_joined(op: Operation) -> Failure | None:
    return None if _joined(op.operands[1]) is not None else Failure("its keys are not joined from several strings")


def _one_is_joined(op: Operation) -> Failure | None:
    pairs = ((0, 1), (1, 0))
    is_joined = any(_joined(op.operands[i]) and op.operands[k].shape == () for i, k in pairs)
    return None if is_joined else Failure("it doesn't compare joined strings with a single one")


def _part_by_part(emit: LiteRTBuilder, op: Operation, at: int) -> Value:
    """Applies an op to each part instead of the joined strings, and joins the results."""
    join = _joined(op.operands[at])
    assert join is not None, "checked by the constraint"
    element = op.results[0].element
    operands = list(join.operands)
    for place, part in enumerate(_chosen(join)):
        parts = [part if index == at else operand for index, operand in enumerate(op.operands)]
        result = types.tensor(element, part.shape)
        operands[place] = emit.tf(op.name.removeprefix("tf."), parts, result, op.properties)
    return emit.tf(join.name.removeprefix("tf."), operands, op.results[0].type, join.properties)


def _find_parts(op: Operation, emit: LiteRTBuilder) -> Value:
    return _part_by_part(emit, op, 1)


def _compare_parts(op: Operation, emit: LiteRTBuilder) -> Value:
    return _part_by_part(emit, op, 0 if _joined(op.operands[0]) else 1)


def _one_bucket(op: Operation) -> Failure | None:
    return None if tf.get(op, "num_buckets", 0) == 1 else Failure("LiteRT doesn't hash strings")


def _zeros(op: Operation, emit: LiteRTBuilder) -> Value:
    """All strings are in the only bucket; numbers that were formatted as strings for that need not be."""
    strings = op.operands[0]
    writer = strings.owner
    if isinstance(writer, Operation) and writer.name == "tf.AsString":
        strings = writer.operands[0]
    return emit.tf("Fill", (emit.shape(strings), emit.scalar(0, types.I64)), op.results[0].type)


ENTRIES: tuple[Entry, ...] = (
    *(Lowering(op, f"{op} gather", _move, _STRING, typed=at, name=f"{op}-of-strings") for op, at in _MOVED.items()),
    *(
        Lowering(op, f"{op} gather", _choose, _STRING, _are_known, operands.start, name=f"{op}-of-strings")
        for op, operands in _CHOOSING.items()
    ),
    Lowering("LookupTableFindV2", "ConcatV2", _find_parts, constraint=_keys_are_joined, benefit=3),
    *(Lowering(op, "ConcatV2", _compare_parts, _STRING, _one_is_joined, benefit=3) for op in ("Equal", "NotEqual")),
    *(Lowering(op, "Fill", _zeros, constraint=_one_bucket) for op in _HASHES),
)
