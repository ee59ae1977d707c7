"""Our TensorFlow messages against TensorFlow's own: same wire format, and no quarrel in one process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from tests.support.light_tensorflow import LIGHT_TENSORFLOW
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

OUR_PACKAGE = "tfconvert.tensorflow."
THEIR_PACKAGE = "tensorflow."


def _nested(message: Descriptor) -> Iterator[Descriptor]:
    yield message
    for inner in message.nested_types:
        yield from _nested(inner)


def _messages() -> list[Descriptor]:
    return [inner for message in pb.DESCRIPTOR.message_types_by_name.values() for inner in _nested(message)]


def _enums() -> list[EnumDescriptor]:
    inner = [enum for message in _messages() for enum in message.enum_types]
    return [*pb.DESCRIPTOR.enum_types_by_name.values(), *inner]


def _theirs(name: str) -> str:
    return THEIR_PACKAGE + name.removeprefix(OUR_PACKAGE)


def _layout(field: FieldDescriptor) -> tuple[object, ...]:
    """Everything of a field that its encoding depends on, without the package's name.

    A oneof tells apart what is absent and what is zero; elsewhere that is a matter of the schema's edition.
    """
    inner = field.message_type or field.enum_type
    name = inner.full_name.removeprefix(OUR_PACKAGE).removeprefix(THEIR_PACKAGE) if inner else ""
    return field.number, field.type, field.is_repeated, field.is_packed, name, field.containing_oneof is not None


@pytest.fixture(scope="module")
def their_pool() -> descriptor_pool.DescriptorPool:
    from tensorflow.core.framework import graph_debug_info_pb2, variable_pb2
    from tensorflow.core.protobuf import saved_model_pb2, tensor_bundle_pb2

    files = (graph_debug_info_pb2, variable_pb2, saved_model_pb2, tensor_bundle_pb2)
    pools: list[descriptor_pool.DescriptorPool] = list({file.DESCRIPTOR.pool for file in files})
    assert len(pools) == 1
    return pools[0]


@pytest.mark.parametrize("message", _messages(), ids=lambda message: message.full_name.removeprefix(OUR_PACKAGE))
def test_message_has_tensorflows_layout(message: Descriptor, their_pool: descriptor_pool.DescriptorPool) -> None:
    theirs = their_pool.FindMessageTypeByName(_theirs(message.full_name))
    ours = {field.name: _layout(field) for field in message.fields}
    assert ours == {field.name: _layout(field) for field in theirs.fields}


@pytest.mark.parametrize("enum", _enums(), ids=lambda enum: enum.full_name.removeprefix(OUR_PACKAGE))
def test_enum_has_tensorflows_values(enum: EnumDescriptor, their_pool: descriptor_pool.DescriptorPool) -> None:
    theirs = their_pool.FindEnumTypeByName(_theirs(enum.full_name))
    assert {value.name: value.number for value in enum.values} == {value.name: value.number for value in theirs.values}


@pytest.mark.parametrize("order", ["ours, theirs", "theirs, ours"])
def test_both_live_in_one_process(order: str) -> None:
    imports = {
        "ours": "from tfconvert.schema.tensorflow.generated.tensorflow_pb2 import GraphDef as Ours",
        "theirs": "from tensorflow.core.framework.graph_pb2 import GraphDef as Theirs",
    }
    program = [
        LIGHT_TENSORFLOW,
        *(imports[name] for name in order.split(", ")),
        "theirs = Theirs()",
        "theirs.node.add(name='x', op='Placeholder').attr['dtype'].type = 1",
        "ours = Ours.FromString(theirs.SerializeToString())",
        "assert ours.node[0].attr['dtype'].type == 1 and ours.node[0].name == 'x'",
        "assert Theirs.FromString(ours.SerializeToString()) == theirs",
    ]
    subprocess.run([sys.executable, "-c", "\n".join(program)], check=True)


def test_unknown_fields_survive() -> None:
    future = pb.NodeDef(name="x").SerializeToString() + b"\xfa\x3e\x03new"  # field 1007
    assert pb.NodeDef.FromString(future).SerializeToString() == future
