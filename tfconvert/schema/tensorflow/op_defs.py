"""The definitions of TensorFlow's ops: `lookup("Conv2D")`.

The registry is a serialised `OpList`, sorted by name, without descriptions (see `make_op_defs.py`). Parsing all of
its two thousand ops would be time spent on every start, so it is only cut into its ops, and an op is parsed when it is
requested.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tfconvert.schema.tensorflow.generated.tensorflow_pb2 import CollectionDef, OpDef

PATH = Path(__file__).parent / "op_defs.binpb"
EFFECTS = Path(__file__).parent / "op_effects.tsv"


@cache
def lookup(name: str) -> OpDef | None:
    """Returns an op's definition, the same object at each call, or `None` if TensorFlow has no such op."""
    data = _index().get(name.encode())
    return None if data is None else OpDef.FromString(data)


def derived_attributes(op_def: OpDef) -> frozenset[str]:
    """Returns the attributes that an op's operands and results determine: their types, and how many there are."""
    arguments = (*op_def.input_arg, *op_def.output_arg)
    return frozenset(name for arg in arguments for name in (arg.type_attr, arg.number_attr, arg.type_list_attr) if name)


def names() -> list[str]:
    """Returns the names of all ops, sorted."""
    return sorted(name.decode() for name in _index())


@cache
def _index() -> dict[bytes, bytes]:
    """Returns the serialised definitions by name."""
    # On the wire a list of messages is a list of byte strings, so protobuf itself cuts the file. Each definition begins
    # with its name: a tag, a length that fits a byte (the tests check it), the text.
    ops = CollectionDef.BytesList.FromString(PATH.read_bytes()).value
    return {op[2 : 2 + op[1]]: op for op in ops}
