"""Edits leave types that agree with what stands in the functions."""

from __future__ import annotations

from tfconvert.converter.ir.edit import rebuild, replace_op, update_function_type
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.locations import UNKNOWN_LOC, NameLoc
from tfconvert.schema.ir.types import FunctionType

VECTOR, MATRIX = types.tensor(types.F32, (2,)), types.tensor(types.F32, (2, 2))


def _function(block: Block) -> FuncOp:
    return FuncOp.of("f", FunctionType.get([VECTOR], [VECTOR]), Region(block), "private")


def test_function_types_follow_arguments_and_results() -> None:
    block = Block(arg_types=[VECTOR])
    block.add_op(ReturnOp.of(block.args))
    function = _function(block)
    assert not update_function_type(function)
    block.args[0].type = MATRIX
    assert update_function_type(function)
    assert function.function_type is FunctionType.get([MATRIX], [MATRIX])


def test_functions_without_a_return_keep_their_types() -> None:
    function = _function(Block(arg_types=[MATRIX]))
    assert not update_function_type(function)
    assert function.function_type is FunctionType.get([VECTOR], [VECTOR])


def test_ops_are_replaced_by_values() -> None:
    block = Block(arg_types=[VECTOR])
    op = tf.build("Relu", block.args, (VECTOR,))
    user = tf.build("Abs", op.results, (VECTOR,))
    block.add_ops([op, user])
    replace_op(op, block.args[0])
    assert user.operands[0] is block.args[0]
    assert list(block.ops) == [user]


def test_ops_are_rebuilt_with_given_parts() -> None:
    block = Block(arg_types=[VECTOR, MATRIX])
    op = tf.build("LeakyRelu", block.args[:1], (VECTOR,), {"alpha": 0.5}, NameLoc.get("here"))
    op.attributes["device"] = attrs.string("CPU")
    made = rebuild(op, block.args[1:], [MATRIX], {"alpha": attrs.float32(0.25)})
    assert (made.name, made.result_types, made.operands[0], made.location) == (
        "tf.LeakyRelu",
        [MATRIX],
        block.args[1],
        UNKNOWN_LOC,
    )
    assert made.properties == {"alpha": attrs.float32(0.25)}
    assert made.attributes == op.attributes
    assert rebuild(op, block.args[:1]).result_types == [VECTOR]
