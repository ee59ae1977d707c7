"""Ops are created at the insertion point, with the builder's location by default."""

from __future__ import annotations

import numpy as np
import pytest

from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.arith import BinaryOp, ConstantOp
from tfconvert.schema.ir.attributes import IntegerAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builder import OpBuilder
from tfconvert.schema.ir.locations import UNKNOWN_LOC, NameLoc

HERE, THERE = NameLoc.get("here"), NameLoc.get("there")
SCALAR = types.tensor(types.F32, ())


def _names(block: Block) -> list[str]:
    return [op.name for op in block.ops]


def test_ops_are_inserted_before_an_op_in_order() -> None:
    block = Block([tf.build("C", (), ()), last := tf.build("D", (), (), location=HERE)])
    builder = OpBuilder(last)
    made = [builder.insert(tf.build(name, (), ())) for name in "AB"]
    assert _names(block) == ["tf.C", "tf.A", "tf.B", "tf.D"]
    assert [op.location for op in made] == [HERE, HERE]


def test_ops_are_appended() -> None:
    block = Block([tf.build("A", (), ())])
    builder = OpBuilder.at_block_end(block, HERE)
    builder.insert(tf.build("B", (), ()))
    assert builder.insert(tf.build("C", (), (), location=THERE)).location is THERE
    assert _names(block) == ["tf.A", "tf.B", "tf.C"]


def test_ops_are_inserted_at_the_beginning() -> None:
    block = Block([tf.build("C", (), (), location=HERE)])
    builder = OpBuilder.at_block_begin(block)
    assert [builder.insert(tf.build(name, (), ())).location for name in "AB"] == [HERE, HERE]
    assert OpBuilder.at_block_begin(block, THERE).insert(tf.build("D", (), ())).location is THERE
    assert _names(block) == ["tf.D", "tf.A", "tf.B", "tf.C"]
    empty = Block()
    assert OpBuilder.at_block_begin(empty).insert(tf.build("A", (), ())).location is UNKNOWN_LOC
    assert _names(empty) == ["tf.A"]


def test_a_builder_follows_its_op_to_another_block() -> None:
    op = tf.build("B", (), ())
    Block([op])
    builder = OpBuilder(op)
    op.detach()
    other = Block([op])
    builder.insert(tf.build("A", (), ()))
    assert _names(other) == ["tf.A", "tf.B"]


def test_result_types_are_inferred() -> None:
    block = Block()
    builder = OpBuilder.at_block_end(block, HERE)
    one = builder.create(ConstantOp, properties={"value": IntegerAttr.get(1, types.I32)})
    both = builder.create(BinaryOp, "arith.addi", (one.results[0], one.results[0]))
    assert [op.result_types for op in (one, both)] == [[types.I32], [types.I32]]
    assert both.location is HERE
    assert _names(block) == ["arith.constant", "arith.addi"]


def test_a_dialect_with_many_ops_infers_by_name() -> None:
    builder = OpBuilder.at_block_end(Block())
    one = builder.create(tf.TFOp, "tf.Const", properties={"value": tensor_data.of_array(np.zeros((), np.float32))})
    values = (one.results[0], builder.create(tf.TFOp, "tf.Relu", one.results).results[0])
    assert builder.create(tf.TFOp, "tf.IdentityN", values).result_types == [SCALAR, SCALAR]


def test_result_types_may_be_given() -> None:
    builder = OpBuilder.at_block_end(Block())
    assert builder.create(tf.TFOp, "tf.Placeholder", (), (SCALAR,)).result_types == [SCALAR]


def test_unknown_result_types_are_rejected() -> None:
    block = Block()
    with pytest.raises(ValueError, match=r"^tf.Placeholder needs result types"):
        OpBuilder.at_block_end(block).create(tf.TFOp, "tf.Placeholder")
    assert not block.ops


@pytest.mark.parametrize("moved", ["", "X", "XYZ"])
@pytest.mark.parametrize("at", [0, 1])
def test_the_ops_of_a_block_are_moved_into_another(moved: str, at: int) -> None:
    block, other = (Block([tf.build(name, (), ()) for name in names]) for names in ("AB", moved))
    block.insert_ops_before(other, list(block.ops)[at])
    names = [f"tf.{name}" for name in "AB"[:at] + moved + "AB"[at:]]
    assert _names(block) == names
    assert [op.name for op in reversed(block.ops)] == names[::-1]
    assert all(op.parent is block for op in block.ops)
    assert other.first_op is other.last_op is None
