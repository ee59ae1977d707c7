"""The table of legalizations as a whole."""

from __future__ import annotations

import subprocess
import sys

from tests.converter.targets.litert.legalize import (
    test_binning,
    test_control_flow,
    test_elementwise,
    test_embeddings,
    test_fake_quant,
    test_gradients,
    test_images,
    test_linear_algebra,
    test_neural,
    test_older_ops,
    test_open_images,
    test_random,
    test_segments,
    test_shapes,
    test_signal,
    test_special_functions,
    test_strings,
    test_suppression,
)
from tests.models import test_state
from tests.support.run_text import parse
from tfconvert.converter.targets.litert.legalize import decomposed, legalizations
from tfconvert.converter.targets.litert.legalize.entry import Lowering
from tfconvert.converter.targets.litert.passes.legalize import Legalize
from tfconvert.ops import index
from tfconvert.ops.registry import MODULE_OF
from tfconvert.schema.tensorflow import op_defs
from tfconvert.schema.tflite import operators

RARE = [module for module in legalizations.TABLE.modules if module.ops]


def test_every_op_is_tested() -> None:
    cases = (
        *test_binning.CASES,
        *test_elementwise.CASES,
        *test_fake_quant.CASES,
        *test_images.CASES,
        *test_linear_algebra.CASES,
        *test_neural.CASES,
        *test_older_ops.CASES,
        *test_open_images.CASES,
        *test_random.CASES,
        *test_random.OF_SEEDS,
        *(case for case, *_ in test_random.OWN),
        test_random.SHUFFLE,
        *test_segments.CASES,
        *test_shapes.CASES,
        *test_signal.DIMENSIONS,
    )
    tested = {case.op for case in cases} | {first.op for first, _ in test_neural.FIRST}
    tested |= (
        test_control_flow.OPS
        | test_gradients.OPS
        | test_special_functions.OPS
        | test_suppression.OPS
        | {test_random.LIMITED}
        | set(test_embeddings.OPS)
        | set(test_state.OPS)
        | set(test_strings.OPS)
        | test_older_ops.OPS
    )
    # A constant is part of nearly every case; TensorFlow runs no graph with XLA's ops, which lists that become tensors
    # and StableHLO are full of, and the oldest of its kind only in graphs of its first years.
    untested = {"Const", "QuantizeAndDequantize", "XlaDynamicUpdateSlice", "XlaPad", "XlaRngBitGenerator"}
    assert {op for _, op, *_ in legalizations.entries()} - tested == untested


def test_every_op_is_one_of_tensorflows() -> None:
    assert not [op for _, op, *_ in legalizations.entries() if op_defs.lookup(op) is None]


def test_every_target_exists() -> None:
    targets = {name for _, _, becomes, *_ in legalizations.entries() for name in becomes.split()}
    ours = {name for name in targets if name[0].islower()}
    assert not [name for name in ours - {"pseudo_const", "nothing"} if operators.lookup(name) is None]
    assert not [name for name in targets - ours if op_defs.lookup(name) is None]


def test_what_an_op_is_lowered_to_is_legalized_itself() -> None:
    known = {op for _, op, *_ in legalizations.entries()}
    emitted = {name for _, _, becomes, *_ in legalizations.entries() for name in becomes.split() if name[0].isupper()}
    assert emitted <= known


def test_patterns_are_made_once() -> None:
    assert legalizations.phases_for({"tf.Relu", "tf.NoSuchOp"}) is legalizations.common() is legalizations.common()
    every_op = {*legalizations.TABLE.by_op, *(f"tf.{name}" for name in MODULE_OF)}
    assert legalizations.phases_for(every_op) is legalizations.everything() is legalizations.everything()
    assert legalizations.phases_for({"tf.Relu", "tf.While"}) is legalizations.phases_for({"tf.If"})
    assert legalizations.phases_for({"tf.While"}) is not legalizations.everything()


def test_the_table_of_modules_names_the_ops_of_their_files() -> None:
    for module in RARE:
        (file,) = legalizations.TABLE.load(frozenset((module,)))
        entries, patterns = getattr(file, "ENTRIES", ()), getattr(file, "PATTERNS", ())
        roots = {entry.op for entry in entries} | {pattern.root.removeprefix("tf.") for pattern in patterns}
        assert module.ops.split() == sorted(roots), module.name
    names = [module.name for module in legalizations.TABLE.modules]
    assert len(names) == len(set(names))


def test_what_most_networks_need_is_never_rare() -> None:
    """Neither at once nor after something was lowered."""
    rare_ops = {name.removeprefix("tf.") for name in legalizations.TABLE.by_op}
    files = legalizations.TABLE.load(frozenset(module for module in legalizations.TABLE.modules if not module.ops))
    common = [(entry.op, getattr(entry, "becomes", "")) for file in files for entry in getattr(file, "ENTRIES", ())]
    for lowering, becomes in decomposed.entries():
        if MODULE_OF[lowering.op] in legalizations.COMMON_FAMILIES:
            common.append((lowering.op, becomes))
    assert not rare_ops & {name for op, becomes in common for name in (op, *becomes.split())}


def test_topics_are_loaded_alone() -> None:
    script = (
        "import sys; from tfconvert.converter.targets.litert.legalize import legalizations\n"
        "from tfconvert.ops.registry import kernel\n"
        "legalizations.phases_for({'tf.Relu', 'tf.NoSuchOp'}); kernel('NoSuchOp')\n"
        "print(*sys.modules); legalizations.phases_for({'tf.MatrixSetDiag'}); kernel('RGBToHSV'); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    before, after = map(str.split, done.stdout.splitlines())
    topics = {f"tfconvert.converter.targets.litert.legalize.{module.name}" for module in RARE}
    assert not topics & set(before)
    families = {f"tfconvert.ops.{module}" for module in index.MODULES}
    assert (topics | families) & set(after) - set(before) == {
        "tfconvert.converter.targets.litert.legalize.diagonals",
        "tfconvert.ops.colors",
    }


def test_what_an_op_of_one_topic_is_lowered_to_may_be_of_another() -> None:
    text = """
    func.func @main(%i: tensor<4x2xi64>, %v: tensor<4xf32>, %b: tensor<3x2xf32>) -> tensor<5x2xf32> {
      %s = "tf.Const"() <{value = dense<[5, 3]> : tensor<2xi64>}> : () -> tensor<2xi64>
      %0 = "tf.SparseTensorDenseMatMul"(%i, %v, %s, %b)
        : (tensor<4x2xi64>, tensor<4xf32>, tensor<2xi64>, tensor<3x2xf32>) -> tensor<5x2xf32>
      func.return %0 : tensor<5x2xf32>
    }
    """
    assert not legalizations.phases_for({"tf.SparseTensorDenseMatMul"})[1].for_root("tf.UnsortedSegmentSum")
    counts = Legalize().apply(parse(text)).counts
    assert counts["UnsortedSegmentSum-to-unsorted_segment_sum"] == 1


def test_rare_legalizations_are_told_too() -> None:
    entries = [entry for file in legalizations.TABLE.load(frozenset(RARE)) for entry in getattr(file, "ENTRIES", ())]
    entries += [entry for module in index.MODULES for entry in decomposed.lowerings(module)]
    noted = [entry for entry in entries if isinstance(entry, Lowering) and entry.note]
    assert noted
    for entry in noted:
        (note,) = legalizations.everything()[-1].notes({entry.pattern_name: 3, "Relu-to-relu": 1})
        assert note.message == f"{entry.op}: {entry.note} (3 of them)"
