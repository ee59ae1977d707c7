"""Every legalization to StableHLO, with known sizes and with open ones, against TensorFlow, in IREE."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

import tfconvert
from tests.converter.stablehlo.cases import SIZES, groups
from tests.converter.stablehlo.group import Group
from tests.converter.stablehlo.test_legalizations import NAMES, _compare, _function, _inputs

pytest.importorskip("iree.compiler")

from tests.rings.iree.engine import Program

NOT_IN_IREE: Mapping[str, frozenset[str]] = {}
"""Cases that IREE has no form for, by group."""


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
@pytest.mark.parametrize("name", NAMES)
def test_rows(tf: ModuleType, name: str, is_open: bool, tmp_path: Path) -> None:
    group = groups(tf)[name]
    left_out = NOT_IN_IREE.get(name, frozenset())
    assert left_out <= set(group.cases)
    group = group._replace(cases={case: run for case, run in group.cases.items() if case not in left_out})
    if group.is_open or not is_open:
        _check(tf, group, tmp_path, is_open=is_open)
