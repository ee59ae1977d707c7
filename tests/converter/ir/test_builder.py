"""The builder infers types, folds numbers, and creates ops of the right dialect."""

from __future__ import annotations

import numpy as np
import pytest

from tfconvert.converter.ir.tf_builder import TFBuilder, TFLBuilder
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.locations import NameLoc
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

HERE = NameLoc.get("here")


def _builder(*shapes: Shape | None) -> tuple[TFBuilder, Block]:
    block = Block(arg_types=[types.tensor(types.F32, shape) for shape in shapes])
    return TFBuilder.at_block_end(block, HERE), block


def _held(value: Value) -> list[int]:
    constant = tensor_data.constant_of(value)
    assert constant is not None
    found: list[int] = tensor_data.to_array(constant).tolist()
    return found


def test_numbers_become_constants_before_the_op() -> None:
    insert, block = _builder((2, 3))
    insert.tf("GatherV2", (block.args[0], insert.ints([1]), 0), types.tensor(types.F32, (1, 3)))
    assert [op.name for op in block.ops] == ["tf.Const", "tf.Const", "tf.GatherV2"]
    assert {op.location for op in block.ops} == {HERE}


def test_known_dimensions_are_numbers() -> None:
    insert, block = _builder((2, -1))
    assert insert.size(block.args[0], 0) == 2
    assert not block.ops
    assert isinstance(insert.size(block.args[0], 1), Value)
    assert [op.name for op in block.ops if op.operands] == ["tf.Shape", "tf.StridedSlice"]


@pytest.mark.parametrize(
    ("name", "expected"), [("add", 7), ("subtract", 3), ("multiply", 10), ("maximum", 5), ("minimum", 2)]
)
def test_scalars_are_folded(name: str, expected: int) -> None:
    insert, block = _builder()
    assert insert.compute(name, insert.number(5), 2) == expected
    assert [op.name for op in block.ops] == ["tf.Const"]


def test_scalars_that_are_not_known_are_computed() -> None:
    insert, _ = _builder()
    unknown = insert.tf("Placeholder", (), types.tensor(types.I32, ()))
    found = insert.compute("multiply", unknown, 2)
    assert isinstance(found, Value)
    assert isinstance(found.owner, Operation)
    assert found.owner.name == "tf.Mul"
    assert isinstance(packed := insert.pack([unknown, 2]).owner, Operation)
    assert packed.name == "tf.Pack"


def test_known_scalars_are_packed_into_a_constant() -> None:
    insert, block = _builder()
    assert _held(insert.pack([1, insert.number(2)])) == [1, 2]
    assert [op.name for op in block.ops] == ["tf.Const", "tf.Const"]


def test_a_cast_to_the_same_type_is_omitted() -> None:
    insert, block = _builder((2,))
    assert insert.cast(block.args[0], types.F32) is block.args[0]
    assert insert.i32(block.args[0]).type == types.tensor(types.I32, (2,))


def test_types_follow_the_operand() -> None:
    insert, block = _builder((2, -1), None)
    known, unknown = block.args
    assert insert.transpose(known, (1, 0)).type == types.tensor(types.F32, (-1, 2))
    assert insert.transpose(unknown, (1, 0)).type == types.tensor(types.F32, None)
    assert insert.slice(known, (0, 0), (1, 2)).type == types.tensor(types.F32, (1, 2))
    assert insert.shape(known).type == types.tensor(types.I32, (2,))
    assert insert.shape(unknown).type == types.tensor(types.I32, (-1,))
    assert insert.shape(unknown, 3).type == types.tensor(types.I32, (3,))
    assert insert.part(insert.shape(known), 1, None).type == types.tensor(types.I32, (1,))
    assert insert.zeros([2, insert.size(known, 1)], types.F32).type == types.tensor(types.F32, (2, -1))


def test_a_single_value_is_not_joined() -> None:
    insert, block = _builder((2,))
    assert insert.concat([block.args[0]], (2,)) is block.args[0]
    assert insert.concat([block.args[0]] * 2, (4,)).type == types.tensor(types.F32, (4,))


def test_the_other_dialect_has_its_own_constants_and_shapes() -> None:
    _, block = _builder((2, -1))
    insert = TFLBuilder.at_block_end(block)
    insert.shape(block.args[0])
    insert.scalar(0.5, types.F32)
    assert [op.name for op in block.ops] == ["tfl.shape", "tfl.pseudo_const"]


def test_scalars_have_the_element_type() -> None:
    insert, _ = _builder()
    made = insert.scalar(2, types.I64)
    assert made.type == types.tensor(types.I64, ())
    assert np.array_equal(_held(made), 2)


def test_vectors_have_the_element_type() -> None:
    insert, block = _builder()
    assert insert.ints([1, 2], types.I64).type == types.tensor(types.I64, (2,))
    assert [op.name for op in block.ops] == ["tf.Const"]
