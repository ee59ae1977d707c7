"""Nodes that share one form, and those that don't."""

from __future__ import annotations

import pytest

from tests.importers.v1_graphs import FLOAT, Value, node
from tfconvert.importers.graph.node_graph import ImportContext
from tfconvert.importers.graph.op_forms import NodeForm
from tfconvert.importers.graph.op_signatures import OpRegistry
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb


@pytest.fixture
def context() -> ImportContext:
    return ImportContext(OpRegistry())


def form(context: ImportContext, given: pb.NodeDef) -> NodeForm:
    return context.form(given, given.name, given.op, given.input[:])


def mat_mul(name: str, *inputs: str, **attributes: Value) -> pb.NodeDef:
    declared: dict[str, Value] = {"transpose_a": False, "transpose_b": False, **attributes}
    return node(name, "MatMul", *inputs, T=FLOAT, **declared)


@pytest.mark.parametrize("name", ["another", "größer", "n" * 127, "n" * 128, "n" * 300, "n" * 60_000])
def test_names_and_inputs_are_no_part_of_a_form(context: ImportContext, name: str) -> None:
    first, other = form(context, mat_mul("a", "b", "c")), form(context, mat_mul(name, f"{name}/x", "c:1", "^d"))
    assert other == first
    assert len(context.forms) <= 2


def test_short_names_share_a_form(context: ImportContext) -> None:
    assert form(context, mat_mul("a", "b", "c")) is form(context, mat_mul("longer/name", "x", "y:1", "^z"))


@pytest.mark.parametrize("attributes", [{"transpose_a": True}, {"transpose_b": True}, {"_private": 1}])
def test_attributes_are_part_of_a_form(context: ImportContext, attributes: dict[str, Value]) -> None:
    assert form(context, mat_mul("a", "b", "c")) != form(context, mat_mul("a", "b", "c", **attributes))


def test_the_device_is_part_of_a_form(context: ImportContext) -> None:
    there = mat_mul("a", "b", "c")
    there.device = "/device:CPU:0"
    assert form(context, mat_mul("a", "b", "c")) != form(context, there)


def test_texts_that_look_like_fields_are_no_fields(context: ImportContext) -> None:
    # An input's text with the bytes of an attribute after the length of another text.
    plain, odd = mat_mul("a", "b", "c"), mat_mul("a", "b", "c*\x02")
    assert form(context, plain) == form(context, odd)
