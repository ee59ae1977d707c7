"""Recurrent loops that go through a sequence from its end, `jax.lax.scan(..., reverse=True)`, are made to go forwards.

What they read is reversed before them, and what they write behind them. Cells of recurrent layers are recognized in
loops that go forwards, and reversing cancels out where a sequence was reversed before.
"""

from __future__ import annotations

from tfconvert.converter.from_stablehlo.bounds import counter_from_end
from tfconvert.converter.from_stablehlo.idioms import number
from tfconvert.converter.from_stablehlo.raised_op import RaisedOp
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.ops.operands import Known
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import BlockArgument, OpResult, Value

_LOOP = "tf.WhileRegion"

# What recurrent layers have.
_PRODUCTS = frozenset({"tf.BatchMatMulV2", "tf.Einsum", "tf.MatMul"})

_READ, _WRITE = "tf.GatherV2", "tf.XlaDynamicUpdateSlice"

# Ops that repeat a number, and which operand that is.
_REPETITIONS = {"tf.BroadcastTo": 0, "tf.Fill": 1}


def turn(op: Operation, known: Known) -> None:
    """Makes a recurrent loop that reads and writes sequences from their ends go forwards; leaves any other op.

    Args:
        op: The op, whose regions are raised, and have no dead ops.
        known: The facts of the values around it.
    """
    body = op.regions[1].block if op.name == _LOOP else None
    if body is None or not any(inner.name in _PRODUCTS for inner in body.ops):
        return
    raised = RaisedOp(op, known)
    places: dict[Value, dict[int, Value]] = {}
    for argument in body.args:
        found = _index(raised, argument)
        if found is not None:
            counter, index = found
            places.setdefault(counter, {})[argument.index] = index
    for argument in body.args:
        own = places.get(argument, {})
        if own and all(_users(index) <= len(own) for index in own.values()):
            _turn(raised, argument, own)
            known.answers.clear()
            return


def _index(raised: RaisedOp, argument: BlockArgument) -> tuple[Value, Value] | None:
    """Returns a counter, and the index by it from the end at which a sequence is read, or written.

    It is `None` if that isn't all that is done with the sequence.
    """
    last = argument.block.last_op
    assert last is not None
    following = last.operands[argument.index]
    users = [use.operation for use in argument.uses if use.operation is not last]
    if not users or len({id(user) for user in users}) > 1 or users[0].operands[0] is not argument:
        return None
    (user, *_), tensor = users, raised.tensor(argument)
    if user.name == _READ and following is argument and raised.elements(raised.tensor(user.operands[2])) == (0,):
        index = user.operands[1]
    elif user.name == _WRITE and following is user.results[0] and following.has_one_use():
        starts = raised.scalars(raised.tensor(user.operands[2])) or [tensor]
        index = starts[0].value
        if raised.sizes(raised.tensor(user.operands[1]))[0] != 1:
            return None
    else:
        return None
    counter = counter_from_end(raised.tensor(index), raised.sizes(tensor)[0])
    is_index = counter is not None and isinstance(index, OpResult) and index.type == counter.type
    return (counter, index) if counter is not None and is_index else None


def _users(index: Value) -> int:
    return sum(1 for _ in index.uses)


def _turn(raised: RaisedOp, counter: BlockArgument, places: dict[int, Value]) -> None:
    op = raised.op
    body, behind = counter.block, op.next_op
    assert body.last_op is not None
    assert behind is not None
    builder = TFBuilder(behind)
    for place in places:
        sequence, result = raised.operands[place], op.results[place]
        is_read = body.last_op.operands[place] is body.args[place]
        if not _is_uniform(sequence):
            op.set_operand(place, sequence.op("ReverseV2", sequence, [0]).value)
        if is_read:
            result.replace_all_uses_with(sequence.value)
        elif not result.is_unused:
            _reverse_behind(EmittedTensor(builder, result, sequence.known))
    for index in dict.fromkeys(places.values()):
        index.replace_all_uses_with(counter)


def _reverse_behind(written: EmittedTensor) -> None:
    """Puts the reverse of a sequence in its place."""
    turned = written.op("ReverseV2", written, [0]).value
    written.value.replace_uses_with_if(turned, lambda use: use.operation is not turned.owner)


def _is_uniform(sequence: EmittedTensor) -> bool:
    """Returns whether a tensor is the repetition of a number."""
    owner = sequence.value.owner
    if isinstance(owner, Operation) and owner.name in _REPETITIONS:
        return owner.operands[_REPETITIONS[owner.name]].shape == ()
    return number(sequence) is not None
