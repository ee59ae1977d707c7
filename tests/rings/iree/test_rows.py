"""Every legalization to StableHLO, with known sizes and with open ones, against TensorFlow, in IREE."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from types import ModuleType

import pytest

from tests.converter.targets.stablehlo.cases import GROUPS, SIZES
from tests.converter.targets.stablehlo.group import Group
from tests.converter.targets.stablehlo.test_legalizations import _compare, _function, _inputs
from tests.rings.iree.program import made

pytest.importorskip("iree.compiler")

# Cases that IREE 3.13 doesn't compile, by group.
NOT_IN_IREE: Mapping[str, Collection[str]] = {
    "linear algebra": ("cholesky", "triangle", "upper"),
    # For a generic processor it does not link the roundings of its own decompositions.
    "special functions": ("digamma", "negative_digamma", "polygamma", "zeta"),
}

# Groups whose cases it compiles one by one only.
ALONE = frozenset({"chosen boxes", "greatest"})


def _check(tf: ModuleType, group: Group, folder: Path, *, is_open: bool) -> None:
    for index, sizes in enumerate(SIZES):
        if index == 0:
            function = _function(tf, group, None if is_open else sizes)
            program = made(function, folder)
        inputs = _inputs(group, sizes)
        found = program.run(inputs)
        _compare([*found], [*found.values()], function(*[tf.constant(each) for each in inputs]))
        if not is_open:
            return


@pytest.mark.parametrize("is_open", [False, True], ids=["known", "open"])
@pytest.mark.parametrize("name", GROUPS)
def test_rows(tf: ModuleType, name: str, is_open: bool, tmp_path: Path) -> None:
    group = GROUPS[name](tf)
    left_out = set(NOT_IN_IREE.get(name, ()))
    assert left_out <= set(group.cases)
    cases = {case: run for case, run in group.cases.items() if case not in left_out}
    if not cases or (is_open and not group.is_open):
        return
    for each in [{case: run} for case, run in cases.items()] if name in ALONE else [cases]:
        _check(tf, group._replace(cases=each), tmp_path, is_open=is_open)
