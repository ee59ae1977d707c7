"""The sets of ops agree with TensorFlow's definitions."""

from __future__ import annotations

import pytest

from tfconvert.ops.registry import shape_function
from tfconvert.schema.dialects import tf_traits
from tfconvert.schema.tensorflow import op_defs
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

ALL = sorted(tf_traits.ZERO_PRESERVING | tf_traits.SAME_TYPE | tf_traits.ELEMENTWISE_BINARY)


def _op_def(name: str) -> pb.OpDef:
    found = op_defs.lookup(name)
    assert found is not None, name
    return found


def _type(argument: pb.OpDef.ArgDef) -> tuple[str, int]:
    return argument.type_attr or argument.type_list_attr, argument.type


@pytest.mark.parametrize("name", ALL)
def test_ops_are_known(name: str) -> None:
    assert len(_op_def(name).input_arg) >= 1
    assert shape_function(name) is not None


@pytest.mark.parametrize("name", sorted(tf_traits.SAME_TYPE))
def test_results_have_the_operand_s_type(name: str) -> None:
    op_def = _op_def(name)
    assert [_type(each) for each in op_def.input_arg] == [_type(each) for each in op_def.output_arg]


@pytest.mark.parametrize("name", sorted(tf_traits.ELEMENTWISE_BINARY))
def test_operands_and_result_have_one_type(name: str) -> None:
    op_def = _op_def(name)
    assert len(op_def.input_arg) == 2
    assert len({_type(each) for each in (*op_def.input_arg, *op_def.output_arg)}) == 1


@pytest.mark.parametrize("name", sorted(tf_traits.SAME_ELEMENTS))
def test_elements_have_the_operand_s_type(name: str) -> None:
    op_def = _op_def(name)
    assert _type(op_def.input_arg[0]) == _type(op_def.output_arg[0])


def test_names_in_the_ir() -> None:
    assert tf_traits.full_names({"Relu"}) == {"tf.Relu"}
