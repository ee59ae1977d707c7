"""Every legalization to StableHLO, static and dynamic, against TensorFlow, in IREE."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import ModuleType

import pytest
import tensorflow

from tests.converter.targets.stablehlo.cases import GROUPS, SIZES, case_names
from tests.converter.targets.stablehlo.group import Group
from tests.converter.targets.stablehlo.judged import Judged, Verdicts, differences, function_of, random_inputs
from tests.rings.iree.program import made
from tfconvert.schema.diagnostics import ConversionError

pytest.importorskip("iree.compiler")

# Cases that IREE 3.13 doesn't compile, by group.
NOT_IN_IREE: Mapping[str, Collection[str]] = {
    "linear algebra": ("cholesky", "MatrixTriangularSolve_triangle", "MatrixTriangularSolve_upper"),
    # For a generic processor it does not link the roundings of its own decompositions.
    "special functions": ("digamma", "negative_digamma", "polygamma", "zeta"),
}

# Groups whose cases it compiles one by one only.
ALONE = frozenset({"chosen boxes", "greatest"})

JudgedGroup = Callable[[str, str, bool], Judged]


def _judge(tf: ModuleType, group: Group, folder: Path, *, dynamic: bool) -> Iterator[tuple[str, Verdicts]]:
    function = function_of(tf, group, None if dynamic else SIZES[0])
    program = made(function, folder)
    for sizes in SIZES if dynamic else SIZES[:1]:
        inputs = random_inputs(group, sizes)
        found = program.run(inputs)
        yield "IREE", differences([*found], [*found.values()], function(*[tf.constant(each) for each in inputs]))


@pytest.fixture(scope="session")
def judged(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> JudgedGroup:
    """Returns a function that compiles and runs a group once."""
    known: dict[tuple[str, str, bool], Judged] = {}

    def judge(name: str, case: str, dynamic: bool) -> Judged:
        group = GROUPS[name](tf)
        left_out = set(NOT_IN_IREE.get(name, ()))
        assert left_out <= set(group.cases)
        key = (name, case if name in ALONE else "", dynamic)
        if key not in known:
            cases = {each: run for each, run in group.cases.items() if each not in left_out}
            known[key] = Judged(
                group._replace(cases={case: cases[case]} if name in ALONE else cases),
                lambda group: _judge(tf, group, tmp_path_factory.mktemp("iree"), dynamic=dynamic),
                (AssertionError, ConversionError, ValueError),
            )
        return known[key]

    return judge


@pytest.mark.parametrize(("group", "case", "dynamic"), case_names(tensorflow, {False: "static", True: "dynamic"}))
def test_rows(tf: ModuleType, judged: JudgedGroup, group: str, case: str, dynamic: bool) -> None:
    if case in NOT_IN_IREE.get(group, ()):
        pytest.skip("IREE doesn't compile it")
    if dynamic and not GROUPS[group](tf).is_open:
        pytest.skip("the group has static sizes only")
    judged(group, case, dynamic).check(case)
