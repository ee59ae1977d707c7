"""The table of legalizations as a whole."""

from __future__ import annotations

from tests import test_state
from tests.converter.litert.legalize import (
    test_binning,
    test_control_flow,
    test_elementwise,
    test_embeddings,
    test_images,
    test_neural,
    test_random,
    test_segments,
    test_shapes,
    test_strings,
)
from tfconvert.converter.litert.legalize import registry, uncommon
from tfconvert.converter.litert.legalize.entry import Lowering
from tfconvert.schema.tensorflow import op_defs
from tfconvert.schema.tflite import operators


def test_every_op_is_tested() -> None:
    cases = (
        *test_binning.CASES,
        *test_elementwise.CASES,
        *test_images.CASES,
        *test_neural.CASES,
        *test_random.CASES,
        *test_segments.CASES,
        *test_shapes.CASES,
    )
    tested = {case.op for case in cases} | {first.op for first, _ in test_neural.FIRST}
    tested |= test_control_flow.OPS | set(test_embeddings.OPS) | set(test_state.OPS) | set(test_strings.OPS)
    # A constant is part of nearly every case; what `Empty` holds can't be compared; TensorFlow runs no graph with XLA's
    # op, which lists that become tensors are full of.
    assert {op for _, op, _, _ in registry.supported_ops()} - tested == {"Const", "Empty", "XlaDynamicUpdateSlice"}


def test_every_op_is_one_of_tensorflows() -> None:
    assert not [op for _, op, _, _ in registry.supported_ops() if op_defs.lookup(op) is None]


def test_every_target_exists() -> None:
    targets = {name for _, _, becomes, _ in registry.supported_ops() for name in becomes.split()}
    ours = {name for name in targets if name[0].islower()}
    assert not [name for name in ours - {"pseudo_const", "nothing"} if operators.lookup(name) is None]
    assert not [name for name in targets - ours if op_defs.lookup(name) is None]


def test_what_an_op_is_lowered_to_is_legalized_itself() -> None:
    known = {op for _, op, _, _ in registry.supported_ops()}
    emitted = {name for _, _, becomes, _ in registry.supported_ops() for name in becomes.split() if name[0].isupper()}
    assert emitted <= known


def test_patterns_are_made_once() -> None:
    assert registry.phases_for({"tf.Relu"}) is registry.common() is registry.common()
    assert registry.phases_for({"tf.Relu", "tf.While"}) is registry.everything() is registry.everything()


def test_what_most_networks_need_is_never_rare() -> None:
    """Neither at once nor after something was lowered; and an op's patterns are all there or all away."""
    rare_ops = {entry.op for entries in uncommon.TOPICS.values() for entry in entries}
    common = [row for row in registry.supported_ops() if row[0] not in uncommon.TOPICS]
    assert not rare_ops & {op for _, op, _, _ in common}
    assert not rare_ops & {name for _, _, becomes, _ in common for name in becomes.split()}
    assert {pattern.root.removeprefix("tf.") for pattern in uncommon.FUSIONS} <= rare_ops


def test_rare_legalizations_are_told_too() -> None:
    noted = [
        entry for entries in uncommon.TOPICS.values() for entry in entries if isinstance(entry, Lowering) and entry.note
    ]
    assert noted
    for entry in noted:
        (note,) = registry.everything()[-1].notes({entry.pattern_name: 3, "Relu-to-relu": 1})
        assert note.message == f"{entry.op}: {entry.note} (3 of them)"
