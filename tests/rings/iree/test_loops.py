"""Loops that IREE's compiler fails on, or computes wrongly, as they are: converted for it, they are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.iree_probe import Form, forms
from tests.rings.iree.program import made
from tfconvert.converter.executor import executor
from tfconvert.schema.dialects.parsing import IRParser

pytest.importorskip("iree.runtime")

LOOPS = [form for form in forms() if form.op == "stablehlo.while"]


@pytest.mark.parametrize("form", LOOPS, ids=[form.form for form in LOOPS])
def test_loops(form: Form, tmp_path: Path) -> None:
    source = tmp_path / "source.mlir"
    source.write_text(form.text)
    found = made(source, tmp_path).run(form.inputs)
    expected = executor.run(IRParser(form.text).parse_module(), "main", form.inputs)
    for own, other in zip(found.values(), expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-5)
