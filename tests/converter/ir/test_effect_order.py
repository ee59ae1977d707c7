"""The order that effects demand: all of it, and no more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tfconvert.converter.ir.effect_order import EffectOrder
from tfconvert.schema.dialects import tf
from tfconvert.schema.dialects.tf_effects import ANY, Effects
from tfconvert.schema.ir.operation import Operation

_STATES = st.frozensets(st.sampled_from(["a", "b", "c", ANY]), max_size=2)
_EFFECTS = st.builds(Effects, reads=_STATES, writes=_STATES)


def _collide(one: Effects, other: Effects) -> bool:
    """Returns whether two ops may not be swapped: one writes what the other touches."""
    for first, second in ((one, other), (other, one)):
        touched = second.reads | second.writes
        if first.writes & touched or (first.writes and ANY in touched) or (ANY in first.writes and touched):
            return True
    return False


@given(st.lists(_EFFECTS, max_size=12))
def test_ops_that_collide_follow_each_other_directly_or_not(sequence: list[Effects]) -> None:
    ops: list[Operation] = [tf.build("NoOp", [], []) for _ in sequence]
    effects_of = dict(zip(ops, sequence, strict=True))
    order = EffectOrder(effects_of.__getitem__)
    before: dict[Operation, set[Operation]] = {}
    for number, op in enumerate(ops):
        direct = order.before(op)
        assert len(set(direct)) == len(direct)
        assert set(direct) <= set(ops[:number])
        before[op] = set(direct).union(*(before[earlier] for earlier in direct))
        assert {earlier for earlier in ops[:number] if _collide(effects_of[earlier], effects_of[op])} <= before[op]


def test_reads_of_one_state_and_ops_on_different_states_run_in_any_order() -> None:
    reads, writes = Effects(reads=frozenset({"a"})), Effects(writes=frozenset({"a"}))
    other = Effects(writes=frozenset({"b"}))
    ops: list[Operation] = [tf.build("NoOp", [], []) for _ in range(6)]
    effects_of = dict(zip(ops, (writes, reads, reads, other, writes, reads), strict=True))
    order = EffectOrder(effects_of.__getitem__)
    numbers = [[ops.index(earlier) for earlier in order.before(op)] for op in ops]
    assert numbers == [[], [0], [0], [], [1, 2], [4]]
