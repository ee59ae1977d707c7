"""The table of legalizations as a whole."""

from __future__ import annotations

from converter.legalize import table
from schema.tensorflow import op_defs
from schema.tflite import operators
from tests import test_state
from tests.converter.legalize import test_control_flow, test_elementwise, test_neural, test_random, test_shapes


def test_every_op_is_tested() -> None:
    cases = (*test_elementwise.CASES, *test_neural.CASES, *test_random.CASES, *test_shapes.CASES)
    tested = {case.op for case in cases} | {first.op for first, _ in test_neural.FIRST}
    tested |= test_control_flow.OPS | set(test_state.OPS)
    # A constant is part of nearly every case; what `Empty` holds can't be compared; TensorFlow runs no graph with XLA's
    # op, which lists that become tensors are full of.
    assert {op for _, op, _, _ in table.supported_ops()} - tested == {"Const", "Empty", "XlaDynamicUpdateSlice"}


def test_every_op_is_one_of_tensorflows() -> None:
    assert not [op for _, op, _, _ in table.supported_ops() if op_defs.lookup(op) is None]


def test_every_target_exists() -> None:
    targets = {name for _, _, becomes, _ in table.supported_ops() for name in becomes.split()}
    ours = {name for name in targets if name[0].islower()}
    assert not [name for name in ours - {"pseudo_const", "nothing"} if operators.lookup(name) is None]
    assert not [name for name in targets - ours if op_defs.lookup(name) is None]


def test_what_an_op_is_lowered_to_is_legalized_itself() -> None:
    known = {op for _, op, _, _ in table.supported_ops()}
    emitted = {name for _, _, becomes, _ in table.supported_ops() for name in becomes.split() if name[0].isupper()}
    assert emitted <= known


def test_patterns_are_made_once() -> None:
    assert table.patterns() is table.patterns()
    assert table.fusions() is table.fusions()
