"""Every legalization to StableHLO, with known sizes and with open ones, against TensorFlow, in IREE."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from types import ModuleType

import pytest

import tfconvert
from tests.converter.stablehlo.cases import GROUPS, SIZES
from tests.converter.stablehlo.group import Group
from tests.converter.stablehlo.test_legalizations import _compare, _function, _inputs

pytest.importorskip("iree.compiler")

from tests.rings.iree.engine import Program

NOT_IN_IREE: Mapping[str, Collection[str]] = {
    "linear algebra": ("cholesky", "triangle", "upper"),
    # For a generic processor it does not link the roundings of its own decompositions.
    "special functions": ("digamma", "negative_digamma", "polygamma", "zeta"),
}
"""Cases that IREE 3.13 doesn't compile, by group."""

NOT_OPEN_IN_IREE: Mapping[str, Collection[str]] = {
    # IREE takes what the loop carries for something else: conversions warn.
    "boxes of classes": ("shared_0", "shared_1", "shared_2", "shared_3", "own", "padded", "wide"),
}
"""Cases that it compiles with known sizes only."""

ALONE = frozenset({"boxes", "chosen boxes", "greatest", "ragged tensors", "scans"})
"""Groups whose cases it compiles one by one only: it mixes up what several loops carry, and sizes of `chlo.top_k`."""


def _check(tf: ModuleType, group: Group, folder: Path, *, is_open: bool) -> None:
    for index, sizes in enumerate(SIZES):
        if index == 0:
            function = _function(tf, group, None if is_open else sizes)
            converted = tfconvert.convert(function, target="stablehlo", mlir_weights="inline")
            names = [each.name for each in converted.report.interfaces[0].outputs]
            program = Program(bytes(converted).decode(), folder)
        inputs = _inputs(group, sizes)
        _compare(names, program.run(inputs), function(*[tf.constant(each) for each in inputs]))
        if not is_open:
            return


@pytest.mark.parametrize("is_open", [False, True], ids=["known", "open"])
@pytest.mark.parametrize("name", GROUPS)
def test_rows(tf: ModuleType, name: str, is_open: bool, tmp_path: Path) -> None:
    group = GROUPS[name](tf)
    left_out = {*NOT_IN_IREE.get(name, ()), *(NOT_OPEN_IN_IREE.get(name, ()) if is_open else ())}
    assert left_out <= set(group.cases)
    cases = {case: run for case, run in group.cases.items() if case not in left_out}
    if not cases or (is_open and not group.is_open):
        return
    for each in [{case: run} for case, run in cases.items()] if name in ALONE else [cases]:
        _check(tf, group._replace(cases=each), tmp_path, is_open=is_open)
